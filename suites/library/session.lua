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
--- The number of seconds in which a message that must not be delivered would be delivered.
local SILENCE = 2
--- Payload in bytes of a segment of the tester, unless a step chooses another number.
local SEGMENT = 1024
--- The tester joins FPDUs, and sends them when they have this number of bytes. The bytes that a
--- script sends at once have at most 1 MiB.
local MAX_JOINED = 262144

--- Payload is placed into the buffer of the ULP.
local PLACED = "DDP-5.2-4"
--- Sends are delivered, in the order in which they were sent.
local DELIVERED, IN_ORDER = "RDMAP-5.3-5", "DDP-5.3-6"
--- Each Read Request is answered, and the answers have the order of the Read Requests.
local ANSWERED, ANSWERED_IN_ORDER = "RDMAP-5.2.1-18", "RDMAP-5.2.1-14"

--- Describes the next event on a connection. `seconds` is the time limit of the wait.
local function describe(event, fpdu, seconds)
  if event == nil then return ("nothing for %g s"):format(seconds or ANSWER) end
  if event ~= "fpdu" then return event == "close" and "a close" or event end
  if fpdu.opcode == 7 then return ("Terminate %02x %02x"):format(fpdu.payload:byte(1) or 0, fpdu.payload:byte(2) or 0) end
  return ("an FPDU with opcode %d and %d bytes of payload"):format(fpdu.opcode, #fpdu.payload)
end

--- Returns whether the answer is missing: nothing arrived, or the target closed the connection. A
--- Terminate, or another message, is a wrong answer.
local function is_missing(event) return event ~= "fpdu" end

--- Returns the function that checks the results of a session. If `ok` is false, the case fails.
--- `missing` is true if the reason is a missing answer.
local function checker(t)
  return function(ok, requirement, expected, actual, missing)
    t:check(ok, { requirement = requirement, expected = expected, actual = actual, missing = missing })
  end
end

--- Returns `size` bytes that begin with `number`, so that messages of the same size differ.
local function numbered(number, size) return (string.pack(">I4", number) .. octets.counted(size)):sub(1, size) end

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

--- Closes all connections of a session in the order of their numbers, from `first` (default 1).
local function close_all(self, opened, first)
  for number = first or 1, 1000 do
    if opened[number] then self:close(number) end
  end
end

--- Returns requirements for the field `requirements` of a case: those in `list`, and those of the
--- further arguments. Each further argument is the name of a fault or the id of a requirement.
function session.requirements(list, ...)
  local all = { list }
  for _, name in ipairs { ... } do
    local fault = session.FAULTS[name]
    all[#all + 1] = fault and fault.requirement or name
    all[#all + 1] = fault and not fault.silent and shared.ENDED or nil
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
    local c, fault = connection(number), session.FAULTS[name]
    opened[number] = nil
    local is_crc = fault.requirement == shared.CRC
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
    if fault.cuts then
      local cuts = {}
      for index, cut in ipairs(fault.cuts) do cuts[index] = cut < 0 and #illegal + cut or cut end
      c.conn:send(illegal, { cuts = cuts, pause = 0.1 })
    elseif c.op then
      c.conn:send(illegal)
    else
      -- The target must not answer a correct Send after an illegal one.
      c.conn:send(illegal .. shared.a_send(c, 12))
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
      t:check(event ~= "fpdu", { requirement = shared.ENDED, expected = "no message after the Terminate", actual = describe(event, fpdu) })
      t:check(event == "close", { requirement = fault.requirement, expected = "a close after the Terminate", actual = describe(event, fpdu) })
    else
      t:check(true, { requirement = shared.ENDED, expected = "no message after the end", actual = "a close" })
    end
    c.conn:reset()
  end

  --- Waits for all answers and closes all connections.
  function self:close_all() close_all(self, opened) end

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
shared.PLACED, shared.DELIVERED, shared.IN_ORDER = PLACED, DELIVERED, IN_ORDER
shared.ANSWERED, shared.ANSWERED_IN_ORDER = ANSWERED, ANSWERED_IN_ORDER
shared.describe, shared.is_missing, shared.checker = describe, is_missing, checker
shared.numbered, shared.splice, shared.write_segments = numbered, splice, write_segments
shared.joiner, shared.close_all = joiner, close_all
shared.base, shared.request_fields, shared.requests_crc, shared.get_ready = base, request_fields, requests_crc, get_ready
