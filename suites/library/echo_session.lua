-- Sessions with a target that echoes Sends.

local shared = ...
local ANSWER, describe, is_missing = shared.ANSWER, shared.describe, shared.is_missing
local PLACED, DELIVERED, IN_ORDER = shared.PLACED, shared.DELIVERED, shared.IN_ORDER

--- Maximum number of unanswered Sends on a connection. The target needs a receive for each of them.
local MAX_SENDS = 8
--- Maximum number of bytes in unanswered Sends. A single Send may be longer. With more bytes,
--- target and tester could wait forever, each until the other side reads. Only a flood exceeds it.
local MAX_WAITING = 65536

--- The number of seconds after a flood in which the tester reads nothing. In this time, the target
--- fills the buffers of TCP with echoes.
local FLOOD_WAIT = 3
--- The number of seconds after which a missing answer to a flood is a failure.
local FLOOD_ANSWER = 40

--- The requirements that each session tests.
session.ECHO = { PLACED, DELIVERED, IN_ORDER }

--- A session with a target that echoes Sends.
function session.echo(t)
  local sent, check = 0, shared.checker(t)

  --- Opens a connection.
  local function open(fields)
    local conn, frame = t:start_up(shared.request_fields(fields))
    local msn = shared.get_ready(conn, frame, fields)
    if not msn then
      conn:close()
      conn, frame = t:start_up()
    end
    return {
      conn = conn, msn = msn or 1, waiting = {}, octets = 0, longest = 3000, crc = frame.crc or shared.requests_crc(t, fields),
      has_markers = frame.markers,
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

  --- Receives one echo.
  local function receive(c)
    complete_half(c)
    local want = table.remove(c.waiting, 1)
    c.octets = c.octets - #want
    local got = {}
    -- A slow target needs seconds for a Send of 1 MiB.
    local within = c.is_flooded and FLOOD_ANSWER or ANSWER + #want // 100000
    repeat
      local event, fpdu = c.conn:next { within = within }
      local is_send = event == "fpdu" and (fpdu.opcode == 3 or fpdu.opcode == 5)
      check(is_send, DELIVERED, ("the echo of a Send of %d bytes"):format(#want), describe(event, fpdu, within), is_missing(event))
      -- The monitor judges the other fields of each segment.
      got[#got + 1] = fpdu.payload
      if not fpdu.last then c.segment = c.segment or #fpdu.payload end
    until fpdu.last
    local echo = table.concat(got)
    for _, later in ipairs(c.waiting) do
      -- Short Sends may have the same bytes as later Sends.
      check(echo == want or echo ~= later, IN_ORDER, ("the echo of a Send of %d bytes"):format(#want), "the echo of a later Send")
    end
    check(echo == want, PLACED, "the bytes of the Send", octets.difference(echo, want))
  end

  --- Completes the message of a connection, and receives all echoes.
  local function settle(c)
    send_segments(c, math.maxinteger)
    while #c.waiting > 0 do
      receive(c)
    end
    c.is_flooded = false
  end

  local self, connection = shared.base(t, session.ECHO, open, settle)

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

  --- Sends `count` Sends of `size` bytes, one after the other.
  function self:burst(number, count, size)
    for _ = 1, count do
      self:send(number, { size = size })
    end
  end

  --- Sends `count` Sends of `size` bytes in one TCP write. Every second Send has a Solicited Event.
  function self:batch(number, count, size)
    local c, fpdus = connection(number), nil
    settle(c)
    for index = 1, math.min(count, MAX_SENDS) do
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

  return self
end
