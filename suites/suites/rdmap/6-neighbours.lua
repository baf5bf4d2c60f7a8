-- RFC 5040 section 6, RFC 5041 section 6: connections are independent. On some connections, the
-- peer does not read, or it has sent only a part of a message. The target still serves other
-- connections. A delay is not a violation, but an answer that is missing at the time limit is one.

--- The number of seconds after which a missing answer is a failure.
local ANSWER = 10
--- The number of seconds after which a missing echo of a connection that was blocked is a failure.
local FLOOD_ANSWER = 40

--- The number of Sends on a blocked connection, the payload bytes of each, and those of its
--- segments. The Sends exceed all buffers of TCP.
local FLOOD, SIZE, SEGMENT = 256, 16000, 1000

--- Size in bytes of the receive buffer of the tester.
local BUFFER = 65536

local DELIVERED, IN_ORDER, PLACED = "RDMAP-5.3-5", "DDP-5.3-6", "DDP-5.2-4"

local describe = session.describe

--- Receives the echo of one Send, and returns its payload, the last event and the last FPDU. If
--- another event comes, the payload is nil. The event is nil if nothing arrives.
local function receive(c, within)
  local pieces = {}
  while true do
    local event, fpdu = c.conn:next { within = within }
    if event ~= "fpdu" or fpdu.opcode ~= 3 then return nil, event, fpdu end
    pieces[#pieces + 1] = fpdu.payload
    if fpdu.last then return table.concat(pieces), event, fpdu end
  end
end

--- Checks an echo. `result` has the results of `receive`.
local function check_echo(t, result, want, within, what)
  local echo, event, fpdu = table.unpack(result, 1, 3)
  t:check(echo, { requirement = DELIVERED, expected = what, actual = describe(event, fpdu, within), missing = event ~= "fpdu" })
  t:check(echo == want, { requirement = PLACED, expected = what, actual = octets.difference(echo, want) })
end

--- Sends a short Send on a connection. Returns its payload, which has the numbers of the connection
--- and of the Send.
local function send(c)
  local payload = string.pack(">I4I4", c.number, c.msn) .. octets.counted(32)
  c.conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = payload, msn = c.msn } })
  c.msn = c.msn + 1
  return payload
end

--- Sends a short Send on a connection, and checks its echo.
local function exchange(t, c, what)
  local payload = send(c)
  check_echo(t, table.pack(receive(c, ANSWER)), payload, ANSWER, what)
end

--- Ends the case as unimplemented, if the target does not serve the connection with this number
--- while the previous ones are open.
local function check_served(t, number, is_served)
  if is_served then return end
  t:check(number > 1, { expected = "a connection to the echo service", actual = "no such connection" })
  t:unimplemented(("The target serves %d connections at a time."):format(number - 1))
end

--- Opens this number of connections, and does an echo on each of them.
local function open_connections(t, count)
  local open = {}
  for number = 1, count do
    local conn = t:connect()
    conn:send(t:request())
    local event, reply = conn:next { within = ANSWER }
    check_served(t, number, event == "reply" and not reply.reject)
    open[number] = { conn = conn, number = number, msn = 1 }
  end
  -- Some targets lose a message that arrives immediately after their Reply.
  t:pause(0.2)
  for number, c in ipairs(open) do
    local payload = send(c)
    check_served(t, number, receive(c, ANSWER) == payload)
  end
  return open
end

--- Uses an open connection and a new one, while other connections are blocked or have an incomplete
--- message.
local function use_others(t, open, number, why)
  for _ = 1, 3 do exchange(t, open, "an echo on an open connection while " .. why) end
  local conn, op = t:operate(nil, { requirement = DELIVERED })
  local new = { conn = conn, number = number, msn = op.msn }
  for _ = 1, 3 do exchange(t, new, "an echo on a new connection while " .. why) end
  exchange(t, open, "an echo on an open connection while " .. why)
  conn:close()
end

--- Returns the payload of a Send on a blocked connection.
local function flood_payload(c, nth, rest) return string.pack(">I4I4", c.number, nth) .. rest end

--- Sends FLOOD Sends. The tester does not read their echoes, so TCP of both directions is blocked.
local function flood(c, rest)
  for nth = 1, FLOOD do
    local payload, fpdus = flood_payload(c, nth, rest), nil
    for at = 0, SIZE - 1, SEGMENT do
      local piece = payload:sub(at + 1, at + SEGMENT)
      local fpdu = mpa.fpdu { ulpdu = rdmap.send { payload = piece, msn = c.msn, mo = at, last = at + SEGMENT == SIZE } }
      fpdus = fpdus and fpdus .. fpdu or fpdu
    end
    c.msn = c.msn + 1
    c.conn:send(fpdus, { queued = true })
  end
end

--- Receives the echoes of a flood, and compares their bytes.
local function drain(t, c, rest)
  for nth = 1, FLOOD do
    local echo, event, fpdu = receive(c, FLOOD_ANSWER)
    local first, code = (event == "fpdu" and fpdu.opcode == 7 and fpdu.payload or "\0\0"):byte(1, 2)
    -- Without a receive, the target reports that it has no buffer, that the MSN is out of range, or
    -- that the message is too long (RFC 5041 section 7.2).
    if first == 0x12 and (code == 2 or code == 3 or code == 5) then
      c.conn:reset()
      t:unimplemented("The target has no receive for each of the unanswered Sends.")
    end
    -- An application may end a connection whose peer does not read.
    if event == "close" then
      c.conn:reset()
      t:liveness()
      t:unimplemented("The target ends a connection whose peer does not read.")
    end
    local what = ("the echo of Send %d of a connection that was blocked"):format(nth)
    local want = flood_payload(c, nth, rest)
    t:check(not echo or echo:sub(1, 8) == want:sub(1, 8), { requirement = IN_ORDER, expected = what, actual = "the echo of another Send" })
    check_echo(t, { echo, event, fpdu }, want, FLOOD_ANSWER, what)
  end
end

case {
  id = "rdmap/6-neighbours/blocked",
  title = "The target serves other connections while its peer reads nothing on one or two connections",
  requirements = { DELIVERED, IN_ORDER, PLACED },
  capabilities = { "echo" },
  tags = { "send", "connections", "blocked" },
  tier = "default",
  parameters = { blocked = { 1, 2 } },

  run = function(t, p)
    t:good_exchange()
    -- A small buffer closes the window sooner. TCP still reads it quickly afterwards.
    t:receive_buffer(BUFFER)
    -- The last connection only shows how many connections the target serves at a time.
    local open = open_connections(t, p.blocked + 2)
    table.remove(open).conn:close()
    local other = table.remove(open)
    local rest = octets.counted(SIZE - 8)
    for _, c in ipairs(open) do flood(c, rest) end
    t:pause(1)
    use_others(t, other, p.blocked + 2, "a peer does not read")
    for _, c in ipairs(open) do
      drain(t, c, rest)
      exchange(t, c, "an echo on a connection that was blocked")
      c.conn:close()
    end
    exchange(t, other, "an echo after the blocked connections")
    other.conn:close()
  end,
}

local ACCEPTED = "MPA-7.1.2-8"

--- Sends the first part of a Request or of a Send. Returns a function that sends the rest, and
--- checks the answer.
local function begin(t, c, what)
  if what == "request" then
    -- The tester cannot change its settings for markers if a Request arrives in pieces.
    local request = t:request { markers = false }:octets()
    c = { conn = t:connect(), number = c.number, msn = 1 }
    c.conn:send(request:sub(1, 10))
    return function()
      c.conn:send(request:sub(11))
      local event, reply = c.conn:next { within = ANSWER }
      t:check(event == "reply" and not reply.reject, {
        requirement = ACCEPTED, expected = "a Reply with R=0 to a Request in two parts", actual = event or "nothing", missing = event == nil,
      })
      t:pause(0.2)
      exchange(t, c, "an echo after a Request in two parts")
      c.conn:close()
    end
  end
  local payload, msn = octets.counted(1200), c.msn
  local function segment(from, till, last)
    return mpa.fpdu { ulpdu = rdmap.send { payload = payload:sub(from + 1, till), msn = msn, mo = from, last = last } }
  end
  local first, second = segment(0, 600, false):octets(), segment(600, 1200, true):octets()
  -- The first part ends between the segments, in the length field, or in the payload of the second.
  local cut = ({ send = 0, length = 1, payload = 300 })[what]
  c.conn:send(first .. second:sub(1, cut))
  c.msn = msn + 1
  return function()
    c.conn:send(second:sub(cut + 1))
    check_echo(t, table.pack(receive(c, ANSWER)), payload, ANSWER, "the echo of a Send in two parts")
    exchange(t, c, "an echo after a Send in two parts")
    c.conn:close()
  end
end

case {
  id = "rdmap/6-neighbours/incomplete",
  title = "The target serves other connections while a Request, an FPDU or a Send of one or two connections is incomplete",
  requirements = { DELIVERED, PLACED, ACCEPTED },
  capabilities = { "echo" },
  tags = { "send", "startup", "connections", "segment" },
  tier = "default",
  parameters = { what = { "request", "send", "length", "payload" }, incomplete = { 1, 2 } },

  run = function(t, p)
    t:good_exchange()
    local open = open_connections(t, p.incomplete + 2)
    table.remove(open).conn:close()
    local other = table.remove(open)
    local complete = {}
    for nth, c in ipairs(open) do
      -- A Request is on a new connection in place of the open one.
      if p.what == "request" then c.conn:close() end
      complete[nth] = begin(t, c, p.what)
    end
    t:pause(1)
    use_others(t, other, p.incomplete + 2, "another connection has an incomplete message")
    t:check(true, { requirement = ACCEPTED, expected = "a Reply with R=0 on the new connection", actual = "none" })
    for _, rest in ipairs(complete) do rest() end
    exchange(t, other, "an echo after the incomplete messages")
    other.conn:close()
  end,
}
