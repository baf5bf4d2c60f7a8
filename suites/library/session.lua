-- The Lua module `session`: legal traffic on several connections at once, with the service of the
-- target. `weft test --explore` selects the steps of a session at random. If a session fails, weft
-- writes it as a case that calls these functions.
--
-- Each step is legal at any place of a session, so a session stays legal if steps are removed. A
-- step on a connection that does not exist opens the connection first.

session = {}

--- The number of seconds after which a missing answer is a failure.
local ANSWER = 10
--- The number of seconds in which a message that must not be delivered would be delivered.
local SILENCE = 2
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

--- The tester joins FPDUs, and sends them when they have this number of bytes. The bytes that a
--- script sends at once have at most 1 MiB.
local MAX_JOINED = 262144
--- Payload is placed into the buffer of the ULP.
local PLACED = "DDP-5.2-4"
--- Sends are delivered, in the order in which they were sent.
local DELIVERED, IN_ORDER = "RDMAP-5.3-5", "DDP-5.3-6"
--- Each Read Request is answered, and the answers have the order of the Read Requests.
local ANSWERED, ANSWERED_IN_ORDER = "RDMAP-5.2.1-18", "RDMAP-5.2.1-14"

--- The target's Read Request names the buffer that rping's client advertised. Each segment of the
--- target's Write has the next offset of the client's other buffer. Only rounds of rping test these
--- two requirements.
local REQUESTED, OFFSET = "RDMAP-4.4-2", "DDP-5.2-6"

--- The requirements that each session of a service tests.
session.ECHO = { PLACED, DELIVERED, IN_ORDER }
session.ROUNDS = { REQUESTED, OFFSET }
session.RPING = { PLACED, DELIVERED, ANSWERED, ANSWERED_IN_ORDER }

--- Returns the FPDU with one wrong byte: at offset `octet` if it is set, else in the CRC field.
local function damaged(fpdu, octet)
  return fpdu:flip(octet or #fpdu - 1)
end

--- Describes the next event on a connection. `seconds` is the time limit of the wait.
local function describe(event, fpdu, seconds)
  if event == nil then return ("nothing for %d s"):format(seconds or ANSWER) end
  if event ~= "fpdu" then return event == "close" and "a close" or event end
  if fpdu.opcode == 7 then return ("Terminate %02x %02x"):format(fpdu.payload:byte(1, 2)) end
  return ("an FPDU with opcode %d and %d bytes of payload"):format(fpdu.opcode, #fpdu.payload)
end

--- Returns whether the answer is missing: nothing arrived, or the target closed the connection. A
--- Terminate, or another message, is a wrong answer.
local function is_missing(event) return event ~= "fpdu" end

--- Returns an FPDU with a Send.
local function a_send(c, size, changes)
  local fields = { payload = octets.counted(size), msn = c.msn }
  for name, value in pairs(changes or {}) do
    fields[name] = value
  end
  return mpa.fpdu { ulpdu = rdmap.send(fields) }
end

--- Returns an FPDU with a Write of `size` bytes at offset `at` of rping's buffer.
local function a_write(c, size, at)
  return mpa.fpdu { ulpdu = rdmap.write { stag = c.op.stag, tagged_offset = c.op.to + at, payload = ("w"):rep(size) } }
end

--- Returns an FPDU with a Read Request for `size` bytes at offset `at` of rping's buffer.
local function a_read(c, size, at)
  return mpa.fpdu {
    ulpdu = rdmap.read_request {
      sink_stag = 0x77650000, sink_to = 0, rdmardsz = size, src_stag = c.op.stag, src_to = c.op.to + at, msn = c.read_msn,
    },
  }
end

--- Returns a part of a Send with Invalidate, from offset `at`. The Send is a message of rping, and
--- names the STag of rping's buffer.
local function an_invalidation(c, at, octets, last)
  local message = string.pack(">I8I4I4", 0x2000, 0x77656602, 64)
  return mpa.fpdu {
    ulpdu = rdmap.send {
      payload = message:sub(at + 1, at + octets), msn = c.msn, mo = at, last = last, opcode = 4, invalidate_stag = c.op.stag,
    },
  }
end

local CRC = "MPA-4.4-19"
--- After its Terminate, the target sends no message.
local ENDED = "RDMAP-5.4-12"

--- The illegal FPDUs, by name. Each has the requirement that the target violates if it accepts the
--- FPDU. The target has to end the connection, except after a fault with `silent`.
--- `build` returns the bytes for a connection. Faults with the requirement `CRC` need a connection
--- with CRCs. `before` sends correct FPDUs, and checks their answer. `answers` is the number of
--- messages that the target may send before it rejects the FPDU. After a fault with `silent`, the
--- target may wait for missing bytes, but must not deliver the message.
local FAULTS = {
  ["wrong-crc"] = { requirement = CRC, build = function(c) return damaged(a_send(c, 40)) end },
  ["wrong-crc-empty"] = { requirement = CRC, build = function(c) return damaged(a_send(c, 0)) end },
  ["wrong-crc-long"] = { requirement = CRC, build = function(c) return damaged(a_send(c, c.longest), 1000) end },
  ["wrong-crc-header"] = { requirement = CRC, build = function(c) return damaged(a_send(c, 40), 9) end },
  ["wrong-crc-second"] = {
    requirement = CRC,
    answers = 1,
    build = function(c) return a_send(c, 24) .. damaged(a_send(c, 40, { msn = (c.msn + 1) & 0xffffffff })) end,
  },
  ["wrong-crc-large"] = { requirement = CRC, build = function(c) return damaged(a_send(c, 20000), 19000) end },
  ["wrong-crc-late"] = { requirement = CRC, late = true, build = function(c) return damaged(a_send(c, 40)) end },
  ["wrong-crc-write"] = { requirement = CRC, build = function(c) return damaged(a_write(c, 32, 0)) end },
  ["wrong-crc-read"] = { requirement = CRC, build = function(c) return damaged(a_read(c, 32, 0)) end },
  ["wrong-queue"] = { requirement = "DDP-7.1-1", build = function(c) return a_send(c, 4, { qn = 77 }) end },
  ["used-msn"] = { requirement = "DDP-7.1-9", build = function(c) return a_send(c, 4, { msn = (c.msn - 1) & 0xffffffff }) end },
  ["gap"] = {
    requirement = "DDP-5.4-3",
    silent = true,
    build = function(c) return a_send(c, 8, { last = false }) .. a_send(c, 8, { mo = 16 }) end,
  },
  -- A Send with Invalidate invalidates the STag when it is delivered, which is after its last
  -- segment.
  ["invalidated"] = {
    requirement = "RDMAP-5.3-8",
    answers = 3,
    before = function(t, c)
      c.conn:send(an_invalidation(c, 0, 8, false) .. a_read(c, 8, 0))
      local event, fpdu = c.conn:next { within = ANSWER }
      t:check(event == "fpdu" and fpdu.opcode == 2, {
        requirement = ANSWERED,
        expected = "a Read Response, because the Send with Invalidate is not complete",
        actual = describe(event, fpdu),
        missing = event == nil,
      })
    end,
    build = function(c) return an_invalidation(c, 8, 8, true) .. a_write(c, 8, 0) end,
  },
  ["reserved-opcode"] = { requirement = "RDMAP-7.2-2", build = function(c) return a_send(c, 4, { opcode = 12 }) end },
  ["unknown-stag"] = {
    requirement = "DDP-7.1-10",
    build = function() return mpa.fpdu { ulpdu = rdmap.write { stag = 0x5eed0001, tagged_offset = 0, payload = "weft" } } end,
  },
  ["write-beyond"] = { requirement = "DDP-7.1-13", build = function(c) return a_write(c, 8, c.op.length - 4) end },
  ["write-far"] = { requirement = "DDP-7.1-13", build = function(c) return a_write(c, 8, 1 << 40) end },
  -- The STag of a connection that has ended. Some targets use it again for the next connection.
  ["closed-stag"] = {
    requirement = "DDP-7.1-10",
    build = function(c)
      local buffer = c.closed and c.closed.stag ~= c.op.stag and c.closed or { stag = 0x5eed0002, to = 0 }
      return mpa.fpdu { ulpdu = rdmap.write { stag = buffer.stag, tagged_offset = buffer.to, payload = "weft" } }
    end,
  },
  ["read-beyond"] = { requirement = "RDMAP-7.2-18", build = function(c) return a_read(c, 8, c.op.length - 4) end },
}

--- Returns requirements for the field `requirements` of a case: those in `list`, and those of the
--- further arguments. Each further argument is the name of a fault or the id of a requirement.
function session.requirements(list, ...)
  local all = { list }
  for _, name in ipairs { ... } do
    all[#all + 1] = FAULTS[name] and FAULTS[name].requirement or name
    all[#all + 1] = FAULTS[name] and not FAULTS[name].silent and ENDED or nil
  end
  return all
end

--- Returns the numbers from `first` to `last`.
function session.numbers(first, last)
  local list = {}
  for number = first, last do list[#list + 1] = number end
  return list
end

--- Returns whether the target serves a second connection at the same time. Some services serve one
--- connection at a time.
function session.serves_two(t)
  local one, two = t:operate(), t:connect()
  two:send(t:request())
  local event = two:next { within = 2 }
  one:reset()
  two:reset()
  return event == "reply"
end

--- Returns a session with the functions that the sessions of all services have. Also returns a
--- function that finds or opens a connection by its number. `open(fields)` opens a connection.
--- `settle(c)` waits for all answers on the connection `c`.
local function base(t, requirements, open, settle)
  -- The target works before the session. If a later exchange fails, the session is the cause.
  t:good_exchange()

  local self, opened = {}, {}
  -- The buffer of the last connection that was closed.
  local closed

  --- Returns the connection with this number, and opens it if necessary.
  local function connection(number, fields)
    if not opened[number] then
      opened[number] = open(fields or {})
      opened[number].closed = closed
    end
    return opened[number]
  end

  --- Opens a connection with these fields of the MPA Request. Does nothing if the connection is
  --- open.
  function self:open(number, fields) connection(number, fields) end

  --- Waits for all answers on a connection.
  function self:answers(number) settle(connection(number)) end

  --- Waits.
  function self:pause(seconds) t:pause(seconds) end

  --- Closes a connection after all answers.
  function self:close(number)
    local c = connection(number)
    settle(c)
    c.conn:close()
    closed = c.op
    opened[number] = nil
  end

  --- Opens `count` connections, one after the other, whose Requests the target must refuse.
  function self:refused(count)
    for _ = 1, count do
      local conn = t:connect()
      conn:send(t:request():flip(3))
      conn:close()
    end
    t:liveness()
  end

  --- Resets a connection, even if answers are missing.
  function self:reset(number)
    connection(number).conn:reset()
    opened[number] = nil
  end

  --- Sends an illegal FPDU after all answers, and expects that the target ends the connection.
  function self:fault(number, name)
    settle(connection(number))
    self:fault_now(number, name)
  end

  --- Like `fault`, but does not wait for answers. The tester's last message may be incomplete.
  function self:fault_now(number, name)
    local c, fault = connection(number), FAULTS[name]
    opened[number] = nil
    local is_crc = fault.requirement == CRC
    if is_crc and not c.crc then
      t:unimplemented("A wrong CRC needs a connection with CRCs.")
    end
    if fault.before then fault.before(t, c) end
    local illegal = fault.build(c)
    if fault.silent then
      c.conn:send(illegal)
      local event, fpdu = c.conn:next { within = SILENCE }
      t:check(event ~= "fpdu" or fpdu.opcode == 7, {
        requirement = fault.requirement, expected = "no delivery", actual = describe(event, fpdu, SILENCE),
      })
      c.conn:reset()
      return
    end
    if fault.late then
      -- The second half of the CRC field arrives later.
      c.conn:send(illegal, { cuts = { #illegal - 2 }, pause = 0.1 })
    elseif c.op then
      c.conn:send(illegal)
    else
      -- The target must not answer a correct Send after an illegal one.
      c.conn:send(illegal .. a_send(c, 12))
    end
    local event, fpdu = c.conn:next { within = ANSWER }
    -- The target may answer the correct FPDUs before the illegal FPDU.
    for _ = 1, fault.answers or 0 do
      if event ~= "fpdu" or fpdu.opcode == 7 then break end
      event, fpdu = c.conn:next { within = ANSWER }
    end
    local is_terminate = event == "fpdu" and fpdu.opcode == 7
    if is_terminate and is_crc then
      -- An error of another layer shows that MPA passed the ULPDU on. Some targets swap the two
      -- halves of the first byte.
      local first, code = fpdu.payload:byte(1, 2)
      is_terminate = first == 0x20 or code == 2 and (first == 2 or first >> 4 == 2)
    end
    local expected = is_crc and "a close, or a Terminate with an error of MPA" or "a close, or a Terminate"
    t:check(event == "close" or is_terminate, { requirement = fault.requirement, expected = expected, actual = describe(event, fpdu) })
    if event == "fpdu" then
      event, fpdu = c.conn:next { within = ANSWER }
      t:check(event ~= "fpdu", { requirement = ENDED, expected = "no message after the Terminate", actual = describe(event, fpdu) })
      t:check(event == "close", { requirement = fault.requirement, expected = "a close after the Terminate", actual = describe(event, fpdu) })
    else
      t:check(true, { requirement = ENDED, expected = "no message after the end", actual = "a close" })
    end
    c.conn:reset()
  end

  --- Waits for all answers and closes all connections.
  function self:close_all()
    for number = 1, 1000 do
      if opened[number] then
        self:close(number)
      end
    end
  end

  --- Waits for all answers and closes all connections. Each session ends with this step. `shown`
  --- has the requirements that the monitor judges in the session.
  function self:finish(shown)
    self:close_all()
    t:check(true, { requirement = { requirements, shown or {} }, expected = "the answers of all connections", actual = "these answers" })
  end

  return self, connection
end

--- Returns whether the tester's Request has C=1. If it has, the connection has CRCs, whatever C of
--- the Reply is.
local function requests_crc(t, fields) return t:request { crc = fields.crc }:octets():byte(17) & 0x40 ~= 0 end

--- Returns the fields of the tester's Request. An enhanced Request permits 16 Reads at a time in
--- each direction.
local function request_fields(fields)
  local depth = fields.enhanced and 16 or nil
  return {
    crc = fields.crc, markers = fields.markers, enhanced = fields.enhanced, revision = fields.enhanced and 2 or nil, ird = depth,
    ord = depth, private_data = fields.private and octets.counted(fields.private),
  }
end

--- A session with a target that echoes Sends.
function session.echo(t)
  local sent = 0

  --- Fails the case if `ok` is false. `missing` is true if the reason is a missing answer.
  local function check(ok, requirement, expected, actual, missing)
    t:check(ok, { requirement = requirement, expected = expected, actual = actual, missing = missing })
  end

  --- Opens a connection.
  local function open(fields)
    local conn, frame = t:start_up(request_fields(fields))
    return { conn = conn, msn = 1, waiting = {}, octets = 0, longest = 3000, crc = frame.crc or requests_crc(t, fields) }
  end

  --- Sends the next segments of a connection's message, at most `count`. TCP may deliver their
  --- FPDUs at once.
  local function send_segments(c, count)
    local m, fpdus = c.message, nil
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
      c.waiting[#c.waiting + 1] = m.payload
      c.octets = c.octets + #m.payload
      c.msn, c.message = (c.msn + 1) & 0xffffffff, nil
      return
    end
    while m and count > 0 do
      local piece = m.payload:sub(m.at + 1, m.at + m.segment)
      -- If the last segment is empty, it follows the segment with the last byte.
      local is_empty = m.empty and #piece == 0
      local last = m.at + #piece == #m.payload and (not m.empty or is_empty)
      local ulpdu = rdmap.send { payload = piece, msn = c.msn, mo = m.at, last = last, opcode = m.solicited and 5 or nil }
      local fpdu = mpa.fpdu { ulpdu = ulpdu }
      fpdus = fpdus and fpdus .. fpdu or fpdu
      if #fpdus >= MAX_JOINED then
        c.conn:send(fpdus)
        fpdus = nil
      end
      m.at, count = m.at + #piece, count - 1
      if last then
        c.waiting[#c.waiting + 1] = m.payload
        c.octets = c.octets + #m.payload
        c.msn, c.message, m = (c.msn + 1) & 0xffffffff, nil, nil
      end
    end
    if fpdus then
      -- During a pause after the first bytes, a timer of the target may expire inside an FPDU.
      local stalled = stall and stall > 0 and { cuts = { math.min(stall, #fpdus - 1) }, pause = 0.7 } or nil
      c.conn:send(fpdus, every and { every = every } or stalled)
    end
  end

  --- Receives one echo.
  local function receive(c)
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

  local self, connection = base(t, session.ECHO, open, settle)

  --- Prepares the next Send of a connection, and sends no segment of it.
  local function prepare(c, fields)
    sent = sent + 1
    -- The number of the Send distinguishes Sends of the same size.
    local payload = (string.pack(">I4", sent) .. octets.counted(fields.size)):sub(1, fields.size)
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
    while #c.waiting >= MAX_SENDS or c.octets > 0 and c.octets + fields.size > MAX_WAITING do
      receive(c)
    end
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

  --- Sends a complete Send. The fields are those of `message`.
  function self:send(number, fields)
    self:message(number, fields)
    send_segments(connection(number), math.maxinteger)
  end

  return self
end

--- A session with rping's server. The tester writes to the server's buffer, and reads from it.
function session.rping(t)
  local written, rounds = 0, 0

  --- Fails the case if `ok` is false. `missing` is true if the reason is a missing answer.
  local function check(ok, requirement, expected, actual, missing)
    t:check(ok, { requirement = requirement, expected = expected, actual = actual, missing = missing })
  end

  --- Sends a Write in segments.
  local function write(c, at, payload, segment)
    for from = 0, math.max(#payload - 1, 0), segment do
      local piece = payload:sub(from + 1, from + segment)
      local ulpdu = rdmap.write {
        stag = c.op.stag, tagged_offset = c.op.to + at + from, payload = piece, last = from + #piece == #payload,
      }
      c.conn:send(mpa.fpdu { ulpdu = ulpdu })
    end
    c.memory = c.memory:sub(1, at) .. payload .. c.memory:sub(at + #payload + 1)
  end

  --- Receives the Response to the oldest Read.
  local function receive(c)
    local read = table.remove(c.reads, 1)
    local got = {}
    repeat
      local event, fpdu = c.conn:next { within = ANSWER }
      local is_response = event == "fpdu" and fpdu.opcode == 2
      check(is_response, ANSWERED, ("the Response to a Read of %d bytes"):format(#read.want), describe(event, fpdu), is_missing(event))
      for _, later in ipairs(c.reads) do
        local is_later = #fpdu.payload > 0 and fpdu.stag == later.stag
        check(not is_later, ANSWERED_IN_ORDER, ("the Response to STag %#x"):format(read.stag), "the Response to a later Read")
      end
      -- The monitor judges the STag, TO and length of each segment.
      got[#got + 1] = fpdu.payload
    until fpdu.last
    local response = table.concat(got)
    check(response == read.want, PLACED, "the bytes of the buffer", octets.difference(response, read.want))
  end

  local function settle(c)
    while #c.reads > 0 do
      receive(c)
    end
  end

  --- Opens a connection and fills the buffer.
  local function open(fields)
    local conn, op = t:operate(request_fields(fields))
    local c = { conn = conn, op = op, msn = op.msn, read_msn = 1, reads = {}, memory = "", crc = requests_crc(t, fields), is_in_round = true }
    write(c, 0, octets.counted(op.length), 1024)
    return c
  end

  local self, connection = base(t, session.RPING, open, settle)

  --- Returns an offset and a size that are limited to the buffer.
  local function part(c, fields)
    local at = fields.at % (c.op.length + 1)
    return at, math.min(fields.size, c.op.length - at)
  end

  --- Writes `size` bytes at offset `at` of the buffer, in segments of at most `segment` bytes.
  function self:write(number, fields)
    local c = connection(number)
    -- A Read that is not answered yet may return the bytes before or after this Write.
    settle(c)
    local at, size = part(c, fields)
    written = written + 1
    write(c, at, (string.pack(">I4", written) .. octets.counted(size)):sub(1, size), fields.segment or 1024)
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
    c.reads[#c.reads + 1] = { stag = stag, want = c.memory:sub(at + 1, at + size) }
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

  --- Sends one of rping's Sends, which describes a buffer of the tester. With `between`, a Write to
  --- the end of the target's buffer comes between the two segments of the Send.
  local function advertise(c, to, stag, size, between)
    local payload = string.pack(">i8I4I4", to, stag, size)
    local function segment(from, till, last)
      return mpa.fpdu { ulpdu = rdmap.send { payload = payload:sub(from + 1, till), msn = c.msn, mo = from, last = last } }
    end
    if between then
      c.conn:send(segment(0, 8, false))
      write(c, c.op.length - 1, "b", 1)
      c.conn:send(segment(8, 16, true))
    else
      c.conn:send(segment(0, 16, true))
    end
    c.msn = (c.msn + 1) & 0xffffffff
  end

  --- Receives a Send of the target.
  local function go_ahead(c, what)
    local event, fpdu = c.conn:next { within = ANSWER }
    check(event == "fpdu" and fpdu.opcode == 3, DELIVERED, "a Send after the " .. what, describe(event, fpdu), is_missing(event))
  end

  --- The first half of rping's round: the target reads `text` from the tester.
  local function read_half(c, text, fields)
    local source = 0x7700aa0000001000
    advertise(c, source, 0x77670001, #text, fields.between)
    local event, request = c.conn:next { within = ANSWER }
    local is_request = event == "fpdu" and request.opcode == 1 and #request.payload == 28
    check(is_request, DELIVERED, "a Read Request for the advertised buffer", describe(event, request), is_missing(event))
    local stag, to, size, src_stag, src_to = string.unpack(">I4i8I4I4i8", request.payload)
    check(size == #text and src_stag == 0x77670001 and src_to == source, REQUESTED,
      ("a Read of %d bytes at TO %#x"):format(#text, source), ("a Read of %d bytes at TO %#x"):format(size, src_to))
    local segment = fields.segment or 1024
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
  local function write_half(c, to, size, text, between)
    advertise(c, to, 0x77670002, size, between)
    local got, next = {}, to
    local event, fpdu
    repeat
      event, fpdu = c.conn:next { within = ANSWER }
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

  --- Performs `count` rounds of rping. In each round, the target reads `size` bytes from the
  --- tester, and writes the same bytes to the offset `to` of another buffer of the tester. The
  --- tester answers a Read in segments of at most `segment` bytes. With `between`, a Write comes
  --- between two segments of each Send. With `empty`, the last segment of each Read Response is
  --- empty.
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
      write_half(c, fields.to or 0, size, text, fields.between)
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
