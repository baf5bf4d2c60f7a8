-- RFC 5041 sections 4.3, 5.2 and 5.3: the untagged segments that a target sends, observed in its
-- echoes.

-- Each list has the requirements that one field of a segment decides.
local KIND = {
  "DDP-4.1-3", "RDMAP-4.1-9", "RDMAP-4.1-20", "RDMAP-5.3-1", "RDMAP-5.3-12", "DDP-4.3-1",
}
local QUEUE = { "DDP-4.3-5", "DDP-4.3-14", "DDP-4.3-15", "RDMAP-3.1-2", "RDMAP-5.3-15" }
local NUMBER = { "DDP-4.3-9", "DDP-4.3-16" }
local OFFSET = { "DDP-1.2-5", "DDP-4.3-10", "DDP-4.3-11", "DDP-5.2-5" }
local LAST = { "DDP-4.1-4", "DDP-4.1-5" }
local COMPLETE = { "DDP-5.2-1", "DDP-5.2-3", "DDP-4.4-1" }
-- The monitor judges these requirements in each segment.
local MONITORED = {
  "DDP-4.1-1", "DDP-4.1-6", "DDP-4.1-7", "DDP-4.1-10", "DDP-4.1-12", "DDP-4.3-3", "RDMAP-3.1-1", "RDMAP-3.1-9", "RDMAP-4.1-1",
  "RDMAP-4.1-2", "RDMAP-4.1-4", "RDMAP-4.1-16",
}

local function all(...)
  local joined = {}
  for _, list in ipairs { ... } do
    for _, id in ipairs(list) do
      joined[#joined + 1] = id
    end
  end
  return joined
end

--- Returns text in which each word has its number.
local function text(length)
  local words = {}
  for number = 1, length // 6 + 1 do
    words[number] = ("w%04d "):format(number)
  end
  return table.concat(words):sub(1, length)
end

--- Returns the FPDUs of a Send, with at most `most` bytes of payload in each segment.
local function cut(payload, msn, most)
  local fpdus
  for mo = 0, math.max(#payload - 1, 0), most do
    local piece = payload:sub(mo + 1, mo + most)
    local fpdu = mpa.fpdu { ulpdu = rdmap.send { payload = piece, msn = msn, mo = mo, last = mo + #piece == #payload } }
    fpdus = fpdus and fpdus .. fpdu or fpdu
  end
  return fpdus
end

--- Expects the echo of a Send. Checks each field of each segment, and the payload of the echo.
local function expect_echo(t, conn, payload)
  local echo = ""
  local function check(ok, requirement, expected, actual)
    t:check(ok, { requirement = requirement, expected = expected, actual = actual })
  end
  local number
  repeat
    -- The basic cases check that an echo arrives at all.
    local fpdu = conn:expect_fpdu { shows = MONITORED }
    t:check(fpdu.opcode ~= 7, { expected = "an echo", actual = "a Terminate" })
    check(fpdu.opcode == 3, KIND, "opcode 3", ("opcode %d"):format(fpdu.opcode))
    check(not fpdu.tagged, KIND, "an untagged segment", "a tagged segment")
    check(fpdu.qn == 0, QUEUE, "QN 0", ("QN %d"):format(fpdu.qn))
    -- The basic cases check the number of the first message.
    number = number or fpdu.msn
    check(fpdu.msn == number, NUMBER, ("MSN %d"):format(number), ("MSN %d"):format(fpdu.msn))
    check(fpdu.mo == #echo, OFFSET, ("MO %d"):format(#echo), ("MO %d"):format(fpdu.mo))
    echo = echo .. fpdu.payload
    local last = #echo >= #payload
    check(fpdu.last == last, LAST, ("L=%s with %d of %d bytes"):format(last, #echo, #payload), ("L=%s"):format(fpdu.last))
  until fpdu.last
  check(echo == payload, COMPLETE, ("the %d bytes that were sent"):format(#payload), ("%d bytes that differ"):format(#echo))
end

--- Declares a case with an echo, for both roles of the target. `declared` has the other fields of
--- the case.
local function with_echo(name, title, requirements, declared, run)
  declared.id, declared.title = "ddp/5.2-segmentation/" .. name, title
  declared.requirements, declared.run = requirements, run
  declared.roles = { "responder", "initiator" }
  declared.capabilities = { "echo" }
  return declared
end

case(with_echo("echo", "The target sends a message with one queue and MSN, rising MO, L only in the last segment, and all data",
  all(KIND, QUEUE, NUMBER, OFFSET, LAST, COMPLETE, MONITORED), {
  version = 2,
  tags = { "segment", "send" },
  parameters = { length = { 1, 2, 3, 4, 1441, 1442, 1443, 2900, 4000 }, cut = { 100, 1024 } },
  scales = { "length" },
}, function(t, p)
  local conn = t:start_up()
  local payload = text(p.length)
  conn:send(cut(payload, 1, p.cut))
  expect_echo(t, conn, payload)
  conn:close()
end))

case(with_echo("empty", "The target sends an empty Send as one segment without payload",
  { "DDP-5.2-8", "DDP-4.4-1", "RDMAP-3.1-5" }, { version = 2, tags = { "segment", "send", "empty" } }, function(t)
  t:good_exchange()

  local conn, op = t:operate()
  conn:send(mpa.fpdu { ulpdu = rdmap.send { msn = op.msn } })
  conn:expect_fpdu {
    requirement = { "DDP-5.2-8", "DDP-4.4-1", "RDMAP-3.1-5" },
    opcode = 3, payload = "", mo = 0, last = true, overdue_fails = true,
  }
  conn:expect_silence { requirement = "DDP-5.2-8", within = 0.5, open = true }
  conn:close()
end))

--- Returns a function that expects the echo of the Send with this number. The echoes must arrive in
--- the order of the Sends. The basic cases check that an echo arrives at all, and the number of the
--- first echo.
local function in_order(t, conn, requirement)
  local first
  return function(number)
    local fpdu = conn:expect_fpdu(number > 1 and { requirement = requirement, overdue_fails = true } or { opcode = 3 })
    first = first or fpdu.msn
    local wanted = ("no. %04d"):format(number)
    local msn = first and first + number - 1
    t:check(fpdu.opcode == 3 and fpdu.qn == 0 and fpdu.mo == 0 and fpdu.msn == msn and fpdu.payload == wanted, {
      requirement = requirement,
      expected = ("opcode 3, QN 0, MSN %s, MO 0, %q"):format(msn, wanted),
      actual = ("opcode %d, QN %s, MSN %s, MO %s, %d bytes"):format(fpdu.opcode, fpdu.qn, fpdu.msn, fpdu.mo, #fpdu.payload),
    })
  end
end

--- Returns the FPDU of the Send with this number. The FPDU has no PAD.
local function numbered(number)
  return mpa.fpdu { ulpdu = rdmap.send { payload = ("no. %04d"):format(number), msn = number } }
end

case(with_echo("numbers", "The target numbers its messages consecutively, and sends them in order",
  { "DDP-4.3-6", "DDP-5.2-7", "DDP-5.3-1", "RDMAP-5.3-16" },
  { version = 2, tags = { "segment", "send" }, scales = { "sends" }, parameters = { sends = { 2, 5, 12 }, at_once = { true, false } } }, function(t, p)
  local conn = t:start_up()
  local expect = in_order(t, conn, { "DDP-4.3-6", "DDP-5.2-7", "DDP-5.3-1", "RDMAP-5.3-16" })
  local waiting
  for number = 1, p.sends do
    local fpdu = numbered(number)
    if p.at_once then
      waiting = waiting and waiting .. fpdu or fpdu
    else
      conn:send(fpdu)
      expect(number)
    end
  end
  if waiting then
    conn:send(waiting)
    for number = 1, p.sends do
      expect(number)
    end
  end
  conn:close()
end))

-- DDP may give MPA a ULPDU of any size (RFC 5044 section 3). So a short ULPDU does not prove that
-- the maximum size of a ULPDU (MULPDU) is below 128 bytes (MPA-4.5-8).
case(with_echo("not-too-small", "The target sends a long Send in segments of at least 128 bytes, except for the last",
  { "MPA-4.5-6" }, { version = 2, tags = { "segment", "send" } }, function(t)
  t:good_exchange()

  local conn, op = t:operate()
  conn:send(cut(text(4000), op.msn, 1024), { deviates = true })
  repeat
    local fpdu = conn:expect_fpdu { opcode = 3 }
    t:check(fpdu.last or #fpdu.ulpdu >= 128, {
      requirement = "MPA-4.5-6",
      expected = "a ULPDU of at least 128 bytes, because the TCP segment has room for it",
      actual = #fpdu.ulpdu .. " bytes",
    })
  until fpdu.last
  conn:close()
end))

local NUMBERED = { "DDP-4.3-6", "DDP-5.2-7", "RDMAP-5.3-16" }
local PLACED, DELIVERED, IN_ORDER = "DDP-5.2-4", "RDMAP-5.3-5", "DDP-5.3-6"
--- Number of Sends that `many` sends at once. The target needs a receive for each of them.
local AT_ONCE = 8

--- Returns the payload of the Send with this number. Consecutive Sends differ in their lengths.
local function payload_of(number)
  return ("no. %05d"):format(number) .. ("x"):rep(number * 7 % 61)
end

--- Receives the echo of the Send with this number, and checks it. `first` is the MSN of the first
--- echo, or nil if this is the first echo. Returns the MSN of the echo.
local function take_echo(t, conn, number, first)
  local expected = ("the echo of Send %d"):format(number)
  local msn = first and (first + number - 1) & 0xffffffff
  local echo = ""
  -- A transcript has a step for each check that passes. So only checks that fail are made.
  local function fail(requirement, wanted, actual, missing)
    t:check(false, { requirement = requirement, expected = wanted, actual = actual, missing = missing })
  end
  repeat
    local event, fpdu = conn:next { within = 10 }
    local is_send = event == "fpdu" and fpdu.opcode == 3
    if not is_send then
      local actual = event == "fpdu" and ("an FPDU with opcode %d"):format(fpdu.opcode) or event or "nothing"
      -- The basic cases check that an echo arrives at all, and the number of the first echo. The
      -- fault of a basic case is also a possible reason for a Terminate.
      fail(first and DELIVERED, expected, actual, true)
    end
    msn = msn or fpdu.msn
    if fpdu.qn ~= 0 or fpdu.msn ~= msn or fpdu.mo ~= #echo then
      fail(NUMBERED, ("QN 0, MSN %d, MO %d"):format(msn, #echo), ("QN %s, MSN %s, MO %s"):format(fpdu.qn, fpdu.msn, fpdu.mo))
    end
    echo = echo .. fpdu.payload
  until fpdu.last
  local payload = payload_of(number)
  if echo ~= payload then
    for later = number + 1, number + AT_ONCE do
      if echo == payload_of(later) then fail(IN_ORDER, expected, ("the echo of Send %d"):format(later)) end
    end
    fail(PLACED, ("the %d bytes of Send %d"):format(#payload, number), octets.difference(echo, payload))
  end
  return msn
end

--- Declares a case that sends many Sends on a connection.
local function many(name, title, sends, declared)
  declared.scales, declared.parameters = { "sends" }, { sends = sends }
  return with_echo(name, title, { NUMBERED, PLACED, DELIVERED, IN_ORDER }, declared, function(t, p)
    local conn = t:start_up()
    local first
    for from = 1, p.sends, AT_ONCE do
      local till, fpdus = math.min(from + AT_ONCE - 1, p.sends), nil
      for number = from, till do
        local fpdu = mpa.fpdu { ulpdu = rdmap.send { payload = payload_of(number), msn = number } }
        fpdus = fpdus and fpdus .. fpdu or fpdu
      end
      conn:send(fpdus)
      for number = from, till do
        local msn = take_echo(t, conn, number, first)
        first = first or msn
      end
    end
    local echoes = ("%d echoes in order"):format(p.sends)
    t:check(true, { requirement = { NUMBERED, PLACED, DELIVERED, IN_ORDER }, expected = echoes, actual = echoes })
    conn:close()
  end)
end

-- This case finds a target that keeps the MSN in eight bits. It also finds a target whose ring of
-- receives fails when the ring wraps around, for example because an entry keeps the length of an
-- earlier Send. A ring often has 256, 1,024 or 4,096 entries.
case(many("many", "The target still numbers, accepts and returns Sends in order after many earlier Sends",
  { 300, 1030, 4100 }, { version = 2, tags = { "segment", "send" } }))

-- This case finds a target that keeps the MSN in 16 bits.
case(many("many-more", "The target still numbers, accepts and returns Sends in order after more than 65,536 Sends",
  { 66000 }, { tags = { "segment", "send", "slow" }, tier = "full" }))
