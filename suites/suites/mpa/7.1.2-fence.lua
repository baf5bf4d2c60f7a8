-- RFC 5044 section 7.1.2, rule 4, and RFC 6581 section 3: messages that a Responder's user posts
-- wait for the Initiator's first FPDU. The user is an agent: a program on the target that calls the
-- NIC's verbs for the tester.

local FENCE = { "MPA-7.1.2-17", "P2P-3-4" }

case {
  id = "mpa/7.1.2-fence/posted",
  title = "The responder sends its user's messages after the initiator's first FPDU, and not before",
  requirements = { "MPA-7.1.2-17", "P2P-3-4" },
  capabilities = { "agent" },
  tags = { "startup", "agent" },
  parameters = { operation = { "send", "write", "read" } },

  run = function(t, p, target)
    t:good_exchange()
    local conn = t:connect()
    conn:send(t:request {})
    local pair = target:expect_request {}
    pair:open {}
    local region = target:region { octets = 64, put = "not before you" }
    local received = pair:post_receive { region = target:region { octets = 16, access = { "local_write" } } }
    pair:accept {}
    conn:expect_reply { reject = false }
    pair:expect_event { event = "established" }
    local post = { send = pair.post_send, write = pair.post_write, read = pair.post_read }
    post[p.operation](pair, { region = region, length = 14, may_refuse = true })
    conn:expect_silence { requirement = FENCE, within = 1.5 }
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "you" } })
    pair:expect_completion { work = received, octets = 3 }
    conn:reset()
  end,
}

case {
  id = "mpa/7.1.2-fence/bound",
  title = "The first FPDU completes a receive that the responder's user posted before the Reply",
  requirements = { "MPA-7.1-7", "MPA-7.1.2-10", "MPA-6-4" },
  capabilities = { "agent" },
  tags = { "startup", "agent" },
  parameters = { ms = { 200, 3000 } },

  run = function(t, p, target)
    local conn = t:connect()
    conn:send(t:request {})
    local pair = target:expect_request {}
    pair:open {}
    local received = pair:post_receive { region = target:region { octets = 16, access = { "local_write" } } }
    pair:accept {}
    conn:expect_reply { reject = false }
    pair:expect_event { event = "established" }
    t:pause(p.ms / 1000)
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "first" } })
    pair:expect_completion {
      work = received, octets = 5, requirement = { "MPA-7.1-7", "MPA-7.1.2-10", "MPA-6-4" }, overdue_fails = true,
    }
    conn:reset()
  end,
}
