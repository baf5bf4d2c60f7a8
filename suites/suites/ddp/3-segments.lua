-- RFC 5041 section 3: the layer below DDP passes each DDP segment to DDP only once.

local ONCE = "DDP-3-12"

--- The number of seconds in which the target would process the retransmission.
local SILENCE = 1

case {
  id = "ddp/3-segments/duplicate",
  title = "The target delivers a Send once if its TCP segment is retransmitted after the delivery",
  requirements = { ONCE },
  roles = { "responder", "initiator" },
  capabilities = { "echo", "segments" },
  tags = { "send", "segments" },
  parameters = { size = { 1, 40, 1400 } },

  run = function(t, p)
    t:good_exchange()

    local conn, op = t:operate()
    local payload = octets.counted(p.size)
    local fpdu = mpa.fpdu { ulpdu = rdmap.send { payload = payload, msn = op.msn } }
    conn:send(fpdu)
    conn:expect_fpdu { opcode = 3, payload = payload }

    conn:retransmit(fpdu, { deviates = true })
    local event, answer = conn:next { within = SILENCE }
    t:check(event == nil, {
      requirement = ONCE,
      expected = "nothing, because the target has already delivered the Send",
      actual = session.describe(event, answer, SILENCE),
    })
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "next", msn = op.msn + 1 } })
    conn:expect_fpdu { requirement = ONCE, opcode = 3, payload = "next", overdue_fails = true }
    conn:close()
  end,
}
