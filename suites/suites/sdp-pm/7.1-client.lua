-- How a client of a port mapper (PM Client) uses an answer. It connects with SDP to the SDP Address
-- of a PMAccept, or without SDP to the service's Conventional Address (draft-pinkerton-iwarp-sdp-01
-- sections 7, 7.1 and 7.3.1.4).

-- Declares a case for a PM Client. `run` gets the tester's port mapper, and the PMReq for a
-- service. `declared` has the other fields of the case.
local function with_request(name, title, requirements, declared, run)
  declared.id, declared.title = "sdp-pm/7.1-client/" .. name, title
  declared.requirements = requirements
  declared.roles = { "initiator" }
  declared.capabilities = { "port-mapper", "pm-connect" }
  declared.run = function(t, p)
    local m = t:port_mapper {}
    m:start { service = 1 }
    run(m, m:expect { type = "req" }, t, p)
  end
  return declared
end

case(with_request("sdp-address", "The client connects with SDP to the address of the PMAccept, from the address of its PMReq", {
  "PM-7-2", "PM-7.1-4", "PM-7.3.1.7-1", "PM-7.3.1.9-1", "PM-7.4-11", "PM-7.4-13",
}, { parameters = { other = { false, true } } }, function(m, request, _, p)
  local place = m:place { other = p.other }
  m:answer(request, m:accept(request, { at = place }))
  m:expect { type = "ack", past = "req" }
  local conn = m:expect_connection { at = place, requirement = { "PM-7-2", "PM-7.1-4" } }
  conn:expect_from { port = request.cp_port, requirement = { "PM-7.3.1.7-1", "PM-7.4-11" } }
  conn:expect_from { ip = request.cp_ip, requirement = { "PM-7.3.1.9-1", "PM-7.4-13" } }
  conn:expect_sdp { requirement = "PM-7-2" }
end))

case(with_request("denied", "The client connects to a denied service at its Conventional Address, without SDP",
  { "PM-7-3", "PM-7.1-1", "PM-7.1-2", "PM-7.2-1" }, {}, function(m, request)
  m:answer(request, m:deny(request))
  local conn = m:expect_connection { at = m:service { service = 1 }, requirement = { "PM-7-3", "PM-7.1-1" } }
  conn:expect_plain { requirement = { "PM-7-3", "PM-7.1-1", "PM-7.1-2", "PM-7.2-1" }, within = 1 }
end))

case(with_request("reset", "The client connects to the Conventional Address, without SDP, after a reset from the SDP Address",
  { "PM-7.5.1-9" }, {}, function(m, request)
  m:answer(request, m:accept(request, { at = m:place { refuses = true } }))
  m:expect { type = "ack" }
  local conn = m:expect_connection {
    at = m:service { service = 1 }, requirement = "PM-7.5.1-9", within = 10, overdue_fails = true,
  }
  conn:expect_plain { requirement = "PM-7.5.1-9", within = 1 }
end))

-- The time counts from the moment when the client receives the PMAccept. This is before the client
-- sends its PMAck.
local function kept(name, title, rows, pm_time, seconds, tier)
  return with_request(name, title, rows, { tier = tier }, function(m, request, t)
    local place = m:place {}
    m:answer(request, m:accept(request, { at = place, pm_time = pm_time }))
    m:expect { type = "ack" }
    -- The connection stays open, because a client that loses a connection may open it again.
    m:expect_connection { at = place }
    if seconds > 0 then
      t:pause(seconds)
    end
    m:start { service = 1 }
    local again = m:expect { type = "req", no_connection = true, requirement = rows }
    m:answer(again, m:deny(again))
  end)
end

case(kept("not-kept", "The client uses an answer with PmTime 0 for one connection", { "PM-7.3.1.4-4" }, 0, 0))
case(kept("kept-1-s", "The client drops an answer with PmTime 4 after 1 s, and sends a new PMReq for the next connection",
  { "PM-7.3.1.4-1", "PM-7.3.1.4-2", "PM-7.3.1.4-3", "PM-7.3.1.4-7" }, 4, 1.1))
case(kept("kept-128-s", "The client drops an answer with PmTime 128 after 128 s, and sends a new PMReq for the next connection",
  { "PM-7.3.1.4-1", "PM-7.3.1.4-2", "PM-7.3.1.4-3", "PM-7.3.1.4-8" }, 128, 128.5, "default"))
