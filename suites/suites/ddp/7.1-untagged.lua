-- RFC 5041 sections 7.1 and 7.2: untagged segments that a Data Sink rejects.

--- Completes a case in which the target rejects an FPDU. `ulpdu` returns the ULPDU of this FPDU,
--- and `refused` has the fields of `expect_terminate`.
local function refusal(declared)
  local ulpdu, refused = declared.ulpdu, declared.refused
  declared.ulpdu, declared.refused = nil, nil
  declared.version, declared.roles = 2, { "responder", "initiator" }
  declared.run = function(t, p)
    t:good_exchange()

    local conn, op = t:operate()
    conn:send(mpa.fpdu { ulpdu = ulpdu(p, op) }, { deviates = true })
    conn:expect_terminate(refused)
    conn:expect_close()
  end
  return declared
end

case(refusal {
  id = "ddp/7.1-untagged/queue-number",
  title = "The target rejects a segment for a queue that the stream does not have",
  requirements = { "DDP-7.1-1", "DDP-7.2-8", "RDMAP-6.2.1-1" },
  capabilities = { "operation" },
  tags = { "refusal" },
  -- Queue 3 is not in this list, because RFC 7306 uses it for Atomic Responses.
  parameters = { qn = { 4, 5, 255, 256, 0x80000000, 0xffffffff } },
  ulpdu = function(p, op) return rdmap.send { payload = "weft", qn = p.qn, msn = op.msn } end,
  refused = { requirement = "DDP-7.1-1", terminate = "RDMAP-6.2.1-1", code = "DDP-7.2-8", error = "12 01" },
})

case(refusal {
  id = "ddp/7.1-untagged/msn",
  title = "The target rejects a Send whose MSN is already used or far ahead, so that no buffer belongs to it",
  requirements = { "DDP-7.1-9", "DDP-7.2-10", "RDMAP-7.2-1", "RDMAP-6.2.1-1" },
  capabilities = { "operation" },
  tags = { "refusal" },
  -- These are distances from the expected MSN. A used MSN becomes correct again only after 2^32
  -- messages.
  parameters = { ahead = { -2, -1, 100000, 0x7fffffff, 0x80000000 } },
  ulpdu = function(p, op) return rdmap.send { payload = "weft", msn = (op.msn + p.ahead) & 0xffffffff } end,
  -- The error depends on how the target manages its buffers.
  refused = { requirement = { "DDP-7.1-9", "RDMAP-7.2-1" }, terminate = "RDMAP-6.2.1-1", code = "DDP-7.2-10", error = { "12 03", "12 02" } },
})

case(refusal {
  id = "ddp/7.1-untagged/mo",
  title = "The target rejects a Send whose MO is beyond its buffer",
  requirements = { "DDP-7.1-7", "DDP-7.2-11", "RDMAP-6.2.1-1" },
  capabilities = { "operation" },
  tags = { "refusal" },
  parameters = { mo = { 0x1000000, 0x7fffffff, 0xfffffff0, 0xffffffff } },
  ulpdu = function(p, op) return rdmap.send { payload = "weft", msn = op.msn, mo = p.mo } end,
  -- Such a segment has an invalid MO, and its message is too long for the buffer.
  refused = { requirement = "DDP-7.1-7", terminate = "RDMAP-6.2.1-1", code = "DDP-7.2-11", error = { "12 04", "12 05" } },
})

case(refusal {
  id = "ddp/7.1-untagged/too-long",
  title = "The target rejects a Send longer than its buffer (rping's buffer has 16 bytes)",
  requirements = { "DDP-7.1-8", "DDP-1.2-4", "RDMAP-5.3-4", "DDP-7.2-12", "RDMAP-3.2-3", "RDMAP-6.2.1-1" },
  capabilities = { "rping" },
  tags = { "refusal" },
  parameters = { length = { 17, 18, 20, 32, 1024 } },
  ulpdu = function(p, op) return rdmap.send { payload = ("w"):rep(p.length), msn = op.msn } end,
  refused = {
    requirement = { "DDP-7.1-8", "DDP-1.2-4", "RDMAP-5.3-4" },
    terminate = { "RDMAP-3.2-3", "RDMAP-6.2.1-1" },
    code = "DDP-7.2-12",
    error = "12 05",
  },
})

case {
  id = "ddp/7.1-untagged/too-long-later",
  version = 2,
  title = "The target rejects a second segment beyond the end of the buffer (rping's buffer has 16 bytes)",
  requirements = { "DDP-7.1-8", "DDP-7.2-12" },
  roles = { "responder", "initiator" },
  capabilities = { "rping" },
  tags = { "refusal" },
  parameters = { first = { 1, 8, 15, 16 }, all = { 17, 20 } },

  run = function(t, p)
    t:good_exchange()

    local conn, op = t:operate()
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = ("w"):rep(p.first), msn = op.msn, last = false } }, { deviates = true })
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = ("w"):rep(p.all - p.first), msn = op.msn, mo = p.first } }, { deviates = true })
    conn:expect_terminate { requirement = "DDP-7.1-8", code = "DDP-7.2-12", error = { "12 05", "12 04" } }
    conn:expect_close()
  end,
}
