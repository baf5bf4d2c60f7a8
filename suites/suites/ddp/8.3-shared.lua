-- RFC 5041 section 8.3.2, RFC 5040 section 8.1.2, draft-hilland-rddp-verbs section 6.3: receives
-- that streams share. The cases use an agent: a program on the target that calls the NIC's verbs
-- for the tester.

local LIMIT = { "DDP-8.3.2-7", "RDMAP-8.1.2-9" }

case {
  id = "ddp/8.3-shared/limit",
  title = "The target reports that a shared receive queue has fewer receives left than its limit",
  requirements = LIMIT,
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "send", "receives", "agent" },

  run = function(t, p, target)
    t:good_exchange()
    if target:device().max_shared == 0 then t:unimplemented("The device has no shared receive queues.") end
    local shared = target:shared { depth = 16 }
    local conn, pair, op = target:operate { shared = shared }
    local region = target:region { octets = 64, access = { "local_write" } }
    for _ = 1, 6 do shared:post_receive { region = region } end
    local limited, why = shared:limit(4)
    if not limited then t:unimplemented("The device does not report the limit: " .. why) end
    -- Four receives are left after the second Send, and three after the third.
    for nth = 0, 2 do
      conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "more", msn = op.msn + nth } })
      pair:expect_completion {}
    end
    shared:expect_limit { requirement = LIMIT, overdue_fails = true }
    conn:reset()
  end,
}

--- Number of connections that share a receive queue, and number of Sends on each of them.
local CONNECTIONS, SENDS = 3, 4
--- Size in bytes of the buffer of each receive.
local SLOT = 64

--- Opens the connections, and then posts a receive for each Send to their shared receive queue.
--- Returns the connections, the region of the receives, and the receives by their numbers.
local function open(t, target)
  if target:device().max_shared == 0 then t:unimplemented("The device has no shared receive queues.") end
  local shared, conns = target:shared { depth = 16 }, {}
  -- The first Send of a connection takes a receive of its own, so no other receive is posted yet.
  for number = 1, CONNECTIONS do
    local conn, pair, op = target:operate { shared = shared }
    conns[number] = { number = number, conn = conn, pair = pair, msn = op.msn }
  end
  local receives = CONNECTIONS * SENDS
  local region, slots = target:region { octets = SLOT * receives, access = { "local_write" } }, {}
  for nth = 1, receives do
    local offset = SLOT * (nth - 1)
    slots[shared:post_receive { region = region, offset = offset, length = SLOT }] = { offset = offset }
  end
  return conns, region, slots
end

--- Returns the payload of a connection's Send. The lengths of two Sends differ by two bytes or more.
local function payload_of(c, nth)
  return ("connection %d, Send %d. "):format(c.number, nth):rep(3):sub(1, 24 + 8 * nth + 2 * c.number)
end

--- Returns the connection whose Send has this length.
local function sender_of(conns, length)
  for _, c in ipairs(conns) do
    for nth = 1, SENDS do
      if #payload_of(c, nth) == length then return c end
    end
  end
end

--- Sends part `part` of a connection's Send. The Send has `parts` parts.
local function send_part(c, nth, part, parts)
  local payload = payload_of(c, nth)
  local size = #payload // parts
  local from, till = size * (part - 1), part == parts and #payload or size * part
  c.conn:send(mpa.fpdu {
    ulpdu = rdmap.send { msn = c.msn + nth - 1, mo = from, payload = payload:sub(from + 1, till), last = part == parts },
  })
end

local ONE, RIGHT_PAIR = { "DDP-5.3-5", "RDMAP-5.3-2", "DDP-1.2-1" }, "VERBS-6.3-3"
local LENGTH, DATA = "RDMAP-5.3-13", "DDP-1.2-3"

-- The RNIC may use the receives in any order (draft section 6.3.5).
case {
  id = "ddp/8.3-shared/several",
  title = "The target completes one receive of a shared queue for each Send of three connections, on the Send's connection",
  requirements = { ONE, RIGHT_PAIR, LENGTH, DATA },
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "send", "receives", "connections", "agent" },
  -- With several segments, a Send of each connection is incomplete at the same time.
  parameters = { segments = { 1, 3 } },

  run = function(t, p, target)
    t:good_exchange()
    local conns, region, slots = open(t, target)
    for nth = 1, SENDS do
      for segment = 1, p.segments do
        for _, c in ipairs(conns) do send_part(c, nth, segment, p.segments) end
        -- All connections have begun their Sends before the first of them ends.
        if segment < p.segments then t:pause(0.05) end
      end
    end
    for _, c in ipairs(conns) do
      for nth = 1, SENDS do
        local completion = c.pair:expect_completion { requirement = RIGHT_PAIR, overdue_fails = true }
        local slot, payload = slots[completion.work], payload_of(c, nth)
        t:check(slot and not slot.payload, {
          requirement = ONE,
          expected = "a receive of the shared queue that no earlier Send has used",
          actual = ("work request %d"):format(completion.work),
        })
        local sender = sender_of(conns, completion.octets)
        t:check(not sender or sender == c, {
          requirement = RIGHT_PAIR,
          expected = ("the completion of Send %d of connection %d"):format(nth, c.number),
          actual = ("a completion of %d bytes, the length of a Send of connection %d"):format(completion.octets, sender and sender.number or 0),
        })
        t:check(completion.octets == #payload, {
          requirement = LENGTH,
          expected = ("%d bytes, the length of Send %d of connection %d"):format(#payload, nth, c.number),
          actual = ("%d bytes"):format(completion.octets),
        })
        slot.payload = payload
      end
    end
    for _, c in ipairs(conns) do c.pair:expect_no_completion { within = 0.3, requirement = ONE } end
    local memory = region:get {}
    for _, slot in pairs(slots) do
      local got = memory:sub(slot.offset + 1, slot.offset + #slot.payload)
      t:check(got == slot.payload, {
        requirement = DATA, expected = "the bytes of the Send in the buffer of its receive", actual = octets.difference(got, slot.payload),
      })
    end
    for _, c in ipairs(conns) do c.conn:reset() end
  end,
}

local UNAFFECTED = { "VERBS-6.3.6-7", "VERBS-6.3.6-3", "VERBS-6.3.6-4" }

case {
  id = "ddp/8.3-shared/one-ends",
  title = "The target still delivers Sends to a shared receive queue after one of its connections was reset or failed",
  requirements = UNAFFECTED,
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "send", "receives", "connections", "close", "agent" },
  -- The connection is reset, also in the middle of a Send, or the tester sends an illegal FPDU.
  parameters = { ends = { "reset", "half-sent", "fault" } },

  run = function(t, p, target)
    t:good_exchange()
    local conns = open(t, target)
    for _, c in ipairs(conns) do
      send_part(c, 1, 1, 1)
      c.pair:expect_completion {}
    end
    local ended = table.remove(conns, 1)
    if p.ends == "half-sent" then
      send_part(ended, 2, 1, 2)
      -- The first segment takes a receive before the reset.
      t:pause(0.1)
    end
    if p.ends == "fault" then
      ended.conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft", qn = 77, msn = ended.msn + 1 } }, { deviates = true })
    else
      ended.conn:reset()
    end
    ended.pair:expect_error { or_end = true }
    for nth = 2, SENDS do
      for _, c in ipairs(conns) do send_part(c, nth, 1, 1) end
    end
    for _, c in ipairs(conns) do
      for _ = 2, SENDS do c.pair:expect_completion { requirement = UNAFFECTED, overdue_fails = true } end
    end
    if p.ends == "fault" then ended.conn:reset() end
    for _, c in ipairs(conns) do c.conn:reset() end
  end,
}
