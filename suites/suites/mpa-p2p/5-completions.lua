-- RFC 6581 section 5: start-up frames complete no work request. The cases use an agent: a program
-- on the target that calls the NIC's verbs for the tester.

--- Returns a buffer for a receive.
local function sink(target)
  return { region = target:region { octets = 16, access = { "local_write" } } }
end

case {
  id = "mpa-p2p/5-completions/responder",
  title = "The responder completes its first receive with a Send, not with a start-up frame or an empty Write",
  requirements = { "P2P-5-7" },
  capabilities = { "agent", "revision-2" },
  tags = { "startup", "enhanced", "agent" },
  parameters = { ready = { "none", "write" } },

  run = function(t, p, target)
    t:good_exchange()
    local conn = t:connect()
    conn:send(t:request { enhanced = true, revision = 2, peer_to_peer = p.ready == "write", rtr_write = p.ready == "write" })
    local pair = target:expect_request {}
    pair:open {}
    local works = { pair:post_receive(sink(target)), pair:post_receive(sink(target)) }
    pair:accept {}
    local reply = conn:expect_reply { reject = false, enhanced = true }
    if p.ready == "write" then
      if not reply.rtr_write then
        conn:reset()
        t:unimplemented("The target does not accept a Write as ready-to-receive message.")
      end
      t:pause(0.2)
      conn:send(mpa.fpdu { ulpdu = rdmap.write {} })
    end
    -- The target may report this event only after it has received the ready-to-receive message.
    pair:expect_event { event = "established" }
    pair:expect_no_completion { within = 1, requirement = "P2P-5-7" }
    conn:send(mpa.fpdu { ulpdu = rdmap.send { msn = 1, payload = "first" } })
    pair:expect_completion { work = works[1], operation = "receive", octets = 5 }
    conn:reset()
  end,
}

case {
  id = "mpa-p2p/5-completions/initiator",
  title = "The initiator completes its first receive with a Send, not with a start-up frame",
  requirements = { "P2P-5-7" },
  roles = { "initiator" },
  capabilities = { "agent" },
  tags = { "startup", "agent" },

  run = function(t, _, target)
    t:good_exchange()
    local conn, pair = target:connect {}
    conn:expect_request {}
    local works = { pair:post_receive(sink(target)), pair:post_receive(sink(target)) }
    conn:send(conn:reply())
    pair:expect_event { event = "established" }
    pair:expect_no_completion { within = 1, requirement = "P2P-5-7" }
    -- A Responder sends only after the Initiator's first FPDU.
    pair:post_send { region = target:region { octets = 4, put = "mine" } }
    repeat
      local fpdu = conn:expect_fpdu {}
    until fpdu.payload == "mine"
    pair:expect_completion { operation = "send" }
    conn:send(mpa.fpdu { ulpdu = rdmap.send { msn = 1, payload = "first" } })
    pair:expect_completion { work = works[1], operation = "receive", octets = 5 }
    conn:reset()
  end,
}
