-- RFC 5044 sections 4.1 and 4.4: what every other case with FPDUs rests on, one thing a case. They come first in a run. No capability for CRCs is needed:
-- CRCs are right where they are used.

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
    local BOTH = { "MPA-4.1-1", "MPA-5.2-1" }
    local payload = ("w"):rep(p.payload)
    local conn, what = first_answer(t, payload)
    if what == nil then
      -- A receiver that has understood the length waits for the length of another FPDU; one that has read a greater length takes these octets to be the rest.
      conn:send(("\0"):rep(65536))
      what = conn:next { within = 3 }
      t:check(what == nil, {
        requirement = BOTH,
        expected = ("an answer behind the %d octets of the FPDU"):format(p.payload + 24),
        actual = "it waited for more octets, and did something when there were 65,536 more",
      })
    end
    if what == "octets" then
      -- They stay there: the first of them are the length.
      conn:expect_octets { requirement = BOTH, begins = string.pack(">I2", 18 + p.payload), keep = true }
    end
    t:check(what == "fpdu", { expected = "the echo", actual = described(what, { opcode = 7 }) })
    t:check(true, { requirement = BOTH, expected = "an FPDU", actual = "none" })
    conn:close()

    t:liveness()
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

case {
  id = "mpa/4-basic/crc",
  version = 1,
  title = "Where CRCs are used an FPDU with a right one is taken, and the echo has a right one",
  requirements = { "MPA-4.4-14", "MPA-4.4-15", "MPA-4.4-19" },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "basic", "fpdu", "crc" },

  run = function(t)
    local ALL = { "MPA-4.4-14", "MPA-4.4-15", "MPA-4.4-19" }
    local function exchange(field)
      local conn, frame = t:start_up()
      if field and not frame.crc and not t:request().crc then field = nil end
      conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft" }, crc = field or true })
      local what, fpdu = conn:next { within = 3 }
      return conn, what, fpdu, frame
    end
    local conn, what, fpdu, frame = exchange()
    if what == "fpdu" and fpdu.opcode == 7 and fpdu.payload:sub(1, 2) == "\x20\x02" then
      t:check(false, { requirement = "MPA-4.4-19", expected = "the echo of an FPDU with a right CRC", actual = "Terminate 20 02" })
    end
    if what == "close" then
      -- It may refuse the FPDU for another reason. That it takes one with a wrong CRC instead shows that it does not.
      for _, wrong in ipairs(wrong_fields(rdmap.send { payload = "weft" }:octets())) do
        local other, came, echo = exchange(wrong[2])
        other:reset()
        t:check(not (came == "fpdu" and echo.opcode == 3), {
          requirement = "MPA-4.4-19", expected = "the echo of an FPDU with a right CRC", actual = "a close, and the echo of one with a CRC " .. wrong[1],
        })
      end
    end
    t:check(what == "fpdu" and fpdu.opcode == 3, { expected = "the echo", actual = described(what, fpdu) })
    if frame.crc then
      t:check(fpdu.crc_is_right, { requirement = { "MPA-4.4-14", "MPA-4.4-15" }, expected = "a right CRC", actual = "a wrong one" })
    end
    t:check(true, { requirement = ALL, expected = "an echo with a right CRC, where CRCs are used", actual = "none" })
    conn:close()

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
