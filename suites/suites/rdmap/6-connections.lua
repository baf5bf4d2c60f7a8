-- RFC 5040 section 6, RFC 5041 sections 3 and 6: connections are independent. The traffic, the
-- errors and the end of a connection do not affect other connections, including later connections.

--- Declares a case with a session of the Lua module `session`, which sends legal traffic and checks
--- the answers.
local function with(service, name, title, parameters, faults, run)
  case {
    id = "rdmap/6-connections/" .. name,
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

with("echo", "interleaved", "The target keeps the messages of several connections apart",
  { connections = { 2, 3, 16 }, size = { 40, 3000 }, pieces = { false, true } }, {}, function(s, p)
  local segment = p.size // 4
  -- The size of TCP segments, so that FPDUs of several connections arrive in pieces.
  local every = p.pieces and (p.size < 100 and 7 or 280) or nil
  for number = 1, p.connections do s:send(number, { size = 40 }) end
  for _ = 1, 3 do
    for number = 1, p.connections do
      s:message(number, { size = p.size + number, segment = segment, every = every })
    end
    for _ = 1, 6 do
      for number = 1, p.connections do s:segments(number, 1) end
    end
    for number = 1, p.connections do s:answers(number) end
  end
end)

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
