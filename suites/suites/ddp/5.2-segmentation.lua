-- RFC 5041 sections 4.3, 5.2 and 5.3: the untagged segments that a target sends, observed in its
-- echoes.

-- Each list has the requirements that one field of a segment decides.
local HEADER = { "DDP-5.2-1", "DDP-4.4-1", "DDP-4.3-1" }
local TAG = { "DDP-4.1-3", "RDMAP-4.1-9", "RDMAP-5.3-1", "RDMAP-5.3-12", "DDP-4.3-1" }
local OPCODE = { "RDMAP-4.1-9", "RDMAP-4.1-20" }
local SAME_QUEUE, QUEUE = { "DDP-4.3-5", "DDP-4.3-15" }, { "DDP-4.3-14", "RDMAP-3.1-2", "RDMAP-5.3-15" }
local NUMBER = { "DDP-4.3-9", "DDP-4.3-16" }
local FIRST_OFFSET, OFFSET = { "DDP-1.2-5", "DDP-4.3-10" }, { "DDP-4.3-11", "DDP-5.2-5" }
local ORDER, LAST_SENT = "DDP-5.3-2", "DDP-4.1-6"
local ENDS, ENDS_EARLY = "DDP-4.1-4", "DDP-4.1-5"
local COMPLETE = "DDP-5.2-3"
local JUDGED = {
  HEADER, TAG, OPCODE, SAME_QUEUE, QUEUE, NUMBER, FIRST_OFFSET, OFFSET, { ORDER, LAST_SENT, ENDS, ENDS_EARLY, COMPLETE },
}
-- The monitor judges these requirements in each segment.
local MONITORED = {
  "DDP-4.1-1", "DDP-4.1-6", "DDP-4.1-7", "DDP-4.1-10", "DDP-4.1-12", "DDP-4.3-3", "DDP-5.3-2", "RDMAP-3.1-1", "RDMAP-3.1-9",
  "RDMAP-4.1-1", "RDMAP-4.1-2", "RDMAP-4.1-4", "RDMAP-4.1-16",
}

--- Returns the requirements of all lists, each requirement once.
local function all(...)
  local joined, known = {}, {}
  for _, list in ipairs { ... } do
    for _, id in ipairs(list) do
      if not known[id] then joined[#joined + 1] = id end
      known[id] = true
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

--- Returns the requirements that a segment with another MO than `at` violates. `piece` is the
--- payload at the MO of the segment.
local function misplaced(conn, fpdu, at, piece)
  if at == 0 then return { FIRST_OFFSET, OFFSET } end
  if fpdu.payload ~= piece then return OFFSET end
  -- The payload fits the MO, so a segment is missing, or the segments are in another order.
  if fpdu.mo < at then return ORDER end
  local event, later = conn:next { within = 1 }
  if event ~= "fpdu" or later.mo ~= at then return COMPLETE end
  return fpdu.last and { ORDER, LAST_SENT } or ORDER
end

--- Expects the echo of a Send. Checks each field of each segment, and the payload of the echo.
local function expect_echo(t, conn, payload)
  local echo = ""
  local function check(ok, requirement, expected, actual)
    t:check(ok, { requirement = requirement, expected = expected, actual = actual })
  end
  local queue, number
  repeat
    -- The basic cases check that an echo arrives at all.
    local fpdu = conn:expect_fpdu { shows = MONITORED }
    t:check(fpdu.opcode ~= 7, { expected = "an echo", actual = "a Terminate" })
    local bare = payload:sub(#echo + 1, #echo + #fpdu.ulpdu)
    check(fpdu.payload and fpdu.ulpdu ~= bare, HEADER, "a DDP header and its payload", ("%d bytes without a DDP header"):format(#fpdu.ulpdu))
    check(fpdu.opcode == 3, OPCODE, "opcode 3", ("opcode %d"):format(fpdu.opcode))
    check(not fpdu.tagged, TAG, "an untagged segment", "a tagged segment")
    queue = queue or fpdu.qn
    check(fpdu.qn == queue, { SAME_QUEUE, QUEUE }, ("QN %d"):format(queue), ("QN %d"):format(fpdu.qn))
    check(fpdu.qn == 0, QUEUE, "QN 0", ("QN %d"):format(fpdu.qn))
    -- The basic cases check the number of the first message.
    number = number or fpdu.msn
    check(fpdu.msn == number, NUMBER, ("MSN %d"):format(number), ("MSN %d"):format(fpdu.msn))
    if fpdu.mo ~= #echo then
      local piece = payload:sub(fpdu.mo + 1, fpdu.mo + #fpdu.payload)
      check(false, misplaced(conn, fpdu, #echo, piece), ("MO %d"):format(#echo), ("MO %d"):format(fpdu.mo))
    end
    echo = echo .. fpdu.payload
    local last = #echo >= #payload
    local expected, actual = ("L=%s with %d of %d bytes"):format(last, #echo, #payload), ("L=%s"):format(fpdu.last)
    check(fpdu.last or not last, ENDS, expected, actual)
    check(last or not fpdu.last, ENDS_EARLY, expected, actual)
  until fpdu.last
  check(echo == payload, COMPLETE, ("the %d bytes that were sent"):format(#payload), ("%d bytes that differ"):format(#echo))
  check(true, JUDGED, "correct segments", "other segments")
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
  all(MONITORED, table.unpack(JUDGED)), {
  version = 3,
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
  { "DDP-5.2-8", "DDP-4.4-1", "RDMAP-3.1-5" }, { version = 3, tags = { "segment", "send", "empty" } }, function(t)
  t:good_exchange()

  local conn, op = t:operate()
  conn:send(mpa.fpdu { ulpdu = rdmap.send { msn = op.msn } })
  local fpdu = conn:expect_fpdu { requirement = "DDP-5.2-8", overdue_fails = true }
  t:check(fpdu.payload, {
    requirement = { "DDP-4.4-1", "RDMAP-3.1-5" }, expected = "a complete DDP header", actual = ("a ULPDU of %d bytes"):format(#fpdu.ulpdu),
  })
  -- Another case checks these fields.
  t:check(fpdu.opcode == 3 and fpdu.mo == 0, { expected = "a Send with MO 0", actual = ("opcode %d, MO %s"):format(fpdu.opcode, fpdu.mo) })
  t:check(fpdu.last and fpdu.payload == "", {
    requirement = "DDP-5.2-8",
    expected = "one segment without payload, with L=1",
    actual = ("L=%s, %d bytes of payload"):format(fpdu.last, #fpdu.payload),
  })
  conn:expect_silence { requirement = "DDP-5.2-8", within = 0.5, open = true }
  conn:close()
end))

--- Returns a function that expects the echo of the Send with this number. The echoes must arrive in
--- the order of the Sends. The basic cases check that an echo arrives at all, and the number of the
--- first echo.
local function in_order(t, conn)
  local first, used = nil, {}
  return function(number)
    local fpdu = conn:expect_fpdu(number > 1 and { requirement = "DDP-5.2-7", overdue_fails = true } or { opcode = 3 })
    first = first or fpdu.msn
    local wanted = ("no. %04d"):format(number)
    local msn = first and first + number - 1
    local function check(ok, requirement)
      t:check(ok, {
        requirement = requirement,
        expected = ("opcode 3, QN 0, MSN %s, MO 0, %q"):format(msn, wanted),
        actual = ("opcode %s, QN %s, MSN %s, MO %s, %q"):format(fpdu.opcode, fpdu.qn, fpdu.msn, fpdu.mo, fpdu.payload),
      })
    end
    -- The case `echo` checks these fields.
    check(fpdu.opcode == 3 and fpdu.qn == 0 and fpdu.mo == 0)
    local got = #fpdu.payload == #wanted and tonumber(fpdu.payload:sub(5))
    check(not got or got == number, { "DDP-5.3-1", "RDMAP-5.3-16" })
    if fpdu.payload ~= wanted then
      -- A message that has the data of two Sends may also use up two numbers.
      local event, later = conn:next { within = 1 }
      local skips = event == "fpdu" and later.msn ~= fpdu.msn + 1
      check(false, skips and { "DDP-4.3-6", "DDP-5.2-7" } or "DDP-5.2-7")
    end
    check(fpdu.msn == msn, used[fpdu.msn] and { "DDP-4.3-6", "DDP-5.2-7" } or "DDP-4.3-6")
    used[fpdu.msn] = true
  end
end

--- Returns the FPDU of the Send with this number. The FPDU has no PAD.
local function numbered(number)
  return mpa.fpdu { ulpdu = rdmap.send { payload = ("no. %04d"):format(number), msn = number } }
end

case(with_echo("numbers", "The target numbers its messages consecutively, and sends them in order",
  { "DDP-4.3-6", "DDP-5.2-7", "DDP-5.3-1", "RDMAP-5.3-16" },
  { version = 3, tags = { "segment", "send" }, scales = { "sends" }, parameters = { sends = { 2, 5, 12 }, at_once = { true, false } } }, function(t, p)
  local conn = t:start_up()
  local expect = in_order(t, conn)
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

local NUMBERED, MAPPED, SENT_IN_ORDER = "DDP-4.3-6", "DDP-5.2-7", "RDMAP-5.3-16"
local PLACED, DELIVERED, IN_ORDER = "DDP-5.2-4", "RDMAP-5.3-5", "DDP-5.3-6"
local MANY = { NUMBERED, MAPPED, SENT_IN_ORDER, PLACED, DELIVERED, IN_ORDER }
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
  local echo, msn = "", nil
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
      -- The case `echo` checks these fields.
      fail(nil, ("QN 0, MSN %s, MO %d"):format(msn, #echo), ("QN %s, MSN %s, MO %s"):format(fpdu.qn, fpdu.msn, fpdu.mo))
    end
    echo = echo .. fpdu.payload
  until fpdu.last
  -- The basic cases check that the first MSN is 1.
  local function msn_of(send) return ((first or 1) + send - 1) & 0xffffffff end
  local payload = payload_of(number)
  if echo ~= payload then
    for later = number + 1, number + AT_ONCE do
      if echo == payload_of(later) then
        -- If the MSN is that of the later Send, the target received the Sends in the right order.
        fail(msn == msn_of(later) and SENT_IN_ORDER or IN_ORDER, expected, ("the echo of Send %d"):format(later))
      end
    end
    local requirement = echo:sub(1, #payload) == payload and MAPPED or PLACED
    fail(requirement, ("the %d bytes of Send %d"):format(#payload, number), octets.difference(echo, payload))
  end
  if first and msn ~= msn_of(number) then
    local is_used = (msn - first) & 0xffffffff < number
    fail(is_used and { NUMBERED, MAPPED } or NUMBERED, ("MSN %d"):format(msn_of(number)), ("MSN %d"):format(msn))
  end
  return msn
end

--- Declares a case that sends many Sends on a connection.
local function many(name, title, sends, declared)
  declared.scales, declared.parameters = { "sends" }, { sends = sends }
  return with_echo(name, title, MANY, declared, function(t, p)
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
    t:check(true, { requirement = MANY, expected = echoes, actual = echoes })
    conn:close()
  end)
end

-- This case finds a target that keeps the MSN in eight bits. It also finds a target whose ring of
-- receives fails when the ring wraps around, for example because an entry keeps the length of an
-- earlier Send. A ring often has 256, 1,024 or 4,096 entries.
case(many("many", "The target still numbers, accepts and returns Sends in order after many earlier Sends",
  { 300, 1030, 4100 }, { version = 3, tags = { "segment", "send" } }))

-- This case finds a target that keeps the MSN in 16 bits.
case(many("many-more", "The target still numbers, accepts and returns Sends in order after more than 65,536 Sends",
  { 66000 }, { version = 2, tags = { "segment", "send", "slow" }, tier = "full" }))
