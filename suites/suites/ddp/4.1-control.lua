-- RFC 5041 section 4.1: how a Data Sink treats the first byte of a DDP segment.

case {
  id = "ddp/4.1-control/reserved",
  version = 2,
  title = "The target ignores the four reserved bits of a segment",
  requirements = { "DDP-4.1-11" },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "segment" },
  parameters = { bits = { 0x04, 0x08, 0x10, 0x20, 0x3c } },

  run = function(t, p)
    local conn, op = t:operate()
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft", msn = op.msn }:flip(0, p.bits) }, { deviates = true })
    conn:expect_fpdu { requirement = "DDP-4.1-11", opcode = 3, payload = "weft", overdue_fails = true }
    conn:close()
  end,
}

case {
  id = "ddp/4.1-control/last",
  version = 2,
  title = "The target delivers a Send when its last segment has arrived, and not before",
  requirements = { "DDP-4.1-9", "DDP-5.4-2" },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "segment" },
  parameters = { first = { 1, 2, 3, 4, 7 } },

  run = function(t, p)
    local conn, op = t:operate()
    local payload = "in two segments"
    local head, tail = payload:sub(1, p.first), payload:sub(p.first + 1)
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = head, msn = op.msn, last = false } }, { deviates = true })
    conn:expect_silence { requirement = { "DDP-4.1-9", "DDP-5.4-2" }, within = 1 }
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = tail, msn = op.msn, mo = p.first } }, { deviates = true })
    local fpdu = conn:expect_fpdu { requirement = { "DDP-4.1-9", "DDP-5.4-2" }, opcode = 3, overdue_fails = true }
    -- A basic case checks where the target places the bytes of each segment.
    t:check(fpdu.payload == payload, { expected = "the bytes of both segments", actual = ("%d bytes that differ"):format(#fpdu.payload) })
    conn:close()
  end,
}

case {
  id = "ddp/4.1-control/version-untagged",
  version = 2,
  title = "The target rejects an untagged segment of another DDP version",
  requirements = { "DDP-4.1-13", "DDP-7.2-13", "RDMAP-6.2.1-1" },
  roles = { "responder", "initiator" },
  capabilities = { "operation" },
  tags = { "segment", "refusal" },
  parameters = { version = { 0, 2, 3 } },

  run = function(t, p)
    t:good_exchange()

    local conn, op = t:operate()
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft", msn = op.msn, ddp_version = p.version } }, { deviates = true })
    conn:expect_terminate { requirement = "DDP-4.1-13", terminate = "RDMAP-6.2.1-1", code = "DDP-7.2-13", error = "12 06" }
    conn:expect_close()
  end,
}

case {
  id = "ddp/4.1-control/version-tagged",
  version = 2,
  title = "The target rejects a tagged segment of another DDP version",
  requirements = { "DDP-4.1-13", "DDP-7.2-7", "RDMAP-6.2.1-1" },
  roles = { "responder", "initiator" },
  capabilities = { "rping" },
  tags = { "segment", "refusal" },
  parameters = { version = { 0, 2, 3 } },

  run = function(t, p)
    t:good_exchange()

    local conn, op = t:operate()
    conn:send(mpa.fpdu { ulpdu = rdmap.write { stag = op.stag, tagged_offset = op.to, payload = "weft", ddp_version = p.version } }, { deviates = true })
    conn:expect_terminate { requirement = "DDP-4.1-13", terminate = "RDMAP-6.2.1-1", code = "DDP-7.2-7", error = "11 04" }
    conn:expect_close()
  end,
}

case {
  id = "ddp/4.1-control/version-at-first",
  version = 2,
  title = "The target rejects another DDP version also in the first segment of a connection",
  requirements = { "DDP-4.1-13" },
  roles = { "responder", "initiator" },
  tags = { "segment", "refusal" },
  parameters = { version = { 0, 2, 3 }, kind = { "untagged", "tagged" } },

  run = function(t, p)
    t:good_exchange()

    -- No service is needed, because the target's service has not started yet.
    local conn = t:start_up()
    local made
    if p.kind == "tagged" then
      made = rdmap.write { stag = 0x7766, payload = "weft", ddp_version = p.version }
    else
      made = rdmap.send { payload = "weft", ddp_version = p.version }
    end
    conn:send(mpa.fpdu { ulpdu = made }, { deviates = true })
    -- The cases above check the error code.
    conn:expect_terminate { requirement = "DDP-4.1-13" }
    conn:expect_close()
  end,
}
