-- RFC 5044 sections 4.1 and 4.4: what every other case with FPDUs rests on, one thing a case. They come first in a run. No capability for CRCs is needed:
-- CRCs are right where they are used. Each has a form for a target with an echo service and one for rping, as far as rping sends such FPDUs.

--- Sends a Send of these octets as the first FPDU of a connection. Gives the connection, what comes, and the MSN of the echo.
local function first_answer(t, payload)
  local conn = t:start_up()
  conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = payload } })
  local what, fpdu = conn:next { within = 3 }
  return conn, what, fpdu
end

--- What came, in words.
local function described(what, fpdu)
  if what ~= "fpdu" then return what or "nothing, and the connection stays open" end
  return fpdu.opcode == 7 and "a Terminate" or ("an FPDU with %d octets of payload"):format(#fpdu.payload)
end

--- What rping's client sends first: where its data is, and how many octets. The server reads them.
local RPING = string.pack(">I8I4I4", 0x1000, 0x77656601, 64)
--- ULPDU_Length of a Read Request (RFC 5040 section 4.4).
local READ_REQUEST = 18 + 28

--- A Send of these octets, without PAD, is answered by an FPDU with a ULPDU of `answer` octets.
local function takes_length(t, payload, answer)
  local BOTH = { "MPA-4.1-1", "MPA-5.2-1" }
  local conn, what = first_answer(t, payload)
  if what == nil then
    -- A receiver that has understood the length waits for the length of another FPDU; one that has read a greater length takes these octets to be the rest.
    conn:send(("\0"):rep(65536))
    what = conn:next { within = 3 }
    t:check(what == nil, {
      requirement = BOTH,
      expected = ("an answer behind the %d octets of the FPDU"):format(#payload + 24),
      actual = "it waited for more octets, and did something when there were 65,536 more",
    })
  end
  if what == "octets" then
    -- They stay there: the first of them are the length.
    conn:expect_octets { requirement = BOTH, begins = string.pack(">I2", answer), keep = true }
  end
  t:check(what == "fpdu", { expected = "the answer", actual = described(what, { opcode = 7 }) })
  t:check(true, { requirement = BOTH, expected = "an FPDU", actual = "none" })
  conn:close()

  t:liveness()
end

case {
  id = "mpa/4-basic/length",
  version = 1,
  title = "An FPDU without PAD is taken, and answered with one, by its ULPDU_Length",
  requirements = { "MPA-4.1-1", "MPA-5.2-1" },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "basic", "fpdu" },
  -- ULPDUs of 22 and of 46 octets, and so no PAD.
  parameters = { payload = { 4, 28 } },
  combine = { smoke = "all" },

  run = function(t, p)
    takes_length(t, ("w"):rep(p.payload), 18 + p.payload)
  end,
}

case {
  id = "mpa/4-basic/length-rping",
  version = 1,
  title = "rping's first Send, an FPDU without PAD, is taken, and answered with one, by its ULPDU_Length",
  requirements = { "MPA-4.1-1", "MPA-5.2-1" },
  roles = { "responder" },
  capabilities = { "rping" },
  tags = { "basic", "fpdu" },

  run = function(t)
    takes_length(t, RPING, READ_REQUEST)
  end,
}

--- CRC32c of octets, as the four octets of the field (RFC 5044 section 4.4).
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

--- Fields that are wrong, and what they are.
local function wrong_fields(ulpdu)
  local length = string.pack(">I2", #ulpdu)
  local right = crc32c(length .. ulpdu)
  return {
    { "over the ULPDU alone", crc32c(ulpdu) },
    { "without the PAD, over length and headers alone", crc32c((length .. ulpdu):sub(1, 20)) },
    { "with its octets in the other order", right:reverse() },
    { "without the last complement", string.pack("<I4", string.unpack("<I4", right) ~ 0xffffffff) },
    { "of zero", "\0\0\0\0" },
  }
end

--- A function that sends this ULPDU as the first FPDU of a connection, with a CRC field of its own where CRCs are used. It gives the
--- connection, what comes, and whether the target's start-up frame has C=1.
local function exchange_of(t, ulpdu)
  return function(field)
    local conn, frame = t:start_up()
    if field and not frame.crc and not t:request().crc then field = nil end
    conn:send(mpa.fpdu { ulpdu = ulpdu, crc = field or true })
    local what, fpdu = conn:next { within = 3 }
    return conn, what, fpdu, frame
  end
end

--- A target that closed may refuse the FPDU for another reason than its CRC. That it takes one with a wrong CRC instead shows that it does not.
local function takes_no_wrong_one(t, exchange, ulpdu, opcode)
  for _, wrong in ipairs(wrong_fields(ulpdu:octets())) do
    local other, came, answer = exchange(wrong[2])
    other:reset()
    t:check(not (came == "fpdu" and answer.opcode == opcode), {
      requirement = "MPA-4.4-19", expected = "the answer to an FPDU with a right CRC", actual = "a close, and the answer to one with a CRC " .. wrong[1],
    })
  end
end

--- The answer does not refuse a right CRC, and has a right one where CRCs are used.
local function check_answer(t, fpdu, uses_crc)
  t:check(not (fpdu.opcode == 7 and fpdu.payload:sub(1, 2) == "\x20\x02"), {
    requirement = "MPA-4.4-19", expected = "the answer to an FPDU with a right CRC", actual = "Terminate 20 02",
  })
  if uses_crc then
    t:check(fpdu.crc_is_right, { requirement = { "MPA-4.4-14", "MPA-4.4-15" }, expected = "a right CRC", actual = "a wrong one" })
  end
  t:check(true, {
    requirement = { "MPA-4.4-14", "MPA-4.4-15", "MPA-4.4-19" }, expected = "an answer with a right CRC, where CRCs are used", actual = "none",
  })
end

--- An answer of the length of an FPDU without its CRC field is none.
local function check_field(t, conn)
  local got = conn:expect_octets { begins = "", keep = true }
  if #got < 2 then return end
  local length = 2 + string.unpack(">I2", got)
  t:check(#got ~= length + -length % 4, {
    requirement = "MPA-4.4-13", expected = "an FPDU with 4 octets of CRC at its end", actual = ("%d octets, without these"):format(#got),
  })
end

--- A Send of these octets with a right CRC is answered by a message of this opcode with a right CRC.
local function takes_crc(t, payload, opcode)
  local ulpdu = rdmap.send { payload = payload }
  local exchange = exchange_of(t, ulpdu)
  local conn, what, fpdu, frame = exchange()
  if what == "fpdu" and fpdu.opcode == 7 then check_answer(t, fpdu, false) end
  if what == "close" then takes_no_wrong_one(t, exchange, ulpdu, opcode) end
  if what == "octets" then check_field(t, conn) end
  t:check(what == "fpdu" and fpdu.opcode == opcode, { expected = "the answer", actual = described(what, fpdu) })
  check_answer(t, fpdu, frame.crc)
  t:check(true, { requirement = "MPA-4.4-13", expected = "an FPDU with its CRC field", actual = "none" })
  conn:close()

  t:liveness()
end

case {
  id = "mpa/4-basic/crc",
  version = 2,
  title = "Where CRCs are used an FPDU with a right one is taken, and the echo has a right one",
  requirements = { "MPA-4.4-13", "MPA-4.4-14", "MPA-4.4-15", "MPA-4.4-19" },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "basic", "fpdu", "crc" },

  run = function(t)
    takes_crc(t, "weft", 3)
  end,
}

case {
  id = "mpa/4-basic/crc-rping",
  version = 2,
  title = "Where CRCs are used rping's first Send with a right one is taken, and the Read Request has a right one",
  requirements = { "MPA-4.4-13", "MPA-4.4-14", "MPA-4.4-15", "MPA-4.4-19" },
  roles = { "responder" },
  capabilities = { "rping" },
  tags = { "basic", "fpdu", "crc" },

  run = function(t)
    takes_crc(t, RPING, 1)
  end,
}

case {
  id = "mpa/4-basic/first-fpdu",
  version = 1,
  title = "A right FPDU is not refused for its CRC, whatever service there is, and an answer has a right one",
  requirements = { "MPA-4.4-14", "MPA-4.4-15", "MPA-4.4-19" },
  roles = { "responder", "initiator" },
  tags = { "basic", "fpdu", "crc" },

  run = function(t)
    -- A Read of no octets needs no buffer, and so no service; neither its Read Request nor the answer has PAD.
    local ulpdu = rdmap.read_request { sink_stag = 0x7766 }
    local exchange = exchange_of(t, ulpdu)
    local conn, what, fpdu, frame = exchange()
    conn:reset()
    if what == "close" then takes_no_wrong_one(t, exchange, ulpdu, 2) end
    if what ~= "fpdu" then
      -- It may refuse Reads, or have closed behind its start-up.
      t:unimplemented("The target does not answer a Read of no octets as the first message.")
    end
    check_answer(t, fpdu, frame.crc)

    t:liveness()
  end,
}

case {
  id = "mpa/4-basic/pad",
  version = 1,
  title = "FPDUs with a PAD of each length are taken and sent",
  requirements = { "MPA-4.1-5" },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "basic", "fpdu" },
  -- Behind 20 octets of length and headers.
  parameters = { pad = { 1, 2, 3 } },
  combine = { smoke = "all" },

  run = function(t, p)
    -- Without a PAD an FPDU is taken: what fails then is the PAD.
    local conn, what, fpdu = first_answer(t, "weft")
    t:check(what == "fpdu" and fpdu.payload == "weft", { expected = "the echo of an FPDU without PAD", actual = described(what, fpdu) })
    conn:close()

    local payload = ("w"):rep(8 - p.pad)
    conn, what, fpdu = first_answer(t, payload)
    t:check(what == "fpdu" and fpdu.payload == payload, {
      requirement = "MPA-4.1-5",
      expected = ("the echo of an FPDU with %d octets of PAD, in one like it"):format(p.pad),
      actual = described(what, fpdu),
    })
    -- A PAD that is too long stands in front of the next FPDU.
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = payload, msn = 2 } })
    what, fpdu = conn:next { within = 3 }
    t:check(what == "fpdu" and fpdu.payload == payload, {
      requirement = "MPA-4.1-5", expected = "the echo of a second FPDU", actual = described(what, fpdu),
    })
    conn:close()

    t:liveness()
  end,
}

case {
  id = "mpa/4-basic/sizes",
  version = 1,
  title = "Sends of every small size come back",
  requirements = { "MPA-5.2-1" },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "basic", "fpdu" },
  parameters = { pad = { 0, 1, 2, 3 } },
  combine = { smoke = "all" },

  run = function(t, p)
    local conn, what, fpdu = first_answer(t, ("w"):rep(8 - p.pad))
    t:check(what == "fpdu", { expected = "an echo", actual = described(what, fpdu) })
    local number = 1
    for size = (4 - p.pad) % 4, 128, 4 do
      number = number + 1
      local payload = octets.counted(size)
      conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = payload, msn = number } })
      what, fpdu = conn:next { within = 3 }
      t:check(what == "fpdu" and fpdu.payload == payload, {
        requirement = "MPA-5.2-1", expected = ("the echo of a Send of %d octets"):format(size), actual = described(what, fpdu),
      })
    end
    conn:close()

    t:liveness()
  end,
}

--- Writes octets to the buffer of rping and reads them again. Gives what came of the Read, and the octets.
local function write_and_read(conn, op, payload, msn)
  conn:send(mpa.fpdu { ulpdu = rdmap.write { stag = op.stag, tagged_offset = op.to, payload = payload } })
  conn:send(mpa.fpdu {
    ulpdu = rdmap.read_request { sink_stag = 0x7766, rdmardsz = #payload, src_stag = op.stag, src_to = op.to, msn = msn },
  })
  return conn:next { within = 3 }
end

case {
  id = "mpa/4-basic/pad-rping",
  version = 1,
  title = "Writes and Read Responses with a PAD of each length are taken and sent",
  requirements = { "MPA-4.1-5" },
  roles = { "responder", "initiator" },
  capabilities = { "rping" },
  tags = { "basic", "fpdu" },
  -- Behind 16 octets of length and header. No FPDU of rping's own has any.
  parameters = { pad = { 1, 2, 3 } },
  combine = { smoke = "all" },

  run = function(t, p)
    local conn, op = t:operate()
    -- Without a PAD an FPDU is taken: what fails then is the PAD.
    local what, fpdu = write_and_read(conn, op, "weft", 1)
    t:check(what == "fpdu" and fpdu.payload == "weft", { expected = "a Read Response without PAD", actual = described(what, fpdu) })
    local payload = ("w"):rep(8 - p.pad)
    for msn = 2, 3 do
      what, fpdu = write_and_read(conn, op, payload, msn)
      t:check(what == "fpdu" and fpdu.payload == payload, {
        requirement = "MPA-4.1-5",
        expected = ("what a Write with %d octets of PAD wrote, in a Read Response like it"):format(p.pad),
        actual = described(what, fpdu),
      })
    end
    conn:close()

    t:liveness()
  end,
}

case {
  id = "mpa/4-basic/sizes-rping",
  version = 1,
  title = "Writes of every small size are read again",
  requirements = { "MPA-5.2-1" },
  roles = { "responder", "initiator" },
  capabilities = { "rping" },
  tags = { "basic", "fpdu" },
  parameters = { pad = { 0, 1, 2, 3 } },
  combine = { smoke = "all" },

  run = function(t, p)
    local conn, op = t:operate()
    -- One of this PAD is taken: what fails then is the size.
    local what, fpdu = write_and_read(conn, op, ("w"):rep(8 - p.pad), 1)
    t:check(what == "fpdu" and #fpdu.payload == 8 - p.pad, { expected = "a Read Response", actual = described(what, fpdu) })
    local number = 1
    for size = 4 - p.pad, math.min(op.length, 64), 4 do
      number = number + 1
      local payload = octets.counted(size)
      what, fpdu = write_and_read(conn, op, payload, number)
      t:check(what == "fpdu" and fpdu.payload == payload, {
        requirement = "MPA-5.2-1", expected = ("the %d octets of a Write"):format(size), actual = described(what, fpdu),
      })
    end
    conn:close()

    t:liveness()
  end,
}
