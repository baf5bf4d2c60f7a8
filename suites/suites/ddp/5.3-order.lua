-- RFC 5041 sections 4.1, 5.3 and 5.4: the order of segments at the Data Sink. The segments of a
-- message may arrive in any order, but the last segment arrives last. Messages of other kinds may
-- arrive between these segments.

local PLACED, COMPLETE = "DDP-5.2-4", "DDP-5.4-3"

--- Returns text whose bytes show their position.
local function text(length) return octets.counted(length) end

--- Returns the FPDU of one segment of a Send.
local function segment(payload, msn, from, till, last)
  return mpa.fpdu { ulpdu = rdmap.send { payload = payload:sub(from + 1, till), msn = msn, mo = from, last = last } }
end

--- Receives and returns the echo of a Send. If another event comes, returns nil and this event. The
--- event is nil if nothing arrives.
local function echo_or_end(conn)
  local echo = ""
  repeat
    local event, fpdu = conn:next { within = 3 }
    if event ~= "fpdu" or fpdu.opcode ~= 3 and fpdu.opcode ~= 5 then return nil, event, fpdu end
    echo = echo .. fpdu.payload
  until fpdu.last
  return echo
end

--- Declares a case with an echo, for both roles of the target.
local function with_echo(name, title, requirements, declared, run)
  declared.id, declared.title = "ddp/5.3-order/" .. name, title
  declared.requirements, declared.run = requirements, run
  declared.roles = { "responder", "initiator" }
  declared.capabilities = { "echo" }
  declared.tags = { "segment", "send" }
  return declared
end

-- RFC 5041 section 5.3 recommends that the Data Source sends segments with ascending offsets. So a
-- target may be unable to receive other orders.
case(with_echo("any", "The target places each segment of a Send at its MO if the segments arrive in another order",
  { PLACED }, { scales = { "size" }, parameters = { size = { 12, 3000 }, order = { "descending", "mixed" } } }, function(t, p)
  t:good_exchange()

  local conn, op = t:operate()
  local payload, part = text(p.size), p.size // 4
  local order = p.order == "descending" and { 2, 1, 0 } or { 1, 0, 2 }
  local fpdus = ""
  for _, number in ipairs(order) do
    fpdus = fpdus .. segment(payload, op.msn, number * part, (number + 1) * part, false)
  end
  conn:send(fpdus .. segment(payload, op.msn, 3 * part, p.size, true), { deviates = true })
  local echo, event = echo_or_end(conn)
  if not echo and event then
    conn:reset()
    t:unimplemented("The target receives the segments of a Send only in the order of their offsets.")
  end
  t:check(echo == payload, {
    requirement = { PLACED },
    expected = "the bytes of the Send, or a rejection",
    actual = echo and octets.difference(echo, payload) or "nothing for 3 s",
  })
  conn:close()
end))

case(with_echo("gap", "The target does not deliver a Send whose middle segment is missing",
  { COMPLETE }, { scales = { "size" }, parameters = { size = { 12, 3000 } } }, function(t, p)
  t:good_exchange()

  local conn, op = t:operate()
  local payload, part = text(p.size), p.size // 3
  -- An earlier Send leaves its bytes in a buffer. The target may use this buffer again for the Send
  -- with the gap.
  conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = ("e"):rep(math.min(p.size, 1400)), msn = op.msn } })
  t:check(echo_or_end(conn), { expected = "an echo", actual = "none" })
  conn:send(segment(payload, op.msn + 1, 0, part, false) .. segment(payload, op.msn + 1, 2 * part, p.size, true), { deviates = true })
  local echo, event, fpdu = echo_or_end(conn)
  t:check(not echo, { requirement = COMPLETE, expected = "no delivery", actual = ("an echo of %d bytes"):format(#(echo or "")) })
  t:check(event ~= "fpdu" or fpdu.opcode == 7, { requirement = COMPLETE, expected = "no delivery", actual = "another message" })
  conn:reset()
end))

case(with_echo("empty-last", "The target delivers a Send whose last segment is empty",
  { PLACED, "RDMAP-5.3-5" }, { scales = { "size" }, parameters = { size = { 1, 40, 1400 } } }, function(t, p)
  t:good_exchange()

  local conn, op = t:operate()
  local payload = text(p.size)
  conn:send(segment(payload, op.msn, 0, p.size, false) .. segment(payload, op.msn, p.size, p.size, true), { deviates = true })
  local echo = echo_or_end(conn)
  t:check(echo == payload, {
    requirement = { PLACED, "RDMAP-5.3-5" },
    expected = ("an echo of %d bytes"):format(p.size),
    actual = echo and octets.difference(echo, payload) or "none",
  })
  conn:close()
end))

case(with_echo("read-between", "The target receives a Read Request between two segments of a Send",
  { PLACED, "RDMAP-5.2.1-18" }, {}, function(t)
  t:good_exchange()

  -- A Read of no bytes needs no buffer. Some targets reject it.
  local request = mpa.fpdu { ulpdu = rdmap.read_request { sink_stag = 0x7766 } }
  local first = t:operate()
  first:send(request)
  local event, fpdu = first:next { within = 3 }
  first:reset()
  if event ~= "fpdu" or fpdu.opcode ~= 2 then t:unimplemented("The target does not answer a Read of no bytes.") end

  local conn, op = t:operate()
  local payload = text(40)
  conn:send(segment(payload, op.msn, 0, 20, false) .. request .. segment(payload, op.msn, 20, 40, true), { deviates = true })
  local echo, response = "", 0
  repeat
    event, fpdu = conn:next { within = 3 }
    local is_response = event == "fpdu" and fpdu.opcode == 2
    if is_response then response = response + 1 else echo = echo .. (event == "fpdu" and fpdu.payload or "") end
  until event ~= "fpdu" or response == 1 and echo == payload
  local got = ("%d bytes, then %s"):format(#echo, event == "close" and "a close" or event or "nothing")
  t:check(echo == payload, { requirement = PLACED, expected = "the echo of the Send", actual = got })
  t:check(response == 1, { requirement = "RDMAP-5.2.1-18", expected = "a Read Response", actual = response .. " Read Responses" })
  conn:close()
end))

case {
  id = "ddp/5.3-order/write-between",
  title = "The target receives a Write between two segments of a Send, and a Read Response with an empty last segment",
  requirements = session.requirements(session.RPING, table.unpack(session.ROUNDS)),
  capabilities = { "rping" },
  tags = { "segment", "send", "write", "read" },
  parameters = { what = { "write", "empty" } },

  run = function(t, p)
    local s = session.rping(t)
    s:rounds(1, 2, { size = 40, between = p.what == "write", empty = p.what == "empty" })
    s:finish()
  end,
}

local EARLY, COMPLETES, ANSWERED = "RDMAP-5.5-21", "RDMAP-5.5-23", "RDMAP-5.2.1-18"

--- The number of seconds after which a missing message is a failure.
local ANSWER = 5
--- The number of seconds in which a Send that must not arrive yet would arrive.
local SILENCE = 1

local describe = session.describe

--- Returns the FPDU with which the tester names one of its buffers to rping's server.
local function advertisement(msn, stag, size)
  return mpa.fpdu { ulpdu = rdmap.send { payload = string.pack(">I8I4I4", 0x1000, stag, size), msn = msn } }
end

-- No RFC states whether a source may send another message between two segments of a Read Response.
-- Linux's siw rejects it if the other message is a Write. So a target may reject it. If the target
-- accepts the other message, this message must not complete the Read.
case {
  id = "ddp/5.3-order/in-response",
  title = "A Write or a Read Request between two segments of a Read Response does not complete the Read, and the Response does",
  requirements = { EARLY, COMPLETES, ANSWERED, PLACED },
  capabilities = { "rping" },
  tags = { "segment", "read", "write" },
  parameters = { between = { "write", "empty-write", "read" } },

  run = function(t, p)
    t:good_exchange()

    local conn, op = t:operate()
    if op.length < 4 then
      t:unimplemented("The buffer of the target's rping has fewer than four bytes.")
    end
    -- The last byte of the buffer is free for the other message.
    local size = math.min(40, op.length - 1)
    local data = ("0123456789"):rep(4):sub(1, size - 1) .. "\0"
    local half = size // 2

    -- The first half of rping's round has taken place. In the second half, the target writes.
    conn:send(advertisement(op.msn, 0x77656602, 64))
    repeat
      local fpdu = conn:expect_fpdu {}
      t:check(fpdu.opcode == 0 or fpdu.opcode == 3, { expected = "a Write and a Send", actual = ("opcode %d"):format(fpdu.opcode) })
    until fpdu.opcode == 3

    conn:send(advertisement(op.msn + 1, 0x77656603, size))
    local request = conn:expect_fpdu { opcode = 1 }
    t:check(#request.payload == 28, { expected = "a Read Request of 28 bytes", actual = #request.payload .. " bytes" })
    local sink, to = string.unpack(">I4i8", request.payload)
    local function response(from, till, last)
      local piece = data:sub(from + 1, till)
      return mpa.fpdu { ulpdu = rdmap.write { opcode = 2, stag = sink, tagged_offset = to + from, payload = piece, last = last } }
    end
    local free = to + op.length - 1
    local between = ({
      ["write"] = function() return rdmap.write { stag = sink, tagged_offset = free, payload = "b" } end,
      ["empty-write"] = function() return rdmap.write { stag = sink, tagged_offset = free } end,
      ["read"] = function() return rdmap.read_request { sink_stag = 0x7766, rdmardsz = 1, src_stag = sink, src_to = free } end,
    })[p.between]()
    conn:send(response(0, half, false) .. mpa.fpdu { ulpdu = between }, { deviates = true })

    -- The target may answer the Read Request now or after the Read Response.
    local unanswered = p.between == "read" and 1 or 0
    local event, fpdu = conn:next { within = SILENCE }
    if event == "fpdu" and fpdu.opcode == 2 and unanswered > 0 then
      unanswered = 0
      event, fpdu = conn:next { within = SILENCE }
    end
    if event == "close" or event == "fpdu" and fpdu.opcode == 7 then
      conn:reset()
      t:unimplemented("The target rejects a message between two segments of a Read Response.")
    end
    t:check(event ~= "fpdu" or fpdu.opcode ~= 3, {
      requirement = EARLY, expected = "no Send, because the Read is not complete", actual = "a Send",
    })
    t:check(event == nil, { expected = "nothing", actual = describe(event, fpdu, SILENCE) })

    conn:send(response(half, size, true), { deviates = true })
    local is_complete = false
    repeat
      event, fpdu = conn:next { within = ANSWER }
      local is_answer = event == "fpdu" and fpdu.opcode == 2 and unanswered > 0
      local is_send = event == "fpdu" and fpdu.opcode == 3 and not is_complete
      t:check(is_answer or is_send or is_complete, {
        requirement = COMPLETES, expected = "a Send, because the Read is complete", actual = describe(event, fpdu, ANSWER), missing = event ~= "fpdu",
      })
      t:check(is_answer or is_send, {
        requirement = ANSWERED, expected = "a Read Response", actual = describe(event, fpdu, ANSWER), missing = event ~= "fpdu",
      })
      if is_answer then unanswered = 0 else is_complete = true end
    until is_complete and unanswered == 0

    -- Read the data that the target has read.
    local msn = p.between == "read" and 2 or 1
    conn:send(mpa.fpdu { ulpdu = rdmap.read_request { sink_stag = 0x7767, rdmardsz = size, src_stag = sink, src_to = to, msn = msn } })
    local got = ""
    repeat
      event, fpdu = conn:next { within = ANSWER }
      t:check(event == "fpdu" and fpdu.opcode == 2, {
        requirement = ANSWERED, expected = "a Read Response", actual = describe(event, fpdu, ANSWER), missing = event ~= "fpdu",
      })
      got = got .. fpdu.payload
    until fpdu.last
    t:check(got == data, { requirement = PLACED, expected = "the bytes of the Read Response", actual = octets.difference(got, data) })
    conn:close()
  end,
}

-- A Send with Invalidate invalidates the STag when the Send is delivered, and not when one of its
-- segments is placed (RFC 5040 section 5.3). With `invalidated`, the tester reads from the STag
-- after the first of two segments, and writes to it after the second. With `invalidated-read`, the
-- target has already answered a Read of the STag.
case {
  id = "ddp/5.3-order/invalidates",
  title = "The target invalidates the STag of a Send with Invalidate after the last segment, not after an earlier one",
  requirements = session.requirements(session.RPING, "invalidated"),
  roles = { "responder", "initiator" },
  capabilities = { "rping" },
  tags = { "segment", "send", "invalidate", "read", "write" },
  parameters = { fault = { "invalidated", "invalidated-read" } },

  run = function(t, p)
    local s = session.rping(t)
    s:write(1, { at = 0, size = 40 })
    s:read(1, { at = 0, size = 40 })
    s:fault(1, p.fault)
    s:finish()
  end,
}

local BEFORE_LAST, IN_TURN = "DDP-5.4-2", "DDP-5.4-5"

-- A Data Sink may use the opcode of any segment, and need not compare the opcodes (RFC 5041 section
-- 4.3). So the target may deliver such a Send or reject it. But the second segment begins no Send.
case(with_echo("opcode", "The target delivers a Send whose second segment has another Send opcode as one message, or rejects it",
  { BEFORE_LAST, PLACED }, { parameters = { second = { 4, 5, 6 } } }, function(t, p)
  t:good_exchange()

  local conn, op = t:operate()
  local payload = text(40)
  conn:send(segment(payload, op.msn, 0, 20, false), { deviates = true })
  conn:expect_silence { requirement = BEFORE_LAST, within = SILENCE }
  conn:send(mpa.fpdu {
    ulpdu = rdmap.send { payload = payload:sub(21), msn = op.msn, mo = 20, opcode = p.second, invalidate_stag = p.second ~= 5 and 0x77660001 or 0 },
  }, { deviates = true })
  local echo, event, fpdu = echo_or_end(conn)
  t:check(echo == nil or echo == payload, {
    requirement = PLACED, expected = "the bytes of the Send, or no delivery", actual = octets.difference(echo or "", payload),
  })
  t:check(echo or event ~= "fpdu" or fpdu.opcode == 7, { expected = "an echo, a rejection or nothing", actual = describe(event, fpdu, SILENCE) })
  t:check(true, { requirement = { BEFORE_LAST, PLACED }, expected = "the bytes of the Send, or no delivery", actual = "another delivery" })
  conn:reset()
end))

-- The Data Source sends messages one after the other (RFC 5041 section 5.3), and MPA keeps the
-- order of the segments. So the last segment of the first Send can only be missing. The target may
-- reject the second Send, or wait.
case(with_echo("next-before-last", "The target does not deliver a Send that arrives before the last segment of the previous Send",
  { BEFORE_LAST, IN_TURN }, { parameters = { segments = { 1, 2 } } }, function(t, p)
  t:good_exchange()

  local conn, op = t:operate()
  local first, second = text(40), ("next "):rep(4)
  local fpdus = segment(first, op.msn, 0, 20, false)
  for nth = 1, p.segments do
    local size = #second // p.segments
    fpdus = fpdus .. segment(second, op.msn + 1, size * (nth - 1), size * nth, nth == p.segments)
  end
  conn:send(fpdus, { deviates = true })
  local echo, event, fpdu = echo_or_end(conn)
  t:check(echo == nil, {
    requirement = echo == second and IN_TURN or BEFORE_LAST,
    expected = "no delivery, because the first Send is not complete",
    actual = echo == second and "an echo of the second Send" or ("an echo of %d bytes"):format(#(echo or "")),
  })
  t:check(event ~= "fpdu" or fpdu.opcode == 7, { expected = "a rejection or nothing", actual = describe(event, fpdu, SILENCE) })
  t:check(true, { requirement = { BEFORE_LAST, IN_TURN }, expected = "no delivery", actual = "an echo" })
  conn:reset()
end))
