-- The Lua module `session`: legal traffic on several connections at once, with the service of the
-- target. `weft test --explore` selects the steps of a session at random. If a session fails, weft
-- writes it as a case that calls these functions.
--
-- Each step is legal at any place of a session, so a session stays legal if steps are removed. A
-- step on a connection that does not exist opens the connection first.
--
-- `session_faults.lua` has the illegal FPDUs, and `sdp_faults.lua` has the illegal SDP messages.
-- The other files of this folder have the sessions of each service. They get the table `shared`, in
-- which this file keeps what they have in common.

local shared = ...

session = {}

--- The number of seconds after which a missing answer is a failure.
local ANSWER = 10
--- The number of bytes that `octets.counted` makes at once.
local PART = 1 << 20
--- Payload in bytes of a segment of the tester, unless a step chooses another number.
local SEGMENT = 1024
--- The tester joins FPDUs, and sends them when they have this number of bytes. The bytes that a
--- script sends at once have at most 1 MiB.
local MAX_JOINED = 262144
--- The highest number of a connection. A session does not find connections with higher numbers.
local MAX_NUMBER = 1000
--- An STag of the tester's memory.
local STAG = 0x77650000

--- Returns an STag of the tester's memory. Different numbers have different STags, and the STags of
--- consecutive numbers are at different distances (RFC 5040 section 8.1.1).
local function nth_stag(number)
  -- An even factor of the square and an odd factor of the number give a permutation of 32 bits.
  return STAG + number * number * 0x9e3779b2 + number * 0x85ebca6b & 0xffffffff
end

--- Payload is placed into the buffer of the ULP.
local PLACED = "DDP-5.2-4"
--- Sends are delivered, in the order in which they were sent.
local DELIVERED, IN_ORDER = "RDMAP-5.3-5", "DDP-5.3-6"
--- Each Read Request is answered, and the answers have the order of the Read Requests.
local ANSWERED, ANSWERED_IN_ORDER = "RDMAP-5.2.1-18", "RDMAP-5.2.1-14"
--- The target has room for 512 bytes of private data. An enhanced Request gets an enhanced Reply,
--- also if the target rejects the Request. Only some sessions test these two requirements.
local PRIVATE, ENHANCED = "MPA-7.1.2-25", "P2P-10-2"

--- Describes the next event on a connection. `seconds` is the time limit of the wait.
local function describe(event, fpdu, seconds)
  if event == nil then return ("nothing for %g s"):format(seconds or ANSWER) end
  if event ~= "fpdu" then return event == "close" and "a close" or event end
  if fpdu.opcode == 7 then return ("Terminate %02x %02x"):format(fpdu.payload:byte(1) or 0, fpdu.payload:byte(2) or 0) end
  return ("an FPDU with opcode %d and %d bytes of payload"):format(fpdu.opcode, #fpdu.payload)
end
session.describe = describe

--- Returns whether the answer is missing: nothing arrived, or the target closed the connection. A
--- Terminate, or another message, is a wrong answer.
local function is_missing(event) return event ~= "fpdu" end

--- The requirement that the target violates if it rejects a correct Read Request or Send, by the
--- opcode.
local REJECTED = { ANSWERED, [3] = DELIVERED, [4] = DELIVERED, [5] = DELIVERED, [6] = DELIVERED }

--- Returns the requirement that the target violates if this event arrives instead of a message that
--- would meet `expected`. A Terminate usually has the header of the message that the target rejects,
--- and the reason for the missing message is then this rejection. A target that rejects a correct
--- Read Response violates `response` (default PLACED).
local function violated_by(event, fpdu, expected, response)
  -- M and D show that the length and the DDP header follow. The opcode is in the header's second
  -- byte (RFC 5040 Figures 4 and 7).
  if event ~= "fpdu" or fpdu.opcode ~= 7 or #fpdu.payload < 8 or fpdu.payload:byte(3) & 0xc0 ~= 0xc0 then return expected end
  local opcode = fpdu.payload:byte(8) & 15
  if opcode == 2 then return response or PLACED end
  return REJECTED[opcode] or expected
end

--- Returns the function that checks the results of a session. If `ok` is false, the case fails.
--- `missing` is true if the reason is a missing answer.
local function checker(t)
  return function(ok, requirement, expected, actual, missing)
    t:check(ok, { requirement = requirement, expected = expected, actual = actual, missing = missing })
  end
end

--- Returns `size` bytes in numbered lines. Parts of 1 MiB begin with different lines, so no two
--- parts have the same bytes at the same offset.
local function counted(size)
  if size <= PART then return octets.counted(size) end
  local lines, parts = octets.counted(PART), {}
  for at = 0, size - 1, PART do
    -- A line has 64 bytes.
    local first = 64 * 1021 * (at // PART) % PART
    local length = math.min(PART, size - at)
    parts[#parts + 1] = lines:sub(first + 1, first + length) .. lines:sub(1, math.max(0, first + length - PART))
  end
  return table.concat(parts)
end

--- Returns `size` bytes that begin with `number`. Messages with different numbers also differ in
--- most of their other bytes, so that bytes of another message are noticed.
local function numbered(number, size)
  local first = 64 * (number % 61) + number % 64
  return (string.pack(">I4", number) .. counted(first + size):sub(first + 1)):sub(1, size)
end

--- Returns `memory` with `data` at offset `at`.
local function splice(memory, at, data) return memory:sub(1, at) .. data .. memory:sub(at + #data + 1) end

--- Passes the FPDUs of a Write to `each`, one after the other. The first byte of `data` has the
--- offset `to`. Each segment has at most `segment` bytes of payload.
local function write_segments(stag, to, data, segment, each)
  for from = 0, math.max(#data - 1, 0), segment do
    local piece = data:sub(from + 1, from + segment)
    each(mpa.fpdu { ulpdu = rdmap.write { stag = stag, tagged_offset = to + from, payload = piece, last = from + #piece == #data } })
  end
end

--- Returns a function that joins the FPDUs that it gets, and sends them. TCP may deliver several
--- FPDUs at once. Without an FPDU, the function sends the rest. `options` gets the number of bytes
--- that are sent, and returns the options of `conn:send`.
local function joiner(conn, options)
  local joined
  return function(fpdu)
    if fpdu then joined = joined and joined .. fpdu or fpdu end
    if joined and (not fpdu or #joined >= MAX_JOINED) then
      conn:send(joined, options and options(#joined))
      joined = nil
    end
  end
end

--- Returns the size in bytes of the payload of an FPDU, after which the next FPDU begins `at` bytes
--- before a marker. The FPDU begins at `position` of a stream with markers. Without payload, it has
--- `headers` bytes. `at` is a multiple of 4, and at most 504.
local function filling(position, at, headers)
  for size = 0, 508, 4 do
    local from, left = position, headers + size
    while left > 0 do
      if from % 512 == 0 then from = from + 4 end
      local run = math.min(left, 512 - from % 512)
      from, left = from + run, left - run
    end
    if (from + at) % 512 == 0 then return size end
  end
  return 0
end

--- Returns whether an answer is right, as far as it arrived. `bytes` begin its next FPDU, or the
--- FPDU of a Terminate. `answer` has all bytes of the answer (`want`), the payloads of its complete
--- FPDUs (`got`), and the number of bytes before the payload of an FPDU (`headers`).
local function is_right_so_far(answer, bytes)
  if #bytes > 3 and bytes:byte(4) & 15 == 7 then return true end
  local got = table.concat(answer.got)
  local length = #bytes > 1 and string.unpack(">I2", bytes) or 0
  got = got .. bytes:sub(answer.headers + 1, 2 + length)
  return answer.want:sub(1, #got) == got
end

--- Returns the event after "octets", if these bytes begin an FPDU that the target owes: after an
--- error, a target may abort the connection in the middle of an FPDU. Otherwise returns "octets".
local function after_cut(conn, answer)
  local bytes = conn:expect_octets { begins = "" }
  if bytes == "" or not answer or not is_right_so_far(answer, bytes) then return "octets" end
  return conn:next { within = ANSWER }
end

--- Returns a copy of `fields` without the field `name`.
local function without(fields, name)
  local copy = {}
  for other, value in pairs(fields) do copy[other] = value end
  copy[name] = nil
  return copy
end

--- Closes all connections of a session in the order of their numbers, from `first` (default 1).
--- Calls `before` with each connection before it is closed, if `before` is set.
local function close_all(self, opened, first, before)
  for number = first or 1, MAX_NUMBER do
    if opened[number] then
      if before then before(opened[number]) end
      self:close(number)
    end
  end
end

--- Calls `exchange` with the number of each open connection of a session, except `number`.
local function use_others(opened, number, exchange)
  for other = 1, MAX_NUMBER do
    if other ~= number and opened[other] then exchange(other) end
  end
end

--- Returns requirements for the field `requirements` of a case: those in `list`, and those of the
--- further arguments. Each further argument is the name of a fault or the id of a requirement.
function session.requirements(list, ...)
  local all = { list }
  for _, name in ipairs { ... } do
    local fault = session.FAULTS[name]
    all[#all + 1] = fault and fault.requirement or name
    all[#all + 1] = fault and not fault.silent and { shared.ENDED, shared.CLOSED } or nil
    all[#all + 1] = fault and fault.shows or nil
  end
  return all
end

--- Returns the numbers from `first` to `last`.
function session.numbers(first, last)
  local list = {}
  for number = first, last do list[#list + 1] = number end
  return list
end

--- Fills the first `length` bytes of rping's buffer with bytes that show their position. Returns
--- these bytes. `op` is the second result of `t:operate`.
function session.fill_buffer(conn, op, length)
  local data = octets.counted(length)
  write_segments(op.stag, op.to, data, SEGMENT, function(fpdu) conn:send(fpdu) end)
  return data
end

--- Returns whether the target serves a second connection at the same time. Some services serve one
--- connection at a time. `one` is the first connection. If it is nil, `t:operate` opens it.
function session.serves_two(t, one)
  one = one or t:operate()
  local two = t:connect()
  two:send(t:request())
  local event = two:next { within = 2 }
  one:reset()
  two:reset()
  return event == "reply"
end

--- Returns a session with the functions that the sessions of all services have. The caller adds the
--- function `exchange(number)`, which performs a short exchange on a connection. Also returns a
--- function that finds or opens a connection by its number, and a function that forgets a
--- connection. `open(fields, options)` opens a connection. `options` are those of `t:operate`.
--- `settle(c, keeps_read)` waits for all answers on the connection `c`, and answers the target's
--- own Read. With `keeps_read`, this Read may stay unanswered. `more` has the requirements PRIVATE
--- and ENHANCED, if the case lists them. `owed` has functions about the answers that the target
--- owes:
---
--- - `prepare(c, fault)` sends the rest of an FPDU. If the fault has `begins_send`, the tester may
---   then begin a Send. If it has `reads`, the target then waits for the Response to its own Read.
---   Returns whether a message is incomplete, or has no answer yet. The target's own Read does not
---   count.
--- - `answer(c)` returns the oldest answer, with the fields `want`, `got` and `headers`, or nil.
--- - `take(c, fpdu)` takes an FPDU, and returns whether it is a part of an answer.
--- - `within(c)` returns the number of seconds after which a missing answer is a failure.
--- - `requirement` is the requirement that a missing answer violates.
--- - `check_sink(c)` checks the bytes in the sink, after the target has completed its own Read.
local function base(t, requirements, open, settle, owed, more)
  -- The target works before the session. If a later exchange fails, the session is the cause.
  t:good_exchange()

  local self, opened = {}, {}
  -- The buffer of the last connection that was closed.
  local closed
  -- Whether the target has served a connection of the session.
  local has_served = false
  local listed = {}
  for _, row in ipairs(more or {}) do listed[row] = true end

  --- Returns the options of a step that opens a connection. After the target has served a
  --- connection of the session, it has to serve the next one, too. Returns nil if a failure decides
  --- nothing. This is so while another connection is open, because a service may limit the number
  --- of connections at a time.
  local function judged()
    for _ in pairs(opened) do return nil end
    return has_served and { requirement = DELIVERED } or nil
  end

  --- Uses the service of the target on a new connection.
  local function use_service()
    local options = judged()
    if not options or t:is_initiator() then return t:liveness() end
    local conn = t:operate(nil, options)
    conn:close()
  end

  --- Sends a Request on a separate connection. Returns the Reply. If another event comes, returns
  --- nil, the event and its fields.
  local function reply_to(fields)
    local conn = t:connect()
    conn:send(t:request(fields))
    local event, frame = conn:next { within = ANSWER }
    if event == "reply" then
      conn:close()
      return frame
    end
    conn:reset()
    return nil, event, frame
  end

  --- Sends a Request on a separate connection, and returns whether the target accepts it. The
  --- target may reject each Request, but it has to send a Reply. A service may limit the number of
  --- connections. So a missing Reply is a failure only if the target answers a simpler Request.
  local function is_accepted(fields)
    local reply, event, frame = reply_to(fields)
    if reply then return not reply.reject end
    local row
    if fields.private_data and listed[PRIVATE] and reply_to(without(fields, "private_data")) then
      row = PRIVATE
    elseif fields.enhanced and listed[ENHANCED] and reply_to() then
      row = ENHANCED
    end
    if row then
      t:check(false, {
        requirement = row, expected = "a Reply, which may reject the Request", actual = describe(event, frame), missing = true,
      })
    end
    return false
  end

  --- Returns the connection with this number, and opens it if necessary.
  local function connection(number, fields)
    if not opened[number] then
      fields = fields or {}
      local is_tested = fields.private and listed[PRIVATE] and not t:is_initiator()
      if is_tested and not is_accepted(shared.request_fields(fields)) then
        -- The service of the target may reject these private data.
        fields = without(fields, "private")
      end
      opened[number] = open(fields, judged())
      opened[number].closed = closed
      has_served = true
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

  --- Closes a connection after all answers of the target. The target's own Read may stay
  --- unanswered.
  function self:close(number)
    local c = connection(number)
    settle(c, true)
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
    use_service()
  end

  --- Sends a Request on a separate connection, and then closes this connection. The target may
  --- accept the Request or reject it. The monitor judges the Reply. The fields are those of
  --- `t:request`, but `private` is the number of bytes of private data. With `ird`, the Request is
  --- enhanced. With `rtr_send`, `rtr_write` or `rtr_read`, it is for the peer-to-peer model.
  function self:request(fields)
    local request = without(fields, "private")
    request.private_data = fields.private and octets.counted(fields.private)
    if fields.ird then request.enhanced, request.revision = true, 2 end
    request.peer_to_peer = fields.rtr_send or fields.rtr_write or fields.rtr_read
    is_accepted(request)
  end

  --- Resets a connection, even if answers are missing.
  function self:reset(number)
    connection(number).conn:reset()
    opened[number] = nil
  end

  --- Returns the number of another open connection. Opens a connection if no other is open.
  local function neighbour_of(number)
    local free
    for other = 1, MAX_NUMBER do
      if other ~= number then
        if opened[other] then return other end
        free = free or other
      end
    end
    connection(free)
    return free
  end

  --- Sends an illegal FPDU after all answers of the target, and expects that the target ends the
  --- connection. The target's own Read stays unanswered, except if the target may receive a Send
  --- before it rejects the illegal FPDU, or if the fault is in a Read Response.
  function self:fault(number, name)
    settle(connection(number), true)
    self:fault_now(number, name)
  end

  --- Like `fault`, but does not wait for answers. The tester's last message may be incomplete. The
  --- target may send the answers that it owes, or a part of them, before it ends the connection.
  function self:fault_now(number, name)
    local fault = session.FAULTS[name]
    local is_crc = fault.requirement == shared.CRC
    if is_crc and not connection(number).crc then
      -- A wrong CRC needs a connection with CRCs.
      self:close(number)
      connection(number, { crc = true })
    end
    local c = connection(number)
    -- Such a fault judges the target's next message.
    if fault.before or fault.silent then settle(c, true) end
    local is_pending = owed.prepare(c, fault)
    local neighbour = fault.needs_neighbour and neighbour_of(number)
    c.neighbour = neighbour and opened[neighbour]
    opened[number] = nil
    shared.violate(t, c, fault, owed, is_pending)
    if neighbour then
      -- The other connection still works, and the fault did not change its buffer.
      self:read(neighbour, { at = 0, size = 8 })
      settle(opened[neighbour], true)
    end
  end

  --- Performs a short exchange on each open connection except `number`, and waits for its answers.
  --- The end of one connection must not disturb another connection.
  function self:use_others(number)
    use_others(opened, number, function(other)
      self:exchange(other)
      settle(opened[other], true)
    end)
  end

  --- Waits for all answers and closes all connections.
  function self:close_all() close_all(self, opened, 1, settle) end

  --- Waits for all answers and closes all connections. Each session ends with this step. `shown`
  --- has the requirements that the monitor judges in the session.
  function self:finish(shown)
    self:close_all()
    -- The end of a connection may leave something that disturbs only the next connection.
    if judged() and not t:is_initiator() then use_service() end
    t:check(true, { requirement = { requirements, more or {}, shown or {} }, expected = "the answers of all connections", actual = "these answers" })
  end

  return self, connection, function(number) opened[number] = nil end
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
    ord = depth, private_data = fields.private and octets.counted(fields.private), peer_to_peer = fields.rtr and true or nil,
    rtr_send = fields.rtr == "send" or nil, rtr_write = fields.rtr == "write" or nil,
  }
end

--- Sends the ready-to-receive message of the peer-to-peer model that `fields` request. Returns the
--- MSN of the next Send, or nil if the target's Reply does not offer this message.
local function get_ready(conn, reply, fields)
  if not fields.rtr then return 1 end
  if not reply.peer_to_peer or not reply["rtr_" .. fields.rtr] then return nil end
  local is_send = fields.rtr == "send"
  conn:send(mpa.fpdu { ulpdu = is_send and rdmap.send() or rdmap.write { stag = 0 } })
  return is_send and 2 or 1
end

shared.ANSWER, shared.SEGMENT, shared.MAX_JOINED = ANSWER, SEGMENT, MAX_JOINED
shared.MAX_NUMBER, shared.STAG, shared.nth_stag = MAX_NUMBER, STAG, nth_stag
shared.PLACED, shared.DELIVERED, shared.IN_ORDER = PLACED, DELIVERED, IN_ORDER
shared.ANSWERED, shared.ANSWERED_IN_ORDER = ANSWERED, ANSWERED_IN_ORDER
shared.describe, shared.is_missing, shared.violated_by, shared.checker = describe, is_missing, violated_by, checker
shared.counted, shared.numbered, shared.splice, shared.write_segments = counted, numbered, splice, write_segments
shared.joiner, shared.close_all, shared.filling, shared.after_cut = joiner, close_all, filling, after_cut
shared.use_others = use_others
shared.base, shared.request_fields, shared.requests_crc, shared.get_ready = base, request_fields, requests_crc, get_ready
