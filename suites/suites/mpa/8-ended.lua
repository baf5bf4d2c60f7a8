-- RFC 5044 sections 3, 7.2 and 8: the end of a connection. An agent reports the end. The agent is
-- a program on the target that calls the NIC's verbs for the tester.

--- Each of these events reports the end of a connection. (A flushed receive would also report it,
--- but no receive is left at the end.)
local ENDED = { "disconnected", "asynchronous" }

case {
  id = "mpa/8-ended/fin",
  title = "The target reports the data that arrived before the peer closed TCP, and then the close",
  requirements = { "MPA-8-1", "MPA-7.2-2", "MPA-3-13" },
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "close", "agent" },
  parameters = { data = { true, false } },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair, op = target:operate {}
    if p.data then
      local region = target:region { octets = 16, access = { "local_write" } }
      local work = pair:post_receive { region = region }
      conn:send(mpa.fpdu { ulpdu = rdmap.send { msn = op.msn, payload = "last words" } })
      conn:finish()
      pair:expect_completion { work = work, octets = 10, requirement = "MPA-3-13" }
    else
      conn:finish()
    end
    pair:expect_event { event = ENDED, requirement = { "MPA-8-1", "MPA-7.2-2", "MPA-3-13" }, overdue_fails = true }
    conn:close()
  end,
}

case {
  id = "mpa/8-ended/reset",
  title = "The target reports that TCP was reset",
  requirements = { "MPA-8-1" },
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "close", "agent" },

  run = function(t, _, target)
    t:good_exchange()
    local conn, pair = target:operate {}
    conn:reset()
    pair:expect_event { event = ENDED, requirement = "MPA-8-1", overdue_fails = true }
  end,
}

case {
  id = "mpa/8-ended/crossing",
  title = "The target reports the end of a connection that the peer and the target's user end at the same time",
  requirements = { "MPA-8-1" },
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "close", "agent" },
  parameters = { ends = { "fin", "reset", "terminate" } },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair = target:operate {}
    pair:disconnect()
    -- The tester does not wait for the target's FIN.
    if p.ends == "fin" then
      conn:finish()
    elseif p.ends == "reset" then
      conn:reset()
    else
      conn:send(mpa.fpdu { ulpdu = rdmap.send { opcode = 7, qn = 2, msn = 1, payload = "\0\0\0\0" } })
    end
    pair:expect_event { event = ENDED, requirement = "MPA-8-1", overdue_fails = true }
    conn:reset()
  end,
}
