-- RFC 5041 section 4.3: QN, MSN and MO of the target's untagged messages.

case {
  id = "ddp/4.3-numbers/queues",
  title = "The target numbers the messages of each queue from 1, independently of the other queues",
  requirements = { "DDP-4.3-7", "DDP-4.3-6" },
  capabilities = { "rping" },
  tags = { "send", "read" },

  run = function(t)
    t:good_exchange()

    local data = ("weft"):rep(16)
    local function advertise(msn, to)
      return mpa.fpdu { ulpdu = rdmap.send { payload = string.pack(">I8I4I4", to, 0x77656600 + msn, #data), msn = msn } }
    end
    local conn = t:start_up()
    conn:send(advertise(1, 0x1000))
    local request = conn:expect_fpdu { requirement = "DDP-4.3-7", opcode = 1, qn = 1, msn = 1, overdue_fails = true }
    local stag, to = string.unpack(">I4i8", request.payload)
    conn:send(mpa.fpdu { ulpdu = rdmap.write { opcode = 2, stag = stag, tagged_offset = to, payload = data } })
    conn:expect_fpdu { requirement = "DDP-4.3-7", opcode = 3, qn = 0, msn = 1, overdue_fails = true }
    conn:send(advertise(2, 0x2000))
    conn:expect_fpdu { opcode = 0 }
    conn:expect_fpdu { requirement = "DDP-4.3-6", opcode = 3, qn = 0, msn = 2, overdue_fails = true }
    conn:close()
  end,
}

--- Sends `length` bytes, and returns the segments of the echo.
local function echoed(t, conn, msn, length)
  for at = 0, length - 1, 1024 do
    local size = math.min(1024, length - at)
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = ("w"):rep(size), msn = msn, mo = at, last = at + size == length } }, { deviates = true })
  end
  local segments, octets = {}, 0
  repeat
    local fpdu = conn:expect_fpdu { opcode = 3 }
    segments[#segments + 1], octets = fpdu, octets + #fpdu.payload
  until octets >= length
  return segments
end

case {
  id = "ddp/4.3-numbers/place",
  version = 2,
  title = "The target sends MO 0 in the first segment of a message, also after a message of several segments",
  requirements = { "DDP-4.3-10", "DDP-1.2-5" },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "send", "segment" },
  parameters = { length = { 3000, 4000 } },

  run = function(t, p)
    t:good_exchange()

    local conn, op = t:operate()
    for number = 0, 2 do
      local first = echoed(t, conn, op.msn + number, number == 0 and p.length or 8)[1]
      t:check(first.mo == 0, {
        requirement = { "DDP-4.3-10", "DDP-1.2-5" }, expected = "MO 0", actual = ("MO %s"):format(first.mo),
      })
    end
    conn:close()
  end,
}

case {
  id = "ddp/4.3-numbers/last",
  version = 2,
  title = "The target sets L in the last segment of a message, even if this segment has the maximum length",
  requirements = { "DDP-4.1-4" },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "send", "segment" },
  -- If TCP segments have 1460 bytes, a segment of a Send has at most 1436 bytes of payload. If they
  -- have 1448 bytes, the maximum is 1424.
  parameters = { length = { 1424, 1436, 2848, 2872 } },

  run = function(t, p)
    t:good_exchange()

    local conn, op = t:operate()
    local segments = echoed(t, conn, op.msn, p.length)
    t:check(segments[#segments].last, {
      requirement = "DDP-4.1-4", expected = "L=1 in the segment with the last byte", actual = ("L=0 in segment %d"):format(#segments),
    })
    conn:close()
  end,
}
