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

with("rping", "ended-stag", "The STag of a connection that has ended is not valid on a later connection",
  {}, { "closed-stag" }, function(s)
  s:write(1, { at = 0, size = 40 })
  s:close(1)
  s:open(2)
  s:fault(2, "closed-stag")
  s:read(3, { at = 0, size = 40 })
end)
