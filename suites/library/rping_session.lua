-- Sessions with rping. The tester writes to the target's buffer, and reads from it. If the target
-- is rping's server, this is the buffer into which the server has read. If the target is the
-- client, this is the buffer that the client offers for the server's Read. The tester then sends no
-- go-ahead, so the client does not continue its round.

local shared = ...
local ANSWER, SEGMENT, describe, is_missing = shared.ANSWER, shared.SEGMENT, shared.describe, shared.is_missing
local violated_by = shared.violated_by
local PLACED, DELIVERED, ANSWERED, ANSWERED_IN_ORDER = shared.PLACED, shared.DELIVERED, shared.ANSWERED, shared.ANSWERED_IN_ORDER

--- The target's Read Request names the buffer that rping's client advertised. Each segment of the
--- target's Write has the next offset of the client's other buffer. Only rounds of rping test these
--- two requirements.
local REQUESTED, OFFSET = "RDMAP-4.4-2", "DDP-5.2-6"
--- The target's Read does not complete before its Response is complete.
local EARLY = "RDMAP-5.5-21"

--- Size in bytes of the end of the target's buffer that a Read of an announced text leaves free.
--- The tester writes and reads only there while the Read is outstanding.
local FREE = 16
--- Size in bytes of the Read whose Response a fault changes. It is more than one segment.
local READ = 1500
--- The number of seconds in which a go-ahead for an incomplete Read would arrive.
local EARLY_WAIT = 0.2

--- The requirements that each session tests, those that only rounds test, and those that sessions
--- with announced texts test instead.
session.RPING = { PLACED, DELIVERED, ANSWERED, ANSWERED_IN_ORDER }
session.ROUNDS = { REQUESTED, OFFSET }
session.ANNOUNCED = { REQUESTED, OFFSET, EARLY }

--- A session with rping. `more` has requirements about Requests that the case lists (`session.lua`
--- names them).
function session.rping(t, more)
  local written, rounds, check = 0, 0, shared.checker(t)

  --- Sends a Write in segments.
  local function write(c, at, payload, segment)
    shared.write_segments(c.op.stag, c.op.to + at, payload, segment, function(fpdu) c.conn:send(fpdu) end)
    c.memory = shared.splice(c.memory, at, payload)
  end

  --- Takes a segment of the Response to the oldest Read.
  local function take_response(c, fpdu)
    local read = c.reads[1]
    for index = 2, #c.reads do
      local is_later = #fpdu.payload > 0 and fpdu.stag == c.reads[index].stag
      check(not is_later, ANSWERED_IN_ORDER, ("the Response to STag %#x"):format(read.stag), "the Response to a later Read")
    end
    -- The monitor judges the STag, TO and length of each segment.
    read.got[#read.got + 1] = fpdu.payload
    if not fpdu.last then
      c.segment = c.segment or #fpdu.payload
    else
      table.remove(c.reads, 1)
      local response = table.concat(read.got)
      check(response == read.want, PLACED, "the bytes of the buffer", octets.difference(response, read.want))
    end
  end

  --- Fails if the target sends its go-ahead before the Response to its Read is complete.
  local function check_early(c, event, fpdu)
    if c.source and event == "fpdu" and fpdu.opcode == 3 then
      check(false, EARLY, "no Send before the Read Response is complete", describe(event, fpdu))
    end
  end

  --- Receives the Response to the oldest Read.
  local function receive(c)
    local read = c.reads[1]
    while c.reads[1] == read do
      local event, fpdu = c.conn:next { within = ANSWER }
      check_early(c, event, fpdu)
      local is_response = event == "fpdu" and fpdu.opcode == 2
      local what = ("the Response to a Read of %d bytes"):format(#read.want)
      check(is_response, violated_by(event, fpdu, ANSWERED), what, describe(event, fpdu), is_missing(event))
      take_response(c, fpdu)
    end
  end

  --- Returns the next event that is not a segment of a Read Response. No rule orders the target's
  --- Responses and its other messages.
  local function next_message(c)
    while true do
      local event, fpdu = c.conn:next { within = ANSWER }
      if event ~= "fpdu" or fpdu.opcode ~= 2 or #c.reads == 0 then return event, fpdu end
      take_response(c, fpdu)
    end
  end

  --- Receives the Responses to all Reads of the tester.
  local function settle_reads(c)
    while #c.reads > 0 do
      receive(c)
    end
  end

  --- Receives a Send of the target.
  local function go_ahead(c, what)
    local event, fpdu = next_message(c)
    local is_send = event == "fpdu" and fpdu.opcode == 3
    check(is_send, violated_by(event, fpdu, DELIVERED), "a Send after the " .. what, describe(event, fpdu), is_missing(event))
  end

  --- Sends the next segments of the Response to the target's Read `source`, at most `count`.
  local function send_response(c, source, count)
    while count > 0 and not source.is_complete do
      local piece = source.text:sub(source.at + 1, source.at + source.segment)
      -- If the last segment is empty, it follows the segment with the last byte.
      local is_last = source.at + #piece == #source.text and (not source.empty or #piece == 0)
      local to = source.to + source.at
      c.conn:send(mpa.fpdu { ulpdu = rdmap.write { opcode = 2, stag = source.stag, tagged_offset = to, payload = piece, last = is_last } })
      source.at, source.is_complete, count = source.at + #piece, is_last, count - 1
    end
  end

  --- Sends the next segments of the Response to the target's outstanding Read, at most `count`.
  --- After the last segment, receives the go-ahead.
  local function respond(c, count)
    local source = c.source
    if not source then return end
    if source.at > 0 and #c.reads == 0 then
      -- Messages of other steps may have followed the last segment.
      local event, fpdu = c.conn:next { within = EARLY_WAIT }
      check_early(c, event, fpdu)
      local row = violated_by(event, fpdu, DELIVERED)
      check(event == nil, row, "no message before the Read Response is complete", describe(event, fpdu))
    end
    send_response(c, source, count)
    if source.is_complete then
      go_ahead(c, "Read")
      c.source = nil
      c.round = { to = source.sink, size = #source.text, text = source.text }
      c.memory = source.text .. c.memory:sub(#source.text + 1)
    end
  end

  local function settle(c, keeps_read)
    settle_reads(c)
    if not keeps_read then respond(c, math.maxinteger) end
  end

  --- Opens a connection and fills the buffer. `options` are those of `t:operate`, which performs
  --- the first half of a round with 64 bytes.
  local function open(fields, options)
    local conn, op = t:operate(shared.request_fields(fields), options)
    local c = { conn = conn, op = op, msn = op.msn, read_msn = 1, reads = {}, crc = shared.requests_crc(t, fields), round = { to = 0, size = 64 } }
    c.memory = session.fill_buffer(conn, op, op.length)
    return c
  end

  --- The answers that the target owes. `owed.prepare` is below. 2 bytes of length and the header
  --- precede the payload of a Response.
  local owed = { requirement = ANSWERED }

  function owed.answer(c)
    local read = c.reads[1]
    return read and { want = read.want, got = read.got, headers = 16 }
  end

  --- While the target's own Read is outstanding, the target sends no other message.
  function owed.take(c, fpdu)
    check_early(c, "fpdu", fpdu)
    if fpdu.opcode ~= 2 or #c.reads == 0 then return false end
    take_response(c, fpdu)
    return true
  end

  function owed.within() return ANSWER end

  local self, connection = shared.base(t, session.RPING, open, settle, owed, more)

  --- Returns an offset and a size that are limited to the buffer. While a Read of the target is
  --- outstanding, they are limited to the bytes that this Read does not use. With `align`, the part
  --- begins `at` bytes before the first tagged offset in the buffer that is a multiple of `align`.
  local function part(c, fields)
    local first = c.source and #c.source.text or 0
    local at = first + fields.at % (c.op.length - first + 1)
    if fields.align then
      local distance = -c.op.to & (fields.align - 1)
      if distance > 0 and distance < c.op.length then at = math.max(first, distance - fields.at) end
    end
    return at, math.min(fields.size, c.op.length - at)
  end

  --- Returns the FPDU of the next Read Request, for a part of the buffer.
  local function read_request(c, at, size)
    local stag = shared.nth_stag(c.read_msn % 0x10000)
    local fpdu = mpa.fpdu {
      ulpdu = rdmap.read_request {
        sink_stag = stag, sink_to = 0, rdmardsz = size, src_stag = c.op.stag, src_to = c.op.to + at, msn = c.read_msn,
      },
    }
    c.read_msn = c.read_msn + 1
    c.reads[#c.reads + 1] = { stag = stag, want = c.memory:sub(at + 1, at + size), got = {} }
    return fpdu
  end

  --- Returns the number of Reads that the target permits at a time. The enhanced set-up negotiates
  --- this number.
  local function depth(c) return math.max(1, math.min(c.op.ird or 1, 16)) end

  --- Reads `size` bytes at offset `at` of the buffer. The Response may arrive later.
  function self:read(number, fields)
    local c = connection(number)
    local at, size = part(c, fields)
    while #c.reads >= depth(c) do
      receive(c)
    end
    c.conn:send(read_request(c, at, size))
  end

  --- Returns `count` Read Requests for one byte at the end of the buffer, or fewer if the target does
  --- not permit `count` Reads at a time. Returns an empty string if `count` is 0.
  local function short_reads(c, count)
    local fpdus = ""
    for _ = 1, math.min(count, depth(c) - #c.reads) do
      fpdus = fpdus .. read_request(c, c.op.length - 1, 1)
    end
    return fpdus
  end

  --- Sends one of rping's Sends, which describes a buffer of the tester. With `between`, a Write to
  --- the end of the target's buffer comes between the two segments of the Send. `busy` Read Requests
  --- precede the Send in the same TCP write.
  local function advertise(c, to, stag, size, between, busy)
    local payload = string.pack(">i8I4I4", to, stag, size)
    local function segment(from, till, last)
      return mpa.fpdu { ulpdu = rdmap.send { payload = payload:sub(from + 1, till), msn = c.msn, mo = from, last = last } }
    end
    if between then
      c.conn:send(segment(0, 8, false))
      write(c, c.op.length - 1, "b", 1)
      c.conn:send(segment(8, 16, true))
    else
      c.conn:send(short_reads(c, busy) .. segment(0, 16, true))
    end
    c.msn = (c.msn + 1) & 0xffffffff
  end

  --- Announces `text` at the offset `source` of a buffer of the tester, and receives the target's
  --- Read Request for it. `fields` are those of `rounds`. Returns the Read, which is unanswered.
  local function announce(c, text, source, fields)
    advertise(c, source, 0x77670001, #text, fields.between, 0)
    local event, request = next_message(c)
    local is_request = event == "fpdu" and request.opcode == 1 and #request.payload == 28
    local row = violated_by(event, request, DELIVERED)
    check(is_request, row, "a Read Request for the advertised buffer", describe(event, request), is_missing(event))
    local stag, to, size, src_stag, src_to = string.unpack(">I4i8I4I4i8", request.payload)
    check(size == #text and src_stag == 0x77670001 and src_to == source, REQUESTED,
      ("a Read of %d bytes at TO %#x"):format(#text, source), ("a Read of %d bytes at TO %#x"):format(size, src_to))
    return { text = text, stag = stag, to = to, at = 0, segment = fields.segment or SEGMENT, empty = fields.empty }
  end

  --- The first half of rping's round: the target reads `text` from the tester.
  local function read_half(c, text, fields)
    local busy = fields.busy or 0
    local source = announce(c, text, 0x7700aa0000001000, fields)
    if busy > 0 then
      -- This Write and these Reads use bytes that the target's Read does not use.
      write(c, c.op.length - 1, "d", 1)
      c.conn:send(short_reads(c, busy))
      settle_reads(c)
    end
    send_response(c, source, math.maxinteger)
    go_ahead(c, "Read")
  end

  --- The second half: the target writes the text to the offset `to` of a buffer. If `text` is
  --- missing, any bytes may arrive.
  local function write_half(c, to, size, text, between, busy)
    advertise(c, to, 0x77670002, size, between, busy or 0)
    local got, next = {}, to
    local event, fpdu
    repeat
      event, fpdu = next_message(c)
      local is_write, row = event == "fpdu" and fpdu.opcode == 0, violated_by(event, fpdu, DELIVERED)
      check(is_write, row, "a Write to the advertised buffer", describe(event, fpdu), is_missing(event))
      local is_next = fpdu.stag == 0x77670002 and (fpdu.tagged_offset == next or #fpdu.payload == 0)
      check(is_next, OFFSET, ("TO %#x"):format(next), ("TO %#x"):format(fpdu.tagged_offset))
      next = next + #fpdu.payload
      got[#got + 1] = fpdu.payload
    until fpdu.last
    local written = table.concat(got)
    check(text == nil or written == text, PLACED, "the bytes that the target read", octets.difference(written, text or ""))
    go_ahead(c, "Write")
  end

  --- Performs the second half of a round whose first half is over.
  local function end_round(c)
    local round = c.round
    if not round then return end
    c.round = nil
    write_half(c, round.to, round.size, round.text)
  end

  --- Performs the second half of a round with an announced text that the target has read. Until
  --- then, this text must stay in the target's buffer.
  local function end_announced(c)
    if c.round and c.round.text then end_round(c) end
  end

  --- Returns a new text of `size` bytes. The server of rping writes a C string, so only the last
  --- byte of the text is zero.
  local function next_text(size)
    rounds = rounds + 1
    return (("round %d "):format(rounds) .. ("0123456789abcde"):rep(size // 15 + 1)):sub(1, size - 1) .. "\0"
  end

  --- Returns whether Reads of the tester are unanswered. The server of rping expects no Send during
  --- its own Read, so a fault with a Send follows this Read. It also follows the Write of the text,
  --- because a long Write has many segments. A fault in the Response to the target's own Read
  --- follows all answers, so that no other message changes or reads the sink meanwhile.
  function owed.prepare(c, fault)
    if fault.begins_send or fault.reads then
      respond(c, math.maxinteger)
      end_announced(c)
    end
    if fault.reads then
      if t:is_initiator() then t:unimplemented("The client of rping sends no Read Request.") end
      settle_reads(c)
      end_round(c)
      c.sink_size = math.max(2, math.min(READ, c.op.length - FREE))
      c.source = announce(c, next_text(c.sink_size), 0, {})
    end
    return #c.reads > 0
  end

  --- The bytes after the Read may be old or new, because the target may ignore surplus payload.
  function owed.check_sink(c)
    c.conn:send(read_request(c, 0, c.sink_size))
    settle_reads(c)
  end

  --- Writes `size` bytes at offset `at` of the buffer, in segments of at most `segment` bytes.
  function self:write(number, fields)
    local c = connection(number)
    -- A Read that is not answered yet may return the bytes before or after this Write.
    settle_reads(c)
    end_announced(c)
    local at, size = part(c, fields)
    written = written + 1
    write(c, at, shared.numbered(written, size), fields.segment or SEGMENT)
  end

  --- Performs `count` rounds with rping's server. In each round, the target reads `size` bytes from
  --- the tester, and writes the same bytes to the offset `to` of another buffer of the tester. The
  --- tester answers a Read in segments of at most `segment` bytes. With `between`, a Write comes
  --- between two segments of each Send. With `empty`, the last segment of each Read Response is
  --- empty. If `busy` is not 0, the tester writes one byte and sends `busy` Read Requests while the
  --- target's Read is outstanding, and sends `busy` Read Requests before the request for the Write.
  function self:rounds(number, count, fields)
    local c = connection(number)
    settle(c)
    end_round(c)
    local size = math.max(2, math.min(fields.size, c.op.length - 1))
    for _ = 1, count do
      local text = next_text(size)
      read_half(c, text, fields)
      c.memory = text .. c.memory:sub(#text + 1)
      write_half(c, fields.to or 0, size, text, fields.between, fields.busy)
      settle(c)
    end
  end

  --- Announces a text of `size` bytes at the offset `to` of a buffer of the tester, and receives
  --- the target's Read Request for it. First completes the previous round of the connection. The
  --- Read stays unanswered until `respond`, so other steps may follow while it is outstanding. The
  --- Response has segments of at most `segment` bytes. With `empty`, its last segment is empty.
  function self:announce(number, fields)
    local c = connection(number)
    settle(c)
    end_round(c)
    local sink = fields.to or 0
    c.source = announce(c, next_text(math.max(2, math.min(fields.size, c.op.length - FREE))), sink, fields)
    c.source.sink = sink
    check(true, EARLY, "no Send before the Read Response is complete", "a Read Request")
  end

  --- Sends the next `count` segments of the Response to the announced text, or all segments if
  --- `count` is missing. After the last segment, the target sends its go-ahead. Does nothing if no
  --- Read of the target is outstanding.
  function self:respond(number, count) respond(connection(number), count or math.maxinteger) end

  --- Sends `count` Read Requests, each for `size` bytes at another offset of the buffer. The number
  --- of outstanding Reads is the largest number that the target permits: the first ones are in one
  --- TCP write, and after each Response, the tester sends the next one.
  function self:window(number, count, size)
    local c, sent = connection(number), 0
    while sent < count do
      local fpdus
      while sent < count and #c.reads < depth(c) do
        sent = sent + 1
        local at, len = part(c, { at = sent * 5, size = size })
        local fpdu = read_request(c, at, len)
        fpdus = fpdus and fpdus .. fpdu or fpdu
      end
      if fpdus then c.conn:send(fpdus) end
      receive(c)
    end
  end

  --- Reads `count` times as many bytes as a segment of the target holds, and `more` bytes, but at
  --- most `most` bytes.
  function self:fill(number, count, more, most)
    local c = connection(number)
    if not c.segment then
      self:read(number, { at = 0, size = most })
      settle_reads(c)
    end
    local size = math.max(0, math.min(most, (c.segment or SEGMENT) * count + more))
    self:read(number, { at = 0, size = size })
  end

  --- Reads a few bytes of the buffer. The step `use_others` waits for the Response.
  function self:exchange(number) self:read(number, { at = 0, size = 40 }) end

  --- Sends `count` Read Requests in one TCP write, or fewer if the target does not permit `count`
  --- Reads at a time. Each Read Request is for `size` bytes at another offset of the buffer.
  function self:reads(number, count, size)
    local c = connection(number)
    settle_reads(c)
    local fpdus
    for index = 1, math.min(count, depth(c)) do
      local at, len = part(c, { at = index * 5, size = size })
      local fpdu = read_request(c, at, len)
      fpdus = fpdus and fpdus .. fpdu or fpdu
    end
    c.conn:send(fpdus)
  end

  --- Reads from the buffer if `by_target` is set, else writes to it. In the stream of the target or
  --- of the tester, the next FPDU then begins `at` bytes before a marker. Does nothing if that
  --- stream has no markers.
  function self:align(number, at, by_target)
    local c = connection(number)
    settle(c)
    end_announced(c)
    -- With a small buffer, one operation is not enough.
    local most = c.op.length // 4 * 4
    for _ = 1, 16 do
      local position = c.conn:marked_position(by_target)
      if not position then return end
      -- Of the FPDU, 16 bytes are length and header, and 4 bytes are the CRC.
      local size = shared.filling(position, at // 4 * 4, 20)
      if by_target then
        self:read(number, { at = 0, size = math.min(size, most) })
      else
        self:write(number, { at = 0, size = math.min(size, most) })
      end
      settle(c)
      if size <= most then return end
    end
  end

  return self
end
