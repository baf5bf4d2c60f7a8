-- RFC 5040 sections 4.8, 5.4 and 7.1: the Terminate with which a target answers each kind of error.

-- In a Terminate, the bits M, D and R show that the segment's length, its DDP header and its Read
-- Request follow. RFC 5040 Figure 10 requires M and D for errors of DDP and of operations. If the
-- source of a Read Request is rejected, the figure also requires R. If the bytes of the LLP are not
-- reliable, the figure requires none of these bits.
local KINDS = {
  ["untagged"] = {
    error = "12 01", parts = true,
    make = function(op) return rdmap.send { payload = "weft!", qn = 77, msn = op.msn } end,
  },
  ["tagged"] = {
    error = "11 00", parts = true,
    make = function(op) return rdmap.write { payload = "weft!", stag = op.stag ~ 0xffffffff, tagged_offset = 0x1122334455667788 } end,
  },
  ["operation"] = {
    error = "02 06", parts = true,
    make = function(op) return rdmap.send { payload = "weft!", opcode = 13, msn = op.msn } end,
  },
  ["read"] = {
    error = "01 00", parts = true, request = true,
    make = function(op)
      return rdmap.read_request {
        sink_stag = 0x01020304, sink_to = 0x1122334455667788, rdmardsz = 77, src_stag = op.stag ~ 0xffffffff, src_to = 0x99,
      }
    end,
  },
  -- The next two kinds are errors of DDP and of operations in a Read Request. The Terminate
  -- includes the header of the Read Request only if the source of the Read is rejected. irdma,
  -- i40iw and nes always include it.
  ["read-number"] = {
    error = { "12 03", "12 02" }, parts = true,
    make = function(op)
      return rdmap.read_request { sink_stag = 0x01020304, rdmardsz = 4, src_stag = op.stag, src_to = op.to, msn = 100000 }
    end,
  },
  ["read-version"] = {
    error = "02 05", parts = true,
    make = function(op)
      return rdmap.read_request { sink_stag = 0x01020304, rdmardsz = 4, src_stag = op.stag, src_to = op.to, rdmap_version = 2 }
    end,
  },
  -- If a Send has begun, this is its second segment.
  ["crc"] = {
    error = "20 02",
    make = function(op, in_send) return rdmap.send { payload = "weft!", msn = op.msn, mo = in_send and 8 or 0 } end,
  },
}

local END = { "RDMAP-5.4-12", "DDP-7.1-19" }

local function hexadecimal(octets)
  return (("%02x "):rep(#octets)):format(octets:byte(1, -1))
end

--- Causes an error of this kind. With `in_send`, the segment in error follows the first segment of
--- a Send, whose other segments are missing. Returns the connection, the Terminate, the bytes of
--- the segment in error, and a function that checks expectations.
local function provoke(t, name, expectation, in_send)
  local kind = KINDS[name]
  local conn, op = t:operate { crc = true }
  if in_send then
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = ("s"):rep(8), msn = op.msn, last = false } }, { deviates = true })
  end
  local ulpdu = kind.make(op, in_send)
  local fpdu = mpa.fpdu { ulpdu = ulpdu }
  conn:send(name == "crc" and fpdu:flip(#fpdu - 1) or fpdu, { deviates = true })
  local terminate = conn:expect_terminate(expectation) ---@cast terminate weft.Terminate
  local function check(ok, requirement, expected, actual)
    t:check(ok, { requirement = requirement, expected = expected, actual = actual })
  end
  return conn, terminate, ulpdu:octets(), check
end

--- The DDP header that a segment begins with.
local function header_of(octets)
  return octets:sub(1, octets:byte(1) & 0x80 ~= 0 and 14 or 18)
end

local function bits_of(terminate)
  return ("M=%s D=%s R=%s"):format(terminate.m, terminate.d, terminate.r)
end

--- Returns the layer and type, then the code, as in KINDS.
local function error_of(terminate)
  return ("%02x %02x"):format(terminate.payload:byte(1, 2))
end

local ERROR = { "RDMAP-4.8-2", "RDMAP-4.8-3", "RDMAP-4.8-4", "RDMAP-4.8-37", "RDMAP-4.8-38" }

--- Returns the requirements that a Terminate violates if its error differs from `wanted`. The
--- layout of Figure 8 is violated if the fields are there, but exchanged, also by a little-endian
--- byte order.
local function wrong_error(terminate, wanted)
  local layer, error_type, code = wanted:sub(1, 1), wanted:sub(2, 2), wanted:sub(4, 5)
  local control = hexadecimal(terminate.payload:sub(1, 4))
  local code_first = code .. " " .. layer .. error_type
  local is_exchanged = control:sub(1, 5) == code_first or control:sub(7, 11) == code_first
    or control:sub(1, 5) == error_type .. layer .. " " .. code
  return {
    control:sub(1, 1) ~= layer and "RDMAP-4.8-2" or {},
    control:sub(2, 2) ~= error_type and "RDMAP-4.8-3" or {},
    control:sub(4, 5) ~= code and "RDMAP-4.8-4" or {},
    is_exchanged and "RDMAP-4.8-37" or {},
    "RDMAP-4.8-38",
  }
end

local PARTS = { "RDMAP-4.8-5", "RDMAP-4.8-13", "RDMAP-4.8-39", "RDMAP-4.8-40", "RDMAP-4.8-41" }

--- Returns the requirements that a Terminate violates if its bits differ from these values of M and
--- D (`parts`) and of R (`request`).
local function wrong_parts(terminate, parts, request)
  local is_unannounced = not terminate.m and not terminate.d and not terminate.r and #terminate.rest > 0
  return {
    is_unannounced and "RDMAP-4.8-5" or {},
    terminate.m ~= parts and "RDMAP-4.8-39" or {},
    terminate.d ~= parts and "RDMAP-4.8-40" or {},
    terminate.r ~= request and "RDMAP-4.8-41" or {},
    terminate.r and not request and "RDMAP-4.8-13" or {},
  }
end

--- Declares a case with rping and CRCs, for both roles of the target. `declared` has the other
--- fields of the case, and can replace its capabilities.
local function with_rping(name, title, requirements, declared, run)
  declared.id, declared.title = "rdmap/4.8-terminate/" .. name, title
  declared.requirements, declared.run = requirements, run
  declared.roles = { "responder", "initiator" }
  declared.capabilities = declared.capabilities or { "rping", "crc" }
  return declared
end

--- The requirements of the layout of Figures 7 and 8 that are not in ERROR or PARTS.
local LAYOUT = {
  "RDMAP-6.2.1-1", "RDMAP-7.1-2", "RDMAP-4.8-6", "RDMAP-4.1-13", "RDMAP-5.4-1", "RDMAP-5.4-2", "RDMAP-5.4-7", "RDMAP-5.4-8",
  "RDMAP-4.2-5",
}

--- Causes an error of this kind, and checks the layout of the Terminate. The parameters and the
--- results are those of `provoke`.
local function check_layout(t, name, in_send)
  local conn, terminate, octets, check = provoke(t, name, { terminate = { "RDMAP-6.2.1-1", "RDMAP-7.1-2" } }, in_send)
  local kind = KINDS[name]
  local errors = type(kind.error) == "table" and kind.error or { kind.error } ---@cast errors string[]
  local found = error_of(terminate)
  local is_right = found == errors[1] or found == errors[2]
  check(is_right, is_right and ERROR or wrong_error(terminate, errors[1]),
    "a Terminate: " .. table.concat(errors, " or "), "it sent a Terminate: " .. found)
  check(not terminate.tagged, { "RDMAP-4.1-13", "RDMAP-5.4-1", "RDMAP-5.4-7", "RDMAP-5.4-8" }, "T=0, QN 2", "T=1")
  check(terminate.qn == 2, { "RDMAP-4.1-13", "RDMAP-5.4-8" }, "QN 2", ("QN %d"):format(terminate.qn))
  check(terminate.msn == 1 and terminate.mo == 0 and terminate.last, "RDMAP-5.4-2",
    "MSN 1, MO 0, L=true", ("MSN %s, MO %s, L=%s"):format(terminate.msn, terminate.mo, terminate.last))
  check(terminate.reserved == 0, "RDMAP-4.8-6", "reserved bits of zero", ("%#x in the reserved bits"):format(terminate.reserved))

  local parts, request = kind.parts or false, kind.request or false
  is_right = terminate.m == parts and terminate.d == parts and terminate.r == request
  check(is_right, is_right and PARTS or wrong_parts(terminate, parts, request),
    ("M=%s D=%s R=%s"):format(parts, parts, request), bits_of(terminate))
  local length = parts and 2 + #header_of(octets) + (request and 28 or 0) or 0
  check(#terminate.rest == length, "RDMAP-4.2-5", ("%d bytes after the control field"):format(length), ("%d bytes"):format(#terminate.rest))
  return conn, terminate, octets, check
end

--- Checks that the Terminate has the length and the DDP header of the segment in error.
local function check_segment(terminate, octets, check)
  local header = header_of(octets)
  local has_both = #terminate.rest >= 2 + #header
  check(has_both, {
    (has_both or terminate.d) and "RDMAP-4.8-9" or {},
    "RDMAP-4.8-39",
    (has_both or not terminate.d) and "RDMAP-4.8-40" or {},
  }, ("a length and %d bytes of header"):format(#header), ("%d bytes"):format(#terminate.rest))
  local copied = terminate.rest:sub(3, 2 + #header)
  check(copied == header, "RDMAP-4.8-10", "the header " .. hexadecimal(header), hexadecimal(copied))
  local length = string.unpack(">I2", terminate.rest)
  check(length == #octets, "RDMAP-4.8-8", ("the length of the segment, %d bytes"):format(#octets), ("%d bytes"):format(length))
end

case(with_rping("layout", "The target's Terminate is the first message of queue 2, has the layout of Figures 7 and 8, and is the last message",
  { LAYOUT, ERROR, PARTS, END }, {
  version = 4,
  tags = { "terminate", "refusal" },
  parameters = { kind = { "untagged", "tagged", "operation", "read", "read-number", "read-version", "crc" } },
}, function(t, p)
  t:good_exchange()

  local conn = check_layout(t, p.kind, false)
  conn:expect_close { requirement = END }
end))

-- The target has stored the header of the Send, and must not use it in the Terminate. `llp-error`
-- causes an MPA error in a Send.
case(with_rping("in-send", "After the first segment of a Send, the target's Terminate has the layout and the header of the segment in error",
  { LAYOUT, ERROR, PARTS, "RDMAP-4.8-8", "RDMAP-4.8-9", "RDMAP-4.8-10", END },
  { version = 2, tags = { "terminate", "refusal", "segment" }, parameters = { kind = { "untagged", "tagged" } } }, function(t, p)
  t:good_exchange()

  local conn, terminate, octets, check = check_layout(t, p.kind, true)
  check_segment(terminate, octets, check)
  conn:expect_close { requirement = END }
end))

case(with_rping("segment", "The target's Terminate for a segment in error has the segment's length and DDP header",
  { "RDMAP-4.8-8", "RDMAP-4.8-9", "RDMAP-4.8-10", "RDMAP-4.8-39", "RDMAP-4.8-40" },
  { version = 3, tags = { "terminate", "refusal" }, parameters = { kind = { "untagged", "tagged", "operation", "read" } } }, function(t, p)
  t:good_exchange()

  local _, terminate, octets, check = provoke(t, p.kind, {})
  check_segment(terminate, octets, check)
end))

case(with_rping("ddp-error", "The target reports a DDP error with the codes of RFC 5041, the length and the DDP header only",
  { "DDP-7.2-1", "DDP-7.2-14", "RDMAP-4.8-31", "DDP-7.1-17", "RDMAP-4.8-16", "RDMAP-3.1-7", "RDMAP-7.1-4" },
  { version = 3, tags = { "terminate", "refusal" }, parameters = { kind = { "untagged", "tagged" } } }, function(t, p)
  t:good_exchange()

  local _, terminate, _, check = provoke(t, p.kind, {})
  local wanted, found = KINDS[p.kind].error, error_of(terminate)
  -- Type 3 of layer 1 is reserved for the LLP.
  check(found:sub(1, 2) ~= "13", { "DDP-7.2-1", "DDP-7.2-14", "RDMAP-4.8-31" }, "a Terminate: " .. wanted, "it sent a Terminate: " .. found)
  check(found == wanted, { "DDP-7.2-1", "RDMAP-4.8-31" }, "a Terminate: " .. wanted, "it sent a Terminate: " .. found)
  check(terminate.m and terminate.d, { "DDP-7.1-17", "RDMAP-4.8-16", "RDMAP-3.1-7", "RDMAP-7.1-4" }, "M=true D=true", bits_of(terminate))
  check(not terminate.r, { "RDMAP-4.8-16", "RDMAP-7.1-4" }, "R=false", bits_of(terminate))
end))

case(with_rping("operation-error", "The target reports a Remote Operation error with the length and the DDP header only",
  { "RDMAP-4.8-15" }, { version = 2, tags = { "terminate", "refusal" } }, function(t)
  t:good_exchange()

  local _, terminate, _, check = provoke(t, "operation", {})
  check(terminate.m and terminate.d and not terminate.r, "RDMAP-4.8-15", "M=true D=true R=false", bits_of(terminate))
end))

case(with_rping("read-error", "The target's Terminate has the complete Read Request if the source of the Read is rejected",
  { "RDMAP-4.8-12", "RDMAP-4.8-41", "RDMAP-4.8-42", "RDMAP-7.1-5" },
  { version = 3, tags = { "terminate", "refusal", "read" } }, function(t)
  t:good_exchange()

  local _, terminate, octets, check = provoke(t, "read", {})
  local request = octets:sub(19)
  local copied = terminate.rest:sub(3 + 18)
  check(terminate.r, { "RDMAP-4.8-41", "RDMAP-4.8-42", "RDMAP-7.1-5" }, "M=true D=true R=true", bits_of(terminate))
  check(#copied >= #request, { "RDMAP-4.8-12", "RDMAP-4.8-42" }, "the request " .. hexadecimal(request), hexadecimal(copied))
  copied = copied:sub(1, #request)
  check(copied == request, "RDMAP-4.8-42", "the request " .. hexadecimal(request), hexadecimal(copied))
end))

case(with_rping("llp-error", "The target reports a wrong CRC as an MPA error, without headers, which are not reliable",
  { "RDMAP-4.8-11", "RDMAP-4.8-14", "RDMAP-4.8-33", "MPA-8-5", "MPA-8-2", "MPA-4.4-20" }, {
  version = 4,
  capabilities = { "operation", "crc" },
  tags = { "terminate", "refusal", "crc" },
  parameters = { state = { "idle", "in-send" } },
}, function(t, p)
  t:good_exchange()

  local expectation = { requirement = { "MPA-8-2", "MPA-4.4-20" }, terminate = "MPA-8-5" }
  local conn, terminate, _, check = provoke(t, "crc", expectation, p.state == "in-send")
  local wanted, found = KINDS.crc.error, error_of(terminate)
  check(found == wanted, { "MPA-8-5", "RDMAP-4.8-33" }, "a Terminate: " .. wanted, "it sent a Terminate: " .. found)
  check(terminate.d or #terminate.rest == 0, "RDMAP-4.8-11", "no byte after the control field if D=false",
    ("D=%s, %d bytes"):format(terminate.d, #terminate.rest))
  check(not terminate.m and not terminate.d and not terminate.r and #terminate.rest == 0, "RDMAP-4.8-14",
    "M=false D=false R=false, and no byte after the control field", ("%s, %d bytes"):format(bits_of(terminate), #terminate.rest))
  conn:expect_close()
end))

case(with_rping("first-error", "The target's Terminate reports the first of several errors",
  { "RDMAP-7.1-6", "RDMAP-5.4-12", "DDP-3-13", "RDMAP-7-2" },
  { version = 3, capabilities = { "rping" }, tags = { "terminate", "refusal" } }, function(t)
  t:good_exchange()

  local conn, op = t:operate()
  local first = rdmap.send { payload = "first", qn = 77, msn = op.msn }
  local second = rdmap.send { payload = "second", qn = 78, msn = op.msn }
  conn:send(mpa.fpdu { ulpdu = first } .. mpa.fpdu { ulpdu = second }, { deviates = true })
  local terminate = conn:expect_terminate() ---@cast terminate weft.Terminate
  local header = terminate.rest:sub(3, 20)
  t:check(header == first:octets():sub(1, 18), {
    requirement = "RDMAP-7.1-6",
    expected = "the header of the first segment in error, " .. hexadecimal(first:octets():sub(1, 18)),
    actual = hexadecimal(header),
  })
  conn:expect_close { requirement = { "RDMAP-5.4-12", "DDP-3-13", "RDMAP-7-2" } }
end))

case(with_rping("nothing-after", "The target ignores messages after an error",
  { "DDP-7.1-18", "DDP-3-13", "RDMAP-7-2", "RDMAP-7-4" },
  { version = 2, capabilities = { "rping" }, tags = { "terminate", "refusal" } }, function(t)
  t:good_exchange()

  local conn, op = t:operate()
  local bad = mpa.fpdu { ulpdu = rdmap.send { payload = "bad", qn = 77, msn = op.msn } }
  local good = mpa.fpdu {
    ulpdu = rdmap.read_request { sink_stag = 0x7766, rdmardsz = 4, src_stag = op.stag, src_to = op.to },
  }
  conn:send(bad .. good, { deviates = true })
  conn:expect_close { requirement = { "DDP-7.1-18", "DDP-3-13", "RDMAP-7-2", "RDMAP-7-4" }, after_terminate = true, overdue_fails = true }
end))

case(with_rping("then-closes", "The target closes TCP with a FIN after its Terminate, and not before",
  { "RDMAP-7-3", "DDP-3-11", "RDMAP-6.2.1-8", "DDP-6.2.1-8", "DDP-6.2-1", "DDP-6.2.2-3", "DDP-6.2.2-4" },
  { version = 2, capabilities = { "operation" }, tags = { "terminate", "refusal" } }, function(t)
  t:good_exchange()

  local conn, op = t:operate()
  conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft", qn = 77, msn = op.msn } }, { deviates = true })
  conn:expect_terminate { terminate = { "DDP-6.2-1", "DDP-6.2.2-3", "DDP-6.2.2-4" } }
  -- A reset may discard a Terminate that the peer has not read yet.
  conn:expect_close { requirement = { "RDMAP-6.2.1-8", "DDP-6.2.1-8" }, shows = { "RDMAP-7-3", "DDP-3-11" }, graceful = true }
end))

case(with_rping("ends-the-connection", "The target does not keep the connection open after its Terminate",
  { "RDMAP-7-3", "DDP-3-11" },
  { version = 2, capabilities = { "operation" }, tags = { "terminate", "refusal", "slow" } }, function(t)
  t:good_exchange()

  local conn, op = t:operate()
  conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft", qn = 77, msn = op.msn } }, { deviates = true })
  conn:expect_terminate()
  conn:expect_close { requirement = { "RDMAP-7-3", "DDP-3-11" }, within = 60, overdue_fails = true }
end))
