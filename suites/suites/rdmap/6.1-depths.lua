-- RFC 5040 sections 6.1 and 8.1.1: how many Reads of the target's user are outstanding. The user is
-- an agent: a program on the target that calls the NIC's verbs for the tester.

local ORD = { "RDMAP-6.1-7", "RDMAP-8.1.1-14" }
local READS = 4

--- Answers each Read Request as late as possible. When no more Read Requests arrive, the tester
--- answers the oldest waiting Read Request. This continues until `reads` Reads of the user are
--- answered. At most `most` Read Requests may wait at a time. `limit` is the requirement, and
--- `source` names the origin of the limit.
local function answer_late(t, conn, reads, most, limit, source)
  local waiting, answered = {}, 0
  while answered < reads do
    -- If a Request has to come, wait long enough for it. A Request that must not come would come at
    -- once.
    local event, fpdu = conn:next { within = #waiting == 0 and 5 or 0.5 }
    if event == "fpdu" and fpdu.opcode == 1 then
      waiting[#waiting + 1] = fpdu
      t:check(#waiting <= most, {
        requirement = limit,
        expected = ("at most %d Read Requests that wait for their answer, as %s"):format(most, source),
        actual = ("%d Read Requests wait"):format(#waiting),
      })
    elseif event == "fpdu" then
      t:check(fpdu.opcode ~= 7, { expected = "a Read Request", actual = "a Terminate" })
    else
      t:check(event == nil and #waiting > 0, { expected = "a Read Request", actual = event or "nothing" })
      local request = table.remove(waiting, 1)
      local stag, to, size = string.unpack(">I4i8I4", request.payload)
      conn:send(mpa.fpdu { ulpdu = rdmap.write { opcode = 2, stag = stag, tagged_offset = to, payload = ("r"):rep(size), last = true } })
      -- An empty Read Request is a ready-to-receive message, not a Read of the user.
      if size > 0 then answered = answered + 1 end
    end
  end
end

case {
  id = "rdmap/6.1-depths/ord",
  version = 3,
  title = "The target has no more Reads outstanding than its user requested, and completes further Reads later",
  requirements = ORD,
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "read", "agent" },
  parameters = { ord = { 1, 2 } },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair = target:operate { ird = 1, ord = p.ord }
    local region = target:region { octets = 8 * READS }
    local works = {}
    for nth = 1, READS do
      works[nth] = pair:post_read { region = region, offset = 8 * (nth - 1), length = 8, stag = 7, to = 8 * nth }
    end
    answer_late(t, conn, READS, p.ord, ORD, "the user requests")
    for _, work in ipairs(works) do pair:expect_completion { work = work, operation = "read" } end
    conn:reset()
  end,
}

case {
  id = "rdmap/6.1-depths/ord-0",
  title = "The target sends no Read Request if the user requested no outstanding Reads",
  requirements = ORD,
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "read", "agent" },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair = target:operate { ird = 1, ord = 0 }
    pair:post_read { region = target:region { octets = 8 }, stag = 7, to = 0, may_refuse = true }
    local event, fpdu = conn:next { within = 2 }
    t:check(event ~= "fpdu" or fpdu.opcode ~= 1, {
      requirement = ORD,
      expected = "no Read Request",
      actual = "a Read Request",
    })
    if event ~= "close" then conn:close() end
  end,
}

case {
  id = "rdmap/6.1-depths/peer-holds-fewer",
  version = 2,
  title = "The target has no more Reads outstanding than the peer's IRD, even if its user requested more",
  requirements = { "P2P-9.1-9", "P2P-9.1-4", "RDMAP-6.1-7" },
  roles = { "initiator" },
  capabilities = { "agent", "revision-2" },
  tags = { "read", "startup", "enhanced", "agent" },
  parameters = { held = { 1, 2 } },

  run = function(t, p, target)
    local ALL = { "P2P-9.1-9", "P2P-9.1-4", "RDMAP-6.1-7" }
    t:good_exchange()
    local conn, pair = target:connect { ird = 4, ord = 4 }
    local request = conn:expect_request {}
    if request.revision == 1 or request.flags & 0x10 == 0 then
      conn:reset()
      t:unimplemented("The target does not use RFC 6581.")
    end
    if request.ord <= p.held then
      conn:reset()
      t:unimplemented(("The target requests %d Reads at a time."):format(request.ord))
    end
    conn:send(conn:reply { ird = p.held, ord = 0 })
    -- The target may also give up the connection. An Initiator need not accept a Responder whose
    -- IRD is below the Initiator's ORD.
    local outcome = pair:expect_event { event = { "established", "rejected", "failed" } }
    if outcome.event ~= "established" then
      t:liveness()
      t:unimplemented("The target does not accept a Reply with fewer Reads than it requests.")
    end
    local region = target:region { octets = 64 }
    local reads = p.held + 2
    for nth = 1, reads do
      pair:post_read { region = region, offset = nth, length = 1, stag = 1, to = nth, may_refuse = true }
    end
    answer_late(t, conn, reads, p.held, ALL, "IRD of the Reply allows")
    conn:reset()
  end,
}

case {
  id = "rdmap/6.1-depths/initiator-holds-fewer",
  version = 2,
  title = "The target has no more Reads outstanding than the initiator's IRD, even if its user allows more",
  requirements = { "P2P-9.1-6", "P2P-9.1-20", "RDMAP-6.1-7" },
  capabilities = { "agent", "revision-2" },
  tags = { "read", "startup", "enhanced", "agent" },
  parameters = { held = { 1, 2 } },

  run = function(t, p, target)
    local ALL = { "P2P-9.1-6", "P2P-9.1-20", "RDMAP-6.1-7" }
    t:good_exchange()
    local conn = t:connect()
    conn:send(t:request { enhanced = true, revision = 2, ird = p.held, ord = 1 })
    local pair = target:expect_request {}
    pair:open {}
    local received = pair:post_receive { region = target:region { octets = 16, access = { "local_write" } } }
    pair:accept { ird = 4, ord = 4 }
    conn:expect_reply { reject = false }
    t:pause(0.2)
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "you" } })
    pair:expect_event { event = "established" }
    pair:expect_completion { work = received, octets = 3 }
    local region = target:region { octets = 64 }
    local reads = p.held + 2
    for nth = 1, reads do
      pair:post_read { region = region, offset = nth, length = 1, stag = 1, to = nth, may_refuse = true }
    end
    answer_late(t, conn, reads, p.held, ALL, "IRD of the Request allows")
    conn:reset()
  end,
}
