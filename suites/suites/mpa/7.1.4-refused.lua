-- RFC 5044 sections 7.1.2 and 7.1.4.2: connections that are rejected. The cases check the frames of
-- the target, and the reports of an agent (a program on the target that calls the NIC's verbs for
-- the tester).

local REFUSED = { "MPA-7.1.2-5", "MPA-7.1.2-20", "MPA-7.1.1-17" }

case {
  id = "mpa/7.1.4-refused/by-user",
  version = 2,
  title = "The responder sends R=1 and no FPDU if its user rejects the Request",
  requirements = { "MPA-7.1.2-5", "MPA-7.1.2-20", "MPA-7.1.1-17" },
  capabilities = { "agent" },
  tags = { "startup", "refusal", "agent" },
  parameters = { private_data = { "", "not today" } },

  run = function(t, p, target)
    t:good_exchange()
    local conn = t:connect()
    conn:send(t:request { private_data = "may I?" })
    local pair = target:expect_request {}
    pair:reject { private_data = p.private_data }
    local event, reply = conn:next { within = 5 }
    t:check(event == "reply", {
      requirement = { "MPA-7.1.2-5", "MPA-7.1.2-20" }, expected = "a Reply", actual = event or "nothing", missing = event == nil,
    })
    t:check(reply.reject, { requirement = REFUSED, expected = "R=1", actual = "R=0" })
    -- The target may close TCP or leave it open.
    conn:expect_silence { requirement = "MPA-7.1.1-17", within = 1 }
    conn:close()
  end,
}

case {
  id = "mpa/7.1.4-refused/by-peer",
  title = "The initiator reports the rejection of its Request, and the private data of the Reply",
  requirements = { "MPA-7.1.4.2-2" },
  roles = { "initiator" },
  capabilities = { "agent" },
  tags = { "startup", "refusal", "private-data", "agent" },
  parameters = { length = { 0, 1, 4, 148, 251 } },
  scales = { "length" },

  run = function(t, p, target)
    t:good_exchange()
    local private_data = ("not today "):rep(26):sub(1, p.length)
    local conn, pair = target:connect {}
    conn:expect_request {}
    conn:send(conn:reply { reject = true, private_data = private_data })
    pair:expect_event { event = "rejected", private_data = private_data, requirement = "MPA-7.1.4.2-2", overdue_fails = true }
    conn:close()
  end,
}

--- Declares a case with a malformed Reply. `requirements` are the requirements that the initiator
--- reports the error.
local function malformed(name, fault, requirements, reply)
  case {
    id = "mpa/7.1.4-refused/" .. name,
    title = "The initiator reports a failed connection if the Reply " .. fault,
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
    end,
  }
end

malformed("key", "has a wrong key", { "MPA-7.1.1-4", "MPA-7.1.2-18", "MPA-8-4" }, function(conn)
  return conn:reply():flip(15)
end)
malformed("revision", "has an undefined revision", { "MPA-7.1.1-22", "MPA-8-4" }, function(conn)
  return conn:reply { revision = 255 }
end)
malformed("length", "has more than 512 bytes of private data", { "MPA-7.1.1-26", "MPA-8-4" }, function()
  return mpa.reply { pd_length = 513, private_data = ("x"):rep(513) }
end)
