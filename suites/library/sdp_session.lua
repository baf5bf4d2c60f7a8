-- A session with an SDP socket of the target. The tester sends data of every size in every Mode, on
-- several connections at once. weft's implementation of SDP chooses the messages, so the tester's
-- messages are legal, except those of a fault (`sdp_faults.lua`). The monitor judges the target's
-- messages.

local shared = ...
local ANSWER, state = shared.ANSWER, shared.socket_state

--- The default of the field `source_threshold` of `t:sdp_socket`.
local THRESHOLD = 16384
--- With this `source_threshold`, the socket sends all data as Data.
local BCOPY = 1 << 30

--- Maximum number of bytes that wait for their echo. With more bytes, target and tester could wait
--- forever, each until the other side reads.
local MAX_WAITING = 262144

--- Number of bytes that the tester takes from a source before it closes its own half. A source may
--- send data without end.
local SOURCED = 1 << 18

--- Maximum number of short messages until the target has used up its smaller Private Buffers.
local MAX_OLD_BUFFERS = 70
--- Number of messages that use up the Private Buffers of most targets, and the maximum number of
--- bytes in one of them.
local FULL_MESSAGES, MAX_FULL = 18, 65536
--- Maximum number of bytes of `shared.numbered`.
local MAX_NUMBERED = 1 << 20
--- The number of seconds for which the tester's user takes no data of a huge send.
local HUGE_HOLD = 0.5
--- The number of seconds between an answer of the tester and the next bytes that it reads.
local LATE = 0.1

--- All bytes are delivered, in order, before the end of the connection.
local DELIVERED = "SDP-8.2-1"
--- The target answers a DisConn with its own DisConn, and then ends the TCP connection.
local DISCONNECTS, ENDS = "SDP-8.2.1-30", "SDP-8.2.1-32"

--- The target answers SuspComm with SuspCommAck, ends TCP, and connects to the port of the SuspComm.
local ANSWERS_SUSP_COMM, ENDS_SUSPENDED, RECONNECTS = "SDP-13.1.1-11", "SDP-13.1.1-15", "SDP-13.1.1-16"
--- The TCP port in a SuspComm. The fault `suspend` uses another port, to which the target may also
--- connect.
local PORT = 7001

--- The requirements that each session with an SDP socket tests, and those of sessions that resume a
--- connection.
session.SDP = { DELIVERED, DISCONNECTS, ENDS }
session.RESUMED = { ANSWERS_SUSP_COMM, ENDS_SUSPENDED, RECONNECTS }

--- Returns the session. `service` is what the target does with data: "echo", "sink" or "source".
local function sdp_session(t, service)
  t:good_exchange()

  local self, opened, sent, check = {}, {}, 0, shared.checker(t)
  local check_answer = shared.answer_checker(check)

  --- Returns the connection with this number, and opens it if necessary. `fields` has
  --- the fields of `t:sdp_socket`, and `mode`.
  local function connection(number, fields)
    fields = fields or {}
    if not opened[number] then
      local mode = fields.mode
      if service == "source" then
        fields.max_received, fields.receives = math.min(fields.max_received or SOURCED, SOURCED), 2
        fields.receive = math.min(fields.receive or 16384, 20000)
      else
        fields.max_received = nil
      end
      fields.mode = nil
      local c = { socket = t:sdp_socket(fields), waiting = "", queued = {} }
      c.threshold = fields.source_threshold or THRESHOLD
      if mode then c.socket:mode(mode) end
      opened[number] = c
    end
    return opened[number]
  end

  --- Compares the received bytes with the bytes that wait for their echo. With `may_exceed`, the
  --- target may also return other bytes after these.
  local function take(c, may_exceed)
    local got = c.socket:received()
    if service ~= "echo" then return end
    if may_exceed then got = got:sub(1, #c.waiting) end
    local want = c.waiting:sub(1, #got)
    check(got == want, DELIVERED, ("the next %d bytes of the data"):format(#got), octets.difference(got, want))
    c.waiting = c.waiting:sub(#got + 1)
  end

  --- Waits until all data is sent. If the service is an echo, also waits until all data is back.
  local function settle(c)
    local is_sent = c.socket:wait { sent = true, within = ANSWER }
    check_answer(c, is_sent and not c.socket:ended(), DELIVERED, "all data is sent", state(c), true)
    c.socket:sent()
    c.queued = {}
    if service == "echo" then
      local left = #c.waiting
      c.socket:wait { octets = left, within = ANSWER }
      take(c)
      check_answer(c, #c.waiting == 0, DELIVERED, ("an echo of %d bytes"):format(left), ("%d bytes, then %s"):format(left - #c.waiting, state(c)), true)
    else
      take(c)
      -- The target returns no data.
      c.waiting = ""
    end
  end

  --- Queues the bytes of a send, as one send after the other.
  local function queue(c, payloads, options)
    local accepted = {}
    for _, payload in ipairs(payloads) do
      if c.socket:send(payload, options) then
        c.queued[#c.queued + 1] = payload
        accepted[#accepted + 1] = payload
      end
    end
    c.waiting = c.waiting .. table.concat(accepted)
  end

  --- Returns `size` bytes that differ from those of other sends.
  local function next_payload(size)
    local parts = {}
    for at = 0, size - 1, MAX_NUMBERED do
      sent = sent + 1
      parts[#parts + 1] = shared.numbered(sent, math.min(MAX_NUMBERED, size - at))
    end
    return table.concat(parts)
  end

  shared.socket_steps(self, connection)

  --- Opens a connection. Does nothing if the connection is open.
  function self:open(number, fields) connection(number, fields) end

  --- Sends `size` bytes. With `urgent`, the last byte is Out-Of-Band data.
  function self:send(number, fields)
    local c = connection(number)
    if #c.waiting + fields.size > MAX_WAITING then settle(c) end
    queue(c, { next_payload(fields.size) }, { urgent = fields.urgent })
  end

  --- Sends `count` messages of `size` bytes.
  function self:burst(number, count, size)
    connection(number).socket:wait { open = true, within = ANSWER }
    for index = 1, count do
      self:send(number, { size = size })
      -- If the tester sends several messages at once, the transcript has fewer steps.
      if index % 16 == 0 then
        connection(number).socket:wait { within = 0 }
        take(connection(number))
      end
      -- Each part of a long burst has its own time limit for the answers.
      if index % 2000 == 0 then settle(connection(number)) end
    end
  end

  --- Cancels the sends of a connection. The target receives only a part of each send.
  function self:cancel(number)
    local c = connection(number)
    c.socket:wait { within = 0 }
    take(c)
    c.socket:cancel()
    check_answer(c, c.socket:wait { sent = true, within = ANSWER }, DELIVERED, "the end of the cancelled sends", state(c), true)
    local counts = c.socket:sent()
    if #counts ~= #c.queued then return settle(c) end
    local total = 0
    for _, payload in ipairs(c.queued) do total = total + #payload end
    -- Bytes of earlier sends may still wait for their echo. If no earlier bytes wait, the echo of
    -- the first bytes of the cancelled sends may have arrived already.
    local earlier = math.max(0, #c.waiting - total)
    local gone = math.max(0, total - #c.waiting)
    local parts = {}
    for index, payload in ipairs(c.queued) do parts[index] = payload:sub(1, counts[index]) end
    c.waiting, c.queued = c.waiting:sub(1, earlier) .. table.concat(parts):sub(gone + 1), {}
  end

  --- Sends `count` requests for another size of the target's Private Buffers. The first request is
  --- for `size` bytes, and each later request is for one byte less. After each request, sends 20
  --- messages, so that the target can use up its old buffers.
  function self:resizes(number, count, size)
    for round = 1, count do
      self:resize(number, size + 1 - round)
      self:burst(number, 20, 1)
      settle(connection(number))
    end
  end

  --- Requests larger Private Buffers of the target: `size` bytes, directly after `before` short
  --- messages. Then sends short messages until the target has used up its smaller buffers and
  --- answers. At once, sends messages that need all bytes of the larger buffers.
  function self:grow(number, size, before)
    local c = connection(number)
    c.socket:wait { open = true, within = ANSWER }
    settle(c)
    local old = c.socket:message_limit()
    for _ = 1, before do self:send(number, { size = 1 }) end
    c.socket:resize(size)
    for _ = 1, size > old and MAX_OLD_BUFFERS or 0 do
      settle(c)
      c.socket:wait { within = 0.01 }
      if c.socket:message_limit() > old then break end
      self:send(number, { size = 1 })
    end
    -- The header of a message has 16 bytes.
    local full = math.min(c.socket:message_limit() - 16, MAX_FULL)
    if full > 0 then
      c.socket:source_threshold(BCOPY)
      for _ = 1, math.min(FULL_MESSAGES, MAX_WAITING // full) do self:send(number, { size = full }) end
      settle(c)
      c.socket:source_threshold(c.threshold)
    end
  end

  --- Sends `count` times as many bytes as one message to the target holds, and `more` bytes. The
  --- socket sends them as Data.
  function self:fill(number, count, more)
    local c = connection(number)
    c.socket:wait { open = true, within = ANSWER }
    -- The header of a message has 16 bytes.
    local full = math.min(c.socket:message_limit() - 16, MAX_FULL)
    c.socket:source_threshold(BCOPY)
    self:send(number, { size = math.max(1, full * count + more) })
    settle(c)
    c.socket:source_threshold(c.threshold)
  end

  --- For a number of seconds, the tester's user takes no data on a connection.
  function self:hold(number, seconds)
    local c = connection(number)
    c.socket:wait { open = true, within = ANSWER }
    shared.hold(t, c, seconds)
  end

  --- Sends `size` bytes. For a number of seconds, the tester's user takes no data. Then the tester
  --- answers a SrcAvail with SendSm, before it reads what the target has sent during the wait.
  function self:late_answer(number, seconds, size)
    local c = connection(number)
    c.socket:wait { open = true, within = ANSWER }
    if size > 0 then self:send(number, { size = size }) end
    local over = t:clock() + seconds + LATE
    shared.hold(t, c, seconds)
    c.socket:wait { within = 0.03 }
    c.socket:answer("send-sm")
    c.socket:stop_reading(math.max(over - t:clock(), 0))
    while t:clock() < over do c.socket:wait { within = 0.05 } end
  end

  --- Sends `size` bytes in one send, and then `count` short sends. For a part of this time, the
  --- tester's user takes no data. The limit for the bytes that wait does not apply.
  function self:huge(number, size, count)
    local c = connection(number)
    c.socket:wait { open = true, within = ANSWER }
    settle(c)
    local payloads = { next_payload(size) }
    for index = 1, count do payloads[index + 1] = next_payload(8) end
    shared.hold(t, c, HUGE_HOLD)
    queue(c, payloads)
  end

  --- Waits for all answers on a connection.
  function self:answers(number) settle(connection(number)) end

  --- Waits. Meanwhile, all connections continue.
  function self:pause(seconds)
    for number = 1, shared.MAX_NUMBER do
      if opened[number] then return opened[number].socket:wait { within = seconds } end
    end
    t:pause(seconds)
  end

  --- Returns whether the tester has sent all queued data, and so also the DisConn after this data.
  local function has_sent_all(c)
    local left = 0
    for _, payload in ipairs(c.queued) do left = left + #payload end
    for _, count in ipairs(c.socket:sent()) do left = left - count end
    return left <= 0
  end

  --- Closes a connection gracefully. All data arrives before the close.
  function self:close(number)
    local c = connection(number)
    -- A source may send without end until it receives the tester's DisConn. The DisConn follows
    -- all data of the tester, so first wait for this data.
    if service == "source" then settle(c) end
    shared.end_hold(t, c)
    local was_open = not c.socket:ended()
    c.socket:shut()
    local has_ended = c.socket:wait { ended = true, within = ANSWER }
    local ended = c.socket:ended()
    local closes = was_open and has_sent_all(c) and DISCONNECTS or DELIVERED
    check_answer(c, ended, closes, closes == DISCONNECTS and "a DisConn after the tester's DisConn" or "all data is sent", state(c), true)
    take(c)
    check_answer(c, #c.waiting == 0 or service ~= "echo", DELIVERED, "all data before the close", ("%d bytes less"):format(#c.waiting), true)
    check_answer(c, ended.graceful, closes, "a graceful close", state(c))
    check_answer(c, has_ended, ENDS, "the end of TCP", "TCP stays open", true)
    opened[number] = nil
  end

  --- Plays a fault on a connection. `session.FAULTS` has the names.
  function self:fault(number, name)
    local c = connection(number)
    local is_open = shared.fault(t, c, name, {
      settle = function() settle(c) end,
      send = function(size) self:send(number, { size = size }) end,
      use = function()
        self:send(number, { size = 100 })
        settle(c)
      end,
      -- A target that does not end the connection may return the payload of the illegal message.
      take = function() take(c, true) end,
    })
    if not is_open then opened[number] = nil end
  end

  --- Suspends a connection, and continues it on another TCP connection. The data that was not sent
  --- or returned before the suspension follows after it.
  function self:resume(number)
    local c = connection(number)
    c.socket:wait { open = true, within = ANSWER }
    c.socket:suspend(PORT)
    local has_ended = c.socket:wait { ended = true, within = ANSWER }
    local ended = c.socket:ended()
    check_answer(c, ended and ended.suspended, ANSWERS_SUSP_COMM, "a SuspCommAck", state(c), true)
    check_answer(c, has_ended, ENDS_SUSPENDED, "the end of TCP after the SuspCommAck", "TCP stays open", true)
    c.socket = c.socket:resume(PORT, { requirement = RECONNECTS, overdue_fails = true, within = ANSWER })
    local is_open = c.socket:wait { open = true, within = ANSWER } and not c.socket:ended()
    check_answer(c, is_open, RECONNECTS, "a Hello on the new connection", state(c), true)
  end

  --- Performs a short exchange on each open connection except `number`. The end of one connection
  --- must not disturb another connection.
  function self:use_others(number)
    shared.use_others(opened, number, function(other)
      self:send(other, { size = 100 })
      settle(opened[other])
    end)
  end

  --- Ends a connection abortively.
  function self:abort(number)
    local c = connection(number)
    c.socket:abort()
    c.socket:wait { ended = true, within = 1 }
    opened[number] = nil
  end

  --- Resets a connection, even if answers are missing.
  function self:reset(number)
    connection(number).socket:reset()
    opened[number] = nil
  end

  --- Closes all connections. Each session ends with this step. `shown` has the requirements that
  --- the monitor judges in the session.
  function self:finish(shown)
    shared.close_all(self, opened)
    check(true, { session.SDP, shown or {} }, "the data and the close of all connections", "the data and the close")
  end

  return self
end

--- A session with an SDP socket that sends back its data.
function session.sdp_echo(t) return sdp_session(t, "echo") end

--- A session with an SDP socket that discards its data.
function session.sdp_sink(t) return sdp_session(t, "sink") end

--- A session with an SDP socket that sends data by itself.
function session.sdp_source(t) return sdp_session(t, "source") end
