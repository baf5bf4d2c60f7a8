-- RFC 5044 sections 4.1 and 4.4: the form of the target's own FPDUs. The monitor, which checks
-- every frame of a case, judges each of these FPDUs.

--- Declares a case with an echo, for both roles of the target. `declared` has the other fields of
--- the case, and can replace its capabilities.
local function with_echo(name, title, requirements, declared, run)
  declared.id, declared.title = "mpa/4.1-fpdu/" .. name, title
  declared.requirements, declared.run = requirements, run
  declared.roles = { "responder", "initiator" }
  declared.capabilities = declared.capabilities or { "echo" }
  return declared
end

case(with_echo("echo", "The target sends FPDUs with correct length, PAD and CRC, and no markers after M=0", {
  "MPA-4.1-1", "MPA-4.1-2", "MPA-4.1-3", "MPA-4.1-5", "MPA-4.1-6", "MPA-4.4-13", "MPA-4.4-14", "MPA-4.4-15", "MPA-4.4-18",
  "MPA-4.4-1", "MPA-7.1.1-8", "MPA-7.1.1-12", "MPA-7.1.2-21", "MPA-3-14",
}, {
  version = 3,
  capabilities = { "crc", "echo" },
  tags = { "fpdu", "crc" },
  parameters = { payload = { 1, 2, 3, 4, 5, 64, 512, 1000 } },
}, function(t, p)
  local conn = t:start_up { crc = true }
  local payload = ("w"):rep(p.payload)
  conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = payload } })
  -- The basic cases check that an echo arrives.
  local fpdu = conn:expect_fpdu {
    shows = {
      "MPA-4.1-1", "MPA-4.1-2", "MPA-4.1-3", "MPA-4.1-5", "MPA-4.1-6", "MPA-4.4-13", "MPA-4.4-14", "MPA-4.4-15", "MPA-4.4-18",
      "MPA-7.1.1-8", "MPA-7.1.2-21", "MPA-3-14",
    },
    opcode = 3,
    payload = payload,
  }
  -- If bytes follow the FPDU, its PAD is too long, and the CRC is in another place. The monitor judges
  -- the PAD.
  local rest = conn:expect_octets { begins = "", keep = true }
  t:check(fpdu.crc_is_right or #rest > 0, {
    requirement = { "MPA-7.1.1-12", "MPA-4.4-1" },
    expected = "a correct CRC",
    actual = fpdu.crc_is_right and "a correct CRC" or "a wrong CRC",
  })
  conn:close()
end))

case(with_echo("split", "The target accepts an FPDU in whatever pieces TCP delivers it", { "MPA-5.1-7", "MPA-A.4-1", "MPA-A.4-2" },
  { version = 2, tags = { "fpdu", "segments" }, parameters = { every = { 1, 2, 3, 5, 20, 27 } } }, function(t, p)
  t:good_exchange()

  local conn = t:start_up()
  conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft" } }, { deviates = true, every = p.every, pause = 0.01 })
  conn:expect_fpdu {
    requirement = { "MPA-5.1-7", "MPA-A.4-1", "MPA-A.4-2" },
    opcode = 3,
    payload = "weft",
    overdue_fails = true,
  }
  conn:close()
end))

case(with_echo("paused", "The target accepts an FPDU whose bytes stop in the middle of the FPDU and continue seconds later",
  { "MPA-A.4-3" }, { version = 2, tags = { "fpdu", "segments" }, parameters = { first = { 1, 2, 10, 27 } } }, function(t, p)
  t:good_exchange()

  local conn, op = t:operate()
  conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft", msn = op.msn } }, { deviates = true, cuts = { p.first }, pause = 3 })
  conn:expect_fpdu { requirement = "MPA-A.4-3", opcode = 3, payload = "weft", overdue_fails = true }
  conn:close()
end))

case(with_echo("split-anywhere", "The target accepts an FPDU that is split at any byte",
  { "MPA-A.4-3" }, { tags = { "fpdu", "segments" } }, function(t)
  t:good_exchange()

  local conn, op = t:operate()
  local payload = "first or second"
  local length = #mpa.fpdu { ulpdu = rdmap.send { payload = payload, msn = 1 } }
  for first = 1, length - 1 do
    local fpdu = mpa.fpdu { ulpdu = rdmap.send { payload = payload, msn = op.msn + first - 1 } }
    t:note(("The first TCP segment has %d bytes of the FPDU."):format(first))
    conn:send(fpdu, { deviates = true, cuts = { first }, pause = 0.02 })
    conn:expect_fpdu { requirement = "MPA-A.4-3", opcode = 3, payload = payload, overdue_fails = true }
  end
  conn:close()
end))

case {
  id = "mpa/4.1-fpdu/split-read",
  title = "The target accepts a Read Request that is split at any byte",
  requirements = { "MPA-A.4-3" },
  capabilities = { "rping" },
  tags = { "fpdu", "segments", "read" },

  run = function(t)
    t:good_exchange()

    local conn, op = t:operate()
    local function request(msn)
      local fields = { sink_stag = 0x01020304, sink_to = 0, rdmardsz = 8, src_stag = op.stag, src_to = op.to, msn = msn }
      return mpa.fpdu { ulpdu = rdmap.read_request(fields) }
    end
    for first = 1, #request(1) - 1 do
      t:note(("The first TCP segment has %d bytes of the FPDU."):format(first))
      conn:send(request(first), { deviates = true, cuts = { first }, pause = 0.02 })
      conn:expect_fpdu { requirement = "MPA-A.4-3", opcode = 2, overdue_fails = true }
    end
    conn:close()
  end,
}

case(with_echo("long", "The target accepts FPDUs of the maximum Ethernet size, complete or cut into TCP segments of any size",
  { "MPA-A.5.2-1", "MPA-B.2-1" },
  { version = 3, tags = { "fpdu", "segments" }, parameters = { every = { 100, 536, 1459 } } }, function(t, p)
  t:good_exchange()

  local conn, op = t:operate()
  -- Each FPDU has 1460 bytes, including length, headers and CRC. The first and the third FPDU are
  -- sent in pieces, and the second in one piece.
  for number = 0, 2 do
    local payload = string.char(0x61 + number):rep(1436)
    local fpdu = mpa.fpdu { ulpdu = rdmap.send { payload = payload, msn = op.msn + number } }
    if number == 1 then
      conn:send(fpdu, { deviates = true })
    else
      conn:send(fpdu, { deviates = true, every = p.every, pause = 0.01 })
    end
    -- TCP options may leave less room for the target's data in a TCP segment. Then the target's
    -- echo has two DDP segments.
    local echo = ""
    repeat
      local segment = conn:expect_fpdu { requirement = { "MPA-A.5.2-1", "MPA-B.2-1" }, opcode = 3, overdue_fails = true }
      echo = echo .. segment.payload
    until segment.last
    t:check(echo == payload, {
      requirement = { "MPA-A.5.2-1", "MPA-B.2-1" },
      expected = "the bytes of the Send",
      actual = echo == payload and "as expected" or #echo .. " other bytes",
    })
  end
  conn:close()
end))

case(with_echo("joined", "The target handles two FPDUs that arrive at once as two messages",
  { "MPA-5.2-1", "MPA-6-2" }, { version = 2, tags = { "fpdu", "segments" } }, function(t)
  t:good_exchange()

  local conn = t:start_up()
  conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "one" } } .. mpa.fpdu { ulpdu = rdmap.send { payload = "two", msn = 2 } }, { deviates = true })
  for _, payload in ipairs { "one", "two" } do
    conn:expect_fpdu { requirement = { "MPA-5.2-1", "MPA-6-2" }, payload = payload, overdue_fails = true }
  end
  conn:close()
end))

-- The payload follows 20 bytes of length and headers.
case(with_echo("pad", "The target ignores the values of the PAD bytes", { "MPA-4.1-4" },
  { version = 2, tags = { "fpdu" }, parameters = { payload = { 1, 2, 3 }, pad = { 0x01, 0x80, 0xff } } }, function(t, p)
  local conn, op = t:operate()
  local payload = ("w"):rep(p.payload)
  conn:send(mpa.fpdu {
    ulpdu = rdmap.send { payload = payload, msn = op.msn }, pad = string.char(p.pad):rep(4 - p.payload),
  }, { deviates = true })
  conn:expect_fpdu { requirement = "MPA-4.1-4", opcode = 3, payload = payload, overdue_fails = true }
  conn:close()
end))

case(with_echo("shortest", "The target accepts the shortest possible ULPDUs, of 14 and of 18 bytes",
  { "MPA-3-5" }, { tags = { "fpdu", "empty" } }, function(t)
  t:good_exchange()

  local conn = t:start_up()
  conn:send(mpa.fpdu { ulpdu = rdmap.write() })
  conn:send(mpa.fpdu { ulpdu = rdmap.send() })
  conn:expect_fpdu { requirement = "MPA-3-5", opcode = 3, payload = "", overdue_fails = true }
  conn:close()
end))

case(with_echo("end-missing", "The target does not act on an FPDU before its last bytes arrive, and accepts it then",
  { "MPA-6-7", "MPA-5.1-7" },
  { version = 4, tags = { "fpdu", "segments" }, parameters = { missing = { 1, 2, 3, 4 }, payload = { 4, 5, 1000 } } }, function(t, p)
  t:good_exchange()

  local conn, op = t:operate()
  local payload = ("w"):rep(p.payload)
  local fpdu = mpa.fpdu { ulpdu = rdmap.send { payload = payload, msn = op.msn } }:octets()
  conn:send(fpdu:sub(1, -p.missing - 1), { deviates = true })
  local event, early = conn:next { within = 0.5 }
  local expected, actual = "the target sends no byte, and keeps the connection open", event or "nothing"
  -- A target may reject the FPDU, at once or when the missing bytes arrive. Such a target meets
  -- MPA-6-7, but does not handle lost alignment (MPA-5.1-7).
  local rejects = event == "close" or event == "fpdu" and early.opcode == 7
  t:check(not rejects, { requirement = "MPA-5.1-7", expected = expected, actual = event == "fpdu" and "a Terminate" or actual })
  t:check(event == nil, { requirement = "MPA-6-7", expected = expected, actual = actual })
  conn:send(fpdu:sub(-p.missing))
  conn:expect_fpdu { requirement = "MPA-5.1-7", opcode = 3, payload = payload, overdue_fails = true }
  conn:close()
end))
