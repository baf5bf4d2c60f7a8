-- Sessions with a target that echoes Sends.

local shared = ...
local ANSWER, describe, is_missing = shared.ANSWER, shared.describe, shared.is_missing
local PLACED, DELIVERED, IN_ORDER, ANSWERED = shared.PLACED, shared.DELIVERED, shared.IN_ORDER, shared.ANSWERED
--- A receiver ignores the values of the bytes of PAD.
local PAD = "MPA-4.1-4"

--- Maximum number of unanswered Sends on a connection. The target needs a receive for each of them.
--- Only a batch exceeds it.
local MAX_SENDS = 8
--- Maximum number of bytes in unanswered Sends. A single Send may be longer. With more bytes,
--- target and tester could wait forever, each until the other side reads. Only a flood exceeds it.
local MAX_WAITING = 65536

--- The number of seconds after a flood in which the tester reads nothing. In this time, the target
--- fills the buffers of TCP with echoes.
local FLOOD_WAIT = 3
--- The number of seconds after which a missing answer to a flood is a failure.
local FLOOD_ANSWER = 40

--- Number of bytes before the payload of an FPDU: 2 bytes of length, and the header of a Send or of
--- a Read Response.
local SEND_HEADERS, RESPONSE_HEADERS = 20, 16

--- The requirements that each session tests, those that only empty Reads test, and those that only
--- Sends with unusual PAD test.
session.ECHO = { PLACED, DELIVERED, IN_ORDER }
session.EMPTY = { ANSWERED }
session.PADDED = { PAD }

--- A session with a target that echoes Sends. `more` has requirements about Requests that the case
--- lists (`session.lua` names them).
function session.echo(t, more)
  local sent, check = 0, shared.checker(t)
  -- Whether the session has empty Reads, and whether the target has answered one of them.
  local has_reads, has_response = false, false

  --- Opens a connection. `options` are those of `t:start_up`.
  local function open(fields, options)
    local conn, frame = t:start_up(shared.request_fields(fields), options)
    local msn = shared.get_ready(conn, frame, fields)
    if not msn then
      conn:close()
      conn, frame = t:start_up(nil, options)
    end
    return {
      conn = conn, msn = msn or 1, waiting = {}, octets = 0, longest = 3000, crc = frame.crc or shared.requests_crc(t, fields),
      has_markers = frame.markers, got = {}, read_msn = 1, reads = 0, ird = frame.ird,
    }
  end

  --- Sends the second half of an FPDU whose first half was sent.
  local function complete_half(c)
    if c.rest then c.conn:send(c.rest) end
    c.rest = nil
  end

  --- Returns `size` bytes for the next Send. Different Sends of the same size have different bytes.
  local function next_payload(size)
    sent = sent + 1
    return shared.numbered(sent, size)
  end

  --- Notes that a Send was sent, and that its echo is expected.
  local function expect_echo(c, payload)
    c.waiting[#c.waiting + 1] = payload
    c.octets = c.octets + #payload
    c.msn = (c.msn + 1) & 0xffffffff
  end

  --- Sends the next segments of a connection's message, at most `count`. TCP may deliver their
  --- FPDUs at once.
  local function send_segments(c, count)
    complete_half(c)
    local m = c.message
    local every, stall = m and m.every, m and m.stall
    if m and m.descending then
      -- RFC 5041 section 5.3 recommends ascending offsets, and does not require them. The last
      -- segment has the highest offset (section 4.1).
      local offsets, last = {}, math.max(0, (#m.payload - 1) // m.segment * m.segment)
      for at = last - m.segment, 0, -m.segment do offsets[#offsets + 1] = at end
      offsets[#offsets + 1] = last
      for _, at in ipairs(offsets) do
        local piece = m.payload:sub(at + 1, at + m.segment)
        c.conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = piece, msn = c.msn, mo = at, last = at == last } })
      end
      expect_echo(c, m.payload)
      c.message = nil
      return
    end
    local join = shared.joiner(c.conn, function(size)
      -- In a long message, only the FPDUs that are sent last are cut into pieces.
      if size >= shared.MAX_JOINED then return nil end
      -- During a pause after the first bytes, a timer of the target may expire inside an FPDU.
      local stalled = stall and stall > 0 and { cuts = { math.min(stall, size - 1) }, pause = 0.7 } or nil
      return every and { every = every } or stalled
    end)
    while m and count > 0 do
      local piece = m.payload:sub(m.at + 1, m.at + m.segment)
      -- If the last segment is empty, it follows the segment with the last byte.
      local is_empty = m.empty and #piece == 0
      local last = m.at + #piece == #m.payload and (not m.empty or is_empty)
      local ulpdu = rdmap.send { payload = piece, msn = c.msn, mo = m.at, last = last, opcode = m.solicited and 5 or nil }
      join(mpa.fpdu { ulpdu = ulpdu })
      m.at, count = m.at + #piece, count - 1
      if last then
        expect_echo(c, m.payload)
        c.message, m = nil, nil
      end
    end
    join()
  end

  --- Returns the number of seconds after which a missing answer is a failure.
  local function time_limit(c)
    local want = c.waiting[1] or ""
    -- A slow target needs seconds for a Send of 1 MiB.
    return c.is_flooded and FLOOD_ANSWER or ANSWER + #want // 100000
  end

  --- Takes an FPDU of the target, if it is a part of the oldest echo, or the Response to an empty
  --- Read. No rule orders echoes and Responses. Returns whether the FPDU is one of them.
  local function take(c, fpdu)
    if fpdu.opcode == 2 and c.reads > 0 then
      check(#fpdu.payload == 0 and fpdu.last, ANSWERED, "a Read Response without payload", describe("fpdu", fpdu))
      c.reads, has_response = c.reads - 1, true
      return true
    end
    if #c.waiting == 0 or fpdu.opcode ~= 3 and fpdu.opcode ~= 5 then return false end
    -- The monitor judges the other fields of each segment.
    c.got[#c.got + 1] = fpdu.payload
    if not fpdu.last then
      c.segment = c.segment or #fpdu.payload
      return true
    end
    local want, echo = table.remove(c.waiting, 1), table.concat(c.got)
    c.got, c.octets = {}, c.octets - #want
    -- Short Sends may have the same bytes as later Sends.
    for _, later in ipairs(echo ~= want and c.waiting or {}) do
      check(echo ~= later, IN_ORDER, ("the echo of a Send of %d bytes"):format(#want), "the echo of a later Send")
    end
    check(echo == want, PLACED, "the bytes of the Send", octets.difference(echo, want))
    return true
  end

  --- Receives an FPDU of the answer `what`, or of another answer that the target owes. If none
  --- arrives, the target violates `requirement`.
  local function receive_part(c, requirement, what)
    complete_half(c)
    local within = time_limit(c)
    local event, fpdu = c.conn:next { within = within }
    if c.is_batch and event == "fpdu" and fpdu.opcode == 7 then
      local first, code = fpdu.payload:byte(1, 2)
      -- The tester does not know the number of receives. Without a receive, the target reports that
      -- it has no buffer, or that the MSN is out of range (RFC 5041 section 7.2).
      if first == 0x12 and (code == 2 or code == 3) then
        t:unimplemented("The target has no receive for each of the unanswered Sends.")
      end
    end
    local is_taken = event == "fpdu" and take(c, fpdu)
    -- If a basic case failed, its fault may be the reason for a Terminate with an error of MPA, too.
    local is_mpa_error = event == "fpdu" and fpdu.opcode == 7 and fpdu.payload:byte() == 0x20
    check(is_taken, requirement, what, describe(event, fpdu, within), is_missing(event) or is_mpa_error)
  end

  --- Receives the oldest echo.
  local function receive(c, requirement)
    local what, left = ("the echo of a Send of %d bytes"):format(#c.waiting[1]), #c.waiting - 1
    while #c.waiting > left do receive_part(c, requirement or DELIVERED, what) end
  end

  --- Returns whether some segments of a Send were sent, and others were not.
  local function is_incomplete(c) return c.message ~= nil and c.message.at > 0 end

  --- Receives the Responses to empty Reads.
  local function receive_responses(c)
    while c.reads > 0 do
      if #c.waiting > 0 then
        receive(c)
      else
        -- The target may have rejected a segment of the incomplete Send.
        local rows = { ANSWERED, is_incomplete(c) and DELIVERED or nil }
        receive_part(c, rows, "the Response to a Read of 0 bytes")
      end
    end
  end

  --- Completes the message of a connection, and receives all answers.
  local function settle(c)
    send_segments(c, math.maxinteger)
    while #c.waiting > 0 do
      receive(c)
    end
    receive_responses(c)
    c.is_flooded, c.is_batch = false, false
  end

  --- The answers that the target owes.
  local owed = { requirement = DELIVERED, take = take, within = time_limit }

  function owed.prepare(c, fault)
    complete_half(c)
    if fault.begins_send then
      send_segments(c, math.maxinteger)
      if #c.waiting >= MAX_SENDS then settle(c) end
    end
    return #c.waiting > 0 or c.reads > 0 or is_incomplete(c)
  end

  function owed.answer(c)
    if #c.waiting > 0 then return { want = c.waiting[1], got = c.got, headers = SEND_HEADERS } end
    return c.reads > 0 and { want = "", got = {}, headers = RESPONSE_HEADERS } or nil
  end

  local self, connection, forget = shared.base(t, session.ECHO, open, settle, owed, more)

  --- Receives echoes until the target has a receive for one more Send of `size` bytes.
  local function make_room(c, size)
    while #c.waiting >= MAX_SENDS or c.octets > 0 and c.octets + size > MAX_WAITING do
      receive(c)
    end
  end

  --- Prepares the next Send of a connection, and sends no segment of it.
  local function prepare(c, fields)
    local payload = next_payload(fields.size)
    c.message = {
      payload = payload, at = 0, segment = fields.segment or math.max(#payload, 1), solicited = fields.solicited, every = fields.every,
      stall = fields.stall, empty = fields.empty and fields.size > 0, descending = fields.descending,
    }
  end

  --- Prepares a Send of `size` bytes, in segments of at most `segment` bytes of payload. The Send
  --- has one segment if `segment` is missing. First completes the previous Send of the connection.
  --- Sends no segment of the new Send yet. `every` is the size of the TCP segments into which the
  --- FPDUs are cut. `stall` is the number of bytes of the FPDUs after which the tester waits for
  --- 0.7 s. With `empty`, a last segment without payload follows the payload. With `descending`,
  --- the segments before the last segment are sent in descending order of MO.
  function self:message(number, fields)
    local c = connection(number)
    send_segments(c, math.maxinteger)
    make_room(c, fields.size)
    prepare(c, fields)
  end

  --- Sends the next `count` segments of the connection's Send.
  function self:segments(number, count) send_segments(connection(number), count) end

  --- Sends `count` Sends of `size` bytes, and reads no echo before all of them are sent. So the
  --- target must keep echoes that TCP does not accept yet. `segment` is that of `message`.
  function self:flood(number, count, fields)
    local c = connection(number)
    settle(c)
    for _ = 1, math.min(count, MAX_SENDS) do
      prepare(c, fields)
      send_segments(c, math.maxinteger)
    end
    c.is_flooded = true
    t:pause(FLOOD_WAIT)
  end

  --- Sends `count` Sends, one after the other. With `spread`, their sizes are from `size` to
  --- `size + spread` bytes, and change with each Send. Otherwise each Send has `size` bytes.
  function self:burst(number, count, size, spread)
    for index = 0, count - 1 do
      self:send(number, { size = size + index * 7 % ((spread or 0) + 1) })
    end
  end

  --- Sends `count` Sends of `size` bytes in one TCP write. Every second Send has a Solicited Event.
  --- `count * size` is at most 65,536, so that target and tester cannot wait for each other.
  function self:batch(number, count, size)
    local c, fpdus = connection(number), nil
    settle(c)
    c.is_batch = count > MAX_SENDS
    for index = 1, count do
      local payload = next_payload(size)
      local fpdu = mpa.fpdu { ulpdu = rdmap.send { payload = payload, msn = c.msn, opcode = index % 2 == 0 and 5 or nil } }
      fpdus = fpdus and fpdus .. fpdu or fpdu
      expect_echo(c, payload)
    end
    c.conn:send(fpdus)
  end

  --- Sends the first half of an FPDU with a Send of `size` bytes. The next step on the connection
  --- sends the second half. If the target requests markers, sends the complete FPDU.
  function self:half(number, size)
    local c = connection(number)
    send_segments(c, math.maxinteger)
    make_room(c, size)
    local payload = next_payload(size)
    local fpdu = mpa.fpdu { ulpdu = rdmap.send { payload = payload, msn = c.msn } }
    if c.has_markers then
      c.conn:send(fpdu)
    else
      local bytes = fpdu:octets()
      c.conn:send(bytes:sub(1, #bytes // 2))
      c.rest = bytes:sub(#bytes // 2 + 1)
    end
    expect_echo(c, payload)
  end

  --- Sends a Send whose echo fills `count` segments of the target, and `more` bytes. If this exceeds
  --- `most` bytes, sends a Send of `most` bytes.
  function self:fill(number, count, more, most)
    local c = connection(number)
    if not c.segment then
      self:send(number, { size = math.min(most, 4000), segment = 1000 })
      settle(c)
    end
    local size = math.max(0, math.min(most, (c.segment or 1000) * count + more))
    self:send(number, { size = size, segment = math.max(1000, size // 300) })
  end

  --- Sends a complete Send. The fields are those of `message`.
  function self:send(number, fields)
    self:message(number, fields)
    send_segments(connection(number), math.maxinteger)
  end

  --- Sends a short Send. The step `use_others` waits for its echo.
  function self:exchange(number) self:send(number, { size = 100 }) end

  --- Sends a Read Request of 0 bytes if `is_read` is set, else a Write of 0 bytes. It may come
  --- between two segments of a Send. Its STags name no buffer, because the target must not check
  --- them (RFC 5040 section 5.2.1, RFC 5041 section 5.2).
  function self:empty(number, is_read)
    local c = connection(number)
    complete_half(c)
    if c.conn:position() == 0 then
      -- The target may take an empty first message as ready-to-receive message.
      if c.message then send_segments(c, 1) else self:send(number, { size = 4 }) end
    end
    if not is_read then
      c.conn:send(mpa.fpdu { ulpdu = rdmap.write { stag = 0x5eed0004, tagged_offset = 1 } })
      return
    end
    has_reads = true
    -- Without the enhanced set-up, the tester does not know how many Reads the target permits.
    receive_responses(c)
    if c.ird == 0 then return end
    c.conn:send(mpa.fpdu {
      ulpdu = rdmap.read_request { sink_stag = shared.STAG, sink_to = 0, rdmardsz = 0, src_stag = 0, src_to = 1, msn = c.read_msn },
    })
    c.read_msn, c.reads = c.read_msn + 1, c.reads + 1
  end

  --- Sends a Send such that, in the stream of the target (`by_target`) or of the tester, the next
  --- FPDU begins `at` bytes before a marker. Does nothing if that stream has no markers.
  function self:align(number, at, by_target)
    local c = connection(number)
    settle(c)
    local position = c.conn:marked_position(by_target)
    if not position then return end
    -- The echo has the same size as the Send, and 4 more bytes are the CRC.
    self:send(number, { size = shared.filling(position, at // 4 * 4, SEND_HEADERS + 4) })
    settle(c)
  end

  --- Sends a Send of `size` bytes, or of one more byte, in an FPDU with PAD. Each byte of PAD is
  --- `value`. RFC 5044 section 4.1 requires zero of the sender, but the target must ignore it.
  function self:pad(number, size, value)
    local c = connection(number)
    settle(c)
    -- An FPDU with a multiple of 4 bytes of payload has no PAD.
    if size % 4 == 0 then size = size + 1 end
    local payload, pad = next_payload(size), string.char(value):rep(-size % 4)
    c.conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = payload, msn = c.msn }, pad = pad }, { deviates = true })
    expect_echo(c, payload)
    receive(c, PAD)
  end

  --- Sends a Send of `size` bytes and, after `pause` seconds, a FIN. The half-closed target must
  --- still deliver the Sends, so it owes the echoes. After a flood, sends only the FIN.
  function self:fin(number, size, pause)
    local c = connection(number)
    send_segments(c, math.maxinteger)
    if not c.is_flooded then
      make_room(c, size)
      prepare(c, { size = size })
      send_segments(c, math.maxinteger)
    end
    if pause > 0 then t:pause(pause) end
    c.conn:finish()
    forget(number)
    while #c.waiting > 0 do
      local within = time_limit(c)
      local event, fpdu = c.conn:next { within = within }
      -- RFC 5041 section 6.2.1 recommends that the target continues to send. But the verbs draft
      -- (draft-hilland-rddp-verbs section 6.2.2.4) requires a Terminate, which is also correct.
      if event == "fpdu" and fpdu.opcode == 7 then break end
      local what = ("the echo of a Send of %d bytes, or a Terminate"):format(#c.waiting[1])
      check(event == "fpdu" and take(c, fpdu), DELIVERED, what, describe(event, fpdu, within), is_missing(event))
    end
    c.conn:close()
  end

  local finish = self.finish

  --- Waits for all answers and closes all connections. Each session ends with this step.
  function self:finish(shown)
    self:close_all()
    if has_reads and not has_response then
      -- Each connection with an empty Read ended before the Response arrived.
      self:empty(1, true)
      self:answers(1)
    end
    finish(self, shown)
  end

  return self
end
