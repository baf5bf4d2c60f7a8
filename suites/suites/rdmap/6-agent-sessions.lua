-- RFC 5040 sections 5.1 to 5.5 and RFC 5041 sections 5.2 and 5.3: the target sends what its user
-- posts, and serves what its peer sends, in any order of legal operations. The steps of each
-- session are random, but each number of a session always has the same steps. The user is an agent:
-- a program on the target that calls the NIC's verbs for the tester. All data must be correct.

--- Number of random sessions of a case.
local DRAWN = 4

--- Declares a case whose variants are random sessions with up to `connections` connections.
local function drawn(name, title, connections)
  case {
    id = "rdmap/6-agent-sessions/" .. name,
    version = 3,
    title = title,
    requirements = session.AGENT,
    roles = { "responder", "initiator" },
    capabilities = { "agent" },
    tags = { "sessions", "agent" },
    parameters = { number = session.numbers(1, DRAWN) },

    run = function(t, p, target)
      local s = session.agent(t, target)
      t:drawn_session("agent", p.number, connections)(s)
      s:close_all()
      -- The target still serves a new connection.
      s:post(1, "send", { size = 600, parts = 2 })
      s:post(1, "read", { size = 3000 })
      s:post(1, "write", { size = 20, fence = true })
      s:message(1, { size = 2000 })
      s:write(1, { size = 1500 })
      s:read(1, { size = 1600 })
      s:finish()
    end,
  }
end

drawn("one", "The target serves sessions with random messages of its user and of its peer", 1)
drawn("connections", "The target serves sessions with random messages of its user and of its peer on several connections", 4)
