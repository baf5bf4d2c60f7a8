-- RFC 5040 section 6.2, RFC 5041 sections 3 and 6.2.1: how the target's user learns that a
-- connection ends, and what the user is allowed to do afterwards. The user is an agent: a program
-- on the target that calls the NIC's verbs for the tester.

local DOWN = { "DDP-3-10", "DDP-3-14", "DDP-6.2.1-3" }

case {
  id = "rdmap/6.2-ended/fin",
  title = "The target reports a Send and the FIN after it",
  requirements = DOWN,
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "close", "agent" },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair, op = target:operate {}
    local work = pair:post_receive { region = target:region { octets = 16, access = { "local_write" } } }
    conn:send(mpa.fpdu { ulpdu = rdmap.send { msn = op.msn, payload = "last" } })
    conn:finish()
    pair:expect_completion { work = work, octets = 4 }
    pair:expect_event { event = { "disconnected", "asynchronous" }, requirement = DOWN, overdue_fails = true }
    conn:reset()
  end,
}

case {
  id = "rdmap/6.2-ended/posts-after-it",
  title = "The target rejects work that its user posts after ending the connection, or completes it in error",
  requirements = { "DDP-6.2.1-4" },
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "close", "agent" },
  parameters = { verb = { "send", "write" } },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair = target:operate {}
    local region = target:region { octets = 16 }
    pair:disconnect()
    local fields = { region = region, length = 4, may_refuse = true }
    local work, why
    if p.verb == "send" then
      work, why = pair:post_send(fields)
    else
      fields.stag, fields.to = 7, 0
      work, why = pair:post_write(fields)
    end
    if work then
      pair:expect_completion { work = work, status = "error", requirement = "DDP-6.2.1-4", overdue_fails = true }
    else
      t:check(true, { requirement = "DDP-6.2.1-4", expected = "a rejection: " .. why, actual = "none" })
    end
    conn:close()
  end,
}

case {
  id = "rdmap/6.2-ended/outstanding",
  title = "The target completes a waiting Read in error when the peer's Terminate arrives",
  requirements = { "RDMAP-6.2.1-5" },
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "read", "error", "agent" },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair = target:operate { ird = 1, ord = 1 }
    local work = pair:post_read { region = target:region { octets = 64 }, length = 64, stag = 7, to = 0 }
    conn:expect_fpdu { opcode = 1 }
    conn:send(mpa.fpdu { ulpdu = rdmap.send { opcode = 7, qn = 2, msn = 1, payload = string.char(0x00, 0x00, 0, 0) } })
    pair:expect_completion { work = work, status = "error", requirement = "RDMAP-6.2.1-5", overdue_fails = true }
    conn:reset()
  end,
}
