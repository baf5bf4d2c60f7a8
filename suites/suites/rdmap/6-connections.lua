-- RFC 5040 section 6, RFC 5041 sections 3 and 6: connections are independent. The traffic, the
-- errors and the end of a connection do not affect other connections, including later connections.

--- Declares a case with a session of the Lua module `session`, which sends legal traffic and checks
--- the answers.
local function with(service, name, title, parameters, faults, run)
  case {
    id = "rdmap/6-connections/" .. name,
    version = 2,
    title = title,
    requirements = session.requirements(session[service:upper()], table.unpack(faults)),
    capabilities = { service },
    tags = { "connections" },
    parameters = parameters,

    run = function(t, p)
      if not session.serves_two(t) then
        t:unimplemented("The service of the target serves one connection at a time.")
      end
      local s = session[service](t)
      run(s, p)
      s:finish()
    end,
  }
end

--- The number of seconds after which a missing answer is a failure.
local ANSWER = 10
local PLACED, DELIVERED, IN_ORDER = "DDP-5.2-4", "RDMAP-5.3-5", "DDP-5.3-6"

local describe = session.describe

--- Returns the payload of a Send. Each eight bytes show the connection, the Send and their offset,
--- so no two connections have equal data.
local function payload_of(number, msn, size)
  local units = {}
  for at = 0, size - 1, 8 do units[#units + 1] = string.pack(">I2I2I4", number, msn, at) end
  return table.concat(units):sub(1, size)
end

--- Receives the echo of one Send. Returns its payload. If another event comes, returns nil and the
--- event.
local function receive_echo(conn)
  local pieces = {}
  repeat
    local event, fpdu = conn:next { within = ANSWER }
    if event ~= "fpdu" or fpdu.opcode ~= 3 then return nil, event, fpdu end
    pieces[#pieces + 1] = fpdu.payload
  until fpdu.last
  return table.concat(pieces)
end

--- Ends the case as unimplemented, if the target does not serve the connection with this number
--- while the previous ones are open.
local function check_served(t, number, is_served)
  if is_served then return end
  t:check(number > 1, { expected = "a connection to the echo service", actual = "no such connection" })
  t:unimplemented(("The target serves %d connections at a time."):format(number - 1))
end

--- Opens this number of connections, and does one echo on each of them. If the target serves fewer
--- connections at a time, ends the case as unimplemented.
local function open_connections(t, count)
  local conns = {}
  for number = 1, count do
    local conn = t:connect()
    conn:send(t:request())
    local event, reply = conn:next { within = ANSWER }
    check_served(t, number, event == "reply" and not reply.reject)
    conns[number] = conn
  end
  -- Some targets lose a message that arrives immediately after their Reply.
  t:pause(0.2)
  for number, conn in ipairs(conns) do
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = payload_of(number, 1, 40) } })
  end
  for number, conn in ipairs(conns) do
    local echo, want = receive_echo(conn), payload_of(number, 1, 40)
    check_served(t, number, echo)
    t:check(echo == want, { requirement = PLACED, expected = "the bytes of the Send", actual = octets.difference(echo, want) })
  end
  return conns
end

--- Sends Sends on all connections at once. Their segments are sent in turns, in TCP segments of
--- `every` bytes if it is set. Checks each echo.
local function interleave(t, count, size, every)
  t:good_exchange()
  local conns = open_connections(t, count)
  local segment = size // 4
  -- Each connection has a long Send and a short Send in each round.
  for msn = 2, 6, 2 do
    local long = function(number) return payload_of(number, msn, size + number % 7) end
    local short = function(number) return payload_of(number, msn + 1, 12) end
    for at = 0, size + 6, segment do
      for number, conn in ipairs(conns) do
        local payload = long(number)
        if at < #payload then
          local ulpdu = rdmap.send { payload = payload:sub(at + 1, at + segment), msn = msn, mo = at, last = at + segment >= #payload }
          conn:send(mpa.fpdu { ulpdu = ulpdu }, every and { every = every } or nil)
        end
      end
    end
    for number, conn in ipairs(conns) do conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = short(number), msn = msn + 1 } }) end
    for number, conn in ipairs(conns) do
      for _, payload in ipairs { long(number), short(number) } do
        local echo, event, fpdu = receive_echo(conn)
        local expected = ("the echo of a Send of %d bytes on connection %d"):format(#payload, number)
        t:check(echo, {
          requirement = DELIVERED,
          expected = expected,
          actual = echo and expected or describe(event, fpdu),
          -- If a basic case failed, its fault may be the reason for an error of MPA, too.
          missing = event ~= "fpdu" or fpdu.opcode == 7 and fpdu.payload:byte() == 0x20,
        })
        t:check(echo ~= short(number) or payload == echo, {
          requirement = IN_ORDER, expected = expected, actual = "the echo of the later Send",
        })
        t:check(echo == payload, { requirement = PLACED, expected = expected, actual = octets.difference(echo, payload) })
      end
    end
  end
  for _, conn in ipairs(conns) do conn:close() end
end

--- Declares a case that sends messages on `connections` connections at once.
local function interleaved(name, title, fields)
  case {
    id = "rdmap/6-connections/" .. name,
    version = fields.version,
    title = title,
    requirements = { PLACED, DELIVERED, IN_ORDER },
    capabilities = { "echo" },
    tags = { "connections" },
    tier = fields.tier,
    parameters = { connections = fields.connections, size = fields.size, pieces = { false, true } },

    run = function(t, p)
      -- With these TCP segments, FPDUs of several connections arrive in pieces.
      local every = p.pieces and (p.size < 100 and 7 or p.size // 10) or nil
      interleave(t, p.connections, p.size, every)
    end,
  }
end

interleaved("interleaved", "The target keeps the messages of several connections apart",
  { version = 4, connections = { 2, 3, 16, 64 }, size = { 40, 3000 } })
interleaved("interleaved-many", "The target keeps the messages of hundreds of connections apart",
  { tier = "full", connections = { 256, 1000 }, size = { 600 } })

local ERRORS = { "wrong-queue", "unknown-stag", "reserved-opcode", "used-msn" }

with("echo", "neighbour", "An error of one connection does not affect another", {}, ERRORS, function(s)
  for number = 1, 2 do s:send(number, { size = 60 }) end
  for index, fault in ipairs(ERRORS) do
    s:send(2 + index, { size = 30 })
    s:message(1, { size = 3000, segment = 1000 })
    s:segments(1, 1)
    s:fault(2 + index, fault)
    s:segments(1, 2)
    s:send(1, { size = 50 })
    s:send(2, { size = 70 })
    s:answers(1)
  end
end)

local RPING_ERRORS = { "wrong-queue", "unknown-stag", "reserved-opcode", "write-beyond", "read-beyond", "invalidated-read" }

with("rping", "neighbour-rping", "An error of one connection does not affect the Writes and Reads of another", {}, RPING_ERRORS,
  function(s)
  for number = 1, 2 do s:write(number, { at = 0, size = 48 + number }) end
  for index, fault in ipairs(RPING_ERRORS) do
    s:write(2 + index, { at = 0, size = 20 })
    -- The answers to these Reads arrive while the error ends another connection.
    s:reads(1, 3, 20)
    s:fault(2 + index, fault)
    s:write(1, { at = index, size = 30 })
    s:read(1, { at = 0, size = 64 })
    s:read(2, { at = 0, size = 64 })
    s:answers(1)
    s:answers(2)
  end
end)

local AGENT_ERRORS = { "wrong-queue", "unknown-stag", "used-msn", "write-beyond", "read-beyond", "no-write-right", "no-read-right" }

case {
  id = "rdmap/6-connections/neighbour-agent",
  title = "An error of one connection does not affect the messages, the completions and the memory of another",
  requirements = session.requirements(session.AGENT, table.unpack(AGENT_ERRORS)),
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "connections", "agent" },

  run = function(t, _, target)
    local s = session.agent(t, target)
    for number = 1, 2 do s:write(number, { size = 1500 + number }) end
    for index, fault in ipairs(AGENT_ERRORS) do
      -- On connection 1, a Send of the tester is incomplete, and a Write of the user waits for the
      -- answers to Reads. On connection 2, Reads of the tester are unanswered.
      s:post(1, "send", { size = 300 + index, invalidate = index == 1, solicited = true })
      s:post(1, "read", { size = 2000, count = 2 })
      s:post(1, "write", { size = 100, fence = true, parts = 2 })
      s:message(1, { size = 3000, segment = 1000 })
      s:segments(1, 1)
      s:read(2, { size = 400, count = 2 })
      s:fault(2 + index, fault)
      s:segments(1, 2)
      s:post(2, "write", { size = 2500 })
      s:message(2, { size = 70 })
      s:answers(1)
      s:answers(2)
    end
    s:finish()
  end,
}

with("echo", "half-sent", "A connection that ends in the middle of a Send leaves nothing to the next connection", {},
  { "wrong-queue" }, function(s)
  for _, ends in ipairs { "reset", "fault" } do
    s:send(1, { size = 40 })
    s:answers(1)
    s:message(1, { size = 3000, segment = 1000 })
    s:segments(1, 2)
    if ends == "reset" then s:reset(1) else s:fault_now(1, "wrong-queue") end
    for number = 2, 4 do
      s:send(number, { size = 20 })
      s:send(number, { size = 2999, segment = 1000 })
      s:answers(number)
      s:close(number)
    end
  end
end)

case {
  id = "rdmap/6-connections/after-many",
  version = 2,
  title = "The target still works after many connections that were closed, refused, reset, or ended by an error",
  requirements = session.requirements(session.ECHO, "wrong-queue"),
  capabilities = { "echo" },
  tags = { "connections" },
  parameters = { count = { 10, 40 } },
  scales = { "count" },

  run = function(t, p)
    local s = session.echo(t)
    for number = 1, p.count do
      s:send(1, { size = 40 })
      s:close(1)
      s:message(1, { size = 3000, segment = 1000 })
      s:segments(1, 1)
      s:reset(1)
      s:send(1, { size = 20 })
      s:fault(1, "wrong-queue")
      if number % 10 == 0 then s:refused(10) end
    end
    s:send(1, { size = 3000, segment = 1000 })
    s:finish()
  end,
}

--- Number of blocks of connections. Each block has ten rounds of a closed and a reset connection,
--- ten refused connections, and a good exchange. So there are 10,013 connections.
local BLOCKS = 323
--- Number of blocks at the beginning and at the end whose times are compared.
local COMPARED = 10
--- The number of seconds after which no further block begins. A slow target needs minutes for all
--- blocks.
local BUDGET = 900

--- Returns the shortest of the times from `first` to `last`. Other work of the target's host makes
--- some blocks slower.
local function fastest(times, first, last)
  return math.min(table.unpack(times, first, last))
end

case {
  id = "rdmap/6-connections/after-thousands",
  title = "The target still works, and is as quick as before, after 10,000 connections that were closed, refused or reset",
  requirements = session.requirements(session.ECHO),
  capabilities = { "echo" },
  tags = { "connections", "slow" },
  tier = "full",

  run = function(t)
    local s = session.echo(t)
    local began, times = t:clock(), {}
    for block = 1, BLOCKS do
      local at = t:clock()
      if at - began > BUDGET then break end
      for _ = 1, 10 do
        s:send(1, { size = 40 })
        s:close(1)
        s:message(1, { size = 3000, segment = 1000 })
        s:segments(1, 1)
        s:reset(1)
      end
      s:refused(10)
      times[block] = t:clock() - at
    end
    local compared = math.min(COMPARED, #times // 2)
    local before, after = fastest(times, 1, compared), fastest(times, #times - compared + 1, #times)
    t:note(("%d blocks of 31 connections: %.3f s per block at the beginning, %.3f s at the end"):format(#times, before, after))
    -- No requirement is about the speed of a target. So the case is inconclusive if the target is
    -- slower.
    t:check(after <= 5 * before + 0.5, {
      expected = ("about %.3f s for 31 connections, as at the beginning"):format(before),
      actual = ("%.3f s after %d blocks of 31 connections"):format(after, #times),
    })
    s:send(1, { size = 3000, segment = 1000 })
    s:finish()
  end,
}

with("rping", "ended-stag", "The STag of a connection that has ended is not valid on a later connection",
  {}, { "closed-stag" }, function(s)
  s:write(1, { at = 0, size = 40 })
  s:close(1)
  s:open(2)
  s:fault(2, "closed-stag")
  s:read(3, { at = 0, size = 40 })
end)

--- Number of connections with different settings. Bit `number - 1` of MARKED is set if the tester
--- requests markers on the connection with this number. For each distance from 1 to 8, at least six
--- pairs of connections with this distance differ.
local CONNECTIONS, MARKED = 16, 0x17d8
local WITHOUT_MARKERS, WITH_MARKERS = "MPA-7.1.1-8", "MPA-7.1.1-9"

--- Receives and checks the echo of a Send of `payload`.
local function check_echo(t, conn, payload)
  local echo = ""
  repeat
    local event, fpdu = conn:next { within = ANSWER }
    -- The monitor judges the markers. If there are markers that the tester did not request, or if
    -- markers are missing, the other bytes are not a correct FPDU.
    t:check(event ~= "octets" and (event ~= "fpdu" or fpdu.crc_is_right), {
      expected = "an FPDU with a correct CRC", actual = event == "fpdu" and "a wrong CRC" or "other bytes",
    })
    t:check(event == "fpdu" and fpdu.opcode == 3, {
      requirement = DELIVERED, expected = "an echo", actual = describe(event, fpdu), missing = event ~= "fpdu",
    })
    echo = echo .. fpdu.payload
  until fpdu.last
  t:check(echo == payload, { requirement = PLACED, expected = "the bytes of the Send", actual = octets.difference(echo, payload) })
end

case {
  id = "rdmap/6-connections/settings",
  title = "The target inserts markers on the connections whose peer has M=1, and on no other open connection",
  requirements = { WITHOUT_MARKERS, WITH_MARKERS, PLACED, DELIVERED },
  capabilities = { "echo", "markers", "crc" },
  tags = { "connections", "markers" },

  run = function(t)
    if not session.serves_two(t) then
      t:unimplemented("The service of the target serves one connection at a time.")
    end
    t:good_exchange()

    local conns = {}
    for number = 1, CONNECTIONS do
      conns[number] = t:start_up { crc = true, markers = MARKED >> (number - 1) & 1 == 1 }
    end
    for round = 1, 3 do
      local payloads = {}
      for number, conn in ipairs(conns) do
        payloads[number] = string.pack(">I2I2", number, round) .. octets.counted(596)
        conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = payloads[number], msn = round } })
      end
      for number, conn in ipairs(conns) do check_echo(t, conn, payloads[number]) end
    end
    local echoes = "echoes with markers if, and only if, the tester requested them"
    t:check(true, { requirement = { WITHOUT_MARKERS, WITH_MARKERS }, expected = echoes, actual = echoes })
    for _, conn in ipairs(conns) do conn:close() end
  end,
}

local EARLY, COMPLETES = "RDMAP-5.5-21", "RDMAP-5.5-23"
--- The size in bytes of the data that each connection advertises.
local SIZES = { 64, 33, 48 }
--- The number of seconds in which a Send that must not arrive would arrive.
local SILENCE = 0.5

--- Sends one of rping's Sends, which names a buffer of the tester.
local function advertise(c, stag, size)
  c.conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = string.pack(">I8I4I4", 0x1000, stag, size), msn = c.msn } })
  c.msn = c.msn + 1
end

--- Receives a message with this opcode, and returns its payload. If another event comes, returns
--- nil and this event. The event is nil if nothing arrives.
local function receive(conn, opcode)
  local pieces = {}
  repeat
    local event, fpdu = conn:next { within = ANSWER }
    if event ~= "fpdu" or fpdu.opcode ~= opcode then return nil, event, fpdu end
    pieces[#pieces + 1] = fpdu.payload
  until fpdu.last
  return table.concat(pieces)
end

case {
  id = "rdmap/6-connections/reads-at-once",
  title = "The target completes its outstanding Reads of several connections, each with the Read Response on its connection",
  requirements = { EARLY, COMPLETES, PLACED },
  capabilities = { "rping" },
  tags = { "connections", "read" },
  parameters = { connections = { 2, 3 }, order = { "same", "reverse" } },

  run = function(t, p)
    -- This probe needs no completed Read.
    if not session.serves_two(t, t:start_up()) then
      t:unimplemented("The service of the target serves one connection at a time.")
    end

    local conns = {}
    for number = 1, p.connections do
      local size = SIZES[number]
      -- The server of rping writes a C string, so only the last byte of the data is zero.
      local c = { conn = t:start_up(), msn = 1, number = number, data = (("data %d "):format(number)):rep(10):sub(1, size - 1) .. "\0" }
      advertise(c, 0x77670000 + number, size)
      local request = c.conn:expect_fpdu { opcode = 1 }
      t:check(#request.payload == 28, { expected = "a Read Request of 28 bytes", actual = #request.payload .. " bytes" })
      c.stag, c.to, c.size = string.unpack(">I4i8I4", request.payload)
      t:check(c.size == size, { expected = ("a Read of %d bytes"):format(size), actual = ("a Read of %d bytes"):format(c.size) })
      conns[p.order == "same" and number or p.connections + 1 - number] = c
    end

    --- Sends a part of the Read Response of a connection.
    local function respond(c, from, till, last)
      local piece = c.data:sub(from + 1, till)
      c.conn:send(mpa.fpdu { ulpdu = rdmap.write { opcode = 2, stag = c.stag, tagged_offset = c.to + from, payload = piece, last = last } })
    end
    for _, c in ipairs(conns) do respond(c, 0, c.size // 2, false) end
    for _, c in ipairs(conns) do
      local event, fpdu = c.conn:next { within = SILENCE }
      local expected = ("nothing on connection %d, because its Read is not complete"):format(c.number)
      t:check(event ~= "fpdu" or fpdu.opcode ~= 3, { requirement = EARLY, expected = expected, actual = "a Send" })
      t:check(event == nil, { requirement = PLACED, expected = expected, actual = describe(event, fpdu, SILENCE) })
    end
    for _, c in ipairs(conns) do
      respond(c, c.size // 2, c.size, true)
      local signal, event, fpdu = receive(c.conn, 3)
      t:check(signal, {
        requirement = COMPLETES,
        expected = ("a Send, because the Read of connection %d is complete"):format(c.number),
        actual = describe(event, fpdu),
        missing = event ~= "fpdu",
      })
    end

    for _, c in ipairs(conns) do
      advertise(c, 0x77680000 + c.number, c.size)
      local written = receive(c.conn, 0)
      t:check(written, { expected = "a Write of the data", actual = "no Write" })
      t:check(written == c.data, {
        requirement = PLACED,
        expected = ("the data of connection %d"):format(c.number),
        actual = octets.difference(written or "", c.data),
      })
      t:check(receive(c.conn, 3), { expected = "a Send after the Write", actual = "no Send" })
      c.conn:close()
    end
  end,
}
