-- Sessions with rping. The tester writes to the target's buffer, and reads from it. If the target
-- is rping's server, this is the buffer into which the server has read. If the target is the
-- client, this is the buffer that the client offers for the server's Read. The tester then sends no
-- go-ahead, so the client does not continue its round.

local shared = ...
local ANSWER, SEGMENT, describe, is_missing = shared.ANSWER, shared.SEGMENT, shared.describe, shared.is_missing
local PLACED, DELIVERED, ANSWERED, ANSWERED_IN_ORDER = shared.PLACED, shared.DELIVERED, shared.ANSWERED, shared.ANSWERED_IN_ORDER

--- The target's Read Request names the buffer that rping's client advertised. Each segment of the
--- target's Write has the next offset of the client's other buffer. Only rounds of rping test these
--- two requirements.
local REQUESTED, OFFSET = "RDMAP-4.4-2", "DDP-5.2-6"

--- The requirements that each session tests, and those that only rounds test.
session.RPING = { PLACED, DELIVERED, ANSWERED, ANSWERED_IN_ORDER }
session.ROUNDS = { REQUESTED, OFFSET }

--- A session with rping.
function session.rping(t)
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
    if fpdu.last then
      table.remove(c.reads, 1)
      local response = table.concat(read.got)
      check(response == read.want, PLACED, "the bytes of the buffer", octets.difference(response, read.want))
    end
  end

  --- Receives the Response to the oldest Read.
  local function receive(c)
    local read = c.reads[1]
    while c.reads[1] == read do
      local event, fpdu = c.conn:next { within = ANSWER }
      local is_response = event == "fpdu" and fpdu.opcode == 2
      check(is_response, ANSWERED, ("the Response to a Read of %d bytes"):format(#read.want), describe(event, fpdu), is_missing(event))
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

  local function settle(c)
    while #c.reads > 0 do
      receive(c)
    end
  end

  --- Opens a connection and fills the buffer.
  local function open(fields)
    local conn, op = t:operate(shared.request_fields(fields))
    local c = { conn = conn, op = op, msn = op.msn, read_msn = 1, reads = {}, crc = shared.requests_crc(t, fields), is_in_round = true }
    c.memory = session.fill_buffer(conn, op, op.length)
    return c
  end

  local self, connection = shared.base(t, session.RPING, open, settle)

  --- Returns an offset and a size that are limited to the buffer. With `align`, the part begins
  --- `at` bytes before the first tagged offset in the buffer that is a multiple of `align`.
  local function part(c, fields)
    local at = fields.at % (c.op.length + 1)
    if fields.align then
      local distance = -c.op.to & (fields.align - 1)
      if distance > 0 and distance < c.op.length then at = math.max(0, distance - fields.at) end
    end
    return at, math.min(fields.size, c.op.length - at)
  end

  --- Writes `size` bytes at offset `at` of the buffer, in segments of at most `segment` bytes.
  function self:write(number, fields)
    local c = connection(number)
    -- A Read that is not answered yet may return the bytes before or after this Write.
    settle(c)
    local at, size = part(c, fields)
    written = written + 1
    write(c, at, shared.numbered(written, size), fields.segment or SEGMENT)
  end

  --- Returns the FPDU of the next Read Request, for a part of the buffer.
  local function read_request(c, at, size)
    local stag = 0x77650000 + c.read_msn % 0x10000
    local fpdu = mpa.fpdu {
      ulpdu = rdmap.read_request {
        sink_stag = stag, sink_to = 0, rdmardsz = size, src_stag = c.op.stag, src_to = c.op.to + at, msn = c.read_msn,
      },
    }
    c.read_msn = c.read_msn + 1
    c.reads[#c.reads + 1] = { stag = stag, want = c.memory:sub(at + 1, at + size), got = {} }
    return fpdu
  end

  --- Returns the number of Reads that the target permits at a time.
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

  --- Receives a Send of the target.
  local function go_ahead(c, what)
    local event, fpdu = next_message(c)
    check(event == "fpdu" and fpdu.opcode == 3, DELIVERED, "a Send after the " .. what, describe(event, fpdu), is_missing(event))
  end

  --- The first half of rping's round: the target reads `text` from the tester.
  local function read_half(c, text, fields)
    local source = 0x7700aa0000001000
    local busy = fields.busy or 0
    advertise(c, source, 0x77670001, #text, fields.between, 0)
    local event, request = next_message(c)
    local is_request = event == "fpdu" and request.opcode == 1 and #request.payload == 28
    check(is_request, DELIVERED, "a Read Request for the advertised buffer", describe(event, request), is_missing(event))
    local stag, to, size, src_stag, src_to = string.unpack(">I4i8I4I4i8", request.payload)
    check(size == #text and src_stag == 0x77670001 and src_to == source, REQUESTED,
      ("a Read of %d bytes at TO %#x"):format(#text, source), ("a Read of %d bytes at TO %#x"):format(size, src_to))
    if busy > 0 then
      -- This Write and these Reads use bytes that the target's Read does not use.
      write(c, c.op.length - 1, "d", 1)
      c.conn:send(short_reads(c, busy))
      settle(c)
    end
    local segment = fields.segment or SEGMENT
    for at = 0, #text - 1, segment do
      local piece = text:sub(at + 1, at + segment)
      local last = at + #piece == #text and not fields.empty
      c.conn:send(mpa.fpdu { ulpdu = rdmap.write { opcode = 2, stag = stag, tagged_offset = to + at, payload = piece, last = last } })
    end
    if fields.empty then
      c.conn:send(mpa.fpdu { ulpdu = rdmap.write { opcode = 2, stag = stag, tagged_offset = to + #text } })
    end
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
      check(event == "fpdu" and fpdu.opcode == 0, DELIVERED, "a Write to the advertised buffer", describe(event, fpdu), is_missing(event))
      local is_next = fpdu.stag == 0x77670002 and (fpdu.tagged_offset == next or #fpdu.payload == 0)
      check(is_next, OFFSET, ("TO %#x"):format(next), ("TO %#x"):format(fpdu.tagged_offset))
      next = next + #fpdu.payload
      got[#got + 1] = fpdu.payload
    until fpdu.last
    local written = table.concat(got)
    check(text == nil or written == text, PLACED, "the bytes that the target read", octets.difference(written, text or ""))
    go_ahead(c, "Write")
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
    if c.is_in_round then
      write_half(c, 0, 64)
      c.is_in_round = false
    end
    local size = math.max(2, math.min(fields.size, c.op.length - 1))
    for _ = 1, count do
      rounds = rounds + 1
      -- The server of rping writes a C string, so only the last byte of the text is zero.
      local text = (("round %d "):format(rounds) .. ("0123456789abcde"):rep(size // 15 + 1)):sub(1, size - 1) .. "\0"
      read_half(c, text, fields)
      c.memory = text .. c.memory:sub(#text + 1)
      write_half(c, fields.to or 0, size, text, fields.between, fields.busy)
      settle(c)
    end
  end

  --- Sends `count` Read Requests in one TCP write, or fewer if the target does not permit `count`
  --- Reads at a time. Each Read Request is for `size` bytes at another offset of the buffer.
  function self:reads(number, count, size)
    local c = connection(number)
    settle(c)
    local fpdus
    for index = 1, math.min(count, depth(c)) do
      local at, len = part(c, { at = index * 5, size = size })
      local fpdu = read_request(c, at, len)
      fpdus = fpdus and fpdus .. fpdu or fpdu
    end
    c.conn:send(fpdus)
  end

  return self
end
