-- RFC 5040 section 4.1: how a receiver treats RDMAP's control byte, and the Invalidate STag after
-- it.

case {
  id = "rdmap/4.1-control/reserved",
  version = 2,
  title = "The target ignores the two reserved bits of the control byte",
  requirements = { "RDMAP-4.1-5" },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "segment" },
  parameters = { bits = { 0x10, 0x20, 0x30 } },

  run = function(t, p)
    local conn, op = t:operate()
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft", msn = op.msn }:flip(1, p.bits) }, { deviates = true })
    conn:expect_fpdu { requirement = "RDMAP-4.1-5", opcode = 3, payload = "weft", overdue_fails = true }
    conn:close()
  end,
}

case {
  id = "rdmap/4.1-control/invalidate-stag",
  version = 2,
  title = "The target ignores the Invalidate STag field of a Send without Invalidate",
  requirements = { "RDMAP-4.1-17" },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "segment" },
  parameters = { opcode = { 3, 5 }, stag = { 1, 0x12345678, 0xffffffff } },

  run = function(t, p)
    local conn, op = t:operate()
    conn:send(mpa.fpdu {
      ulpdu = rdmap.send { payload = "weft", msn = op.msn, opcode = p.opcode, invalidate_stag = p.stag },
    }, { deviates = true })
    conn:expect_fpdu { requirement = "RDMAP-4.1-17", payload = "weft", overdue_fails = true }
    conn:close()
  end,
}

case {
  id = "rdmap/4.1-control/stag-stays-valid",
  title = "The target invalidates no STag that a plain Send or a Read Request has in the Invalidate STag field",
  requirements = { "RDMAP-4.1-17" },
  roles = { "responder", "initiator" },
  capabilities = { "rping" },
  tags = { "segment", "read" },

  run = function(t)
    local conn, op = t:operate()
    for msn = 1, 2 do
      conn:send(mpa.fpdu {
        ulpdu = rdmap.read_request {
          sink_stag = 0x7766, rdmardsz = 4, src_stag = op.stag, src_to = op.to, msn = msn, invalidate_stag = op.stag,
        },
      })
      conn:expect_fpdu { requirement = "RDMAP-4.1-17", opcode = 2, payload = "rdma", overdue_fails = true }
    end
    conn:close()
  end,
}
