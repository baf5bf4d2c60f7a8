-- RFC 5041 sections 5.1.1, 5.1.2 and 5.2, draft-hilland-rddp-verbs section 8.1.3.2: work requests
-- whose memory has several parts (scatter/gather elements), and memory on both sides of a page
-- boundary. The cases use an agent: a program on the target that calls the NIC's verbs for the
-- tester.

--- Size in bytes of a page of nearly every system, and of the regions.
local PAGE, SIZE = 4096, 12288
local SEED = 9
--- Lengths of the parts in bytes. Each RNIC supports four parts for Sends and receives.
local LENGTHS = { 1, 0, 2, 500 }
--- Number of bytes of the messages.
local TOTAL = 503

--- Ways to cut a message into segments. Segments end where the parts end, in the middle of parts,
--- or nowhere.
local CUTS = { parts = { 1, 2, 500 }, across = { 2, 400, 101 }, none = { TOTAL } }

--- Returns the offset of a page boundary in a region. There are at least 1,000 bytes before it.
local function boundary(region)
  local offset = PAGE - region.address % PAGE
  return offset < 1000 and offset + PAGE or offset
end

--- Returns the parts of a work request. With LENGTHS, the first has one byte, the second is empty,
--- and the others cross page boundaries. These parts are apart from each other.
local function parts_of(region, lengths)
  local page = boundary(region)
  local offsets, parts = { 100, 300, page - 1, page + PAGE - 250 }, {}
  for nth, length in ipairs(lengths) do parts[nth] = { region = region, offset = offsets[nth], length = length } end
  return parts
end

--- Returns the bytes of a work request's parts in `memory`.
local function gather(parts, memory)
  local pieces = {}
  for nth, part in ipairs(parts) do pieces[nth] = memory:sub(part.offset + 1, part.offset + part.length) end
  return table.concat(pieces)
end

--- Returns `memory` with the bytes of `data` in the parts of a work request.
local function scatter(parts, memory, data)
  local from = 0
  for _, part in ipairs(parts) do
    local piece = data:sub(from + 1, from + part.length)
    memory = memory:sub(1, part.offset) .. piece .. memory:sub(part.offset + #piece + 1)
    from = from + #piece
  end
  return memory
end

--- Declares a case with an agent, for both roles of the target. `declared` has the other fields of
--- the case.
local function with_agent(name, title, requirements, declared, run)
  declared.id, declared.title = "ddp/5.1-parts/" .. name, title
  declared.requirements, declared.run = requirements, run
  declared.roles = { "responder", "initiator" }
  declared.capabilities = { "agent" }
  return declared
end

--- Opens a connection whose work requests may have as many parts as LENGTHS.
local function open(t, target)
  local most = target:device().max_parts
  if most < #LENGTHS then t:unimplemented(("The device supports only %d parts of a work request."):format(most)) end
  return target:operate { parts = #LENGTHS }
end

--- Checks that the agent has accepted a work request.
local function check_posted(t, work, why)
  if not work then t:unimplemented("The device rejects a work request with an empty part: " .. why) end
end

local PLACED, LENGTH, PARTS = "DDP-5.2-4", "RDMAP-5.3-13", "VERBS-8.1.3.2-1"

case(with_agent("receive", "The target places a Send in the parts of its receive, wherever the segments of the Send end",
  { PLACED, LENGTH, PARTS },
  { tags = { "send", "segment", "receives", "agent" }, parameters = { cut = { "parts", "across", "none" } } }, function(t, p, target)
  t:good_exchange()
  local conn, pair, op = open(t, target)
  local region = target:region { octets = SIZE, access = { "local_write" }, fill = SEED }
  local parts = parts_of(region, LENGTHS)
  local work, why = pair:post_receive { parts = parts, may_refuse = true }
  check_posted(t, work, why)
  local data, at = octets.counted(TOTAL), 0
  for _, length in ipairs(CUTS[p.cut]) do
    local piece = data:sub(at + 1, at + length)
    conn:send(mpa.fpdu { ulpdu = rdmap.send { msn = op.msn, mo = at, payload = piece, last = at + length == TOTAL } })
    at = at + length
  end
  local completion = pair:expect_completion { work = work, requirement = PLACED, overdue_fails = true }
  t:check(completion.octets == TOTAL, {
    requirement = LENGTH, expected = ("%d bytes"):format(TOTAL), actual = ("%d bytes"):format(completion.octets),
  })
  local got, want = region:get {}, scatter(parts, target:pattern(SEED, SIZE), data)
  t:check(got == want, {
    requirement = PARTS, expected = "the bytes of the Send in the parts, and no other change", actual = octets.difference(got, want),
  })
  conn:reset()
end))

--- Receives a message with this opcode, and returns the payloads of its segments.
local function receive(conn, opcode, requirement)
  local pieces = {}
  repeat
    local fpdu = conn:expect_fpdu { requirement = requirement, opcode = opcode, overdue_fails = requirement ~= nil }
    pieces[#pieces + 1] = fpdu.payload
  until fpdu.last
  return pieces
end

--- Number of bytes of a message that shows the size of the target's segments, and maximum size of a
--- segment for which the parts of the next message fit into the region.
local LONG, LONGEST = 12000, 9000

--- Declares a case in which the target's user posts a Send or Write with several parts. `post`
--- posts it, and `row` is the requirement about its payload.
local function posted(verb, title, row, opcode, post)
  return with_agent(verb, title, { row }, {
    tags = { verb, "segment", "agent" },
    -- With `segment`, a part ends where the first segment of the target ends, and another part ends
    -- one byte before.
    parameters = { lengths = { "small", "segment" } },
  }, function(t, p, target)
    t:good_exchange()
    local conn, pair = open(t, target)
    local region = target:region { octets = SIZE, fill = SEED }
    local lengths = LENGTHS
    if p.lengths == "segment" then
      local work = post(pair, { { region = region, length = LONG } })
      local size = #receive(conn, opcode)[1]
      pair:expect_completion { work = work }
      if size > LONGEST then t:unimplemented(("The target sends segments of %d bytes, which are too long for this variant."):format(size)) end
      lengths = { size - 1, 1, 0, 700 }
    end
    local parts = parts_of(region, lengths)
    local work, why = post(pair, parts)
    check_posted(t, work, why)
    local got, want = table.concat(receive(conn, opcode, row)), gather(parts, target:pattern(SEED, SIZE))
    t:check(got == want, { requirement = row, expected = "the bytes of the parts, one part after the other", actual = octets.difference(got, want) })
    pair:expect_completion { work = work }
    conn:reset()
  end)
end

case(posted("send", "The target sends the bytes of all parts of a posted Send", "RDMAP-4.6-1", 3, function(pair, parts)
  return pair:post_send { parts = parts, may_refuse = true }
end))

-- An RNIC may support only one part for Writes.
case(posted("write", "The target sends the bytes of all parts of a posted Write", "RDMAP-4.3-1", 0, function(pair, parts)
  return pair:post_write { parts = parts, stag = 0x77656601, to = 3, may_refuse = true }
end))

local DELIVERED = "RDMAP-5.2.2-9"

-- The Response to a Read of one part fills the memory on both sides of a page boundary.
case(with_agent("read", "The target places a Read Response on both sides of a page boundary, also if a segment ends there",
  { DELIVERED }, {
  tags = { "read", "segment", "agent" },
  parameters = { before = { 1, 2, 500 }, cut = { "boundary", "after", "none" } },
}, function(t, p, target)
  t:good_exchange()
  local conn, pair = target:operate { ird = 1, ord = 1 }
  local region = target:region { octets = SIZE, fill = SEED }
  local offset = boundary(region) - p.before
  local work = pair:post_read { region = region, offset = offset, length = TOTAL, stag = 0x77656601, to = 8192 }
  local request = conn:expect_fpdu { opcode = 1 }
  t:check(#request.payload == 28, { expected = "a Read Request of 28 bytes", actual = #request.payload .. " bytes" })
  local stag, to = string.unpack(">I4i8", request.payload)
  local data = octets.counted(TOTAL)
  local first = ({ boundary = p.before, after = p.before + 1, none = TOTAL })[p.cut]
  for _, range in ipairs { { 0, first }, { first, TOTAL } } do
    local from, till = range[1], range[2]
    if from < till then
      conn:send(mpa.fpdu {
        ulpdu = rdmap.write { opcode = 2, stag = stag, tagged_offset = to + from, payload = data:sub(from + 1, till), last = till == TOTAL },
      })
    end
  end
  pair:expect_completion { work = work, operation = "read", requirement = DELIVERED, overdue_fails = true }
  local parts = { { offset = offset, length = TOTAL } }
  local got, want = region:get {}, scatter(parts, target:pattern(SEED, SIZE), data)
  t:check(got == want, {
    requirement = DELIVERED, expected = "the bytes of the Response in the user's buffer, and no other change", actual = octets.difference(got, want),
  })
  conn:reset()
end))
