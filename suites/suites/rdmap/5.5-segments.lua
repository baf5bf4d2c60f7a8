-- RFC 5040 section 5.5, rule 12: the target processes a Read Request only after its delivery, and so
-- only after all bytes before it have arrived. A TCP segment with earlier bytes arrives late here.

local DELIVERED = "RDMAP-5.5-9"

case {
  id = "rdmap/5.5-segments/read",
  version = 2,
  title = "The target does not answer a Read Request while a TCP segment with an earlier Write is missing",
  requirements = { DELIVERED },
  roles = { "responder", "initiator" },
  capabilities = { "rping", "segments" },
  tags = { "read", "write", "segments" },
  parameters = { size = { 0, 8 } },

  run = function(t, p)
    t:good_exchange()

    local conn, op = t:operate()
    local write = mpa.fpdu { ulpdu = rdmap.write { stag = op.stag, tagged_offset = op.to, payload = "weftweft" } }
    local read = mpa.fpdu {
      ulpdu = rdmap.read_request { sink_stag = 0x7766, rdmardsz = p.size, src_stag = op.stag, src_to = op.to },
    }
    segment_case.send_late(t, conn, write .. read, #write, DELIVERED, "the Write")
    -- Other bytes would show that the target processed the Read Request before the Write.
    local data = ("weftweft"):sub(1, p.size)
    conn:expect_fpdu { requirement = DELIVERED, opcode = 2, payload = data, overdue_fails = true }
    conn:close()
  end,
}
