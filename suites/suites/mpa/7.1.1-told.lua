-- RFC 5044 sections 7.1.1 and 7.1.4: private data of start-up frames, as an agent on the target is told of it and says it.

local DATA = ("weft octets that differ "):rep(22)

--- What a connection manager that counts private data in one octet can say. (An enhanced Reply has four octets more.)
local LENGTHS = { 0, 1, 3, 4, 148, 251, 255 }

case {
  id = "mpa/7.1.1-told/request",
  version = 1,
  title = "The user is told the private data of a Request, all of it and nothing else",
  requirements = { "MPA-7.1.1-27" },
  roles = { "responder" },
  capabilities = { "agent" },
  tags = { "startup", "private-data", "agent" },
  parameters = { length = LENGTHS },

  run = function(t, p, target)
    t:good_exchange()
    local private_data = DATA:sub(1, p.length)
    local conn = t:connect()
    conn:send(mpa.request { private_data = private_data })
    local pair = target:expect_request { private_data = private_data, requirement = "MPA-7.1.1-27" }
    pair:reject {}
    conn:expect_reply { reject = true }
    conn:close()

    t:liveness()
  end,
}

case {
  id = "mpa/7.1.1-told/long-request",
  version = 1,
  title = "The user is told the private data of a Request that has more than 255 octets of it",
  requirements = { "MPA-7.1.1-27" },
  roles = { "responder" },
  capabilities = { "agent" },
  tags = { "startup", "private-data", "agent" },
  parameters = { length = { 256, 257, 512 } },

  run = function(t, p, target)
    t:good_exchange()
    local private_data = DATA:sub(1, p.length)
    local conn = t:connect()
    conn:send(mpa.request { private_data = private_data })
    local pair = target:expect_request { private_data = private_data, requirement = "MPA-7.1.1-27", overdue_fails = true }
    pair:reject {}
    conn:expect_reply { reject = true }
    conn:close()

    t:liveness()
  end,
}

case {
  id = "mpa/7.1.1-told/reply",
  version = 1,
  title = "The user is told the private data of an accepting Reply, all of it and nothing else",
  requirements = { "MPA-7.1.1-27" },
  roles = { "initiator" },
  capabilities = { "agent" },
  tags = { "startup", "private-data", "agent" },
  parameters = { length = { 0, 1, 3, 4, 148, 251 } },

  run = function(t, p, target)
    t:good_exchange()
    local private_data = DATA:sub(1, p.length)
    local conn, pair = target:connect {}
    conn:expect_request {}
    conn:send(conn:reply { private_data = private_data })
    pair:expect_event { event = "established", private_data = private_data, requirement = "MPA-7.1.1-27" }
    conn:reset()

    t:liveness()
  end,
}

local OWN = { "MPA-7.1.1-24", "MPA-7.1.1-29" }

--- The private data of a frame of the target, the words of RFC 6581 taken off, are those of its user, and nothing follows.
local function expect_said(t, conn, frame, private_data)
  local said = frame.octets:sub(frame.flags & 0x10 ~= 0 and 25 or 21)
  t:check(said == private_data, {
    requirement = OWN,
    expected = ("the %d octets that the user gave"):format(#private_data),
    actual = said:sub(1, #private_data) == private_data and ("%d octets"):format(#said) or "other octets",
  })
  conn:expect_silence { within = 0.5, requirement = OWN }
end

case {
  id = "mpa/7.1.1-told/said-in-request",
  version = 1,
  title = "Private data that the user gives stands in the Request, whole and nothing else, and PD_Length counts it",
  requirements = OWN,
  roles = { "initiator" },
  capabilities = { "agent" },
  tags = { "startup", "private-data", "agent" },
  parameters = { length = { 0, 1, 3, 148 } },

  run = function(t, p, target)
    t:good_exchange()
    local private_data = DATA:sub(1, p.length)
    local conn = target:connect { private_data = private_data }
    expect_said(t, conn, conn:expect_request { requirement = OWN }, private_data)
    conn:reset()

    t:liveness()
  end,
}

case {
  id = "mpa/7.1.1-told/said-in-reply",
  version = 1,
  title = "Private data that the user gives stands in the Reply, accepting or not, whole and nothing else, and PD_Length counts it",
  requirements = OWN,
  roles = { "responder" },
  capabilities = { "agent" },
  tags = { "startup", "private-data", "agent" },
  parameters = { length = { 0, 1, 3, 148 }, reject = { true, false } },

  run = function(t, p, target)
    t:good_exchange()
    local private_data = DATA:sub(1, p.length)
    local conn = t:connect()
    conn:send(t:request {})
    local pair = target:expect_request {}
    if p.reject then
      pair:reject { private_data = private_data }
    else
      pair:open {}
      pair:accept { private_data = private_data }
    end
    expect_said(t, conn, conn:expect_reply { requirement = OWN, reject = p.reject }, private_data)
    conn:reset()

    t:liveness()
  end,
}
