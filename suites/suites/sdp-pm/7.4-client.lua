-- The requests (PMReqs) that a client of a port mapper (PM Client) sends, and how it reacts to the
-- first answer (draft-pinkerton-iwarp-sdp-01 sections 7.3 and 7.4).

-- The monitor, which checks every message, judges REQUEST in a PMReq, and ACK in a PMAck.
local REQUEST = {
  "PM-7.3-1", "PM-7.3.1.1-1", "PM-7.3.1.2-1", "PM-7.3.1.2-2", "PM-7.3.1.3-1", "PM-7.3.1.3-2", "PM-7.3.1.3-4",
  "PM-7.3.1.3-5", "PM-7.3.1.5-1", "PM-7.4-2", "PM-7.4-4", "PM-7.4-5", "PM-7.4-6", "PM-7.4-7", "PM-7.4-8",
}
local ACK = {
  "PM-7.3-1", "PM-7.3.1.1-1", "PM-7.3.1.2-1", "PM-7.3.1.2-4", "PM-7.3.1.3-2", "PM-7.3.1.5-1", "PM-7.3.1.6-3",
  "PM-7.3.1.7-3", "PM-7.3.1.8-2", "PM-7.3.1.9-2", "PM-7.3.1.10-3", "PM-7.4-31", "PM-7.4-32", "PM-7.4-33",
  "PM-7.4-34", "PM-7.4-35", "PM-7.4-36", "PM-7.4-38", "PM-7.4-39", "PM-7.4-40", "PM-7.4-41", "PM-7.4-43",
  "PM-7.4-45",
}

-- The tester knows the correct port and address in the request, because the tester has chosen the
-- service to which the target connects.
local function requests_service(name, title, v6, capabilities)
  local wanted = { "PM-7.3.1.6-1", "PM-7.3.1.10-1", "PM-7.4-10", "PM-7.4-14" }
  case {
    id = "sdp-pm/7.4-client/" .. name,
    title = title,
    requirements = { REQUEST, wanted },
    roles = { "initiator" },
    capabilities = capabilities,

    run = function(t)
      local m = t:port_mapper { v6 = v6 }
      m:start { service = 1 }
      local request = m:expect { shows = REQUEST }
      local service = m:service { service = 1 }
      t:check(request.ap_port == service.port, {
        requirement = { "PM-7.3.1.6-1", "PM-7.4-10" },
        expected = "ApPort " .. service.port, actual = "ApPort " .. request.ap_port,
      })
      -- Another requirement concerns the bytes after an IPv4 address.
      t:check(request.octets:sub(33, 32 + #service.octets) == service.octets, {
        requirement = { "PM-7.3.1.10-1", "PM-7.4-14" },
        expected = "ApIPAddr " .. service.ip, actual = "ApIPAddr " .. request.ap_ip,
      })
      m:answer(request, m:deny(request))
    end,
  }
end

requests_service("asks", "The client's PMReq has the format of the draft, and requests the wanted service", false, { "port-mapper" })
requests_service("asks-v6", "The client's PMReq over IPv6 has the format of the draft, and requests the wanted service", true, { "port-mapper", "port-mapper-v6" })

case {
  id = "sdp-pm/7.4-client/acknowledges",
  title = "The client answers a PMAccept with a PMAck that goes to its source and repeats its fields",
  requirements = { { "PM-7.4-30", "PM-7.4-44", "PM-7.4-46" }, ACK },
  roles = { "initiator" },
  capabilities = { "port-mapper" },
  -- The PM Server may answer with another address than the requested one.
  parameters = { other = { false, true } },

  run = function(t, p)
    local m = t:port_mapper {}
    m:start { service = 1 }
    local request = m:expect { type = "req" }
    m:answer(request, m:accept(request, { at = m:place { other = p.other }, pm_time = 4 }))
    m:expect {
      type = "ack", past = "req", requirement = { "PM-7.4-30", "PM-7.4-44", "PM-7.4-46" }, shows = ACK, overdue_fails = true,
    }
  end,
}

--- Declares a case with a PMDeny. The monitor judges `shown`.
local function denied(name, title, requirements, shown, ports)
  case {
    id = "sdp-pm/7.4-client/" .. name,
    version = 2,
    title = title,
    requirements = { requirements, shown },
    roles = { "initiator" },
    capabilities = { "port-mapper" },
    parameters = { port = ports },

    run = function(t, p)
      local m = t:port_mapper {}
      m:start { service = 1 }
      local request = m:expect { type = "req" }
      local port = ({ zero = 0, requested = request.ap_port, other = request.ap_port ~ 1 })[p.port]
      m:answer(request, m:deny(request, { ap_port = port }), { deviates = p.port == "other" })
      -- A PMDeny may be lost, so two repetitions are allowed.
      m:expect_quiet { requirement = requirements, shows = shown, within = 10 }
    end,
  }
end

denied("accepts-deny", "The client sends neither a PMAck nor a repetition after a PMDeny",
  { "PM-7.4-63", "PM-7.4-64" }, { "PM-7.4-65" }, { "zero", "requested" })
denied("any-denied-port", "The client ignores ApPort of a PMDeny", { "PM-7.3.1.6-5" }, {}, { "requested", "other" })

local function tolerated(name, title, requirement, fields)
  case {
    id = "sdp-pm/7.4-client/" .. name,
    title = title,
    requirements = { requirement },
    roles = { "initiator" },
    capabilities = { "port-mapper" },

    run = function(t)
      local m = t:port_mapper {}
      m:start { service = 1 }
      local request = m:expect { type = "req" }
      local answer = { at = m:place {} }
      for name, value in pairs(fields(request)) do
        answer[name] = value
      end
      m:answer(request, m:accept(request, answer), { deviates = true })
      m:expect { type = "ack", past = "req", requirement = requirement, overdue_fails = true }
    end,
  }
end

tolerated("any-reserved", "The client ignores Reserved of a PMAccept", "PM-7.3.1.5-2", function()
  return { reserved = 0xffff }
end)
tolerated("any-padding", "The client ignores the bytes after an IPv4 address", "PM-7.3.1.3-3", function(request)
  local field = request.octets:sub(17, 20)
  return { cp_ip = field .. "garbagegarba" }
end)

case {
  id = "sdp-pm/7.4-client/deny-with-time",
  title = "The client does not treat a denied service as mapped, whatever PmTime of the PMDeny is",
  requirements = { "PM-7.4-56" },
  roles = { "initiator" },
  capabilities = { "port-mapper", "pm-connect" },

  run = function(t)
    local m = t:port_mapper {}
    m:start { service = 1 }
    local request = m:expect { type = "req" }
    m:answer(request, m:deny(request, { pm_time = 0xff }))
    local service = m:service { service = 1 }
    local conn = m:expect_connection { at = service }
    conn:expect_plain { requirement = "PM-7.4-56", within = 1 }
    conn:reset()
    m:start { service = 1 }
    if m:waiting() == "connection" then
      -- The client may remember the denial, but it must not treat the service as mapped.
      m:expect_connection({ at = service }):expect_plain { requirement = "PM-7.4-56", within = 1 }
    else
      local again = m:expect { type = "req" }
      m:answer(again, m:deny(again))
      m:expect_connection({ at = service }):expect_plain { requirement = "PM-7.4-56", within = 1 }
    end
  end,
}

case {
  id = "sdp-pm/7.4-client/two-at-once",
  title = "The client uses different handles in two simultaneous PMReqs, and acknowledges each answer separately",
  requirements = { "PM-7.3.1.8-1", "PM-7.3.1.8-3", "PM-7.4-12" },
  roles = { "initiator" },
  capabilities = { "port-mapper" },

  run = function(t)
    local m = t:port_mapper {}
    m:start { service = 1 }
    local first = m:expect { type = "req" }
    m:start { service = 2 }
    local second = m:expect { type = "req" }
    while second.handle == first.handle and second.cp_port == first.cp_port do
      second = m:expect { type = "req" }
    end
    t:check(first.handle ~= second.handle, {
      requirement = { "PM-7.3.1.8-1", "PM-7.4-12" },
      expected = "a different AssocHandle", actual = "the same AssocHandle",
    })
    m:answer(second, m:accept(second, { at = m:place {} }))
    m:expect { type = "ack", handle = second.handle, past = "req", requirement = "PM-7.3.1.8-3", overdue_fails = true }
    m:answer(first, m:accept(first, { at = m:place {} }))
    m:expect { type = "ack", handle = first.handle, past = "req", requirement = "PM-7.3.1.8-3", overdue_fails = true }
  end,
}
