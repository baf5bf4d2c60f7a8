-- Where a PM Client's answer leads to: SDP at the SDP Address, or plain TCP at the Conventional Address (draft-pinkerton-iwarp-sdp-01
-- sections 7, 7.1 and 7.3.1.4).

case {
  id = "sdp-pm/7.1-client/sdp-address",
  version = 1,
  title = "A mapped service is connected to where the PMAccept says, from where the PMReq told, with SDP",
  requirements = {
    "PM-7-2", "PM-7.1-4", "PM-7.3.1.7-1", "PM-7.3.1.9-1", "PM-7.4-11", "PM-7.4-13",
  },
  roles = { "initiator" },
  capabilities = { "port-mapper", "pm-connect" },
  parameters = { other = { false, true } },

  run = function(t, p)
    local m = t:port_mapper {}
    m:start { service = 1 }
    local request = m:expect { type = "req" }
    local place = m:place { other = p.other }
    m:answer(request, m:accept(request, { at = place }))
    m:expect { type = "ack", past = "req" }
    local conn = m:expect_connection { at = place, requirement = { "PM-7-2", "PM-7.1-4" } }
    conn:expect_from { port = request.cp_port, requirement = { "PM-7.3.1.7-1", "PM-7.4-11" } }
    conn:expect_from { ip = request.cp_ip, requirement = { "PM-7.3.1.9-1", "PM-7.4-13" } }
    conn:expect_sdp { requirement = "PM-7-2" }
    t:liveness()
  end,
}

case {
  id = "sdp-pm/7.1-client/denied",
  version = 1,
  title = "A service that is denied is connected to at its Conventional Address, without SDP",
  requirements = { "PM-7-3", "PM-7.1-1", "PM-7.1-2", "PM-7.2-1" },
  roles = { "initiator" },
  capabilities = { "port-mapper", "pm-connect" },

  run = function(t)
    local m = t:port_mapper {}
    m:start { service = 1 }
    local request = m:expect { type = "req" }
    m:answer(request, m:deny(request))
    local conn = m:expect_connection { at = m:service { service = 1 }, requirement = { "PM-7-3", "PM-7.1-1" } }
    conn:expect_plain { requirement = { "PM-7-3", "PM-7.1-1", "PM-7.1-2", "PM-7.2-1" }, within = 1 }
    t:liveness()
  end,
}

case {
  id = "sdp-pm/7.1-client/reset",
  version = 1,
  title = "A reset from the SDP Address leads to the Conventional Address, without SDP",
  requirements = { "PM-7.5.1-9" },
  roles = { "initiator" },
  capabilities = { "port-mapper", "pm-connect" },

  run = function(t)
    local m = t:port_mapper {}
    m:start { service = 1 }
    local request = m:expect { type = "req" }
    m:answer(request, m:accept(request, { at = m:place { refuses = true } }))
    m:expect { type = "ack" }
    local conn = m:expect_connection {
      at = m:service { service = 1 }, requirement = "PM-7.5.1-9", within = 10, overdue_fails = true,
    }
    conn:expect_plain { requirement = "PM-7.5.1-9", within = 1 }
    t:liveness()
  end,
}

-- The time counts from the receipt of the PMAccept, which is before its PMAck.
local function kept(name, title, rows, pm_time, seconds, tier)
  case {
    id = "sdp-pm/7.1-client/" .. name,
    version = 1,
    title = title,
    requirements = rows,
    roles = { "initiator" },
    capabilities = { "port-mapper", "pm-connect" },
    tier = tier,

    run = function(t)
      local m = t:port_mapper {}
      m:start { service = 1 }
      local request = m:expect { type = "req" }
      local place = m:place {}
      m:answer(request, m:accept(request, { at = place, pm_time = pm_time }))
      m:expect { type = "ack" }
      -- It stays open: whoever loses a connection may open it again.
      m:expect_connection { at = place }
      if seconds > 0 then
        t:pause(seconds)
      end
      m:start { service = 1 }
      local again = m:expect { type = "req", no_connection = true, requirement = rows }
      m:answer(again, m:deny(again))
      t:liveness()
    end,
  }
end

kept("not-kept", "An answer with PmTime 0 serves one connection", { "PM-7.3.1.4-4" }, 0, 0)
kept("kept-1-s", "An answer with PmTime 4 is flushed behind 1 s, and the next connection asks anew",
  { "PM-7.3.1.4-1", "PM-7.3.1.4-2", "PM-7.3.1.4-3", "PM-7.3.1.4-7" }, 4, 1.1)
kept("kept-128-s", "An answer with PmTime 128 is flushed behind 128 s, and the next connection asks anew",
  { "PM-7.3.1.4-1", "PM-7.3.1.4-2", "PM-7.3.1.4-3", "PM-7.3.1.4-8" }, 128, 128.5, "default")
