-- RFC 5040 section 5.5, RFC 5041 section 5.3 and RFC 5044 section 4: the target serves any order of
-- legal operations. The steps of each session are random, but each number of a session always has
-- the same steps. The monitor judges each message of the target, and all data must be correct.

--- Number of random sessions of a case.
local DRAWN = 4

--- Declares a case whose variants are random sessions with up to `connections` connections.
local function drawn(service, name, title, connections)
  case {
    id = "rdmap/6-sessions/" .. name,
    version = 2,
    title = title,
    requirements = { session[service:upper()], service == "rping" and session.ANNOUNCED or nil },
    capabilities = { service },
    tags = { "sessions" },
    parameters = { number = session.numbers(1, DRAWN) },

    run = function(t, p)
      if connections > 1 and not session.serves_two(t) then
        t:unimplemented("The service of the target serves one connection at a time.")
      end
      local s = session[service](t)
      t:drawn_session(service, p.number, connections)(s)
      s:close_all()
      -- The target still serves a new connection.
      if service == "echo" then
        for _, size in ipairs { 600, 3000, 20 } do s:send(1, { size = size }) end
      else
        s:rounds(1, 2, { size = 30 })
        s:announce(1, { size = 40 })
        s:write(1, { at = 3, size = 20 })
        s:read(1, { at = 0, size = 40 })
      end
      s:finish()
    end,
  }
end

drawn("echo", "echo", "The target serves sessions with random steps", 1)
drawn("echo", "echo-connections", "The target serves sessions with random steps on several connections", 4)
drawn("rping", "rping", "The target serves sessions with random Reads, Writes and rounds of rping", 1)
drawn("rping", "rping-connections", "The target serves sessions with random operations of rping on several connections", 4)
