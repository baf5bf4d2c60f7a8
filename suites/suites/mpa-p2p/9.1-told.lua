-- RFC 6581 sections 6, 9 and 9.1: words and private data of enhanced start-up frames, as an agent on the target is told of them.

local function words(told)
  return ("IRD %s, ORD %s"):format(told.ird, told.ord)
end

case {
  id = "mpa-p2p/9.1-told/request",
  version = 1,
  title = "The user is told IRD and ORD of the Request, and of its private data what stands behind them",
  requirements = { "P2P-9.1-8", "P2P-9-8", "MPA-7.1.1-27" },
  roles = { "responder" },
  capabilities = { "agent", "revision-2" },
  tags = { "startup", "enhanced", "private-data", "agent" },
  parameters = { ird = { 0, 1, 3 }, ord = { 0, 1, 5 }, private_data = { "", "what the user says" } },

  run = function(t, p, target)
    t:good_exchange()
    local conn = t:connect()
    conn:send(t:request { enhanced = true, revision = 2, ird = p.ird, ord = p.ord, private_data = p.private_data })
    local pair, told = target:expect_request { private_data = p.private_data, requirement = { "P2P-9-8", "MPA-7.1.1-27" } }
    t:check(told.ird == p.ird and told.ord == p.ord, { requirement = "P2P-9.1-8", expected = words(p), actual = words(told) })
    pair:reject {}
    conn:expect_reply { reject = true }
    conn:close()

    t:liveness()
  end,
}

case {
  id = "mpa-p2p/9.1-told/unenhanced",
  version = 1,
  title = "Of a Request of revision 2 with S=0 the user is told all of the private data",
  requirements = { "P2P-6-3", "MPA-7.1.1-27" },
  roles = { "responder" },
  capabilities = { "agent", "revision-2" },
  tags = { "startup", "private-data", "agent" },
  parameters = { private_data = { "", "abc", "12345678" } },

  run = function(t, p, target)
    t:good_exchange()
    local conn = t:connect()
    conn:send(mpa.request { revision = 2, private_data = p.private_data })
    local pair = target:expect_request { private_data = p.private_data, requirement = { "P2P-6-3", "MPA-7.1.1-27" } }
    pair:reject {}
    conn:expect_reply { reject = true }
    conn:close()

    t:liveness()
  end,
}

--- The enhanced Request of the target, whose user asks for so many Reads; what it tells of them is `ird` and `ord`.
local function asked(t, target, reads)
  local conn, pair = target:connect { ird = reads, ord = reads }
  local request = conn:expect_request {}
  if request.revision == 1 or request.flags & 0x10 == 0 then
    conn:reset()
    t:unimplemented("The target does not ask for anything of RFC 6581.")
  end
  return conn, pair, request
end

case {
  id = "mpa-p2p/9.1-told/reply",
  version = 1,
  title = "The user is told IRD and ORD of an accepting Reply, as the Responder gave them, and of its private data what stands behind them",
  requirements = { "P2P-9.1-25", "P2P-9.1-8", "P2P-9-8" },
  roles = { "initiator" },
  capabilities = { "agent", "revision-2" },
  tags = { "startup", "enhanced", "private-data", "agent" },
  parameters = { more = { 0, 3 }, fewer = { 0, 2 }, private_data = { "", "what the user says" } },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair, request = asked(t, target, 4)
    -- IRD is at least what the Initiator asks for, ORD at most what it holds.
    local ird, ord = request.ord + p.more, request.ird - p.fewer
    conn:send(conn:reply { ird = ird, ord = ord, private_data = p.private_data })
    local told = pair:expect_event { event = "established", private_data = p.private_data, requirement = "P2P-9-8" }
    -- What the Responder holds is what the Initiator may ask for: the user is told each as its own.
    t:check(told.ird == ord and told.ord == ird, {
      requirement = { "P2P-9.1-25", "P2P-9.1-8" },
      expected = ("%d Reads that the Responder holds, %d that it asks for"):format(ird, ord),
      actual = ("%s that it holds, %s that it asks for"):format(told.ord, told.ird),
    })
    conn:reset()

    t:liveness()
  end,
}

case {
  id = "mpa-p2p/9.1-told/closed",
  version = 1,
  title = "The user of an Initiator whose enhanced Request is answered by a close is told that there is no connection",
  requirements = { "P2P-10-12" },
  roles = { "initiator" },
  capabilities = { "agent", "revision-2" },
  tags = { "startup", "enhanced", "refusal", "agent" },
  parameters = { reset = { true, false } },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair = asked(t, target, 1)
    if p.reset then
      conn:reset()
    else
      conn:close()
    end
    pair:expect_event { event = { "rejected", "failed" }, requirement = "P2P-10-12", overdue_fails = true }

    t:liveness()
  end,
}
