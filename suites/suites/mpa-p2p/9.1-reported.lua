-- RFC 6581 sections 6, 9 and 9.1: IRD, ORD and private data of enhanced start-up frames. An agent
-- reports these values. The agent is a program on the target that calls the NIC's verbs for the
-- tester.

local function depths(reported)
  return ("IRD %s, ORD %s"):format(reported.ird, reported.ord)
end

--- Checks the private data that the target reports to its user. `words` has IRD and ORD of the frame.
local function check_reported(t, reported, private_data, words)
  local expected, actual = ("%d bytes of private data"):format(#private_data), ("%d bytes"):format(#reported)
  t:check(reported ~= words .. private_data, {
    requirement = { "P2P-9-8", "MPA-7.1.1-27" }, expected = expected, actual = "IRD and ORD, and then the private data",
  })
  t:check(reported == private_data, { requirement = "MPA-7.1.1-27", expected = expected, actual = actual .. ", which differ" })
end

case {
  id = "mpa-p2p/9.1-reported/request",
  version = 2,
  title = "The responder reports IRD and ORD of the Request to its user, and the private data after them",
  requirements = { "P2P-9.1-8", "P2P-9-8", "MPA-7.1.1-27" },
  capabilities = { "agent", "revision-2" },
  tags = { "startup", "enhanced", "private-data", "agent" },
  parameters = { ird = { 0, 1, 3 }, ord = { 0, 1, 5 }, private_data = { "", "private data" } },

  run = function(t, p, target)
    t:good_exchange()
    local conn = t:connect()
    local request = t:request { enhanced = true, revision = 2, ird = p.ird, ord = p.ord, private_data = p.private_data }
    conn:send(request)
    local pair, reported = target:expect_request {}
    check_reported(t, reported.private_data, p.private_data, request:octets():sub(21, 24))
    t:check(reported.ird == p.ird and reported.ord == p.ord, { requirement = "P2P-9.1-8", expected = depths(p), actual = depths(reported) })
    pair:reject {}
    conn:expect_reply { reject = true }
    conn:close()
  end,
}

case {
  id = "mpa-p2p/9.1-reported/unenhanced",
  version = 2,
  title = "The responder reports all private data of a Request of revision 2 with S=0",
  requirements = { "P2P-6-3", "MPA-7.1.1-27" },
  capabilities = { "agent", "revision-2" },
  tags = { "startup", "private-data", "agent" },
  parameters = { private_data = { "", "abc", "12345678" } },

  run = function(t, p, target)
    t:good_exchange()
    local conn = t:connect()
    conn:send(mpa.request { revision = 2, private_data = p.private_data })
    local pair, reported = target:expect_request {}
    local expected = ("%d bytes of private data"):format(#p.private_data)
    t:check(#p.private_data < 4 or reported.private_data ~= p.private_data:sub(5), {
      requirement = { "P2P-6-3", "MPA-7.1.1-27" }, expected = expected, actual = "the private data without its first 4 bytes",
    })
    t:check(reported.private_data == p.private_data, {
      requirement = "MPA-7.1.1-27", expected = expected, actual = ("%d bytes, which differ"):format(#reported.private_data),
    })
    pair:reject {}
    conn:expect_reply { reject = true }
    conn:close()
  end,
}

--- Waits for the enhanced Request of the target. The target's user requests an IRD and an ORD of
--- `reads`.
local function connect_enhanced(t, target, reads)
  local conn, pair = target:connect { ird = reads, ord = reads }
  local request = conn:expect_request {}
  if request.revision == 1 or request.flags & 0x10 == 0 then
    conn:reset()
    t:unimplemented("The target does not use RFC 6581.")
  end
  return conn, pair, request
end

case {
  id = "mpa-p2p/9.1-reported/reply",
  version = 2,
  title = "The initiator reports IRD and ORD of an accepting Reply, and the private data after them",
  requirements = { "P2P-9.1-25", "P2P-9.1-8", "P2P-9-8", "MPA-7.1.1-27" },
  roles = { "initiator" },
  capabilities = { "agent", "revision-2" },
  tags = { "startup", "enhanced", "private-data", "agent" },
  parameters = { more = { 0, 3 }, fewer = { 0, 2 }, private_data = { "", "private data" } },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair, request = connect_enhanced(t, target, 4)
    -- The Reply's IRD is at least the Initiator's ORD. The Reply's ORD is at most the Initiator's
    -- IRD.
    local ird, ord = request.ord + p.more, request.ird - p.fewer
    local reply = conn:reply { ird = ird, ord = ord, private_data = p.private_data }
    conn:send(reply)
    local reported = pair:expect_event { event = "established" }
    check_reported(t, reported.private_data or "", p.private_data, reply:octets():sub(21, 24))
    -- The Initiator's user gets the Responder's ORD as the IRD, and the Responder's IRD as the ORD.
    t:check(reported.ird == ord and reported.ord == ird, {
      requirement = { "P2P-9.1-25", "P2P-9.1-8" },
      expected = ("the Responder's IRD %d and ORD %d"):format(ird, ord),
      actual = ("the Responder's IRD %s and ORD %s"):format(reported.ord, reported.ird),
    })
    conn:reset()
  end,
}

case {
  id = "mpa-p2p/9.1-reported/closed",
  title = "The initiator reports a failed connection if the responder closes on its enhanced Request",
  requirements = { "P2P-10-12" },
  roles = { "initiator" },
  capabilities = { "agent", "revision-2" },
  tags = { "startup", "enhanced", "refusal", "agent" },
  parameters = { reset = { true, false } },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair = connect_enhanced(t, target, 1)
    if p.reset then
      conn:reset()
    else
      conn:close()
    end
    pair:expect_event { event = { "rejected", "failed" }, requirement = "P2P-10-12", overdue_fails = true }
  end,
}
