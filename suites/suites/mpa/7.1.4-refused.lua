-- RFC 5044 sections 7.1.2 and 7.1.4.2: connections that the ULP refuses, in what the target sends and in what an agent on it is told.

local REFUSED = { "MPA-7.1.2-5", "MPA-7.1.2-20", "MPA-7.1.1-17" }

case {
  id = "mpa/7.1.4-refused/by-user",
  version = 1,
  title = "A Request that the user refuses is answered by a Reply with R=1, and no FPDU follows",
  requirements = { "MPA-7.1.2-5", "MPA-7.1.2-20", "MPA-7.1.1-17" },
  roles = { "responder" },
  capabilities = { "agent" },
  tags = { "startup", "refusal", "agent" },
  parameters = { private_data = { "", "not today" } },

  run = function(t, p, target)
    t:good_exchange()
    local conn = t:connect()
    conn:send(t:request { private_data = "may I?" })
    local pair = target:expect_request {}
    pair:reject { private_data = p.private_data }
    conn:expect_reply { requirement = REFUSED, reject = true, overdue_fails = true }
    -- TCP is closed, or left open.
    conn:expect_silence { requirement = "MPA-7.1.1-17", within = 1 }
    conn:close()

    t:liveness()
  end,
}

case {
  id = "mpa/7.1.4-refused/by-peer",
  version = 1,
  title = "The user is told that its Request was refused, and the private data of the Reply",
  requirements = { "MPA-7.1.4.2-2" },
  roles = { "initiator" },
  capabilities = { "agent" },
  tags = { "startup", "refusal", "private-data", "agent" },
  parameters = { length = { 0, 1, 4, 148, 251 } },

  run = function(t, p, target)
    t:good_exchange()
    local private_data = ("not today "):rep(26):sub(1, p.length)
    local conn, pair = target:connect {}
    conn:expect_request {}
    conn:send(conn:reply { reject = true, private_data = private_data })
    pair:expect_event { event = "rejected", private_data = private_data, requirement = "MPA-7.1.4.2-2", overdue_fails = true }
    conn:close()

    t:liveness()
  end,
}

--- A Reply that is malformed in one way, and the rules that it must be reported by.
local function malformed(name, what, requirements, reply)
  case {
    id = "mpa/7.1.4-refused/" .. name,
    version = 1,
    title = "The user is told that no connection came about where the Reply " .. what,
    requirements = requirements,
    roles = { "initiator" },
    capabilities = { "agent" },
    tags = { "startup", "refusal", "agent" },

    run = function(t, _, target)
      t:good_exchange()
      local conn, pair = target:connect {}
      conn:expect_request {}
      conn:send(reply(conn))
      pair:expect_event { event = { "rejected", "failed" }, requirement = requirements, overdue_fails = true }
      conn:close()

      t:liveness()
    end,
  }
end

malformed("key", "has a wrong key", { "MPA-7.1.1-4", "MPA-7.1.2-18", "MPA-8-4" }, function(conn)
  return conn:reply():flip(15)
end)
malformed("revision", "has a revision that nobody knows", { "MPA-7.1.1-22", "MPA-8-4" }, function(conn)
  return conn:reply { revision = 255 }
end)
malformed("length", "has more than 512 octets of private data", { "MPA-7.1.1-26", "MPA-8-4" }, function()
  return mpa.reply { pd_length = 513, private_data = ("x"):rep(513) }
end)
