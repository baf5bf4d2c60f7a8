-- RFC 5040 section 4.1: RDMAP's control octet, and the Invalidate STag behind it, as a receiver takes them.

case {
  id = "rdmap/4.1-control/reserved",
  version = 2,
  title = "The two reserved bits of the control octet are not looked at",
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

    t:liveness()
  end,
}

case {
  id = "rdmap/4.1-control/invalidate-stag",
  version = 2,
  title = "The octets of the Invalidate STag mean nothing in a Send that invalidates nothing",
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

    t:liveness()
  end,
}

case {
  id = "rdmap/4.1-control/stag-stays-valid",
  version = 1,
  title = "A Send and a Read Request that name an STag where Sends with Invalidate do leave it as it is",
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

    t:liveness()
  end,
}
