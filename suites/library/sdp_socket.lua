-- The functions that the sessions with SDP sockets share: how a connection ended, the steps of the
-- tester's own socket, and the step that plays a fault (`sdp_faults.lua`).

local shared = ...
local ANSWER = shared.ANSWER

--- Number of times that the tester tries to send the messages of a fault.
local TRIES = 100
--- The number of seconds in which a target would end a connection that must stay open.
local OPEN = 0.3

--- All bytes are delivered, in order, before the end of the connection.
local DELIVERED = "SDP-8.2-1"

--- Describes how the connection of a socket ended, or that it is still open.
function shared.socket_state(c)
  local ended = c.socket:ended()
  if not ended then return ("nothing more for %d s"):format(ANSWER) end
  if ended.reason then return "an end of the connection, because of this violation: " .. ended.reason end
  return ended.graceful and "a graceful close" or "an end of the connection"
end

--- Returns a function like `check`, for an answer of the target. If the tester has ended the
--- connection because of a violation, the function names no requirement, because the monitor
--- reports the violation.
function shared.answer_checker(check)
  return function(c, ok, requirement, expected, actual, missing)
    local ended = c.socket:ended()
    check(ok, not (ended and ended.reason) and requirement or nil, expected, actual, missing)
  end
end

--- For a number of seconds, the tester's user takes no data.
function shared.hold(t, c, seconds)
  c.socket:hold(seconds)
  c.held_until = t:clock() + seconds
end

--- Waits until the tester's user takes data again. After the target's DisConn, the tester posts no
--- receive, so it would lose data.
function shared.end_hold(t, c)
  while t:clock() < (c.held_until or 0) do c.socket:wait { within = 0.01 } end
  if c.held_until then c.socket:wait { within = 0.01 } end
end

--- Sends the messages of a fault as soon as the send credit suffices for all of them.
local function inject(t, c, messages, check_answer)
  for _ = 1, TRIES do
    check_answer(c, not c.socket:ended(), DELIVERED, "an open connection", shared.socket_state(c), true)
    if c.socket:inject(messages) then return end
    c.socket:wait { within = ANSWER / TRIES }
  end
  t:check(false, { expected = "send credit for the messages of a fault", actual = "too little send credit" })
end

--- Plays a fault on a connection. `session.FAULTS` has the names. After illegal messages, the target
--- should end the connection. After unusual messages, the connection must stay open. Returns
--- whether it stays open. If it does not, the socket cannot be used any more. `own` has functions
--- of the session:
---
--- - `settle()` waits for all answers of the target. It is not called before a fault with `is_early`.
--- - `send(size)` sends `size` bytes that the target receives.
--- - `use()` performs a short exchange on the connection.
--- - `take()` takes the received bytes after an illegal message.
function shared.fault(t, c, name, own)
  local fault, check = session.FAULTS[name], shared.checker(t)
  local check_answer = shared.answer_checker(check)
  local function state() return shared.socket_state(c) end
  c.socket:wait { open = true, within = ANSWER }
  if not fault.is_early then own.settle() end
  if fault.play then
    fault.play(c.socket, { check = check, state = state, send = own.send })
  else
    inject(t, c, fault.build(), check_answer)
  end
  if fault.is_accepted then
    c.socket:wait { within = OPEN }
    check_answer(c, not c.socket:ended(), fault.requirement, "a connection that stays open", state())
    own.use()
    return true
  end
  if not fault.play then
    c.socket:wait { ended = true, within = ANSWER }
    own.take()
    local ended = c.socket:ended()
    t:check(ended ~= nil and not ended.reason, {
      requirement = fault.requirement, shows = fault.shows, expected = "the end of the connection", actual = state(),
    })
  end
  c.socket:reset()
  return false
end

--- Adds steps of the tester's socket to a session. `connection(number)` returns the connection with
--- this number, and opens it if necessary.
function shared.socket_steps(self, connection)
  --- Requests a Mode of the half-connection to the target.
  function self:mode(number, mode) connection(number).socket:mode(mode) end

  --- Ends Buffered Mode of the half-connection from the target.
  function self:unbuffer(number) connection(number).socket:mode("combined", { receiving = true }) end

  --- Requests another size of the target's Private Buffers.
  function self:resize(number, size) connection(number).socket:resize(size) end

  --- For a number of seconds, does not read the target's bytes on a connection, but still sends.
  function self:stop_reading(number, seconds)
    local c = connection(number)
    -- The tester can send only after the start-up.
    c.socket:wait { open = true, within = ANSWER }
    c.socket:stop_reading(seconds)
  end

  --- Changes how the tester answers a SrcAvail.
  function self:answer(number, how) connection(number).socket:answer(how) end

  --- Lets a connection continue for a number of seconds.
  function self:run(number, seconds) connection(number).socket:wait { within = seconds } end
end
