-- RFC 5041 sections 8.2 and 8.3.1, RFC 5040 section 8.1.1: an STag is valid only on the streams it
-- belongs to. Each of rping's connections has its own Protection Domain.

case {
  id = "ddp/8.2-association/write",
  version = 2,
  title = "The target rejects a Write to another connection's STag, and that connection keeps working",
  requirements = { "DDP-8.2-3", "DDP-8.2-4", "DDP-8.3.1-1", "DDP-8.3.1-2", "RDMAP-8.1.1-1", "RDMAP-8.1.1-2", "DDP-7.2-5" },
  roles = { "responder", "initiator" },
  capabilities = { "rping" },
  tags = { "write", "refusal", "protection" },

  run = function(t)
    t:good_exchange()

    local ALL = { "DDP-8.2-3", "DDP-8.2-4", "DDP-8.3.1-1", "DDP-8.3.1-2", "RDMAP-8.1.1-1", "RDMAP-8.1.1-2" }
    local theirs, owner = t:operate()
    local conn, op = t:operate()
    if op.stag == owner.stag then
      t:unimplemented("Both connections have the same STag, so the case cannot use another connection's STag.")
    end
    conn:send(mpa.fpdu { ulpdu = rdmap.write { stag = owner.stag, tagged_offset = owner.to, payload = "weft" } })
    conn:expect_terminate { requirement = ALL, code = "DDP-7.2-5", error = { "11 02", "11 00" } }
    conn:expect_close()
    -- The buffer of the other connection is unchanged, and the other connection still works.
    theirs:send(mpa.fpdu {
      ulpdu = rdmap.read_request { sink_stag = 0x7766, rdmardsz = 4, src_stag = owner.stag, src_to = owner.to },
    })
    theirs:expect_fpdu { requirement = ALL, opcode = 2, payload = "rdma", overdue_fails = true }
    theirs:close()
  end,
}

case {
  id = "ddp/8.2-association/read",
  title = "The target rejects a Read of another connection's STag",
  requirements = { "RDMAP-7.2-5", "RDMAP-4.8-21", "RDMAP-8.1.1-1", "RDMAP-8.1.1-2" },
  roles = { "responder", "initiator" },
  capabilities = { "rping" },
  tags = { "read", "refusal", "protection" },

  run = function(t)
    t:good_exchange()

    local theirs, owner = t:operate()
    local conn, op = t:operate()
    if op.stag == owner.stag then
      t:unimplemented("Both connections have the same STag, so the case cannot use another connection's STag.")
    end
    conn:send(mpa.fpdu {
      ulpdu = rdmap.read_request { sink_stag = 0x7766, rdmardsz = 4, src_stag = owner.stag, src_to = owner.to },
    })
    conn:expect_terminate {
      requirement = { "RDMAP-7.2-5", "RDMAP-8.1.1-1", "RDMAP-8.1.1-2" },
      code = "RDMAP-4.8-21",
      error = { "01 03", "01 00" },
    }
    conn:expect_close()
    theirs:close()
  end,
}
