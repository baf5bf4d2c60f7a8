-- RFC 5040 sections 4.4, 5.2, 5.5 and 7.2: RDMA Reads of the target's memory. The target runs
-- rping, which names a buffer in its first Read Request or Send. The cases read from this buffer or
-- beyond it.

--- Checks one property of an answer.
local function check(t, ok, requirement, expected, actual)
  t:check(ok, { requirement = requirement, expected = expected, actual = actual })
end

local ANSWERED = { "RDMAP-5.2.1-18", "RDMAP-5.2.1-3", "RDMAP-5.2-1", "RDMAP-1.2-1" }
local OPCODE = { "RDMAP-4.1-8", "RDMAP-5.2.1-18", "RDMAP-5.2-1", "RDMAP-1.2-1" }
local TAGGED = { "RDMAP-5.2.2-1", "RDMAP-5.2.2-10", "RDMAP-4.1-8", "RDMAP-3.1-4", "RDMAP-5.2.1-18" }
local STAG = { "RDMAP-4.4-5", "RDMAP-3.1-4", "RDMAP-5.2.1-18" }
local OFFSET = { "RDMAP-4.4-8", "RDMAP-4.4-6", "RDMAP-3.1-4", "RDMAP-5.2.1-18" }

--- Declares a case with rping, for both roles of the target. `declared` has the other fields of the
--- case, and can replace its roles and capabilities.
local function with_rping(name, title, requirements, declared, run)
  declared.id, declared.title = "rdmap/5.2-read/" .. name, title
  declared.requirements, declared.run = requirements, run
  declared.roles = declared.roles or { "responder", "initiator" }
  declared.capabilities = declared.capabilities or { "rping" }
  return declared
end

case(with_rping("sink", "The target sends a Read Response to the SinkSTag and SinkTO of its request, whatever they are",
  { ANSWERED, OPCODE, TAGGED, STAG, OFFSET, "RDMAP-4.4-9", "RDMAP-4.4-10" }, {
  version = 2,
  tags = { "read" },
  parameters = { stag = { 0, 1, 0x12345678, 0xffffffff }, to = { 0, 1, 3, 0x7fffffffffffffc0, -64 } },
}, function(t, p)
  local conn, op = t:operate()
  local data = session.fill_buffer(conn, op, 64)
  conn:send(mpa.fpdu {
    ulpdu = rdmap.read_request { sink_stag = p.stag, sink_to = p.to, rdmardsz = 63, src_stag = op.stag, src_to = op.to + 1 },
  })
  local read = ""
  repeat
    local fpdu = conn:expect_fpdu { requirement = ANSWERED, overdue_fails = true }
    check(t, fpdu.opcode ~= 7, { ANSWERED, "RDMAP-4.4-6" }, "a Read Response", "a Terminate")
    check(t, fpdu.opcode == 2, OPCODE, "opcode 2", ("opcode %s"):format(fpdu.opcode))
    check(t, fpdu.tagged, TAGGED, "a tagged segment", "an untagged segment")
    check(t, fpdu.stag == p.stag, STAG, ("STag %#x"):format(p.stag), ("STag %#x"):format(fpdu.stag))
    local to = p.to + #read
    check(t, fpdu.tagged_offset == to, OFFSET, ("TO %#x"):format(to), ("TO %#x"):format(fpdu.tagged_offset))
    read = read .. fpdu.payload
  until fpdu.last
  check(t, #read == 63, "RDMAP-4.4-9", "63 bytes", ("%d bytes"):format(#read))
  check(t, read == data:sub(2), "RDMAP-4.4-10", "the 63 bytes after the first", octets.difference(read, data:sub(2)))
  -- The target must not answer more than once.
  conn:expect_silence { requirement = { "RDMAP-5.2-1", "RDMAP-1.2-1" }, within = 0.5, open = true }
  conn:close()
end))

case(with_rping("same-sink", "The target keeps all bits of each SinkTO when Reads use one SinkSTag again",
  { ANSWERED, OFFSET }, { tags = { "read" } }, function(t)
  local conn, op = t:operate()
  local previous
  for msn, to in ipairs { 5, 1 << 32, 0x7fffffff00000000, -4096, 5 } do
    conn:send(mpa.fpdu {
      ulpdu = rdmap.read_request { sink_stag = 0x7766, sink_to = to, rdmardsz = 4, src_stag = op.stag, src_to = op.to, msn = msn },
    })
    local fpdu
    -- The case `sink` judges an untagged Response and a second Response.
    repeat
      fpdu = conn:expect_fpdu { requirement = ANSWERED, overdue_fails = true }
    until not fpdu.tagged or fpdu.tagged_offset ~= previous
    check(t, fpdu.opcode ~= 7, { ANSWERED, "RDMAP-4.4-6" }, "a Read Response", "a Terminate")
    if fpdu.tagged then
      check(t, fpdu.tagged_offset == to, OFFSET, ("TO %#x"):format(to), ("TO %#x"):format(fpdu.tagged_offset))
    end
    previous = to
  end
  check(t, true, OFFSET, "the TO of each request", "another TO")
  conn:close()
end))

--- Returns whether a later segment of a Read Response begins at this TO.
local function arrives_later(conn, to)
  local is_response, fpdu
  repeat
    local event
    event, fpdu = conn:next { within = 1 }
    is_response = event == "fpdu" and fpdu.opcode == 2
  until not is_response or fpdu.tagged_offset == to
  return is_response
end

local ANY_PART = { "RDMAP-5.2.1-17", "RDMAP-5.2.1-18", "RDMAP-4.4-7" }
local ONE_STAG = { "DDP-4.2-12", "DDP-4.2-6", "RDMAP-5.2.2-14" }
local CHAIN = { "DDP-4.2-9", "DDP-5.2-6" }
local ALL_DATA = { "RDMAP-4.4-9", "DDP-5.2-3" }
local NEW_DATA = { "RDMAP-4.4-7", "RDMAP-4.4-10", "RDMAP-5.2.1-17", "RDMAP-5.5-16", "RDMAP-5.5-26", "RDMAP-B-6" }

case(with_rping("source", "The target answers a Read of any part of a buffer with the bytes that a Write just put there",
  { ANY_PART, ONE_STAG, CHAIN, ALL_DATA, NEW_DATA, "DDP-4.2-1", "DDP-4.2-4", "DDP-5.3-2", "RDMAP-4.5-1" }, {
  version = 2,
  roles = { "responder" },
  tags = { "read" },
  parameters = { from = { 0, 1, 7, 4095 }, length = { 1, 2, 3, 64, 1500, 9001, 60000 } },
}, function(t, p)
  local conn, op = t:operate()
  if p.from + p.length > op.length then
    t:unimplemented(("The target's rping uses only %d bytes, too few for this variant (-S of rping, rping_size of the target file)."):format(op.length))
  end
  local data = session.fill_buffer(conn, op, p.from + p.length):sub(p.from + 1)
  conn:send(mpa.fpdu {
    ulpdu = rdmap.read_request { sink_stag = 0x7766, sink_to = 5, rdmardsz = p.length, src_stag = op.stag, src_to = op.to + p.from },
  })
  local read, is_first = "", true
  repeat
    local fpdu = conn:expect_fpdu { requirement = is_first and "RDMAP-5.2.1-18" or ALL_DATA, overdue_fails = true }
    check(t, fpdu.opcode ~= 7, ANY_PART, "a Read Response", "a Terminate")
    local is_response = fpdu.opcode == 2
    local rows = is_response and { "RDMAP-5.2.1-18", "DDP-4.2-4" } or is_first and "RDMAP-5.2.1-18" or "DDP-4.2-4"
    check(t, is_response, rows, "opcode 2", ("opcode %s"):format(fpdu.opcode))
    check(t, fpdu.tagged, "RDMAP-5.2.1-18", "a tagged segment", "an untagged segment")
    local is_sink = fpdu.stag == 0x7766
    local stag = ("STag %#x"):format(fpdu.stag)
    check(t, fpdu.stag ~= 0x66770000, { "DDP-4.2-1", "DDP-4.2-12" }, "STag 0x7766 in big-endian byte order", stag)
    check(t, is_sink, is_first and not is_sink and "DDP-4.2-12" or ONE_STAG, "STag 0x7766", stag)
    local from, to = fpdu.tagged_offset - 5, fpdu.tagged_offset
    local is_next = from == #read
    rows = is_next and { CHAIN, "DDP-5.3-2" } or CHAIN
    if from > #read and fpdu.payload == data:sub(from + 1, from + #fpdu.payload) then
      -- The TO belongs to this payload, so an earlier segment is missing or comes later.
      rows = arrives_later(conn, 5 + #read) and "DDP-5.3-2" or "DDP-5.2-3"
    end
    check(t, is_next, rows, ("TO %#x"):format(5 + #read), ("TO %#x"):format(to))
    read, is_first = read .. fpdu.payload, false
  until fpdu.last
  check(t, #read >= #data, ALL_DATA, ("%d bytes"):format(#data), ("%d bytes"):format(#read))
  check(t, #read == #data, { "RDMAP-4.4-9", "RDMAP-4.5-1" }, ("%d bytes"):format(#data), ("%d bytes"):format(#read))
  check(t, read == data, NEW_DATA, ("%d bytes from %d on"):format(p.length, p.from), octets.difference(read, data))
  conn:close()
end))

case(with_rping("no-octets", "The target answers an empty Read with an empty Read Response, and ignores its source",
  { "RDMAP-5.2.1-7", "RDMAP-5.2.1-21", "DDP-5.2-8", "DDP-5.2-9", "RDMAP-5.2.2-1" },
  { version = 2, tags = { "read", "empty" }, parameters = { stag = { 0, 1, 0xffffffff, "own" }, to = { 0, -1 } } }, function(t, p)
  t:good_exchange()

  local conn, op = t:operate()
  local stag = p.stag == "own" and op.stag or p.stag
  conn:send(mpa.fpdu { ulpdu = rdmap.read_request { sink_stag = 0x7766, src_stag = stag, src_to = p.to } })
  local fpdu = conn:expect_fpdu {
    requirement = { "RDMAP-5.2.1-7", "RDMAP-5.2.1-21" }, shows = "DDP-5.2-9", opcode = 2, overdue_fails = true,
  }
  t:check(fpdu.stag == 0x7766, {
    requirement = "RDMAP-5.2.2-1", expected = "a tagged header with the STag of the sink", actual = fpdu.stag and "another STag" or "an untagged header",
  })
  check(t, fpdu.payload == "", "RDMAP-5.2.1-21", "no bytes", #fpdu.payload .. " bytes")
  check(t, fpdu.last, "DDP-5.2-8", "one segment, with L=true", "L=false")
  conn:expect_silence { requirement = "DDP-5.2-8", within = 0.5, open = true }
  conn:close()
end))

case(with_rping("first", "The target answers an empty Read also as the first message", { "RDMAP-5.2.1-18" },
  { roles = { "responder" }, capabilities = { "operation" }, tags = { "read", "empty", "startup" } }, function(t)
  t:good_exchange()

  local conn = t:start_up()
  conn:send(mpa.fpdu { ulpdu = rdmap.read_request { sink_stag = 0x7766, sink_to = 3 } })
  conn:expect_fpdu { requirement = "RDMAP-5.2.1-18", opcode = 2, payload = "", overdue_fails = true }
  conn:close()
end))

local ACCEPTED = { "RDMAP-5.2.1-2", "RDMAP-5.2.2-2", "RDMAP-6.1-4" }
local IN_ORDER = { "RDMAP-5.2.1-14", "RDMAP-5.2.2-8", "RDMAP-5.5-10" }
local ANSWER, SOURCE = "RDMAP-5.2.1-18", "RDMAP-4.4-10"

-- The Reads have 1 to 16 bytes, more bytes than a segment, or nearly all bytes of the buffer. Each
-- Read has another sink, so that the Responses cannot be confused.
case(with_rping("pipelined", "The target accepts as many waiting Reads as negotiated, and answers them in order, one after the other",
  { ACCEPTED, ANSWER, IN_ORDER, SOURCE }, {
  version = 3,
  capabilities = { "rping", "revision-2" },
  tags = { "read" },
  parameters = { ord = { 1, 2, 16 }, length = { "short", "segments", "buffer" } },
}, function(t, p)
  t:good_exchange()

  local conn, op = t:operate { revision = 2, enhanced = true, ird = 16, ord = p.ord }
  local length = ({ short = math.min(op.length, 16), segments = 3000, buffer = op.length })[p.length]
  if length > op.length then
    t:unimplemented(("The target's rping uses only %d bytes, too few for this variant (-S of rping, rping_size of the target file)."):format(op.length))
  end
  local data = session.fill_buffer(conn, op, length)
  local reads = math.min(p.ord, op.ird or 1)
  --- Returns the offset in the buffer and the size of a Read.
  local function part(read)
    if p.length == "short" then return 0, math.min(read, length) end
    return read - 1, length - read + 1
  end
  local requests
  for read = 1, reads do
    local from, size = part(read)
    local request = mpa.fpdu {
      ulpdu = rdmap.read_request {
        sink_stag = 0x7700 + read, sink_to = read, rdmardsz = size, src_stag = op.stag, src_to = op.to + from, msn = read,
      },
    }
    requests = requests and requests .. request or request
  end
  conn:send(requests)
  for read = 1, reads do
    local from, size = part(read)
    local expected = ("the Response to Read %d of %d"):format(read, reads)
    local got = {}
    repeat
      local event, fpdu = conn:next { within = 5 }
      local is_response = event == "fpdu" and fpdu.opcode == 2
      -- If the first Read is not answered, the number of waiting Reads is not the reason.
      local is_refused = event == "fpdu" and fpdu.opcode == 7 or event ~= "fpdu" and read > 1
      t:check(is_response, {
        requirement = is_response and { ACCEPTED, ANSWER } or is_refused and ACCEPTED or ANSWER,
        expected = expected,
        actual = event == "fpdu" and ("an FPDU with opcode %d"):format(fpdu.opcode) or event or "nothing, and the connection stays open",
        missing = event ~= "fpdu",
      })
      -- The monitor judges the other fields of each segment.
      t:check(fpdu.stag == 0x7700 + read, { requirement = IN_ORDER, expected = expected, actual = ("STag %#x"):format(fpdu.stag or 0) })
      got[#got + 1] = fpdu.payload
    until fpdu.last
    local response, want = table.concat(got), data:sub(from + 1, from + size)
    t:check(response == want, { requirement = SOURCE, expected = ("%d bytes from %d on"):format(size, from), actual = octets.difference(response, want) })
  end
  conn:close()
end))

case(with_rping("all", "The target serves as many Reads at a time as the IRD of its Reply allows",
  { "RDMAP-6.1-4" }, { roles = { "responder" }, capabilities = { "rping", "revision-2" }, tags = { "read" } }, function(t)
  t:good_exchange()

  local conn, op = t:operate { revision = 2, enhanced = true, ird = 16, ord = 0x3ffe }
  local reads = op.ird or 0
  if reads < 1 or reads > 4096 then
    conn:close()
    t:unimplemented(("The target's IRD is %d."):format(reads))
  end
  local requests = ""
  for msn = 1, reads do
    requests = requests .. mpa.fpdu {
      ulpdu = rdmap.read_request { sink_stag = 0x7700, rdmardsz = 4, src_stag = op.stag, src_to = op.to, msn = msn },
    }
  end
  conn:send(requests)
  for _ = 1, reads do
    conn:expect_fpdu { requirement = "RDMAP-6.1-4", opcode = 2, overdue_fails = true }
  end
  conn:close()
end))

--- Expects that the target rejects a Read.
local function expect_rejected(t, op, conn, fields, expectation)
  fields.sink_stag, fields.src_stag = 0x7766, fields.src_stag or op.stag
  conn:send(mpa.fpdu { ulpdu = rdmap.read_request(fields) }, { deviates = true })
  conn:expect_terminate(expectation)
  conn:expect_close()
end

case(with_rping("invalid-stag", "The target rejects a Read of an invalid STag",
  { "RDMAP-7.2-4", "RDMAP-5.2.1-20", "RDMAP-5.2.1-5", "RDMAP-4.8-18", "RDMAP-3.2-8", "RDMAP-6.2.1-1" }, {
  version = 2,
  tags = { "read", "refusal" },
  parameters = { change = { 0x00000001, 0x000000ff, 0x00000100, 0x40000000, 0x80000000, 0xffffffff, "zero" } },
}, function(t, p)
  t:good_exchange()

  local conn, op = t:operate()
  local stag = p.change == "zero" and 0 or op.stag ~ p.change
  expect_rejected(t, op, conn, { src_stag = stag, src_to = op.to, rdmardsz = 4 }, {
    requirement = { "RDMAP-7.2-4", "RDMAP-5.2.1-20", "RDMAP-5.2.1-5" },
    terminate = { "RDMAP-3.2-8", "RDMAP-6.2.1-1" },
    code = "RDMAP-4.8-18",
    error = "01 00",
  })
end))

case(with_rping("bounds", "The target rejects a Read with any byte outside the buffer",
  { "RDMAP-7.2-7", "RDMAP-7.2-18", "RDMAP-8.1.1-3", "RDMAP-4.8-19", "RDMAP-6.2.1-1" }, {
  version = 2,
  tags = { "read", "refusal" },
  parameters = { from = { "begin", "end" }, at = { -16, -1, 0, 1, 4096 }, length = { 1, 17 } },
}, function(t, p)
  local conn, op = t:operate()
  local to = op.to + p.at + (p.from == "end" and op.length or 0)
  local inside = p.from == "end" and p.at + p.length <= 0 or p.from == "begin" and p.at >= 0 and p.at + p.length <= op.length
  local ALL = { "RDMAP-7.2-7", "RDMAP-7.2-18", "RDMAP-8.1.1-3" }
  if inside then
    conn:send(mpa.fpdu { ulpdu = rdmap.read_request { sink_stag = 0x7766, rdmardsz = p.length, src_stag = op.stag, src_to = to } })
    conn:expect_fpdu { requirement = ALL, shows = { "RDMAP-4.8-19", "RDMAP-6.2.1-1" }, opcode = 2, overdue_fails = true }
    conn:close()
  else
    expect_rejected(t, op, conn, { src_to = to, rdmardsz = p.length }, {
      requirement = ALL,
      terminate = "RDMAP-6.2.1-1",
      code = "RDMAP-4.8-19",
      -- If the first TO of the buffer is 0, a Read that begins before the buffer also wraps.
      error = p.at < 0 and { "01 01", "01 04" } or "01 01",
    })
  end
end))

-- If a target treats RDMARDSZ as a signed number, some of these sizes are negative, and one is the
-- smallest possible number.
case(with_rping("far-too-long", "The target rejects every Read that is longer than the buffer",
  { "RDMAP-7.2-18", "RDMAP-8.1.1-3", "RDMAP-4.8-19", "RDMAP-6.2.1-1" }, {
  version = 2,
  tags = { "read", "refusal" },
  parameters = { length = { 0x01000000, 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff } },
}, function(t, p)
  t:good_exchange()

  local conn, op = t:operate()
  expect_rejected(t, op, conn, { src_to = op.to, rdmardsz = p.length }, {
    requirement = { "RDMAP-7.2-18", "RDMAP-8.1.1-3" },
    terminate = "RDMAP-6.2.1-1",
    code = "RDMAP-4.8-19",
    -- If the first TO of the buffer is near the greatest TO, the Read wraps.
    error = { "01 01", "01 04" },
  })
end))

case(with_rping("wrap", "The target rejects a Read that goes beyond the greatest TO",
  { "RDMAP-7.2-8", "RDMAP-4.8-22", "RDMAP-6.2.1-1" },
  { version = 2, tags = { "read", "refusal" }, parameters = { before = { 1, 8, 15 }, length = { 16, 0xffffffff } } }, function(t, p)
  t:good_exchange()

  local conn, op = t:operate()
  expect_rejected(t, op, conn, { src_to = -p.before, rdmardsz = p.length }, {
    requirement = "RDMAP-7.2-8",
    terminate = "RDMAP-6.2.1-1",
    code = "RDMAP-4.8-22",
    -- The first byte of the Read is already outside the buffer, so 01 01 is also correct.
    error = { "01 04", "01 01" },
  })
end))

case(with_rping("size-of-request", "The target sends a Terminate if a Read Request does not have 28 bytes",
  { "RDMAP-5.2.1-5", "RDMAP-7.1-2" },
  { version = 3, tags = { "read", "refusal" }, parameters = { more = { -28, -4, -1, 1, 4, 100 } } }, function(t, p)
  t:good_exchange()

  local conn, op = t:operate()
  local right = rdmap.read_request { sink_stag = 0x7766, rdmardsz = 4, src_stag = op.stag, src_to = op.to }
  local request = p.more < 0 and right:cut(#right + p.more) or right .. ("\0"):rep(p.more)
  conn:send(mpa.fpdu { ulpdu = request }, { deviates = true })
  conn:expect_terminate { requirement = "RDMAP-5.2.1-5", terminate = "RDMAP-7.1-2" }
  conn:expect_close()
end))

--- Sends a correct Read, then a Read with these numbers, which the target has to reject.
local function expect_refusal(t, fields, requirement)
  t:good_exchange()

  local conn, op = t:operate()
  local function request(numbers)
    numbers.sink_stag, numbers.src_stag, numbers.src_to, numbers.rdmardsz = 0x7766, op.stag, op.to, 4
    return mpa.fpdu { ulpdu = rdmap.read_request(numbers) }
  end
  conn:send(request { msn = 1 })
  conn:expect_fpdu { opcode = 2 }
  conn:send(request(fields), { deviates = true })
  conn:expect_terminate { requirement = requirement }
  conn:expect_close()
end

case(with_rping("msn", "The target rejects a Read Request whose MSN is used or far ahead", { "RDMAP-7.2-15", "DDP-7.1-9" },
  { version = 2, tags = { "read", "refusal" }, parameters = { msn = { 0, 1, 100000, 0x80000000, 0xffffffff } } }, function(t, p)
  expect_refusal(t, { msn = p.msn }, { "RDMAP-7.2-15", "DDP-7.1-9" })
end))

case(with_rping("mo", "The target rejects a Read Request whose MO is beyond its 28 bytes", { "RDMAP-7.2-15", "DDP-7.1-7" },
  { version = 2, tags = { "read", "refusal" }, parameters = { mo = { 0x1000000, 0x7fffffff, 0xffffffff } } }, function(t, p)
  expect_refusal(t, { msn = 2, mo = p.mo }, { "RDMAP-7.2-15", "DDP-7.1-7" })
end))

case(with_rping("many", "The target still answers Reads after many earlier Reads",
  { "RDMAP-5.2.1-18", "RDMAP-7.2-15" }, { version = 2, tags = { "read" }, parameters = { reads = { 300 } } }, function(t, p)
  local conn, op = t:operate()
  for msn = 1, p.reads do
    conn:send(mpa.fpdu {
      ulpdu = rdmap.read_request { sink_stag = 0x7766, sink_to = msn, rdmardsz = 4, src_stag = op.stag, src_to = op.to, msn = msn },
    })
    local fpdu = conn:expect_fpdu { requirement = "RDMAP-5.2.1-18", overdue_fails = true }
    check(t, fpdu.opcode ~= 7, { "RDMAP-5.2.1-18", "RDMAP-7.2-15" }, "a Read Response", "a Terminate")
    local is_answer = fpdu.opcode == 2 and fpdu.tagged_offset == msn and fpdu.payload == "rdma"
    check(t, is_answer, "RDMAP-5.2.1-18", ("the Response to Read %d"):format(msn), "another FPDU")
  end
  conn:close()
end))

case(with_rping("too-many", "The target answers Reads beyond its IRD later, or rejects them", { "RDMAP-6.1-8", "DDP-7.2-10" }, {
  version = 2,
  capabilities = { "rping", "revision-2" },
  tags = { "read", "refusal" },
  parameters = { beyond = { 1, 128 } },
}, function(t, p, _)
  t:good_exchange()

  local conn, op = t:operate { revision = 2, enhanced = true }
  local ird = op.ird or 0
  if ird < 1 or ird > 4096 then
    conn:close()
    t:unimplemented(("The target's IRD is %d."):format(ird))
  end
  -- The Reads are long, so that they wait for each other.
  local length = math.min(op.length, 65536)
  local requests = ""
  for msn = 1, ird + p.beyond do
    requests = requests .. mpa.fpdu {
      ulpdu = rdmap.read_request { sink_stag = 0x7766, rdmardsz = length, src_stag = op.stag, src_to = op.to, msn = msn },
    }
  end
  conn:send(requests, { deviates = true })
  local served = 0
  while served < ird + p.beyond do
    local event, fpdu = conn:next { within = 5 }
    if event == "close" then break end
    t:check(event == "fpdu", {
      requirement = "RDMAP-6.1-8",
      expected = ("%d Read Responses, or a rejection"):format(ird + p.beyond),
      actual = ("%d, then %s"):format(served, event or "nothing, and the connection stays open"),
    })
    if fpdu.opcode == 7 then
      local layer, code = fpdu.payload:byte(1, 2)
      local error_code = ("%02x %02x"):format(layer or 0, code or 0)
      t:check(error_code == "12 02" or error_code == "12 03" or error_code == "02 07", {
        requirement = "DDP-7.2-10", expected = "Terminate 12 03, 12 02 or 02 07", actual = "Terminate " .. error_code,
      })
      break
    end
    if fpdu.opcode == 2 and fpdu.last then served = served + 1 end
  end
  t:check(true, { requirement = { "RDMAP-6.1-8", "DDP-7.2-10" }, expected = "answers or a rejection", actual = served .. " answered" })
  conn:reset()
end))
