-- draft-pinkerton-iwarp-sdp-01 sections 7.4 and 7.5: a port mapper (PM Server) answers PMReqs of
-- several clients at once, copies of PMReqs, and PMReqs after illegal datagrams. The draft permits
-- any order of these steps. The monitor judges the fields of each answer.

--- Number of random sessions of a case.
local DRAWN = 4

--- Illegal datagrams, and PMReqs that the target must answer although a field is wrong.
local FAULTS = {
  "pm-time", "reserved", "padding", "unknown-ack", "other-ipv", "other-version", "own-accept", "own-deny", "empty", "short",
  "long",
}

--- Declares a case with a session.
local function with(name, title, requirements, parameters, run)
  case {
    id = "sdp-pm/7-sessions/" .. name,
    version = 2,
    title = title,
    requirements = requirements,
    capabilities = { "port-mapper" },
    tags = { "sessions" },
    parameters = parameters,

    run = function(t, p)
      local s = session.portmap(t)
      run(s, p, t)
      s:finish()
    end,
  }
end

with("at-once", "The server answers several clients and many PMReqs at once", session.PORTMAP, { count = { 1, 2, 16 } }, function(s, p)
  for client = 1, 4 do s:request(client, client) end
  for client = 1, 4 do s:answers(client) end
  s:burst(1, p.count)
  s:burst(2, 3, "unmapped")
  s:resend(1, 1, 3)
  s:ack(1, 1, 2)
  s:resend(1, 1, 1)
  s:close(2)
end)

for _, clients in ipairs { 1, 4 } do
  local name = clients == 1 and "drawn" or "drawn-clients"
  local title = clients == 1 and "The server serves sessions with random steps" or "The server serves sessions with random steps of several clients"
  with(name, title, session.PORTMAP, { number = session.numbers(1, DRAWN) }, function(s, p, t)
    t:drawn_session("port-mapper", p.number, clients)(s)
  end)
end

with("illegal", "The server answers PMReqs after illegal datagrams", session.requirements(session.PORTMAP, table.unpack(FAULTS)), {}, function(s)
  for _, name in ipairs(FAULTS) do
    s:request(1, 2)
    s:fault(1, name)
    s:ack(1, 2, 1)
  end
end)
