-- RFC 5041 sections 7.1 and 7.2, RFC 5040 section 4.8: tagged segments that a Data Sink rejects.
-- The target runs rping, which names a buffer in its first Read Request or Send. The cases write to
-- this buffer or beyond it.

case {
  id = "ddp/7.1-tagged/stag",
  version = 3,
  title = "The target rejects a Write to an invalid STag",
  requirements = { "DDP-7.1-10", "DDP-7.2-3", "DDP-8.3-7", "RDMAP-3.2-6", "RDMAP-4.8-44", "RDMAP-6.2.1-1", "DDP-7.1-11" },
  roles = { "responder", "initiator" },
  capabilities = { "rping" },
  tags = { "write", "refusal" },
  -- Each number has the bits of the STag that are wrong: bits of the key, bits of the index, or all
  -- bits. The STag 0 ("zero") is reserved for privileged consumers.
  parameters = { change = { 0x00000001, 0x000000ff, 0x00000100, 0x40000000, 0x80000000, 0xffffffff, "zero" } },

  run = function(t, p)
    t:good_exchange()

    local conn, op = t:operate()
    local stag = p.change == "zero" and 0 or op.stag ~ p.change
    conn:send(mpa.fpdu { ulpdu = rdmap.write { stag = stag, tagged_offset = op.to, payload = "weft" } }, { deviates = true })
    conn:expect_terminate {
      requirement = { "DDP-7.1-10", "DDP-7.1-11", "DDP-8.3-7" },
      terminate = { "RDMAP-3.2-6", "RDMAP-6.2.1-1" },
      code = "DDP-7.2-3",
      -- The monitor judges whether an error is one of RDMAP's protection errors.
      shows = "RDMAP-4.8-44",
      error = "11 00",
    }
    conn:expect_close()
  end,
}

case {
  id = "ddp/7.1-tagged/bounds",
  version = 2,
  title = "The target rejects a Write with any byte outside the buffer",
  requirements = { "DDP-7.1-12", "DDP-7.1-13", "DDP-8.1-1", "DDP-8.3-6", "DDP-8.3.1-3", "RDMAP-8.1.1-3", "DDP-7.2-4", "RDMAP-6.2.1-1" },
  roles = { "responder", "initiator" },
  capabilities = { "rping" },
  tags = { "write", "refusal" },
  parameters = {
    -- The Write starts at this distance from the begin or the end of the buffer, and has this
    -- length.
    from = { "begin", "end" },
    at = { -16, -1, 0, 1, 4096 },
    length = { 1, 17 },
  },

  run = function(t, p)
    local conn, op = t:operate()
    local to = op.to + p.at + (p.from == "end" and op.length or 0)
    local inside = p.from == "end" and p.at + p.length <= 0 or p.from == "begin" and p.at >= 0 and p.at + p.length <= op.length
    conn:send(mpa.fpdu { ulpdu = rdmap.write { stag = op.stag, tagged_offset = to, payload = ("w"):rep(p.length) } }, { deviates = true })
    local ALL = { "DDP-7.1-12", "DDP-7.1-13", "DDP-8.1-1", "DDP-8.3-6", "DDP-8.3.1-3", "RDMAP-8.1.1-3" }
    if inside then
      -- All bytes of this Write are inside the buffer.
      conn:expect_silence { requirement = ALL, shows = { "DDP-7.2-4", "RDMAP-6.2.1-1" }, within = 1, open = true }
      conn:close()
    else
      -- If the first TO of the buffer is 0, a Write that begins before the buffer also wraps.
      conn:expect_terminate { requirement = ALL, terminate = "RDMAP-6.2.1-1", code = "DDP-7.2-4", error = p.at < 0 and { "11 01", "11 03" } or "11 01" }
      conn:expect_close()
    end
  end,
}

case {
  id = "ddp/7.1-tagged/later-segment",
  title = "The target rejects a Write whose later segment goes beyond the buffer",
  requirements = { "DDP-7.1-12", "DDP-7.1-13", "DDP-8.1-1", "DDP-7.2-4", "RDMAP-6.2.1-1" },
  roles = { "responder", "initiator" },
  capabilities = { "rping" },
  tags = { "write", "refusal" },
  parameters = { beyond = { 1, 8, 1000 } },

  run = function(t, p)
    t:good_exchange()

    local conn, op = t:operate()
    local INSIDE = 4
    local first = math.min(op.length - INSIDE, 600)
    local to = op.to + op.length - INSIDE
    conn:send(mpa.fpdu { ulpdu = rdmap.write { stag = op.stag, tagged_offset = to - first, payload = ("w"):rep(first), last = false } }, { deviates = true })
    conn:send(mpa.fpdu { ulpdu = rdmap.write { stag = op.stag, tagged_offset = to, payload = ("w"):rep(INSIDE + p.beyond) } }, { deviates = true })
    conn:expect_terminate {
      requirement = { "DDP-7.1-12", "DDP-7.1-13", "DDP-8.1-1" },
      terminate = "RDMAP-6.2.1-1",
      code = "DDP-7.2-4",
      error = "11 01",
    }
    conn:expect_close()
  end,
}

case {
  id = "ddp/7.1-tagged/wrap",
  version = 2,
  title = "The target rejects a Write that goes beyond the greatest TO",
  requirements = { "DDP-7.1-14", "DDP-7.2-6", "RDMAP-6.2.1-1" },
  roles = { "responder", "initiator" },
  capabilities = { "rping" },
  tags = { "write", "refusal" },
  parameters = { before = { 1, 8, 15 } },

  run = function(t, p)
    t:good_exchange()

    local conn, op = t:operate()
    conn:send(mpa.fpdu { ulpdu = rdmap.write { stag = op.stag, tagged_offset = -p.before, payload = ("w"):rep(16) } }, { deviates = true })
    conn:expect_terminate {
      requirement = "DDP-7.1-14",
      terminate = "RDMAP-6.2.1-1",
      code = "DDP-7.2-6",
      -- The first byte of the Write is already outside the buffer, so 11 01 is also correct.
      error = { "11 03", "11 01" },
    }
    conn:expect_close()
  end,
}
