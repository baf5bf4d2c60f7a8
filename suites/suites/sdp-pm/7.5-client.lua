-- What a client of a port mapper (PM Client) does if its PMReq gets no answer, or several answers
-- (draft-pinkerton-iwarp-sdp-01 section 7.5.1). The client chooses its timers, and how often it
-- repeats a PMReq.

-- Declares a case for a PM Client. `run` gets the tester's port mapper, and the PMReq for a
-- service. `declared` has the other fields of the case, and can replace its capabilities.
local function with_request(name, title, requirements, declared, run)
  declared.id, declared.title = "sdp-pm/7.5-client/" .. name, title
  declared.requirements = requirements
  declared.roles = { "initiator" }
  declared.capabilities = declared.capabilities or { "port-mapper" }
  declared.run = function(t, p)
    local m = t:port_mapper {}
    m:start { service = 1 }
    run(m, m:expect { type = "req" }, t, p)
  end
  return declared
end

case(with_request("unanswered", "The client repeats a PMReq without an answer, unchanged",
  { "PM-7.5-1", "PM-7.5.1-2", "PM-7.5.1-3", "PM-7.5.1-5" }, {}, function(m, request, t)
  local rows = { "PM-7.5-1", "PM-7.5.1-2", "PM-7.5.1-3" }
  local repeats, ended = m:count_repeats { most = 3, within = 60 }
  -- If the client is silent, its timer may be longer than this wait, so nothing is decided. A
  -- client that connects has given up.
  local decided = repeats > 0 or ended == "connection"
  t:check(repeats > 0, {
    requirement = decided and rows or nil,
    shows = { "PM-7.5.1-5" },
    expected = "the PMReq again", actual = repeats .. " repetitions",
  })
  m:answer(request, m:deny(request))
end))

case(with_request("gives-up", "The client stops repeating a PMReq", { "PM-7.5.1-4" }, {}, function(m, _, t)
  -- The draft gives no maximum number of repetitions. A thousand repetitions are certainly too
  -- many.
  local repeats, ended = m:count_repeats { most = 1000, within = 30 }
  -- If there was no repetition, the client's timer may be longer than the wait.
  t:check(ended == "connection" or (ended == "quiet" and repeats > 0), {
    requirement = (repeats > 0 or ended == "connection") and "PM-7.5.1-4" or nil, expected = "an end of the repetitions", actual = repeats .. " repetitions",
  })
end))

case(with_request("falls-back", "The client connects to the Conventional Address, without SDP, if it gets no answer",
  { "PM-7.5.1-8" }, { capabilities = { "port-mapper", "pm-connect" } }, function(m)
  local repeats = m:count_repeats { most = 1000, within = 60 }
  -- If a client repeats its PMReq, and then is silent for four times the interval between its
  -- repetitions, the client's last timeout is over.
  local conn = m:expect_connection {
    at = m:service { service = 1 }, requirement = "PM-7.5.1-8", within = 10, overdue_fails = repeats > 0 and repeats < 1000,
  }
  conn:expect_plain { requirement = "PM-7.5.1-8", within = 1 }
end))

case(with_request("accept-again", "The client sends no second PMAck for a repeated PMAccept",
  { "PM-7.5-4", "PM-7.5.1-10" }, {}, function(m, request)
  local accept = m:accept(request, { at = m:place {} })
  m:answer(request, accept)
  m:expect { type = "ack" }
  m:send(accept, request, { deviates = true })
  m:expect_quiet { requirement = { "PM-7.5-4", "PM-7.5.1-10" } }
end))

case(with_request("accept-then-deny", "The client ignores a PMDeny after a PMAccept",
  { "PM-7.5-4", "PM-7.5.1-10" }, { capabilities = { "port-mapper", "pm-connect" } }, function(m, request)
  local rows = { "PM-7.5-4", "PM-7.5.1-10" }
  local place = m:place {}
  m:answer(request, m:accept(request, { at = place }))
  m:expect { type = "ack" }
  m:expect_connection { at = place }
  m:send(m:deny(request), request, { deviates = true })
  m:expect_quiet { requirement = rows }
  m:expect_no_connection { requirement = rows, within = 1 }
end))

case(with_request("deny-then-accept", "The client does not acknowledge a PMAccept after a PMDeny",
  { "PM-7.5-4", "PM-7.5.1-10" }, {}, function(m, request)
  m:answer(request, m:deny(request))
  -- The PMDeny arrives before the PMAccept.
  m:expect_quiet { within = 1 }
  m:send(m:accept(request, { at = m:place {} }), request, { deviates = true })
  m:expect_quiet { requirement = { "PM-7.5-4", "PM-7.5.1-10" } }
end))

case(with_request("unrequested", "The client discards an answer that it did not request",
  { "PM-7.5.1-11" }, { parameters = { kind = { "accept", "deny" } } }, function(m, request, _, p)
  local unrequested = { handle = request.handle ~ 0x5a5a }
  if p.kind == "accept" then
    unrequested.at = m:place {}
  end
  local make = p.kind == "accept" and m.accept or m.deny
  m:answer(request, m:accept(request, { at = m:place {} }))
  m:expect { type = "ack" }
  m:send(make(m, request, unrequested), request, { deviates = true })
  m:expect_quiet { requirement = "PM-7.5.1-11" }
end))
