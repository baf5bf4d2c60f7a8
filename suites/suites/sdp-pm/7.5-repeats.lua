-- How a port mapper (PM Server) handles datagrams that are lost, late or duplicated
-- (draft-pinkerton-iwarp-sdp-01 section 7.5).

-- Declares a case for a PM Server. `run` gets a PM Client of the tester. `declared` has the other
-- fields of the case, and can replace its capabilities.
local function with_client(name, title, requirements, declared, run)
  declared.id, declared.title = "sdp-pm/7.5-repeats/" .. name, title
  declared.requirements = requirements
  declared.capabilities = declared.capabilities or { "port-mapper" }
  declared.run = function(t, p)
    run(t:mapper {}, t, p)
  end
  return declared
end

case(with_client("request-again", "The server answers each copy of a Request with the same address",
  { "PM-7.5-3", "PM-7.5.2-4" }, { version = 2 }, function(m, t)
  local request = m:request { handle = 0x501, service = "made" }
  m:send(request)
  local first = m:expect { type = "accept" }
  for _ = 1, 3 do
    m:send(request)
    local again = m:expect { type = "accept", handle = 0x501, requirement = "PM-7.5.2-4", overdue_fails = true }
    t:check(again.ap_port == first.ap_port, {
      requirement = "PM-7.5-3", expected = ("ApPort %d"):format(first.ap_port), actual = ("ApPort %d"):format(again.ap_port),
    })
  end
  m:expect_quiet { within = 0.2 }
end))

case(with_client("request-again-fixed", "The server answers each copy of a Request for any service",
  { "PM-7.5.2-4" }, {}, function(m)
  local request = m:request { handle = 0x502 }
  for _ = 1, 3 do
    m:send(request)
    m:expect { type = "accept", handle = 0x502, requirement = "PM-7.5.2-4", overdue_fails = true }
  end
end))

case {
  id = "sdp-pm/7.5-repeats/ack-of-nothing",
  title = "The server does not answer an unexpected PMAck",
  requirements = { "PM-7.5.2-6" },
  capabilities = { "port-mapper" },

  run = function(t)
    t:good_exchange()
    local m = t:mapper {}
    m:send(m:request { type = "ack", handle = 0x503 }, { deviates = true })
    m:expect_quiet { requirement = "PM-7.5.2-6", within = 1 }
  end,
}

case(with_client("ack-with-time", "The server ignores PmTime of a PMAck",
  { "PM-7.4-37" }, { capabilities = { "port-mapper", "sdp-drive" } }, function(m, t)
  m:send(m:request { handle = 0x504, service = "made" })
  local answer = m:expect { type = "accept" }
  t:pause(8)
  m:send(m:ack(answer, { pm_time = 0xff }), { deviates = true })
  -- Without the PMAck, the address would be gone by now.
  t:pause(8)
  local conn = m:connect(answer, { requirement = "PM-7.4-37" })
  conn:reset()
end))

case(with_client("ports-come-back", "The server reuses ports of clients that did not connect",
  { "PM-15.2.2.1-1", "PM-7.5-2", "PM-7.5.2-2", "PM-7.5.2-10" },
  { version = 3, capabilities = { "port-mapper", "sdp-drive" } }, function(m, t)
  for n = 1, 10 do
    m:send(m:request { handle = 0x600 + n, service = "made", cp_port = 41000 + n })
    m:expect { type = "accept" }
  end
  m:send(m:request { handle = 0x700, service = "made", cp_port = 42000 })
  m:expect { type = "deny" }
  t:pause(30)
  local rows = { "PM-15.2.2.1-1", "PM-7.5-2", "PM-7.5.2-2" }
  m:send(m:request { handle = 0x701, service = "made", cp_port = 43001 })
  m:expect { type = "accept", requirement = rows, overdue_fails = true }
  m:send(m:request { handle = 0x601, service = "made", cp_port = 41001 })
  m:expect { type = "accept", requirement = "PM-7.5.2-10", overdue_fails = true }
end))

case {
  id = "sdp-pm/7.5-repeats/repeat-keeps",
  title = "The server keeps the address of a repeated Request for another period",
  requirements = { "PM-7.5.2-5" },
  capabilities = { "port-mapper", "sdp-drive" },

  run = function(t)
    t:good_exchange()
    local m = t:mapper {}
    local first = m:request { handle = 0x901, service = "made", cp_port = 44000 }
    m:send(first)
    m:expect { type = "accept" }
    t:pause(8)
    m:send(first)
    m:expect { type = "accept" }
    t:pause(6)
    -- Nine of the ten ports are left for the other Requests.
    for n = 1, 9 do
      m:send(m:request { handle = 0x910 + n, service = "made", cp_port = 44000 + n })
      m:expect { type = "accept" }
    end
    m:send(m:request { handle = 0x920, service = "made", cp_port = 44020 })
    m:expect { type = "deny", requirement = "PM-7.5.2-5", overdue_fails = true }
  end,
}

case(with_client("denied-then-requested", "The server answers a newer Request of the same connection with the new handle",
  { "PM-7.5.2-9" }, { version = 2 }, function(m)
  m:send(m:request { handle = 0x801 })
  local old = m:expect { type = "accept", handle = 0x801 }
  m:send(m:request { handle = 0x802 })
  local new = m:expect { type = "accept", handle = 0x802, requirement = "PM-7.5.2-9", overdue_fails = true }
  m:send(m:ack(old))
  -- The case `old-ack` checks whether such a PMAck has an effect (PM-7.5.2-8), on ports that the
  -- mapper creates.
  m:expect_quiet { within = 0.3 }
  m:send(m:ack(new))
  m:expect_quiet { within = 0.3 }
end))

case(with_client("after-a-crash", "The server answers a restarted host that sends a new Request from the same port",
  { "PM-7.2-7" }, {}, function(m, t)
  m:send(m:request { handle = 0xa01, cp_port = 46000 })
  m:send(m:ack(m:expect { type = "accept", handle = 0xa01 }))
  local n = t:mapper {}
  n:send(n:request { handle = 0xa02, cp_port = 46000 })
  local answer = n:expect { type = "accept", handle = 0xa02, requirement = "PM-7.2-7", overdue_fails = true }
  n:send(n:ack(answer))
end))

case {
  id = "sdp-pm/7.5-repeats/old-ack",
  title = "The server does not keep a newer Request's port after a PMAck with the older Request's handle",
  requirements = { "PM-7.5.2-8" },
  capabilities = { "port-mapper", "sdp-drive" },

  run = function(t)
    t:good_exchange()
    local m = t:mapper {}
    m:send(m:request { handle = 0xb01, service = "made", cp_port = 45000 })
    local old = m:expect { type = "accept" }
    m:send(m:request { handle = 0xb02, service = "made", cp_port = 45000 })
    local new = m:expect { type = "accept" }
    t:pause(8)
    -- The PMAck has the handle of the older Request, and the port of the newer Request. (Both
    -- Requests may have got the same port.)
    m:send(m:ack(old, { ap_port = new.ap_port, handle = 0xb01 }))
    for n = 1, 9 do
      m:send(m:request { handle = 0xb10 + n, service = "made", cp_port = 45000 + n })
      m:expect { type = "accept" }
    end
    t:pause(6)
    -- Now only the nine ports of these Requests are in use. If the server had accepted the PMAck,
    -- all ten ports would be in use.
    m:send(m:request { handle = 0xb20, service = "made", cp_port = 45020 })
    m:expect { type = "accept", requirement = "PM-7.5.2-8", overdue_fails = true }
  end,
}
