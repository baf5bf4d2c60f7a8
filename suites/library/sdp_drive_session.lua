-- A session with a driven SDP socket (docs/sdp-driver.md). The tester's data are commands. The
-- target's user executes them: it sends, receives, changes Modes, and ends the connection. The
-- session counts the bytes that the target must send, because their content is free. weft's
-- implementation of SDP chooses the tester's messages, so they are legal, except those of a fault
-- (`sdp_faults.lua`). The monitor judges the target's messages.

local shared = ...
local ANSWER, state = shared.ANSWER, shared.socket_state

--- The target's user reads commands with a receive of this number of bytes. The receive that gets
--- the command `read` may also get bytes after the command.
local COMMAND_RECEIVE = 64
--- A line that is not a command. The bytes for a `read` consist of such lines, because a receive
--- may end before it is full. The user reads the other bytes as commands, and ignores them.
local IGNORED = "#######\n"
--- Number of times that the tester checks whether the target has ended its half or the connection.
local TRIES = 100

--- All bytes are delivered before the end of the connection.
local DELIVERED = "SDP-8.2-1"
--- The target answers a DisConn with its own DisConn, and then ends the TCP connection.
local DISCONNECTS, ENDS = "SDP-8.2.1-30", "SDP-8.2.1-32"
--- When its user has shut down the sending half, the target sends DisConn.
local SHUTS = "SDP-8.2.1-7"
--- When its user aborts the connection, the target ends it at once.
local ABORTS = "SDP-8.2-2"

--- When its user suspends the connection, the target sends SuspComm.
local SUSPENDS = "SDP-13.1.1-6"

--- The requirements of sessions in which the target's user shuts down, aborts or suspends
--- connections.
session.SHUT, session.ABORTED, session.SUSPENDED = { SHUTS }, { ABORTS }, { SUSPENDS }

--- Returns the session.
local function drive_session(t)
  t:good_exchange()

  local self, opened, check = {}, {}, shared.checker(t)
  local check_answer = shared.answer_checker(check)

  --- Returns the connection with this number, and opens it if necessary. `fields` has the fields of
  --- `t:sdp_socket`, and `mode`. On the connection, the target has sent `got` bytes. In total, it
  --- has to send `least` to `most` bytes, as far as its user got commands. The tester has queued
  --- `unsent` bytes that it has not sent.
  local function connection(number, fields)
    if not opened[number] then
      fields = fields or {}
      local mode = fields.mode
      fields.mode = nil
      local c = { socket = t:sdp_socket(fields), got = 0, least = 0, most = 0, unsent = 0 }
      if mode then c.socket:mode(mode) end
      opened[number] = c
    end
    return opened[number]
  end

  --- Counts the received bytes.
  local function take(c)
    c.got = c.got + #c.socket:received()
    check(c.got <= c.most, DELIVERED, ("at most %d bytes of the target's user"):format(c.most), ("%d bytes"):format(c.got))
  end

  --- Queues a command for the target's user.
  local function command(c, line)
    if c.socket:command(line) then c.unsent = c.unsent + #line + 1 end
  end

  --- Counts the bytes that the tester has sent.
  local function count_sent(c)
    for _, count in ipairs(c.socket:sent()) do c.unsent = c.unsent - count end
  end

  --- Runs the sockets until `is_over` returns true, or until the connection has ended.
  local function run_until(c, is_over)
    for _ = 1, TRIES do
      if c.socket:ended() or is_over() then return end
      c.socket:wait { within = ANSWER / TRIES }
    end
  end

  --- Waits until all commands are sent, and all bytes of the target's user have arrived. If the
  --- user has shut down the sending half, also waits for the DisConn.
  local function settle(c)
    local is_sent = c.socket:wait { sent = true, within = ANSWER }
    -- If the connection ends before the DisConn that follows a `shut`, this DisConn is missing.
    local is_open = not c.socket:ended() or c.is_shut and not c.has_judged
    check_answer(c, is_sent and is_open, DELIVERED, "all data is sent", state(c), true)
    count_sent(c)
    take(c)
    if c.got < c.least then c.socket:wait { octets = c.least - c.got, within = ANSWER } end
    take(c)
    check_answer(c, c.got >= c.least, DELIVERED, ("%d bytes of the target's user"):format(c.least), ("%d bytes, then %s"):format(c.got, state(c)), true)
    if c.is_shut and not c.has_judged then
      run_until(c, function() return c.socket:has_dis_conn() end)
      check_answer(c, c.socket:has_dis_conn(), SHUTS, "a DisConn after the target's user has shut down the sending half", state(c), true)
      c.has_judged = true
    end
  end

  --- If the target's user has shut down the sending half, waits for the DisConn. Each session with
  --- a `shut` judges this DisConn.
  local function judge_shut(c)
    if c.is_shut and not c.has_judged then settle(c) end
  end

  --- Returns the connection with this number. If the target's user has shut down the sending half,
  --- closes the connection, and opens another one.
  local function unshut_connection(number)
    if connection(number).is_shut then self:close(number) end
    return connection(number)
  end

  shared.socket_steps(self, connection)

  --- Opens a connection. Does nothing if the connection is open.
  function self:open(number, fields) connection(number, fields) end

  --- For a number of seconds, the tester's user takes no data on a connection. Does nothing if the
  --- target may send DisConn in this time.
  function self:hold(number, seconds)
    local c = connection(number)
    if c.is_shut then return end
    c.socket:wait { open = true, within = ANSWER }
    shared.hold(t, c, seconds)
  end

  --- Lets the target's user execute a command that neither sends nor receives, and that does not
  --- end the connection.
  function self:command(number, line) command(connection(number), line) end

  --- Lets the target's user send `size` bytes. With `urgent`, the last byte is Out-Of-Band data. A
  --- user that has shut down the sending half sends nothing.
  function self:target_send(number, fields)
    local c = connection(number)
    command(c, ("%s %d"):format(fields.urgent and "urgent" or "send", fields.size))
    if c.is_shut then return end
    c.least, c.most = c.least + fields.size, c.most + fields.size
  end

  --- Sends enough bytes for receives of the target's user with `size` bytes in total, in sends of at
  --- most `piece` bytes (default: in one send).
  local function send_ignored(c, size, piece)
    -- A receive takes at most its size. So with this number of bytes, all receives end.
    local length = size + COMMAND_RECEIVE
    local payload = IGNORED:rep(length // #IGNORED + 1)
    piece = piece or #payload
    for at = 1, #payload, piece do
      local part = payload:sub(at, at + piece - 1)
      if c.socket:send(part) then c.unsent = c.unsent + #part end
    end
  end

  --- Lets the target's user post `count` receives (default 1) of `size` bytes, and sends enough
  --- bytes for them, in sends of at most `piece` bytes (default: in one send).
  function self:target_read(number, fields)
    local c, count = connection(number), fields.count or 1
    command(c, "read" .. (" %d"):format(fields.size):rep(count))
    send_ignored(c, count * fields.size, fields.piece)
  end

  --- Lets the target's user post a receive of `size` bytes, wait for `wait` milliseconds, and cancel
  --- the receive. Meanwhile, sends enough bytes for the receive, in sends of at most `piece` bytes.
  --- If the user reads only a part of the commands before it waits, the receive gets the rest of
  --- them, and then ends without the cancellation.
  function self:target_cancel_receive(number, fields)
    local c = connection(number)
    local pause = fields.wait and ("wait %d;"):format(fields.wait) or ""
    command(c, ("read %d;%scancel-receives"):format(fields.size, pause))
    send_ignored(c, fields.size, fields.piece)
  end

  --- Lets the target's user cancel its sends. The target sends any part of the bytes that have not
  --- arrived.
  function self:target_cancel(number)
    local c = connection(number)
    command(c, "cancel-sends")
    take(c)
    c.least = c.got
  end

  --- Lets the target's user shut down the sending half.
  function self:target_shut(number)
    local c = connection(number)
    shared.end_hold(t, c)
    command(c, "shut")
    c.is_shut = true
  end

  --- Lets the target's user abort the connection.
  function self:target_abort(number)
    local c = connection(number)
    judge_shut(c)
    command(c, "abort")
    run_until(c, function() return false end)
    take(c)
    local ended = c.socket:ended()
    check_answer(c, ended and not ended.graceful, ABORTS, "an abortive end of the connection after the abort", state(c), not ended)
    opened[number] = nil
  end

  --- Lets the target's user suspend the connection. The SuspComm has this TCP port of the target.
  --- The session does not use the new connection. Bytes of either side may be missing.
  function self:target_suspend(number, port)
    local c = unshut_connection(number)
    command(c, ("suspend %d"):format(port))
    run_until(c, function() return false end)
    take(c)
    local ended = c.socket:ended()
    check_answer(c, ended and ended.suspended, SUSPENDS, "a SuspComm after the target's user has suspended the connection", state(c), not ended)
    c.socket:reset()
    opened[number] = nil
  end

  --- Plays a fault on a connection. `session.FAULTS` has the names. If the fault is not early, the
  --- target's user first executes all commands.
  function self:fault(number, name)
    local c = unshut_connection(number)
    local function use(size)
      self:target_send(number, { size = size })
      settle(c)
    end
    local is_open = shared.fault(t, c, name, {
      settle = function() use(1) end,
      send = function(size) self:target_read(number, { size = size }) end,
      use = function() use(100) end,
      take = function() take(c) end,
    })
    if not is_open then opened[number] = nil end
  end

  --- Waits for all bytes of the target's user on a connection.
  function self:answers(number) settle(connection(number)) end

  --- Closes a connection gracefully. All data arrives before the close.
  local function close(number, settles)
    local c = connection(number)
    judge_shut(c)
    shared.end_hold(t, c)
    if settles and not c.is_shut and not c.socket:ended() then settle(c) end
    local was_open = not c.socket:ended()
    c.socket:shut()
    local has_ended = c.socket:wait { ended = true, within = ANSWER }
    local ended = c.socket:ended()
    count_sent(c)
    -- The tester's DisConn follows all its data.
    local is_answer = was_open and c.unsent <= 0
    local closes = is_answer and DISCONNECTS or DELIVERED
    check_answer(c, ended, closes, is_answer and "a DisConn after the tester's DisConn" or "all data is sent", state(c), true)
    take(c)
    check_answer(c, c.got >= c.least, DELIVERED, "all data before the close", ("%d bytes less"):format(c.least - c.got), true)
    check_answer(c, ended.graceful, closes, "a graceful close", state(c))
    -- If the target has sent DisConn first, the tester ends TCP.
    check_answer(c, has_ended or c.is_shut, ENDS, "the end of TCP", "TCP stays open", true)
    opened[number] = nil
  end

  --- Closes a connection gracefully. The DisConn does not end a `wait` of the target's user, so the
  --- tester first lets the user execute all commands.
  function self:close(number) close(number, true) end

  --- Closes a connection gracefully while the target may still send. The user executes the commands
  --- that precede the tester's DisConn, and so the target sends all their data before its DisConn.
  function self:close_early(number) close(number, false) end

  --- Performs a short exchange on each open connection except `number`. The end of one connection
  --- must not disturb another connection. A user that has shut down the sending half sends nothing.
  function self:use_others(number)
    shared.use_others(opened, number, function(other)
      self:target_send(other, { size = 100 })
      settle(opened[other])
    end)
  end

  --- Ends a connection abortively.
  function self:abort(number)
    local c = connection(number)
    judge_shut(c)
    c.socket:abort()
    c.socket:wait { ended = true, within = 1 }
    opened[number] = nil
  end

  --- Resets a connection, even if bytes are missing.
  function self:reset(number)
    local c = connection(number)
    judge_shut(c)
    c.socket:reset()
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

--- A session with a driven SDP socket that accepts connections.
session.sdp_drive = drive_session

--- A session with a driven SDP socket that connects to the tester.
session.sdp_connect = drive_session
