-- RFC 5041 sections 4.2, 5.1 and 5.2: where a Data Sink puts tagged segments. The cases write to
-- rping's buffer and read it back.

--- Sends a Read Request for bytes of the target's buffer.
local function request(conn, op, at, size)
  conn:send(mpa.fpdu {
    ulpdu = rdmap.read_request { sink_stag = 0x7766, rdmardsz = size, src_stag = op.stag, src_to = op.to + at },
  })
end

--- Receives a Read Response, and returns whether its bytes are equal to `data`.
local function expect_data(conn, data, requirement)
  local got = ""
  repeat
    local fpdu = conn:expect_fpdu { requirement = requirement, opcode = 2, overdue_fails = true }
    got = got .. fpdu.payload
  until fpdu.last
  return got == data
end

--- Returns the TO of the Write that a Terminate rejects. Returns nil if the Terminate rejects a Read
--- Request. (Bit D of a Terminate means that the rejected DDP header follows the four bytes of error
--- and HdrCt and the two bytes of length.)
local function rejected_to(terminate)
  local has_header = #terminate >= 20 and terminate:byte(3) & 0x40 ~= 0
  local is_tagged = has_header and terminate:byte(7) & 0x80 ~= 0
  return is_tagged and string.unpack(">i8", terminate, 13) or nil
end

--- Writes 64 bytes, overwrites `length` of them, and checks the overwritten bytes and one neighbour
--- on each side. `rows` has the requirements of the first Write (`all`), of the second Write
--- (`part`), of the Read (`read`), and of the bytes that the Read returns (`data`).
local function write_within(t, conn, op, first, at, length, rows)
  conn:send(mpa.fpdu { ulpdu = rdmap.write { stag = op.stag, tagged_offset = op.to + first, payload = ("."):rep(64) } })
  conn:send(mpa.fpdu {
    ulpdu = rdmap.write { stag = op.stag, tagged_offset = op.to + first + at, payload = ("w"):rep(length) },
  })
  request(conn, op, first + at - 1, length + 2)
  local event, fpdu = conn:next { within = 10 }
  if event == "fpdu" and fpdu.opcode == 7 then
    local to = rejected_to(fpdu.payload)
    t:check(false, {
      requirement = to == nil and rows.read or to == op.to + first and rows.all or rows.part,
      expected = "a Read Response",
      actual = to and ("a Terminate for the Write to TO %#x"):format(to) or "a Terminate for the Read Request",
    })
  end
  t:check(event == "fpdu" and fpdu.opcode == 2, {
    requirement = rows.part,
    expected = "a Read Response",
    actual = event == "fpdu" and ("an FPDU of opcode %d"):format(fpdu.opcode) or event or "nothing, and the connection stays open",
    missing = event == nil,
  })
  local around = "." .. ("w"):rep(length) .. "."
  local same = fpdu.payload == around:sub(1, #fpdu.payload)
  if not fpdu.last then
    same = expect_data(conn, around:sub(#fpdu.payload + 1), rows.part) and same
  end
  t:check(same, {
    requirement = rows.data,
    expected = "the written bytes, and unchanged bytes around them",
    actual = same and "as expected" or "other bytes in the buffer",
  })
  t:check(true, { requirement = { rows.all, rows.part, rows.read }, expected = "a Read Response", actual = "a refusal" })
  conn:close()
end

--- Declares a case with rping, for both roles of the target. `declared` has the other fields of the
--- case, and can replace its roles and capabilities.
local function with_rping(name, title, requirements, declared, run)
  declared.id, declared.title = "ddp/5.1-buffers/" .. name, title
  declared.requirements, declared.run = requirements, run
  declared.roles = declared.roles or { "responder", "initiator" }
  declared.capabilities = declared.capabilities or { "rping" }
  return declared
end

case(with_rping("any-offset", "The target places a Write at any byte of its buffer, and leaves the neighbours unchanged",
  { "DDP-4.2-8", "RDMAP-5.1-7", "RDMAP-5.1-8", "RDMAP-4.4-7" },
  { version = 3, tags = { "write" }, parameters = { at = { 1, 2, 3, 4, 5, 7, 31 }, length = { 1, 2, 3, 4, 5, 16 } } }, function(t, p)
  local conn, op = t:operate()
  -- If possible, the 64 bytes are in one page, because the next case tests page boundaries.
  local into = op.to % 4096
  local first = into > 4096 - 64 and 4096 - into or 0
  if first + 64 > op.length then
    first = 0
  end
  local part = { "DDP-4.2-8", "RDMAP-5.1-8" }
  write_within(t, conn, op, first, p.at, p.length, {
    all = { "RDMAP-5.1-7" }, part = part, read = { "RDMAP-4.4-7" }, data = { "RDMAP-4.4-7", table.unpack(part) },
  })
end))

case(with_rping("page", "The target accepts a Write and a Read that cross a page boundary, wherever they cross it",
  { "RDMAP-4.4-10", "RDMAP-5.5-26", "RDMAP-5.1-8" },
  { version = 2, roles = { "responder" }, tags = { "write" }, parameters = { before = { 1, 2, 3, 8, 15 }, length = { 1, 2, 3, 5, 16 } } }, function(t, p)
  local conn, op = t:operate()
  -- Page boundaries of nearly every system are multiples of 4096. The TO of nearly every buffer
  -- is its address.
  local page = 4096 - op.to % 4096
  if page < 32 then
    page = page + 4096
  end
  if page + 64 > op.length then
    t:unimplemented("The buffer lies in one page.")
  end
  local data = { "RDMAP-4.4-10", "RDMAP-5.5-26" }
  write_within(t, conn, op, page - 32, 32 - p.before, p.length, {
    all = { "RDMAP-5.1-8" }, part = { "RDMAP-5.1-8" }, read = { "RDMAP-5.5-26" }, data = data,
  })
end))

case(with_rping("again", "The target accepts repeated Writes to the same bytes",
  { "DDP-5.1.1-4" }, { tags = { "write" }, parameters = { times = { 2, 3, 16 } } }, function(t, p)
  local conn, op = t:operate()
  for time = 1, p.times do
    conn:send(mpa.fpdu { ulpdu = rdmap.write { stag = op.stag, tagged_offset = op.to, payload = ("time %02d"):format(time) } })
  end
  local data = ("time %02d"):format(p.times)
  request(conn, op, 0, #data)
  local same = expect_data(conn, data, "DDP-5.1.1-4")
  t:check(same, {
    requirement = "DDP-5.1.1-4",
    expected = "the bytes of the last Write",
    actual = same and "as expected" or "other bytes in the buffer",
  })
  conn:close()
end))

case(with_rping("no-octets", "The target ignores STag and TO of a tagged message without payload", { "DDP-5.2-10", "RDMAP-5.1-12" }, {
  version = 2,
  capabilities = { "operation" },
  tags = { "write", "empty" },
  parameters = { stag = { 0, 1, 0x12345678, 0xffffffff }, to = { 0, 1, -1 } },
}, function(t, p)
  t:good_exchange()

  local conn = t:operate()
  conn:send(mpa.fpdu { ulpdu = rdmap.write { stag = p.stag, tagged_offset = p.to } }, { deviates = true })
  -- Such a message has no effect: the target sends no Terminate and does not close.
  conn:expect_silence { requirement = { "DDP-5.2-10", "RDMAP-5.1-12" }, within = 1, open = true }
  conn:close()
end))

case(with_rping("own-queues", "The target answers a Read Request without the use of a receive",
  { "DDP-5.1.2-5" }, { roles = { "responder" }, tags = { "read" } }, function(t)
  t:good_exchange()

  -- No Send precedes the Read Request, so the receives that are posted for Sends are untouched. A
  -- Read of no bytes needs no access right. The Write comes first, so that the target does not take
  -- the Read Request as a ready-to-receive message (RFC 6581).
  local conn = t:start_up()
  conn:send(mpa.fpdu { ulpdu = rdmap.write() })
  conn:send(mpa.fpdu { ulpdu = rdmap.read_request { sink_stag = 0x7766 } })
  conn:expect_fpdu { requirement = "DDP-5.1.2-5", opcode = 2, payload = "", overdue_fails = true }
  conn:close()
end))

-- RFC 5041 neither forbids an empty segment in a longer message nor defines its use. The Read after
-- the Write is valid. So the target has to answer the Read, or to send a Terminate with the reason.
-- The target fails if it closes without a Terminate, or if it stops working.
case(with_rping("empty-segment", "The target places a Write that has an empty segment, or rejects it with a Terminate",
  { "RDMAP-5.2.1-18", "RDMAP-5.5-26" },
  { tags = { "write", "empty", "robust" }, parameters = { place = { "first", "middle", "last" }, again = { false, true } } }, function(t, p)
  t:good_exchange()

  local conn, op = t:operate()
  local function segment(at, payload, last)
    return mpa.fpdu { ulpdu = rdmap.write { stag = op.stag, tagged_offset = op.to + at, payload = payload, last = last } }
  end
  -- With `again`, an earlier Write ends where this Write begins. This finds faults of siw, which
  -- looks up the buffer of a Write only at the first segment with payload.
  local at = p.again and 8 or 0
  local write = ({
    first = segment(at, "", false) .. segment(at, "weftweft", true),
    middle = segment(at, "weft", false) .. segment(at + 4, "", false) .. segment(at + 4, "weft", true),
    last = segment(at, "weftweft", false) .. segment(at + 8, "", true),
  })[p.place]
  if p.again then
    conn:send(segment(0, "01234567", true))
  end
  conn:send(write)
  conn:send(mpa.fpdu { ulpdu = rdmap.read_request { sink_stag = 0x7766, rdmardsz = 8, src_stag = op.stag, src_to = op.to + at } })
  local event, answer = conn:next { within = 5 }
  if event == "fpdu" and answer.opcode == 7 then
    conn:close()
    t:liveness()
    t:unimplemented("The target rejects an empty segment in a longer message. RFC 5041 does not define the use of such a segment.")
  end
  t:check(event == "fpdu" and answer.opcode == 2, {
    requirement = "RDMAP-5.2.1-18",
    expected = "the Read Response, or a Terminate",
    actual = event == "fpdu" and "an FPDU of opcode " .. answer.opcode or event or "nothing, and the connection stays open",
  })
  local same = answer.payload == "weftweft"
  t:check(same, { requirement = "RDMAP-5.5-26", expected = "the bytes written", actual = same and "as expected" or "other bytes in the buffer" })
  conn:close()
end))

local PLACED, PLACE = "DDP-5.2-4", "DDP-5.1.1-1"

-- The Data Source must send consecutive TOs (RFC 5041 section 5.2), but section 7.1 has no check of
-- this rule, and section 5.2 does not require that the Data Sink checks whether all data arrived.
-- So each segment is valid. Linux's siw rejects such a Write, so a target may reject it.
case(with_rping("hole", "The target places each segment of a Write at its TO, and changes nothing between segments that are apart",
  { PLACED, PLACE }, { tags = { "write", "segment", "robust" }, parameters = { length = { 1, 5, 8 }, hole = { 1, 8 } } }, function(t, p)
  t:good_exchange()

  local conn, op = t:operate()
  local before = session.fill_buffer(conn, op, 40)
  local second = 8 + p.length + p.hole
  local payload = ("w"):rep(p.length)
  local function segment(at, last)
    return mpa.fpdu { ulpdu = rdmap.write { stag = op.stag, tagged_offset = op.to + at, payload = payload, last = last } }
  end
  conn:send(segment(8, false) .. segment(second, true), { deviates = true })
  request(conn, op, 0, #before)
  local event, fpdu = conn:next { within = 5 }
  if event == "close" or event == "fpdu" and fpdu.opcode == 7 then
    conn:close()
    t:liveness()
    t:unimplemented("The target rejects a Write whose segments are not consecutive.")
  end
  t:check(event == "fpdu" and fpdu.opcode == 2, { expected = "a Read Response", actual = session.describe(event, fpdu, 5) })
  local got = fpdu.payload
  while not fpdu.last do
    fpdu = conn:expect_fpdu { opcode = 2 }
    got = got .. fpdu.payload
  end
  local function is_written(at) return got:sub(at + 1, at + p.length) == payload end
  local function is_unchanged(from, till) return got:sub(from + 1, till) == before:sub(from + 1, till) end
  t:check(is_unchanged(0, 8) and is_unchanged(8 + p.length, second) and is_unchanged(second + p.length, #before), {
    requirement = PLACE, expected = "unchanged bytes before, between and after the segments", actual = octets.difference(got, before),
  })
  t:check(is_written(8) and is_written(second), {
    requirement = PLACED, expected = "the bytes of both segments", actual = "other bytes in the buffer",
  })
  conn:close()
end))
