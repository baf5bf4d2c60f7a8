-- The functions that the sessions with SDP sockets share: how a connection ended, and the steps of
-- the tester's own socket.

local shared = ...
local ANSWER = shared.ANSWER

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
