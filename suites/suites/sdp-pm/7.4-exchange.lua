-- How a port mapper (PM Server) answers a Request, which is a PMReq (draft-pinkerton-iwarp-sdp-01
-- sections 7.3 and 7.4).

-- The monitor, which checks every message, judges ACCEPT in a PMAccept, and DENY in a PMDeny.
local ACCEPT = {
  "PM-7.3-1", "PM-7.3.1.1-1", "PM-7.3.1.2-1", "PM-7.3.1.2-3", "PM-7.3.1.3-2", "PM-7.3.1.5-1", "PM-7.3.1.7-2",
  "PM-7.3.1.8-2", "PM-7.3.1.9-2", "PM-7.4-18", "PM-7.4-19", "PM-7.4-20", "PM-7.4-21", "PM-7.4-24", "PM-7.4-26",
}
local DENY = {
  "PM-7.3-1", "PM-7.3.1.1-1", "PM-7.3.1.2-1", "PM-7.3.1.2-5", "PM-7.3.1.3-2", "PM-7.3.1.5-1", "PM-7.3.1.6-4",
  "PM-7.3.1.7-4", "PM-7.3.1.8-2", "PM-7.3.1.9-2", "PM-7.3.1.10-4", "PM-7.4-51", "PM-7.4-52", "PM-7.4-53",
  "PM-7.4-54", "PM-7.4-55", "PM-7.4-57", "PM-7.4-58", "PM-7.4-60", "PM-7.4-61",
}

--- Declares a case with one Request. `rows` has the requirements that a missing answer or another
--- type of answer violates (`answer`), those that a wrong source or destination violates (`path`),
--- and those that only the source, the destination or the AssocHandle of the answer decides.
local function bring(name, title, service, v6, capabilities, rows, shown)
  local requirements = { rows.answer, rows.path, rows.source, rows.destination, rows.handle, shown }
  case {
    id = "sdp-pm/7.4-exchange/" .. name,
    version = 2,
    title = title,
    requirements = requirements,
    capabilities = capabilities,

    run = function(t)
      local m, other = t:mapper { v6 = v6 }, t:mapper { v6 = v6 }
      local handle = 0x1122334455667788
      m:send(m:request { service = service, handle = handle })
      local kind, named = "deny", "a PMDeny"
      if service == "mapped" then kind, named = "accept", "a PMAccept" end
      local answer, is_from_there = m:next {}
      -- An answer to a wrong UDP port may arrive at the tester's other socket.
      local stray = not answer and other:next { within = 0.2 }
      t:check(not stray, {
        requirement = { rows.path, rows.destination }, expected = named .. " to the UDP port of the PMReq", actual = "a datagram to another UDP port",
      })
      t:check(answer and answer.type == kind, {
        requirement = rows.answer,
        expected = named,
        actual = answer and ("a datagram of %d bytes, type %s"):format(answer.length, answer.type) or "nothing",
        missing = not answer,
      })
      t:check(is_from_there, {
        requirement = { rows.path, rows.source }, expected = "an answer from the destination of the PMReq", actual = "an answer from " .. answer.from,
      })
      t:check(answer.handle == handle, {
        requirement = rows.handle,
        expected = ("AssocHandle %#x"):format(handle),
        actual = ("AssocHandle %#x"):format(answer.handle),
      })
      t:check(true, { requirement = requirements, expected = named, actual = "another answer" })
      if kind == "accept" then
        m:send(m:ack(answer))
      end
      m:expect_quiet { within = 0.3 }
    end,
  }
end

bring("accepted", "The server answers a Request for a mapped service with a PMAccept", "mapped", false, { "port-mapper" },
  {
    answer = { "PM-7.4-16" }, path = { "PM-7.4-17" }, source = { "PM-16-1" }, destination = { "PM-7.4-29" }, handle = { "PM-7.4-25" },
  }, ACCEPT)
bring("accepted-v6", "The server answers a Request over IPv6 for a mapped service with a PMAccept", "mapped", true, { "port-mapper", "port-mapper-v6" },
  { answer = { "PM-7.2-6" }, path = {}, source = {}, destination = {}, handle = {} }, {})
bring("denied", "The server answers a Request for an unmapped service with a PMDeny, and nothing more", "unmapped", false, { "port-mapper" },
  {
    answer = { "PM-7.4-49", "PM-7.4-63" }, path = { "PM-7.4-50" }, source = {}, destination = { "PM-7.4-62" }, handle = { "PM-7.4-59" },
  }, DENY)

local function tolerated(name, title, requirements, fields)
  case {
    id = "sdp-pm/7.4-exchange/" .. name,
    title = title,
    requirements = requirements,
    capabilities = { "port-mapper" },

    run = function(t)
      local m = t:mapper {}
      m:send(m:request(fields), { deviates = true })
      m:expect { type = "accept", requirement = requirements, overdue_fails = true }
    end,
  }
end

tolerated("any-pm-time", "The server ignores PmTime of a Request", { "PM-7.4-9" }, { pm_time = 0xff })
tolerated("any-reserved", "The server ignores Reserved of a Request", { "PM-7.3.1.5-2" }, { reserved = 0xffff })
tolerated("any-padding", "The server ignores the bytes after an IPv4 address", { "PM-7.3.1.3-3" }, {
  cp_ip = "\xc0\0\x02\x02garbagegarba", ipv = 4,
})

case {
  id = "sdp-pm/7.4-exchange/other-ipv",
  version = 2,
  title = "The server sends no PMAccept to a Request of another IPV",
  requirements = { "PM-7.3.1.3-5" },
  capabilities = { "port-mapper" },
  parameters = { ipv = { 0, 5, 15 } },

  run = function(t, p)
    t:good_exchange()
    local m = t:mapper {}
    m:send(m:request { ipv = p.ipv }, { deviates = true })
    m:expect_quiet { requirement = "PM-7.3.1.3-5", within = 1, or_deny = true }
  end,
}

case {
  id = "sdp-pm/7.4-exchange/two-at-once",
  title = "The server answers two simultaneous Requests, each with its own handle",
  requirements = { "PM-7.3.1.8-3", "PM-7.5.2-9" },
  capabilities = { "port-mapper" },

  run = function(t)
    local m, n = t:mapper {}, t:mapper {}
    m:send(m:request { handle = 0x101, cp_port = 40001 })
    n:send(n:request { handle = 0x202, cp_port = 40002 })
    n:expect { type = "accept", handle = 0x202, cp_port = 40002, requirement = "PM-7.3.1.8-3", overdue_fails = true }
    m:expect { type = "accept", handle = 0x101, cp_port = 40001, requirement = "PM-7.3.1.8-3", overdue_fails = true }
    m:send(m:request { handle = 0x303, cp_port = 40001 })
    m:expect { type = "accept", handle = 0x303, requirement = "PM-7.5.2-9", overdue_fails = true }
  end,
}

case {
  id = "sdp-pm/7.4-exchange/leads-to-sdp",
  title = "The server's PMAccept has an address that accepts a TCP connection",
  requirements = { "PM-7.4-23", "PM-7.4-27", "PM-7.3.1.6-2" },
  capabilities = { "port-mapper" },

  run = function(t)
    local m = t:mapper {}
    m:send(m:request { handle = 0x404 })
    local answer = m:expect { type = "accept" }
    m:send(m:ack(answer))
    local conn = m:connect(answer, { requirement = { "PM-7.4-23", "PM-7.4-27", "PM-7.3.1.6-2" } })
    conn:reset()
  end,
}
