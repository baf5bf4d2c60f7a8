-- The traffic of a session with an agent: the messages of the target, the tester's answers to the
-- target's Reads, and the completions. The steps of such a session are in agent_session.lua.

local shared = ...
local ANSWER, SEGMENT, describe, splice = shared.ANSWER, shared.SEGMENT, shared.describe, shared.splice
local PLACED, DELIVERED, IN_ORDER = shared.PLACED, shared.DELIVERED, shared.IN_ORDER
local ANSWERED, ANSWERED_IN_ORDER = shared.ANSWERED, shared.ANSWERED_IN_ORDER

--- The number of seconds to wait for a message while a Read of the target is unanswered. After this
--- time, the tester answers the Read, because the target may need the answer first.
local STALL = 0.3
--- The same number if the target must not send a further Read Request before the answer.
local FULL = 0.05
--- Maximum number of TCP segments into which the tester cuts its bytes.
local MAX_CUTS = 4000
--- Maximum number of bytes that wait until the tester receives them. Only a single message may be
--- longer.
local MAX_WAITING = 65536
--- Size in bytes of each of the two regions from which the target sends, if no message is longer.
local SOURCE = 140000
--- Maximum number of bytes of a region that the agent returns at once.
local TRANSFER = 262144
--- The number of seconds in which the target reports the work requests that fail because their
--- connection has ended.
local FLUSH = 0.5
--- Number of bytes after a buffer, which no message may change.
local GUARD = 32

--- Each Send is delivered once, with its length.
local ONCE, LENGTH = "DDP-5.3-5", "RDMAP-5.3-13"
--- The target sends its messages in the order in which its user posted them.
local SENT_IN_ORDER = "DDP-5.3-1"
--- The payload of a Send or of a Write is the user's data.
local DATA = { send = "RDMAP-4.6-1", write = "RDMAP-4.3-1" }
--- Each segment of a Write has the user's STag, and the next offset.
local WRITE_STAG, WRITE_OFFSET = "DDP-4.2-5", "DDP-5.2-6"
--- A Send with Invalidate has the user's STag.
local INVALIDATES = "RDMAP-4.1-15"
--- A Read Request names the user's memory, and the Response is delivered to the user's buffer.
local REQUESTED, RESPONSE = "RDMAP-4.4-2", "RDMAP-5.2.2-9"
--- Work requests complete in the order in which they were posted.
local COMPLETED = "RDMAP-5.5-12"
--- Fenced work waits for the answers to all earlier Reads.
local FENCED = "VERBS-8.2.2.2-2"
--- The number of unanswered Read Requests is limited.
local ORD = "RDMAP-6.1-7"
--- The answer to an Atomic Request has the original value. The user gets the original value in an
--- Atomic Response, and the bytes of Immediate Data.
local ORIGINAL, FOUND, IMMEDIATE = "RDMAP-7306.5.2.2-12", "RDMAP-7306.5.2.2-10", "RDMAP-7306.6.1-1"

--- The requirements that each session with an agent tests.
session.AGENT = {
  PLACED, DELIVERED, IN_ORDER, ONCE, LENGTH, ANSWERED, ANSWERED_IN_ORDER, SENT_IN_ORDER, DATA.send, DATA.write, WRITE_STAG,
  WRITE_OFFSET, INVALIDATES, REQUESTED, RESPONSE, COMPLETED, FENCED, ORD,
}
--- The further requirements of a session with Atomic Operations or Immediate Data.
session.ATOMICS = { ORIGINAL, FOUND, IMMEDIATE }

--- Divides `size` bytes into at most `count` pieces. Returns their lengths. No length is 0, except
--- if `size` is 0.
local function pieces(size, count)
  local lengths, left = {}, size
  for nth = count, 2, -1 do
    local length = left // (nth + 1)
    if length > 0 then lengths[#lengths + 1] = length end
    left = left - length
  end
  lengths[#lengths + 1] = left
  return lengths
end

--- Sends FPDUs. TCP may deliver several of them at once. `every` is the size of the TCP segments
--- into which the FPDUs are cut, or nil.
local function send_all(conn, fpdus, every)
  local join = shared.joiner(conn, every and function(size) return { every = math.max(every, size // MAX_CUTS + 1) } end)
  for _, fpdu in ipairs(fpdus) do join(fpdu) end
  join()
end

--- Returns the position of the work request with this number in a list.
local function position(list, number)
  for index, entry in ipairs(list) do
    if entry.work == number then return index end
  end
end

--- Returns whether the completion of a work request in the Send Queue is due.
local function is_due(c)
  for _, work in ipairs(c.completions) do
    if work.signaled then return true end
  end
  return false
end

--- Returns the functions for the traffic of a session. `target` is the agent of the target. The
--- parameter `c` of a function is a connection of the session.
function session.agent_traffic(t, target)
  local traffic = { send_all = send_all }
  local sent, seeds, stags, sources = 0, 0, 0, {}

  --- Fails the case if `ok` is false. `missing` is true if the reason is a missing answer.
  local function check(ok, requirement, expected, actual, missing)
    if not ok then t:check(false, { requirement = requirement, expected = expected, actual = actual, missing = missing }) end
  end

  --- Returns `size` bytes that differ from the bytes of earlier messages.
  function traffic.payload(size)
    sent = sent + 1
    -- Messages of a few bytes differ only because the low byte of the number is the first byte.
    return (string.pack("<I4", sent) .. shared.numbered(sent, size)):sub(1, size)
  end

  --- Returns a new STag of the tester.
  function traffic.new_stag()
    stags = stags + 1
    return shared.nth_stag(stags)
  end

  --- Fills a region with a new pattern.
  function traffic.fill(memory)
    seeds = seeds + 1
    memory.region:fill { seed = seeds, length = #memory.octets }
    memory.octets = target:pattern(seeds, #memory.octets)
  end

  --- Registers memory of the target, and fills it with a pattern. `octets` of the result has the
  --- bytes that must be in the memory.
  local function register(size, access)
    seeds = seeds + 1
    -- Both halves of the number change the pattern, so that no two regions have equal parts.
    local seed = seeds * 0x100000001
    return { region = target:region { octets = size, access = access, fill = seed }, octets = target:pattern(seed, size) }
  end
  traffic.register = register

  --- Registers a buffer of `size` bytes, at offset `pad` of its region. If the buffer has several
  --- parts, the first part has the highest address.
  function traffic.allocate(size, count, pad, access)
    local buffer, stop = register(pad + size + GUARD, access), pad + size
    buffer.parts = {}
    for _, length in ipairs(pieces(size, count)) do
      stop = stop - length
      buffer.parts[#buffer.parts + 1] = { region = buffer.region, offset = stop, length = length }
    end
    return buffer
  end

  --- Returns a region with at least `size` bytes from which the target sends. A shorter region stays
  --- registered, because earlier work requests may use it.
  local function source(which, size)
    local memory = sources[which]
    if not memory or #memory.octets < size then
      memory = register(math.max(SOURCE, size), {})
      sources[which] = memory
    end
    return memory
  end

  --- Returns the parts of a work request that sends `size` bytes, and the bytes. The parts are in
  --- two regions, near offset `at`.
  function traffic.gather(size, at, count)
    local parts, data = {}, {}
    for nth, length in ipairs(pieces(size, count)) do
      local memory = source(nth % 2 + 1, length)
      local from = (at + 4099 * (nth - 1)) % (#memory.octets - length + 1)
      parts[nth] = { region = memory.region, offset = from, length = length }
      data[nth] = memory.octets:sub(from + 1, from + length)
    end
    return parts, table.concat(data)
  end

  --- Returns the bytes of registered memory.
  local function contents(memory)
    local size, pieces_read = #memory.octets, {}
    for at = 0, size - 1, TRANSFER do
      pieces_read[#pieces_read + 1] = memory.region:get { offset = at, length = math.min(TRANSFER, size - at) }
    end
    return table.concat(pieces_read)
  end

  --- Compares a buffer with the data that must be in it, and deregisters it.
  local function verify(buffer, data, requirement)
    local want, from = buffer.octets, 0
    for _, part in ipairs(buffer.parts) do
      want = splice(want, part.offset, data:sub(from + 1, from + part.length))
      from = from + part.length
    end
    local got = contents(buffer)
    check(got == want, requirement, ("the %d bytes in the buffer, and no other change"):format(#data), octets.difference(got, want))
    buffer.region:destroy()
  end

  --- Compares a region that the tester has written with the bytes that must be in it. Other bytes
  --- violate `requirement`, which is PLACED if it is missing.
  function traffic.verify_region(memory, requirement)
    local got, expected = contents(memory), "the written bytes in the region, and no other change"
    check(got == memory.octets, requirement or PLACED, expected, octets.difference(got, memory.octets))
  end

  --- Compares the memory of a counter with its value. The byte order is that of the target's host.
  function traffic.verify_counter(counter)
    local memory = counter.region:get {}
    local little, big = string.unpack("<i8", memory), string.unpack(">i8", memory)
    check(little == counter.value or big == counter.value, ORIGINAL, ("%d in memory"):format(counter.value), ("%#x in memory"):format(little))
  end

  --- Sends the next segments of the tester's Send, at most `count`.
  function traffic.send_segments(c, count)
    local m, fpdus = c.message, {}
    local every = m and m.every
    while m and count > 0 do
      local piece = m.payload:sub(m.at + 1, m.at + m.segment)
      local last = m.at + #piece == #m.payload
      local ulpdu = rdmap.send { payload = piece, msn = c.msn, mo = m.at, last = last, opcode = m.solicited and 5 or nil }
      fpdus[#fpdus + 1] = mpa.fpdu { ulpdu = ulpdu }
      m.at, count = m.at + #piece, count - 1
      if last then
        c.msn, c.message, m = (c.msn + 1) & 0xffffffff, nil, nil
      end
    end
    send_all(c.conn, fpdus, every)
  end

  --- Sends up to `count` segments of the answers to the target's Reads, with at most `segment`
  --- bytes of payload each.
  local function answer(c, count, segment)
    local fpdus = {}
    while count > 0 and c.requests[1] do
      local work, last, ulpdu = c.requests[1], true, nil
      if work.kind == "read" then
        local piece = work.data:sub(work.at + 1, work.at + segment)
        last = work.at + #piece == #work.data
        ulpdu = rdmap.write { opcode = 2, stag = work.sink_stag, tagged_offset = work.sink_to + work.at, payload = piece, last = last }
        work.at = work.at + #piece
      else
        ulpdu = rdmap.send { opcode = 11, qn = 3, msn = c.atomic_msn, payload = string.pack(">I4i8", work.id, work.found) }
        c.atomic_msn = c.atomic_msn + 1
      end
      fpdus[#fpdus + 1] = mpa.fpdu { ulpdu = ulpdu }
      if last then table.remove(c.requests, 1) end
      count = count - 1
    end
    send_all(c.conn, fpdus)
  end
  traffic.answer = answer

  --- Answers the target's oldest Read completely.
  local function answer_oldest(c)
    local left = #c.requests[1].data - c.requests[1].at
    answer(c, math.max(1, (left + SEGMENT - 1) // SEGMENT), SEGMENT)
  end

  --- Handles a Read Request or an Atomic Request of the target.
  local function handle_request(c, work, fpdu)
    if work.kind == "read" then
      check(#fpdu.payload == 28, REQUESTED, "a Read Request of 28 bytes", describe("fpdu", fpdu))
      local size, stag, to
      work.sink_stag, work.sink_to, size, stag, to = string.unpack(">I4i8I4I4i8", fpdu.payload)
      local text = "a Read of %d bytes of STag %#x at TO %#x"
      local is_right = size == #work.data and (size == 0 or stag == work.stag and to == work.to)
      check(is_right, REQUESTED, text:format(#work.data, work.stag, work.to), text:format(size, stag, to))
    else
      -- The session is not about the fields of an Atomic Request.
      check(#fpdu.payload == 52, {}, "an Atomic Request of 52 bytes", describe("fpdu", fpdu))
      work.id = string.unpack(">I4", fpdu.payload, 5)
    end
    table.remove(c.posted, 1)
    c.requests[#c.requests + 1] = work
    local text = "%d unanswered Read Requests"
    check(#c.requests <= c.ord, ORD, "at most " .. text:format(c.ord), text:format(#c.requests))
  end

  --- Handles a segment of the target's oldest message that is incomplete.
  local function handle_message(c, fpdu)
    local work, read = c.posted[1], c.reads[1]
    -- A Write to the sink of the tester's Read is a wrong answer to this Read.
    local is_answer = fpdu.opcode == 0 and read and read.stag and fpdu.stag == read.stag
    check(not is_answer, ANSWERED, "the Response to a Read of the tester", describe("fpdu", fpdu))
    check(work and fpdu.opcode == work.opcode, SENT_IN_ORDER, work and work.text or "no message", describe("fpdu", fpdu))
    check(not work.fence or not c.requests[1], FENCED, "no fenced message before the answers to all earlier Reads", describe("fpdu", fpdu))
    if work.is_read then return handle_request(c, work, fpdu) end
    -- A Write may end with an empty segment, whose STag and TO do not matter (RFC 5041 section
    -- 5.2).
    if work.kind == "write" and #fpdu.payload > 0 then
      local to = work.to + work.at
      check(fpdu.stag == work.stag, WRITE_STAG, ("STag %#x"):format(work.stag), ("STag %#x"):format(fpdu.stag or 0))
      check(fpdu.tagged_offset == to, WRITE_OFFSET, ("TO %#x"):format(to), ("TO %#x"):format(fpdu.tagged_offset or 0))
    elseif work.invalidate then
      local named = string.unpack(">I4", fpdu.ulpdu, 3)
      check(named == work.invalidate, INVALIDATES, ("Invalidate STag %#x"):format(work.invalidate), ("Invalidate STag %#x"):format(named))
    end
    -- The monitor judges the other fields of each segment.
    work.got[#work.got + 1], work.at = fpdu.payload, work.at + #fpdu.payload
    if not fpdu.last and work.at <= #work.data then return end
    local got = table.concat(work.got)
    check(got == work.data, DATA[work.kind], ("the %d bytes of the user's buffers"):format(#work.data), octets.difference(got, work.data))
    c.waiting = c.waiting - #work.data
    table.remove(c.posted, 1)
  end

  --- Handles a segment of the answer to a Read or Atomic Request of the tester.
  local function handle_response(c, fpdu)
    local read = c.reads[1]
    check(read, ANSWERED, "no Response without a Request", describe("fpdu", fpdu))
    local is_filled = fpdu.opcode == 2 and #fpdu.payload > 0
    for index = 2, is_filled and #c.reads or 0 do
      check(fpdu.stag ~= c.reads[index].stag, ANSWERED_IN_ORDER, "the Response to the oldest Request", "the Response to a later Read")
    end
    check(fpdu.opcode == read.opcode, ANSWERED_IN_ORDER, ("a Response with opcode %d"):format(read.opcode), describe("fpdu", fpdu))
    if read.opcode == 11 then
      check(#fpdu.payload == 12, ORIGINAL, "an Atomic Response of 12 bytes", describe("fpdu", fpdu))
      local value = string.unpack(">i8", fpdu.payload, 5)
      check(value == read.want, ORIGINAL, ("the original value %d"):format(read.want), ("the value %d"):format(value))
    else
      read.got[#read.got + 1], read.at = fpdu.payload, read.at + #fpdu.payload
      if not fpdu.last and read.at <= #read.want then return end
      local got = table.concat(read.got)
      check(got == read.want, PLACED, "the bytes of the region", octets.difference(got, read.want))
      c.waiting = c.waiting - #read.want
    end
    table.remove(c.reads, 1)
  end

  --- Receives the next FPDU. If the target may need the answer to a Read first, answers the Read.
  local function advance(c)
    local head, within = c.posted[1], ANSWER
    if c.requests[1] then
      within = head and head.is_read and #c.requests >= c.ord and FULL or STALL
    end
    local event, fpdu = c.conn:next { within = within }
    -- The time was over in the middle of an FPDU.
    if event == "octets" and within < ANSWER then event, fpdu = c.conn:next { within = ANSWER } end
    if event == nil and c.requests[1] then return answer_oldest(c) end
    local opcode = event == "fpdu" and fpdu.opcode or 7
    if opcode == 2 or opcode == 11 then return handle_response(c, fpdu) end
    if opcode ~= 7 then return handle_message(c, fpdu) end
    local requirement, expected = ANSWERED, "the Response to a Request of the tester"
    if head then requirement, expected = SENT_IN_ORDER, head.text end
    check(false, shared.violated_by(event, fpdu, requirement, RESPONSE), expected, describe(event, fpdu, within), event == nil)
  end
  traffic.advance = advance

  --- Receives all messages of the target and all answers to the tester.
  function traffic.drain(c)
    while c.posted[1] or c.reads[1] do advance(c) end
  end

  --- Ensures that few bytes wait for the tester when the target sends `size` more bytes.
  function traffic.make_room(c, size)
    if c.waiting > 0 and c.waiting + size > MAX_WAITING then traffic.drain(c) end
  end

  --- Handles the completion of the receive at this position.
  local function handle_receive(c, index, completion)
    local text = "the completion of receive %d"
    check(index == 1, IN_ORDER, text:format(c.receives[1].work), text:format(completion.work))
    check(c.filled > 0, DELIVERED, "no completion without a Send", text:format(completion.work))
    local receive = table.remove(c.receives, 1)
    local m = receive.message
    c.filled = c.filled - 1
    if m.immediate then
      -- A completion of libibverbs has no field for Immediate Data.
      local value = completion.immediate or m.immediate
      check(value == m.immediate, IMMEDIATE, ("the Immediate Data %#x"):format(m.immediate), ("the Immediate Data %#x"):format(value))
      return receive.buffer.region:destroy()
    end
    check(completion.octets == #m.payload, LENGTH, ("a Send of %d bytes"):format(#m.payload), ("a Send of %d bytes"):format(completion.octets))
    verify(receive.buffer, m.payload, PLACED)
  end

  --- Handles the completion of a work request in the Send Queue.
  local function handle_work(work, completion)
    if work.kind == "read" then
      verify(work.buffer, work.data, RESPONSE)
    elseif work.buffer then
      -- libibverbs writes the original value to the memory of the work request.
      local value = completion.found or string.unpack("=i8", work.buffer.region:get { length = 8 })
      check(value == work.found, FOUND, ("the original value %d"):format(work.found), ("the original value %d"):format(value))
      work.buffer.region:destroy()
    end
  end

  --- Waits for the next completion. It has to be the oldest of its queue.
  local function complete(c)
    -- If a Send is not delivered, the end of the connection also flushes the Send Queue.
    local missing = c.filled > 0 and DELIVERED or COMPLETED
    local message, work = c.filled > 0 and c.receives[1].message, c.completions[1]
    local size = math.max(message and message.payload and #message.payload or 0, work and #work.data or 0)
    -- A slow target needs seconds for a message of several MiB.
    local within = ANSWER + size // 100000
    local completion = c.pair:expect_completion { requirement = missing, within = within, overdue_fails = true }
    local index = position(c.receives, completion.work)
    if index then return handle_receive(c, index, completion) end
    local text = "the completion of work request %d"
    index = position(c.completions, completion.work)
    -- A receive that is not posted any more has received its Send before.
    local row = completion.operation == "receive" and ONCE or COMPLETED
    check(index, row, "one completion of each posted work request", text:format(completion.work))
    -- The completion of a work request also completes earlier work requests that are not signaled.
    for nth = 1, index do
      local work = table.remove(c.completions, 1)
      check(nth == index or not work.signaled, COMPLETED, text:format(work.work), text:format(completion.work))
      handle_work(work, completion)
    end
  end

  --- Receives the completions after an illegal FPDU. The work requests that are left fail, because
  --- the connection has ended. A work request that completes with success shows that the target has
  --- accepted the FPDU, and violates `requirement`.
  function traffic.expect_failed(c, requirement)
    local left = #c.receives
    while true do
      local completion = c.pair:next_completion { within = left > 0 and FLUSH or 0 }
      if not completion then return end
      left = left - 1
      local text = ("work request %d completes with %s"):format(completion.work, completion.status)
      check(completion.status ~= "success", requirement, "no completion with success after the illegal FPDU", text)
    end
  end

  --- Answers all Reads of the target, and waits for all completions that are due.
  function traffic.collect(c)
    while c.requests[1] do answer_oldest(c) end
    while c.filled > 0 or is_due(c) do complete(c) end
    c.pair:expect_no_completion { requirement = ONCE, within = 0 }
  end

  return traffic
end
