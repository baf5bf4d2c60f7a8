-- RFC 5041 section 5.4: the target delivers a message only after all of its bytes, and all bytes
-- before it, have arrived. In these cases, a TCP segment with earlier bytes arrives late.

local COMPLETE, PRECEDING = "DDP-5.4-3", "DDP-5.4-4"

case {
  id = "ddp/5.4-segments/part",
  version = 2,
  title = "The target does not deliver a Send while a TCP segment with an earlier part of the Send is missing",
  requirements = { COMPLETE },
  roles = { "responder", "initiator" },
  capabilities = { "echo", "segments" },
  tags = { "send", "segment", "segments" },
  parameters = { size = { 2, 40, 2000 } },

  run = function(t, p)
    t:good_exchange()

    local conn, op = t:operate()
    local payload, half = octets.counted(p.size), p.size // 2
    local first = mpa.fpdu { ulpdu = rdmap.send { payload = payload:sub(1, half), msn = op.msn, last = false } }
    local second = mpa.fpdu { ulpdu = rdmap.send { payload = payload:sub(half + 1), msn = op.msn, mo = half } }
    segment_case.send_late(t, conn, first .. second, #first, COMPLETE, "a part of the Send")
    local echo = ""
    repeat
      local fpdu = conn:expect_fpdu { requirement = COMPLETE, opcode = 3, overdue_fails = true }
      echo = echo .. fpdu.payload
    until fpdu.last
    t:check(echo == payload, {
      requirement = COMPLETE, expected = "the echo of the Send", actual = octets.difference(echo, payload),
    })
    conn:close()
  end,
}

case {
  id = "ddp/5.4-segments/message",
  version = 2,
  title = "The target does not deliver a Send while a TCP segment with an earlier message is missing",
  requirements = { PRECEDING },
  roles = { "responder", "initiator" },
  capabilities = { "echo", "segments" },
  tags = { "send", "write", "segments" },

  run = function(t)
    t:good_exchange()

    -- A Write without payload needs no buffer of the target.
    local write = mpa.fpdu { ulpdu = rdmap.write { stag = 0x7766 } }
    local conn, op = t:operate()
    conn:send(write .. mpa.fpdu { ulpdu = rdmap.send { payload = "in order", msn = op.msn } })
    conn:expect_fpdu { opcode = 3, payload = "in order" }

    local send = mpa.fpdu { ulpdu = rdmap.send { payload = "late", msn = op.msn + 1 } }
    segment_case.send_late(t, conn, write .. send, #write, PRECEDING, "an earlier message")
    conn:expect_fpdu { requirement = PRECEDING, opcode = 3, payload = "late", overdue_fails = true }
    conn:close()
  end,
}

case {
  id = "ddp/5.4-segments/write",
  version = 2,
  title = "The target does not deliver rping's Send while a TCP segment with an earlier Write is missing",
  requirements = { PRECEDING },
  capabilities = { "rping", "segments" },
  tags = { "send", "write", "segments" },

  run = function(t)
    t:good_exchange()

    -- The first half of rping's round has taken place. In the second half, the tester names a
    -- buffer, and the target writes to this buffer.
    local conn, op = t:operate()
    local write = mpa.fpdu { ulpdu = rdmap.write { stag = op.stag, tagged_offset = op.to, payload = "weft" } }
    local buffer = string.pack(">I8I4I4", 0x1000, 0x77656602, 64)
    local send = mpa.fpdu { ulpdu = rdmap.send { payload = buffer, msn = op.msn } }
    segment_case.send_late(t, conn, write .. send, #write, PRECEDING, "the Write")
    repeat
      local fpdu = conn:expect_fpdu { requirement = PRECEDING, overdue_fails = true }
      t:check(fpdu.opcode == 0 or fpdu.opcode == 3, {
        requirement = PRECEDING, expected = "a Write and a Send", actual = session.describe("fpdu", fpdu),
      })
    until fpdu.opcode == 3
    conn:close()
  end,
}
