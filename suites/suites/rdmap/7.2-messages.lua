-- RFC 5040 sections 5.3, 5.4 and 7.2: messages that a receiver rejects, and the Terminate that it
-- sends.

--- Completes a case in which the target rejects an FPDU. `ulpdu` returns the ULPDU of this FPDU,
--- and `refused` has the fields of `expect_terminate`. If the variants of the case violate
--- different requirements, `violated` returns those of a variant.
local function refusal(declared)
  local ulpdu, refused, violated = declared.ulpdu, declared.refused, declared.violated
  declared.ulpdu, declared.refused, declared.violated = nil, nil, nil
  declared.version, declared.roles = violated and 4 or 3, { "responder", "initiator" }
  declared.run = function(t, p)
    t:good_exchange()

    local conn, op = t:operate()
    conn:send(mpa.fpdu { ulpdu = ulpdu(p, op) }, { deviates = true })
    refused.requirement = violated and violated(p) or refused.requirement
    conn:expect_terminate(refused)
    if violated then t:check(true, { requirement = declared.requirements, expected = "a refusal", actual = "a refusal" }) end
    conn:expect_close()
  end
  return declared
end

case(refusal {
  id = "rdmap/7.2-messages/version",
  title = "The target rejects a message of another RDMAP version",
  requirements = { "RDMAP-7.2-3", "RDMAP-5.3-14", "RDMAP-4.8-25", "RDMAP-6.2.1-1" },
  capabilities = { "operation" },
  tags = { "refusal" },
  -- Version 0 is the version of the RDMA Consortium, and is valid (RFC 5040 section 4.1).
  parameters = { version = { 2, 3 }, opcode = { 3, 5 } },
  ulpdu = function(p, op) return rdmap.send { payload = "weft", msn = op.msn, opcode = p.opcode, rdmap_version = p.version } end,
  refused = { requirement = { "RDMAP-7.2-3", "RDMAP-5.3-14" }, terminate = "RDMAP-6.2.1-1", code = "RDMAP-4.8-25", error = "02 05" },
})

--- Declares a case whose faulty segment is the first segment of a connection. No service is needed,
--- because the target's service has not started yet.
local function rejected_at_first(name, title, requirement, parameter, field, values)
  case {
    id = "rdmap/7.2-messages/" .. name,
    version = 3,
    title = title,
    requirements = { requirement },
    roles = { "responder", "initiator" },
    tags = { "refusal" },
    parameters = { [parameter] = values, kind = { "untagged", "tagged" } },

    run = function(t, p)
      t:good_exchange()

      local conn = t:start_up()
      local fields = { payload = "weft", [field] = p[parameter] }
      if p.kind == "tagged" then
        fields.stag = 0x7766
      end
      conn:send(mpa.fpdu { ulpdu = p.kind == "tagged" and rdmap.write(fields) or rdmap.send(fields) }, { deviates = true })
      -- Other cases check the error code.
      conn:expect_terminate { requirement = requirement }
      conn:expect_close()
    end,
  }
end

rejected_at_first("version-at-first", "The target rejects another RDMAP version also in the first message of a connection",
  "RDMAP-7.2-3", "version", "rdmap_version", { 2, 3 })
rejected_at_first("opcode-at-first", "The target rejects an undefined opcode also in the first message of a connection",
  "RDMAP-7.2-2", "opcode", "opcode", { 12, 13, 14, 15 })

--- Returns a Read Request or a Write of four bytes.
local function read_or_write(message, op, fields)
  if message == "read" then
    fields.sink_stag, fields.rdmardsz, fields.src_stag, fields.src_to = 0x7766, 4, op.stag, op.to
    return rdmap.read_request(fields)
  end
  fields.stag, fields.tagged_offset, fields.payload = op.stag, op.to, "weft"
  return rdmap.write(fields)
end

case(refusal {
  id = "rdmap/7.2-messages/version-of-others",
  title = "The target rejects a Read Request and a Write of another RDMAP version",
  requirements = { "RDMAP-7.2-3", "RDMAP-7.2-17", "RDMAP-5.1-3", "RDMAP-4.8-25", "RDMAP-6.2.1-1" },
  capabilities = { "rping" },
  tags = { "refusal", "read", "write" },
  parameters = { version = { 2, 3 }, message = { "read", "write" } },
  ulpdu = function(p, op) return read_or_write(p.message, op, { rdmap_version = p.version }) end,
  violated = function(p) return p.message == "read" and { "RDMAP-7.2-17" } or { "RDMAP-7.2-3", "RDMAP-5.1-3" } end,
  refused = { terminate = "RDMAP-6.2.1-1", code = "RDMAP-4.8-25", error = "02 05" },
})

case(refusal {
  id = "rdmap/7.2-messages/opcode",
  title = "The target rejects a message with an undefined opcode",
  requirements = { "RDMAP-7.2-2", "RDMAP-4.8-26", "RDMAP-6.2.1-1", "RDMAP-7306.8.2-5" },
  capabilities = { "operation" },
  tags = { "refusal" },
  -- RFC 7306 defines the opcodes 8 to 11. Opcode 15 is for experiments (RFC 6580 section 3.4).
  parameters = { opcode = { 12, 13, 14, 15 } },
  ulpdu = function(p, op) return rdmap.send { payload = "weft", msn = op.msn, opcode = p.opcode } end,
  refused = { requirement = { "RDMAP-7.2-2", "RDMAP-7306.8.2-5" }, terminate = "RDMAP-6.2.1-1", code = "RDMAP-4.8-26", error = "02 06" },
})

case(refusal {
  id = "rdmap/7.2-messages/opcode-of-others",
  title = "The target rejects an undefined opcode in a tagged message, and a reserved opcode on queue 1",
  requirements = { "RDMAP-7.2-2", "RDMAP-7.2-16", "RDMAP-5.1-3", "RDMAP-4.8-26", "RDMAP-6.2.1-1" },
  capabilities = { "rping" },
  tags = { "refusal", "read", "write" },
  parameters = { opcode = { 12, 13, 14, 15 }, message = { "read", "write" } },
  ulpdu = function(p, op) return read_or_write(p.message, op, { opcode = p.opcode }) end,
  violated = function(p) return p.message == "read" and { "RDMAP-7.2-16" } or { "RDMAP-7.2-2", "RDMAP-5.1-3" } end,
  refused = { terminate = "RDMAP-6.2.1-1", code = "RDMAP-4.8-26", error = "02 06" },
})

case(refusal {
  id = "rdmap/7.2-messages/opcode-in-wrong-place",
  title = "The target rejects an opcode on the wrong queue or in the wrong kind of segment",
  requirements = { "RDMAP-7.2-2" },
  capabilities = { "rping" },
  tags = { "refusal" },
  parameters = { place = { "send-tagged", "send-on-1", "read-on-0", "write-untagged", "response-untagged" } },
  ulpdu = function(p, op)
    return ({
      ["send-tagged"] = rdmap.write { stag = op.stag, tagged_offset = op.to, payload = "weft", opcode = 3 },
      ["send-on-1"] = rdmap.send { payload = "weft", qn = 1, msn = 1 },
      ["read-on-0"] = rdmap.read_request {
        sink_stag = 0x7766, rdmardsz = 4, src_stag = op.stag, src_to = op.to, qn = 0, msn = op.msn,
      },
      ["write-untagged"] = rdmap.send { payload = "weft", opcode = 0, msn = op.msn },
      ["response-untagged"] = rdmap.send { payload = "weft", opcode = 2, msn = op.msn },
    })[p.place]
  end,
  refused = { requirement = "RDMAP-7.2-2" },
})

case {
  id = "rdmap/7.2-messages/invalidate",
  version = 4,
  title = "The target rejects a Send that invalidates an STag that does not belong to the stream",
  requirements = {
    "RDMAP-5.3-10", "RDMAP-5.3-20", "RDMAP-7.2-10", "RDMAP-7.2-14", "RDMAP-4.8-23", "RDMAP-4.8-29", "RDMAP-6.2.1-1",
  },
  roles = { "responder", "initiator" },
  capabilities = { "rping" },
  tags = { "refusal", "invalidate" },
  parameters = { opcode = { 4, 6 }, stag = { "unknown", "zero", "other" } },

  run = function(t, p)
    t:good_exchange()

    local other, owner = t:operate()
    local conn, op = t:operate()
    local stag = ({ unknown = op.stag ~ 0xffffffff, zero = 0, other = owner.stag })[p.stag]
    if p.stag == "other" and owner.stag == op.stag then
      t:unimplemented("Both connections have the same STag, so the case cannot use another connection's STag.")
    end
    local bad = mpa.fpdu { ulpdu = rdmap.send { payload = ("\0"):rep(16), msn = op.msn, opcode = p.opcode, invalidate_stag = stag } }
    -- If the target sends its Terminate only later, it answers this message before the Terminate,
    -- and the case fails.
    local good = mpa.fpdu {
      ulpdu = rdmap.read_request { sink_stag = 0x7766, rdmardsz = 4, src_stag = op.stag, src_to = op.to },
    }
    conn:send(bad .. good, { deviates = true })
    local terminate = conn:expect_terminate {
      requirement = { "RDMAP-5.3-10", "RDMAP-5.3-20", "RDMAP-7.2-10", "RDMAP-7.2-14" },
      terminate = "RDMAP-6.2.1-1",
      code = { "RDMAP-4.8-23", "RDMAP-4.8-29" },
    } ---@cast terminate weft.Terminate
    -- The STag is invalid, of another stream, or must not be invalidated. The target may report any
    -- of these. RDMAP-4.8-23 is about Remote Protection, RDMAP-4.8-29 about Remote Operation.
    local code = ("%02x %02x"):format(terminate.payload:byte(1, 2))
    local is_right = code == "01 00" or code == "01 03" or code == "01 09" or code == "02 09"
    t:check(is_right, {
      requirement = {
        (is_right or code:sub(1, 2) ~= "02") and "RDMAP-4.8-23" or {},
        (is_right or code:sub(1, 2) ~= "01") and "RDMAP-4.8-29" or {},
      },
      expected = "a Terminate: 01 00 or 01 03 or 01 09 or 02 09",
      actual = "it sent a Terminate: " .. code,
    })
    conn:expect_close()
    -- The other connection's STag is still valid.
    other:send(mpa.fpdu {
      ulpdu = rdmap.read_request { sink_stag = 0x7766, rdmardsz = 4, src_stag = owner.stag, src_to = owner.to },
    })
    other:expect_fpdu { requirement = "RDMAP-5.3-20", opcode = 2, payload = "rdma", overdue_fails = true }
    other:close()
  end,
}

case {
  id = "rdmap/7.2-messages/read-response",
  version = 2,
  title = "The target rejects a Read Response to bytes that it did not request",
  requirements = { "RDMAP-5.2.2-6" },
  capabilities = { "rping" },
  tags = { "refusal", "read" },
  parameters = { wrong = { "stag", "end", "wrap" } },

  run = function(t, p)
    t:good_exchange()

    local conn = t:start_up()
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = string.pack(">I8I4I4", 0x1000, 0x77656601, 64) } })
    local request = conn:expect_fpdu { opcode = 1 }
    t:check(#request.payload == 28, { expected = "a Read Request of 28 bytes", actual = #request.payload .. " bytes" })
    local stag, to = string.unpack(">I4i8", request.payload)
    local wrong = ({
      stag = { stag = stag ~ 0xffffffff, tagged_offset = to },
      ["end"] = { stag = stag, tagged_offset = to + (1 << 20) },
      wrap = { stag = stag, tagged_offset = -8 },
    })[p.wrong]
    wrong.opcode, wrong.payload = 2, ("w"):rep(64)
    conn:send(mpa.fpdu { ulpdu = rdmap.write(wrong) }, { deviates = true })
    conn:expect_terminate { requirement = "RDMAP-5.2.2-6" }
    conn:expect_close()
  end,
}

case {
  id = "rdmap/7.2-messages/invalidated",
  version = 3,
  title = "The target invalidates the STag of a Send with Invalidate, or reports that it cannot",
  requirements = { "RDMAP-5.3-8", "RDMAP-1.2-2", "DDP-4.3-4", "DDP-5.4-7" },
  roles = { "responder", "initiator" },
  capabilities = { "rping" },
  tags = { "invalidate", "write" },
  parameters = { opcode = { 4, 6 }, segments = { 1, 2 } },

  run = function(t, p)
    t:good_exchange()

    local conn, op = t:operate()
    local advertisement = string.pack(">I8I4I4", 0x2000, 0x77656602, 64)
    local function send(fields)
      fields.msn, fields.opcode, fields.invalidate_stag = op.msn, p.opcode, op.stag
      return mpa.fpdu { ulpdu = rdmap.send(fields) }
    end
    local sent = send { payload = advertisement }
    if p.segments == 2 then
      sent = send { payload = advertisement:sub(1, 8), last = false } .. send { payload = advertisement:sub(9), mo = 8 }
    end
    local write = rdmap.write { stag = op.stag, tagged_offset = op.to, payload = "weft" }
    conn:send(sent .. mpa.fpdu { ulpdu = write }, { deviates = true })
    -- The Send is a message of rping. Before the Terminate, the target may answer this Send with a
    -- Write and a Send.
    local event, fpdu
    for _ = 1, 3 do
      event, fpdu = conn:next { within = 5 }
      if event ~= "fpdu" or fpdu.opcode == 7 then break end
    end
    local actual = event == "fpdu" and ("an FPDU with opcode %d"):format(fpdu.opcode) or event or "nothing"
    t:check(event == "close" or event == "fpdu" and fpdu.opcode == 7, {
      requirement = { "RDMAP-5.3-8", "RDMAP-1.2-2", "DDP-4.3-4", "DDP-5.4-7" },
      expected = "a refusal",
      actual = actual,
    })
  end,
}

case {
  id = "rdmap/7.2-messages/read-completes",
  version = 2,
  title = "The target completes a Read with a Read Response of segments of any size",
  requirements = { "DDP-4.2-3", "DDP-4.2-14", "RDMAP-5.5-23", "RDMAP-3.1-10" },
  capabilities = { "rping" },
  tags = { "read" },
  parameters = { segment = { 1, 2, 3, 7, 16, 64 } },

  run = function(t, p)
    local ALL = { "DDP-4.2-3", "DDP-4.2-14", "RDMAP-5.5-23", "RDMAP-3.1-10" }
    local data = ("weft"):rep(15) .. "end\0"
    local conn = t:start_up()
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = string.pack(">I8I4I4", 0x1000, 0x77656601, #data) } })
    local request = conn:expect_fpdu { opcode = 1 }
    t:check(#request.payload == 28, { expected = "a Read Request of 28 bytes", actual = #request.payload .. " bytes" })
    local stag, to = string.unpack(">I4i8", request.payload)
    local response
    for at = 0, #data - 1, p.segment do
      local piece = data:sub(at + 1, at + p.segment)
      local fpdu = mpa.fpdu {
        ulpdu = rdmap.write {
          opcode = 2, stag = stag, tagged_offset = to + at, payload = piece, last = at + #piece == #data,
        },
      }
      response = response and response .. fpdu or fpdu
    end
    conn:send(response)
    local rows = ALL
    local event, fpdu = conn:next { within = 5 }
    if event == nil then
      -- If the target took the Response for a Write, it accepts the same FPDUs again. If it has
      -- completed the Read, it rejects them.
      conn:send(response)
      rows = conn:next { within = 5 } and { "RDMAP-5.5-23" } or ALL
    end
    t:check(event == "fpdu" and fpdu.opcode == 3, {
      requirement = rows, expected = "an FPDU with Send", actual = session.describe(event, fpdu, 5), missing = event == nil,
    })
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = string.pack(">I8I4I4", 0x2000, 0x77656602, #data), msn = 2 } })
    conn:expect_fpdu { requirement = "RDMAP-5.5-23", opcode = 0, payload = data, overdue_fails = true }
    conn:close()
  end,
}

case {
  id = "rdmap/7.2-messages/response-goes-on",
  version = 2,
  title = "The target rejects a Read Response that continues beyond the end of the buffer, with L=1 or L=0",
  -- Until 2026, siw checked the length of a Response only if it had one segment.
  requirements = { "RDMAP-5.2.2-6", "DDP-7.1-13" },
  capabilities = { "rping" },
  tags = { "refusal", "read", "protection" },
  parameters = { last = { true, false }, more = { 1, 16 } },

  run = function(t, p)
    local BOTH = { "RDMAP-5.2.2-6", "DDP-7.1-13" }
    t:good_exchange()

    local first, op = t:operate()
    local length = op.length
    first:reset()
    local conn = t:start_up()
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = string.pack(">I8I4I4", 0x1000, 0x77656601, length) } })
    local request = conn:expect_fpdu { opcode = 1 }
    t:check(#request.payload == 28, { expected = "a Read Request of 28 bytes", actual = #request.payload .. " bytes" })
    local stag, to, size = string.unpack(">I4i8I4", request.payload)
    t:check(size == length, { expected = ("a Read of %d bytes"):format(length), actual = ("a Read of %d bytes"):format(size) })
    local function segment(at, payload, last)
      return mpa.fpdu { ulpdu = rdmap.write { opcode = 2, stag = stag, tagged_offset = to + at, payload = payload, last = last } }
    end
    local within = length - math.min(length, 16)
    for at = 0, within - 1, 1024 do
      conn:send(segment(at, ("w"):rep(math.min(1024, within - at)), false), { deviates = true })
    end
    conn:send(segment(within, ("x"):rep(length - within + p.more), p.last), { deviates = true })
    conn:expect_terminate { requirement = BOTH }
    conn:expect_close()
  end,
}

case(refusal {
  id = "rdmap/7.2-messages/response-unrequested",
  title = "The target rejects an unrequested Read Response to an invalid STag",
  requirements = { "RDMAP-5.2.2-6", "DDP-7.1-10" },
  capabilities = { "operation" },
  tags = { "refusal", "read" },
  parameters = { octets = { 1, 64 } },
  ulpdu = function(p, op)
    return rdmap.write { opcode = 2, stag = (op.stag or 0x77656677) ~ 0xffffffff, payload = ("w"):rep(p.octets) }
  end,
  refused = { requirement = { "RDMAP-5.2.2-6", "DDP-7.1-10" } },
})
