-- RFC 7306 section 5.4, rule 3: the target processes an Atomic Request only after its delivery, and
-- so only after all bytes before it have arrived. A TCP segment with earlier bytes arrives late
-- here.

local DELIVERED = "RDMAP-7306.5.4-6"

--- This value is the same in either byte order.
local VALUE = 0x1122334444332211

case {
  id = "rdmap/7306-segments/atomic",
  version = 2,
  title = "The target does not answer an Atomic Request while a TCP segment with an earlier Write is missing",
  requirements = { DELIVERED },
  roles = { "responder", "initiator" },
  capabilities = { "rping", "atomics", "segments" },
  tags = { "atomic", "write", "segments" },

  run = function(t)
    t:good_exchange()

    local conn, op = t:operate()
    local write = mpa.fpdu {
      ulpdu = rdmap.write { stag = op.stag, tagged_offset = op.to, payload = string.pack(">i8", VALUE) },
    }
    -- FetchAdd of 1 (RFC 7306 Figure 4).
    local request = mpa.fpdu {
      ulpdu = rdmap.send {
        opcode = 10, qn = 1, msn = 1,
        payload = string.pack(">I4I4I4i8i8i8i8i8", 0, 0x01020304, op.stag, op.to, 1, 0, 0, 0),
      },
    }
    segment_case.send_late(t, conn, write .. request, #write, DELIVERED, "the Write")
    local response = conn:expect_fpdu { requirement = DELIVERED, opcode = 11, overdue_fails = true }
    t:check(#response.payload == 12, { expected = "12 bytes", actual = #response.payload .. " bytes" })
    local _, original = string.unpack(">I4i8", response.payload)
    t:check(original == VALUE, {
      requirement = DELIVERED,
      expected = ("the original value %#x, from the Write"):format(VALUE),
      actual = ("the original value %#x"):format(original),
    })
    conn:close()
  end,
}
