-- RFC 5040 sections 5.2.2 and 5.5, RFC 5041 sections 5.1.1 and 5.2: Read Responses that do not
-- match the target's Read Request, but stay inside the region of the Read's sink.
--
-- The Data Sink may compare STag, Tagged Offset and length of a Response with those of the Read
-- Request (RDMAP-5.2.2-13), and need not check that a message is complete (DDP-5.2-11). So the
-- target may refuse such a Response, or complete the Read. The target violates a requirement only
-- in these situations:
--
-- - It neither refuses the Response nor completes the Read. An invalid Response surfaces an error.
-- - It completes the Read before the last segment of the Response.
-- - It changes other bytes than those at the Tagged Offsets of the segments.
-- - It accepts a Response although no Read is outstanding. Such a Response belongs to no request,
--   and is invalid.

--- An invalid Response surfaces an error.
local INVALID = "RDMAP-5.2.2-6"
--- A Read does not complete before its Response.
local EARLY = "RDMAP-5.5-21"
--- TO is the place of the payload in the buffer, and all payload is placed.
local PLACED = { "DDP-5.1.1-1", "DDP-5.2-4" }

--- The bytes that the target requests.
local DATA = "0123456789abcdefghijklmnopqrstuv"
--- Size of the Read in bytes, and the number of bytes by which a Response is wrong.
local SIZE, HALF, SHIFT = #DATA, #DATA // 2, 8

--- The wrong Responses, each with its segments in the order in which the tester sends them. A
--- segment has the offset of its payload in the sink, and the payload. The last segment has L=1.
local WRONG = {
  -- The last bytes are missing.
  short = { { 0, DATA:sub(1, HALF) }, { HALF, DATA:sub(HALF + 1, -SHIFT - 1) } },
  -- Bytes in the middle are missing.
  gap = { { 0, DATA:sub(1, HALF) }, { HALF + SHIFT, DATA:sub(HALF + SHIFT + 1) } },
  -- The Response begins after, or before, the beginning of the sink.
  misplaced = { { SHIFT, DATA:sub(1, HALF) }, { HALF + SHIFT, DATA:sub(HALF + 1) } },
  earlier = { { -SHIFT, DATA:sub(1, HALF) }, { HALF - SHIFT, DATA:sub(HALF + 1) } },
  -- The last segment is after the end of the sink.
  overlong = { { 0, DATA }, { SIZE, ("o"):rep(SHIFT) } },
  -- Two segments have the same bytes.
  overlap = { { 0, DATA:sub(1, HALF + SHIFT) }, { HALF, DATA:sub(HALF + 1) } },
  -- RFC 5041 section 5.3 recommends ascending offsets, and does not require them.
  reversed = { { HALF, DATA:sub(HALF + 1) }, { 0, DATA:sub(1, HALF) } },
}

--- The number of seconds after which a missing message is a failure.
local ANSWER = 5
--- The number of seconds in which a Send that must not arrive yet would arrive.
local PAUSE = 0.3

local describe = session.describe

--- Returns an FPDU with a segment of a Response. `to` is the first TO of the sink.
local function response(stag, to, segments, index)
  local at, payload = table.unpack(segments[index])
  return mpa.fpdu {
    ulpdu = rdmap.write { opcode = 2, stag = stag, tagged_offset = to + at, payload = payload, last = index == #segments },
  }
end

--- Returns STag and TO of the sink in a Read Request, and the requested size.
local function sink_of(t, request)
  t:check(#request.payload == 28, { expected = "a Read Request of 28 bytes", actual = #request.payload .. " bytes" })
  return string.unpack(">I4i8I4", request.payload)
end

--- Returns the bytes that must be in memory after these segments. `before` has the earlier bytes of
--- the memory, and `got` has its present bytes. The sink is at offset `sink`. Only if the Read is
--- complete, the payload in the sink must have been placed. Other payload may have been placed.
local function expected_memory(before, sink, segments, got, is_complete)
  local want = before
  for _, segment in ipairs(segments) do
    local first, payload = table.unpack(segment)
    local at, from, till = sink + first, #payload, #payload
    if is_complete then
      from, till = math.max(0, -first), math.min(#payload, SIZE - first)
    end
    local piece = got:sub(at + 1, at + from) .. payload:sub(from + 1, till) .. got:sub(at + math.max(from, till) + 1, at + #payload)
    want = want:sub(1, at) .. piece .. want:sub(at + #payload + 1)
  end
  return want
end

--- Compares memory with the bytes that must be in it. The other parameters are those of
--- `expected_memory`.
local function check_memory(t, before, sink, segments, got, is_complete)
  local want = expected_memory(before, sink, segments, got, is_complete)
  t:check(got == want, {
    requirement = PLACED,
    expected = "the bytes of the Response at their Tagged Offsets, and no other change",
    actual = octets.difference(got, want),
  })
end

--- Returns the FPDU with which the tester names one of its buffers to rping's server.
local function advertisement(msn, stag, size)
  return mpa.fpdu { ulpdu = rdmap.send { payload = string.pack(">I8I4I4", 0x1000, stag, size), msn = msn } }
end

case {
  id = "rdmap/5.2-responses/wrong",
  title = "The target refuses a Read Response that does not match its Read Request, or places its bytes and completes the Read",
  requirements = { INVALID, EARLY, PLACED },
  capabilities = { "rping" },
  tags = { "read", "refusal" },
  parameters = { wrong = { "short", "gap", "misplaced", "overlong", "overlap", "reversed" } },

  run = function(t, p)
    t:good_exchange()

    local conn, op = t:operate()
    local length, segments = SIZE + 2 * SHIFT, WRONG[p.wrong]
    if op.length < length then
      t:unimplemented(("The buffer of the target's rping has fewer than %d bytes."):format(length))
    end
    -- The first half of rping's round has taken place. In the second half, the target writes.
    conn:send(advertisement(op.msn, 0x77656602, 64))
    repeat
      local fpdu = conn:expect_fpdu {}
      t:check(fpdu.opcode == 0 or fpdu.opcode == 3, { expected = "a Write and a Send", actual = ("opcode %d"):format(fpdu.opcode) })
    until fpdu.opcode == 3

    local before = session.fill_buffer(conn, op, length)
    conn:send(advertisement(op.msn + 1, 0x77656603, SIZE))
    local stag, to, size = sink_of(t, conn:expect_fpdu { opcode = 1 })
    t:check(stag == op.stag and to == op.to and size == SIZE, {
      expected = ("a Read of %d bytes into the buffer of the first Read"):format(SIZE), actual = ("a Read of %d bytes"):format(size),
    })

    local event, fpdu, index = nil, nil, 0
    repeat
      index = index + 1
      conn:send(response(stag, to, segments, index), { deviates = true })
      event, fpdu = conn:next { within = index == #segments and ANSWER or PAUSE }
    until event or index == #segments
    local is_refusal = event == "close" or event == "fpdu" and fpdu.opcode == 7
    local is_send = event == "fpdu" and fpdu.opcode == 3
    t:check(not is_send or index == #segments, {
      requirement = EARLY, expected = "no Send before the last segment of the Read Response", actual = "a Send",
    })
    t:check(is_refusal or is_send, {
      requirement = INVALID,
      expected = "a refusal, or a Send, because the Read is complete",
      actual = describe(event, fpdu, ANSWER),
      missing = event == nil,
    })
    if is_send then
      -- Read the buffer back.
      conn:send(mpa.fpdu { ulpdu = rdmap.read_request { sink_stag = 0x7767, rdmardsz = length, src_stag = stag, src_to = to } })
      local got = ""
      repeat
        fpdu = conn:expect_fpdu { opcode = 2 }
        got = got .. fpdu.payload
      until fpdu.last
      check_memory(t, before, 0, segments, got, true)
    end
    t:check(true, {
      requirement = { INVALID, EARLY, PLACED },
      expected = "a refusal, or a completed Read",
      actual = is_send and "a completed Read" or "a refusal",
    })
    conn:reset()
  end,
}

-- After `t:operate`, the Read of rping's server is complete, and rping's client has read nothing.
case {
  id = "rdmap/5.2-responses/unrequested",
  title = "The target rejects a Read Response to its buffer if none of its Reads is outstanding",
  requirements = { INVALID },
  roles = { "responder", "initiator" },
  capabilities = { "rping" },
  tags = { "read", "refusal" },
  parameters = { at = { 0, 8 }, size = { 1, 56 } },

  run = function(t, p)
    t:good_exchange()

    local conn, op = t:operate()
    local size = math.min(p.size, op.length - p.at)
    if size < 1 then t:unimplemented("The buffer of the target's rping is too short for this variant.") end
    conn:send(response(op.stag, op.to, { { p.at, ("w"):rep(size) } }, 1), { deviates = true })
    conn:expect_terminate { requirement = INVALID }
    conn:expect_close()
  end,
}

--- The size of the region that has the sink of the agent's Read, the offset of the sink, and the
--- seed of the bytes in the region.
local REGION, SINK, SEED = 128, 48, 9

--- Declares a case with an agent, for both roles of the target.
local function with_agent(name, title, requirements, declared, run)
  declared.id, declared.title = "rdmap/5.2-responses/" .. name, title
  declared.requirements, declared.run = requirements, run
  declared.roles = { "responder", "initiator" }
  declared.capabilities = { "agent" }
  return declared
end

--- Lets the target's user post a Read that is shorter than its region. Returns the region, the
--- number of the work request, and STag and TO of the sink.
local function post_read(t, target, conn, pair)
  local region = target:region { octets = REGION, fill = SEED }
  local work = pair:post_read { region = region, offset = SINK, length = SIZE, stag = 7, to = 0 }
  local stag, to = sink_of(t, conn:expect_fpdu { opcode = 1 })
  return region, work, stag, to
end

case(with_agent("memory", "The target changes only the bytes that a wrong Read Response names, and completes the Read or reports an error",
  { INVALID, PLACED }, {
  tags = { "read", "refusal", "protection", "agent" },
  parameters = { wrong = { "short", "gap", "misplaced", "earlier", "overlong", "overlap", "reversed" } },
}, function(t, p, target)
  t:good_exchange()
  local conn, pair = target:operate { ird = 1, ord = 1 }
  local region, work, stag, to = post_read(t, target, conn, pair)
  local segments = WRONG[p.wrong]
  conn:send(response(stag, to, segments, 1) .. response(stag, to, segments, 2), { deviates = true })

  local event, fpdu = conn:next { within = 1 }
  local is_complete = false
  if event == nil then
    local completion = pair:expect_completion { work = work, status = { "success", "error" }, requirement = INVALID, overdue_fails = true }
    is_complete = completion.status == "success"
  else
    t:check(event == "close" or event == "fpdu" and fpdu.opcode == 7, {
      requirement = INVALID, expected = "a refusal, or a completed Read", actual = describe(event, fpdu, 1),
    })
  end
  check_memory(t, target:pattern(SEED, REGION), SINK, segments, region:get {}, is_complete)
  t:check(true, { requirement = { INVALID, PLACED }, expected = "a refusal, or a completed Read", actual = "neither" })
  conn:reset()
end))

case(with_agent("again", "The target rejects a second Response to a completed Read",
  { INVALID }, { tags = { "read", "refusal", "agent" }, parameters = { place = { "same", "other" } } }, function(t, p, target)
  t:good_exchange()
  local conn, pair = target:operate { ird = 1, ord = 1 }
  local _, work, stag, to = post_read(t, target, conn, pair)
  conn:send(response(stag, to, { { 0, DATA } }, 1))
  pair:expect_completion { work = work, operation = "read" }
  conn:send(response(stag, to, { { p.place == "same" and 0 or -SIZE, DATA } }, 1), { deviates = true })
  conn:expect_terminate { requirement = INVALID }
  conn:expect_close()
end))
