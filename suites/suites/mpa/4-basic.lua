-- RFC 5044 sections 4.1 and 4.4: basic checks on which every other case with FPDUs relies, one
-- property per case. The cases come first in a run. They need no CRC capability, because all CRCs
-- are correct if CRCs are used. Each case has a form for a target with an echo service. If rping
-- sends such FPDUs, the case also has a form for rping.

--- The number of seconds that a case waits for an answer.
local ANSWER = 3

local describe = session.describe

--- Sends `payload` in a Send, the first FPDU of a connection. Returns the connection and the next
--- event.
local function first_answer(t, payload)
  local conn = t:start_up()
  conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = payload } })
  local event, fpdu = conn:next { within = ANSWER }
  return conn, event, fpdu
end

--- The first message that rping's client sends. It has the address, the STag and the length of the
--- client's data. The server reads this data.
local RPING = string.pack(">I8I4I4", 0x1000, 0x77656601, 64)
--- ULPDU_Length of a Read Request (RFC 5040 section 4.4).
local READ_REQUEST = 18 + 28

--- Expects that the target answers a Send of `payload`, without PAD, with a ULPDU of `answer`
--- bytes.
local function check_length(t, payload, answer)
  local BOTH = { "MPA-4.1-1", "MPA-5.2-1" }
  local conn, event, fpdu = first_answer(t, payload)
  if event == nil then
    -- If the target read a length that is too great, it waits for more bytes. It then takes these
    -- zeros as the rest of the FPDU and reacts. If it read the correct length, the zeros belong to
    -- later FPDUs.
    conn:send(("\0"):rep(65536))
    event = conn:next { within = ANSWER }
    t:check(event == nil, {
      requirement = BOTH,
      expected = ("an answer after the %d bytes of the FPDU"):format(#payload + 24),
      actual = "it waited for more bytes, and reacted after 65,536 more",
    })
  end
  if event == "octets" then
    -- The target sent bytes that are not an FPDU. `keep` leaves them in the buffer. They have to
    -- begin with the correct length.
    conn:expect_octets { requirement = "MPA-4.1-1", begins = string.pack(">I2", answer), keep = true }
  end
  t:check(event == "fpdu", { expected = "the answer", actual = describe(event, fpdu, ANSWER) })
  t:check(true, { requirement = BOTH, expected = "an FPDU", actual = "none" })
  conn:close()
end

--- Declares a case with an echo, for both roles of the target. `declared` has the other fields of
--- the case, and can replace its roles and capabilities.
local function with_echo(name, title, requirements, declared, run)
  declared.id, declared.title = "mpa/4-basic/" .. name, title
  declared.requirements, declared.run = requirements, run
  declared.roles = declared.roles or { "responder", "initiator" }
  declared.capabilities = declared.capabilities or { "echo" }
  return declared
end

-- The ULPDUs have 22 and 46 bytes, so the FPDUs have no PAD.
case(with_echo("length", "The target reads the ULPDU_Length of an FPDU without PAD, and sets the ULPDU_Length of its answer",
  { "MPA-4.1-1", "MPA-5.2-1" },
  { version = 2, tags = { "basic", "fpdu" }, combine = { smoke = "all" }, parameters = { payload = { 4, 28 } } }, function(t, p)
  check_length(t, ("w"):rep(p.payload), 18 + p.payload)
end))

case(with_echo("length-rping", "The target reads ULPDU_Length in rping's first Send, which has no PAD, and sets ULPDU_Length in its answer",
  { "MPA-4.1-1", "MPA-5.2-1" }, { version = 2, roles = { "responder" }, capabilities = { "rping" }, tags = { "basic", "fpdu" } }, function(t)
  check_length(t, RPING, READ_REQUEST)
end))

--- Returns the CRC32c of `data`, as the four bytes of the CRC field (RFC 5044 section 4.4).
local function crc32c(data)
  local crc = 0xffffffff
  for at = 1, #data do
    crc = crc ~ data:byte(at)
    for _ = 1, 8 do
      crc = crc & 1 == 1 and crc >> 1 ~ 0x82f63b78 or crc >> 1
    end
  end
  return string.pack("<I4", crc ~ 0xffffffff)
end

--- Returns wrong CRC fields, each with a description of its error.
local function wrong_fields(ulpdu)
  local length = string.pack(">I2", #ulpdu)
  local right = crc32c(length .. ulpdu)
  return {
    { "over the ULPDU alone", crc32c(ulpdu) },
    { "without the PAD, over length and headers alone", crc32c((length .. ulpdu):sub(1, 20)) },
    { "with its bytes in reverse order", right:reverse() },
    { "without the final complement", string.pack("<I4", string.unpack("<I4", right) ~ 0xffffffff) },
    { "of zero", "\0\0\0\0" },
  }
end

--- Returns a function that sends this ULPDU as the first FPDU of a connection. If CRCs are used,
--- `field` replaces its CRC. The function returns the connection, the next event, and the target's
--- start-up frame.
local function exchange_of(t, ulpdu)
  return function(field)
    local conn, frame = t:start_up()
    if field and not frame.crc and not t:request().crc then field = nil end
    conn:send(mpa.fpdu { ulpdu = ulpdu, crc = field or true })
    local event, fpdu = conn:next { within = ANSWER }
    return conn, event, fpdu, frame
  end
end

--- A target that closed may have rejected the FPDU for another reason than its CRC. If it accepts
--- the same FPDU with a wrong CRC, the correct CRC was the reason.
local function check_wrong_crcs(t, exchange, ulpdu, opcode)
  for _, wrong in ipairs(wrong_fields(ulpdu:octets())) do
    local other, came, answer = exchange(wrong[2])
    other:reset()
    t:check(not (came == "fpdu" and answer.opcode == opcode), {
      requirement = "MPA-4.4-19", expected = "the answer to an FPDU with a correct CRC", actual = "a close, although it answers an FPDU with a CRC " .. wrong[1],
    })
  end
end

--- Returns the requirements that a wrong CRC of an FPDU violates.
local function wrong_crc(fpdu)
  local covered, field = fpdu.octets:sub(1, -5), fpdu.octets:sub(-4)
  if field == crc32c(covered):reverse() then return "MPA-4.4-14" end
  -- The CRC is a CRC32c, but of the ULPDU without its length or PAD.
  local ulpdu_and_pad = covered:sub(3)
  local is_partial = field == crc32c(ulpdu_and_pad) or field == crc32c(fpdu.ulpdu) or field == crc32c(covered:sub(1, 2 + #fpdu.ulpdu))
  return is_partial and "MPA-4.4-15" or { "MPA-4.4-14", "MPA-4.4-15" }
end

--- Checks that the answer does not reject a correct CRC and, if CRCs are used, has a correct CRC.
local function check_answer(t, fpdu, uses_crc)
  t:check(not (fpdu.opcode == 7 and fpdu.payload:sub(1, 2) == "\x20\x02"), {
    requirement = "MPA-4.4-19", expected = "the answer to an FPDU with a correct CRC", actual = "Terminate 20 02",
  })
  if uses_crc and not fpdu.crc_is_right then
    t:check(false, { requirement = wrong_crc(fpdu), expected = "a correct CRC", actual = "a wrong CRC" })
  end
  t:check(true, {
    requirement = { "MPA-4.4-14", "MPA-4.4-15", "MPA-4.4-19" }, expected = "an answer, with a correct CRC if CRCs are used", actual = "none",
  })
end

--- Checks that the answer is not an FPDU that lacks only its CRC field.
local function check_field(t, conn)
  local got = conn:expect_octets { begins = "", keep = true }
  if #got < 2 then return end
  local length = 2 + string.unpack(">I2", got)
  t:check(#got ~= length + -length % 4, {
    requirement = "MPA-4.4-13", expected = "an FPDU with 4 bytes of CRC at its end", actual = ("%d bytes, without the CRC"):format(#got),
  })
end

--- Expects that the target answers a Send of `payload` with this opcode, with correct CRCs.
local function check_crc(t, payload, opcode)
  local ulpdu = rdmap.send { payload = payload }
  local exchange = exchange_of(t, ulpdu)
  local conn, event, fpdu, frame = exchange()
  if event == "fpdu" and fpdu.opcode == 7 then check_answer(t, fpdu, false) end
  if event == "close" then check_wrong_crcs(t, exchange, ulpdu, opcode) end
  if event == "octets" then check_field(t, conn) end
  t:check(event == "fpdu" and fpdu.opcode == opcode, { expected = "the answer", actual = describe(event, fpdu, ANSWER) })
  check_answer(t, fpdu, frame.crc)
  t:check(true, { requirement = "MPA-4.4-13", expected = "an FPDU with its CRC field", actual = "none" })
  conn:close()
end

case(with_echo("crc", "If CRCs are used, the target accepts an FPDU with a correct CRC and echoes it with a correct CRC",
  { "MPA-4.4-13", "MPA-4.4-14", "MPA-4.4-15", "MPA-4.4-19" }, { version = 3, tags = { "basic", "fpdu", "crc" } }, function(t)
  check_crc(t, "weft", 3)
end))

case(with_echo("crc-rping", "If CRCs are used, the target accepts rping's first Send and sends a Read Request with a correct CRC",
  { "MPA-4.4-13", "MPA-4.4-14", "MPA-4.4-15", "MPA-4.4-19" },
  { version = 3, roles = { "responder" }, capabilities = { "rping" }, tags = { "basic", "fpdu", "crc" } }, function(t)
  check_crc(t, RPING, 1)
end))

case(with_echo("first-fpdu", "The target does not reject a correct CRC, whatever its service, and its answer has a correct CRC",
  { "MPA-4.4-14", "MPA-4.4-15", "MPA-4.4-19" }, { version = 2, capabilities = {}, tags = { "basic", "fpdu", "crc" } }, function(t)
  -- A Read of no bytes needs no buffer, and thus no service. Neither its Read Request nor the
  -- answer has a PAD.
  local ulpdu = rdmap.read_request { sink_stag = 0x7766 }
  local exchange = exchange_of(t, ulpdu)
  local conn, event, fpdu, frame = exchange()
  conn:reset()
  if event == "close" then check_wrong_crcs(t, exchange, ulpdu, 2) end
  if event ~= "fpdu" then
    -- The target may reject Reads, or may have closed after start-up.
    t:unimplemented("The target does not answer a Read of no bytes as the first message.")
  end
  check_answer(t, fpdu, frame.crc)
end))

-- The payload follows 20 bytes of length and headers.
case(with_echo("pad", "The target accepts and sends FPDUs with a PAD of each length",
  { "MPA-4.1-5" }, { tags = { "basic", "fpdu" }, combine = { smoke = "all" }, parameters = { pad = { 1, 2, 3 } } }, function(t, p)
  -- The target has to accept an FPDU without PAD first, so that a failure concerns the PAD.
  local conn, event, fpdu = first_answer(t, "weft")
  t:check(event == "fpdu" and fpdu.payload == "weft", { expected = "the echo of an FPDU without PAD", actual = describe(event, fpdu, ANSWER) })
  conn:close()

  local payload = ("w"):rep(8 - p.pad)
  conn, event, fpdu = first_answer(t, payload)
  t:check(event == "fpdu" and fpdu.payload == payload, {
    requirement = "MPA-4.1-5",
    expected = ("the echo of an FPDU with %d bytes of PAD, with the same PAD"):format(p.pad),
    actual = describe(event, fpdu, ANSWER),
  })
  -- If the target's PAD is too long, its surplus bytes precede the target's next FPDU.
  conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = payload, msn = 2 } })
  event, fpdu = conn:next { within = ANSWER }
  t:check(event == "fpdu" and fpdu.payload == payload, {
    requirement = "MPA-4.1-5", expected = "the echo of a second FPDU", actual = describe(event, fpdu, ANSWER),
  })
  conn:close()
end))

case(with_echo("sizes", "The target echoes Sends of every small size", { "MPA-5.2-1" },
  { tags = { "basic", "fpdu" }, combine = { smoke = "all" }, parameters = { pad = { 0, 1, 2, 3 } } }, function(t, p)
  local conn, event, fpdu = first_answer(t, ("w"):rep(8 - p.pad))
  t:check(event == "fpdu", { expected = "an echo", actual = describe(event, fpdu, ANSWER) })
  local number = 1
  for size = (4 - p.pad) % 4, 128, 4 do
    number = number + 1
    local payload = octets.counted(size)
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = payload, msn = number } })
    event, fpdu = conn:next { within = ANSWER }
    t:check(event == "fpdu" and fpdu.payload == payload, {
      requirement = "MPA-5.2-1", expected = ("the echo of a Send of %d bytes"):format(size), actual = describe(event, fpdu, ANSWER),
    })
  end
  conn:close()
end))

--- Writes `payload` to rping's buffer and reads it again. Returns the event that answers the Read.
local function write_and_read(conn, op, payload, msn)
  conn:send(mpa.fpdu { ulpdu = rdmap.write { stag = op.stag, tagged_offset = op.to, payload = payload } })
  conn:send(mpa.fpdu {
    ulpdu = rdmap.read_request { sink_stag = 0x7766, rdmardsz = #payload, src_stag = op.stag, src_to = op.to, msn = msn },
  })
  return conn:next { within = ANSWER }
end

-- The payload follows 16 bytes of length and header. No FPDU of rping itself has a PAD.
case(with_echo("pad-rping", "The target accepts Writes and sends Read Responses with a PAD of each length", { "MPA-4.1-5" }, {
  capabilities = { "rping" },
  tags = { "basic", "fpdu" },
  combine = { smoke = "all" },
  parameters = { pad = { 1, 2, 3 } },
}, function(t, p)
  local conn, op = t:operate()
  -- The target has to accept an FPDU without PAD first, so that a failure concerns the PAD.
  local event, fpdu = write_and_read(conn, op, "weft", 1)
  t:check(event == "fpdu" and fpdu.payload == "weft", { expected = "a Read Response without PAD", actual = describe(event, fpdu, ANSWER) })
  local payload = ("w"):rep(8 - p.pad)
  for msn = 2, 3 do
    event, fpdu = write_and_read(conn, op, payload, msn)
    t:check(event == "fpdu" and fpdu.payload == payload, {
      requirement = "MPA-4.1-5",
      expected = ("the data of a Write with %d bytes of PAD, in a Read Response with the same PAD"):format(p.pad),
      actual = describe(event, fpdu, ANSWER),
    })
  end
  conn:close()
end))

case(with_echo("sizes-rping", "The target places a Write of every small size so that a Read returns it", { "MPA-5.2-1" }, {
  capabilities = { "rping" },
  tags = { "basic", "fpdu" },
  combine = { smoke = "all" },
  parameters = { pad = { 0, 1, 2, 3 } },
}, function(t, p)
  local conn, op = t:operate()
  -- The target has to accept this PAD first, so that a failure concerns the size.
  local event, fpdu = write_and_read(conn, op, ("w"):rep(8 - p.pad), 1)
  t:check(event == "fpdu" and #fpdu.payload == 8 - p.pad, { expected = "a Read Response", actual = describe(event, fpdu, ANSWER) })
  local number = 1
  for size = 4 - p.pad, math.min(op.length, 64), 4 do
    number = number + 1
    local payload = octets.counted(size)
    event, fpdu = write_and_read(conn, op, payload, number)
    t:check(event == "fpdu" and fpdu.payload == payload, {
      requirement = "MPA-5.2-1", expected = ("the %d bytes of a Write"):format(size), actual = describe(event, fpdu, ANSWER),
    })
  end
  conn:close()
end))
