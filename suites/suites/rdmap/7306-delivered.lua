-- RFC 7306 sections 5 to 7: Immediate Data and Atomic Operations. An agent reports them. The agent
-- is a program on the target that calls the NIC's verbs for the tester.

-- This value is the same in either byte order.
local VALUE = 0x1122334444332211
local WORD = string.pack("<i8", VALUE)
local FETCH_ADD, CMP_SWAP = 0, 2
local IMMEDIATE = "immediat"

--- Returns an Atomic Request (RFC 7306 Figure 4) that adds 1, or replaces the current value by 1.
local function atomic(region, fields)
  local kind = fields.kind or FETCH_ADD
  return mpa.fpdu {
    ulpdu = rdmap.send {
      opcode = 10, qn = 1, msn = fields.msn or 1,
      payload = string.pack(">I4I4I4i8i8i8i8i8", kind, 7, region.stag, region.address + (fields.at or 0), 1, kind == CMP_SWAP and -1 or 0, 0,
        kind == FETCH_ADD and -1 or 0),
    },
  }
end

--- Returns the original value in the answer.
local function original(conn, requirement)
  return string.unpack(">i8", conn:expect_fpdu { opcode = 11, requirement = requirement }.payload, 5)
end

local function immediate(msn, opcode)
  return mpa.fpdu { ulpdu = rdmap.send { opcode = opcode or 8, msn = msn, payload = IMMEDIATE } }
end

local function later(msn, octets)
  return mpa.fpdu { ulpdu = rdmap.send { msn = msn, payload = ("l"):rep(octets) } }
end

local function receives(target, pair, count)
  local region = target:region { octets = 16 * count, access = { "local_write" } }
  local works = {}
  for nth = 1, count do works[nth] = pair:post_receive { region = region, offset = 16 * (nth - 1), length = 16 } end
  return works
end

local ORDER = { "RDMAP-7306.6.3-7", "RDMAP-7306.7-1" }

case {
  id = "rdmap/7306-delivered/immediate",
  title = "The target uses one receive for Immediate Data, and reports it in order among Sends",
  requirements = { "RDMAP-7306.6.1-1", "RDMAP-7306.6.3-2", "RDMAP-7306.6.3-7", "RDMAP-7306.7-1" },
  roles = { "responder", "initiator" },
  capabilities = { "agent", "atomics" },
  tags = { "immediate", "agent" },
  parameters = { opcode = { 8, 9 } },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair, op = target:operate {}
    local works = receives(target, pair, 4)
    conn:send(later(op.msn, 12))
    conn:send(immediate(op.msn + 1, p.opcode))
    conn:send(later(op.msn + 2, 13))
    local completions = {}
    for nth = 1, 3 do completions[nth] = pair:expect_completion { requirement = "RDMAP-7306.6.3-2", overdue_fails = true } end
    local taken = {}
    for _, it in ipairs(completions) do taken[it.work] = true end
    t:check(taken[works[1]] and taken[works[2]] and taken[works[3]], {
      requirement = "RDMAP-7306.6.3-2",
      expected = "the first three receives used",
      actual = "another receive used",
    })
    t:check(completions[1].work == works[1] and completions[2].work == works[2] and completions[3].work == works[3], {
      requirement = ORDER,
      expected = "a Send, the Immediate Data, a Send",
      actual = ("receives %d, %d, %d"):format(completions[1].work, completions[2].work, completions[3].work),
    })
    -- A completion of libibverbs has no room for the eight bytes of Immediate Data.
    if not completions[2].immediate then t:unimplemented("The agent does not get the bytes of Immediate Data.") end
    t:check(completions[2].immediate == string.unpack(">i8", IMMEDIATE), {
      requirement = "RDMAP-7306.6.1-1",
      expected = "the eight bytes of the Immediate Data",
      actual = ("%#x as Immediate Data"):format(completions[2].immediate),
    })
    conn:reset()
  end,
}

local PLACED = { "RDMAP-7306.6.4-1", "RDMAP-7306.7-5" }

case {
  id = "rdmap/7306-delivered/write-then-immediate",
  title = "The target has a Write in memory when it reports the Immediate Data after it",
  requirements = PLACED,
  roles = { "responder", "initiator" },
  capabilities = { "agent", "atomics" },
  tags = { "immediate", "write", "agent" },
  parameters = { size = { 1, 3000, 200000 } },
  scales = { "size" },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair, op = target:operate {}
    local region = target:region { octets = 200000 }
    local work = receives(target, pair, 1)[1]
    for at = 0, p.size - 1, 1024 do
      local piece = ("w"):rep(math.min(1024, p.size - at))
      conn:send(mpa.fpdu {
        ulpdu = rdmap.write { stag = region.stag, tagged_offset = region.address + at, payload = piece, last = at + #piece == p.size },
      })
    end
    conn:send(immediate(op.msn))
    pair:expect_completion { work = work }
    t:check(region:get { length = p.size } == ("w"):rep(p.size), {
      requirement = PLACED,
      expected = ("the %d bytes of the Write in memory"):format(p.size),
      actual = "other bytes in memory",
    })
    conn:reset()
  end,
}

case {
  id = "rdmap/7306-delivered/atomic-after-write",
  version = 2,
  title = "The target applies an Atomic Operation to the data of a Write before it, and does not report the operation",
  requirements = { "RDMAP-7306.5.2.1-16", "RDMAP-7306.5.2.2-12", "RDMAP-7306.5.4-8", "RDMAP-7306.7-13" },
  roles = { "responder", "initiator" },
  capabilities = { "agent", "atomics" },
  tags = { "atomic", "write", "agent" },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair, op = target:operate {}
    local region = target:region { octets = 8, put = ("\0"):rep(8) }
    local works = receives(target, pair, 2)
    conn:send(mpa.fpdu { ulpdu = rdmap.write { stag = region.stag, tagged_offset = region.address, payload = WORD } })
    conn:send(atomic(region, {}))
    local found = original(conn)
    local is_right, is_early = found == VALUE, found == 0
    t:check(is_right, {
      requirement = {
        (is_right or is_early) and { "RDMAP-7306.5.4-8", "RDMAP-7306.7-13" } or {},
        is_early and {} or "RDMAP-7306.5.2.2-12",
      },
      expected = ("the original value %#x"):format(VALUE),
      actual = ("%#x found"):format(found),
    })
    conn:send(later(op.msn, 9))
    local completion = pair:expect_completion {}
    t:check(completion.work == works[1] and completion.octets == 9, {
      requirement = "RDMAP-7306.5.2.1-16",
      expected = "the Send after the Atomic Operation as the first completion",
      actual = ("%d bytes in receive %d"):format(completion.octets, completion.work),
    })
    conn:reset()
  end,
}

case {
  id = "rdmap/7306-delivered/atomic-after-send",
  version = 2,
  title = "The target completes a Send before it answers the Atomic Request after it",
  requirements = { "RDMAP-7306.7-12" },
  roles = { "responder", "initiator" },
  capabilities = { "agent", "atomics" },
  tags = { "atomic", "send", "agent" },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair, op = target:operate {}
    local region = target:region { octets = 8 }
    local works = receives(target, pair, 1)
    conn:send(later(op.msn, 9))
    conn:send(atomic(region, {}))
    original(conn)
    -- The target has answered, so it has completed the Send. No later message can cause this
    -- completion, because the tester sends none.
    pair:expect_completion { work = works[1], requirement = "RDMAP-7306.7-12", overdue_fails = true }
    conn:reset()
  end,
}

local ATOMIC = { "RDMAP-7306.5-1", "RDMAP-7306.5.3-1", "RDMAP-7306.5.4-4" }

case {
  id = "rdmap/7306-delivered/two-streams",
  title = "The target counts each FetchAdd of two connections on the same memory",
  requirements = ATOMIC,
  roles = { "responder", "initiator" },
  capabilities = { "agent", "atomics" },
  tags = { "atomic", "agent" },
  parameters = { each = { 2, 8 } },

  run = function(t, p, target)
    t:good_exchange()
    local one, two = target:operate {}, target:operate {}
    local region = target:region { octets = 8, fill = 0, put = ("\0"):rep(8) }
    local distinct, count = {}, 0
    for msn = 1, p.each do
      -- Both Requests are sent before either is answered.
      one:send(atomic(region, { msn = msn }))
      two:send(atomic(region, { msn = msn }))
      for _, conn in ipairs { one, two } do
        local value = original(conn)
        if not distinct[value] then count = count + 1 end
        distinct[value] = true
      end
    end
    t:check(count == 2 * p.each, {
      requirement = ATOMIC,
      expected = ("%d values, each found once"):format(2 * p.each),
      actual = ("%d values"):format(count),
    })
    local now = region:get {}
    local little, big = string.unpack("<i8", now), string.unpack(">i8", now)
    t:check(little == 2 * p.each or big == 2 * p.each, {
      requirement = ATOMIC,
      expected = ("%d in memory"):format(2 * p.each),
      actual = ("%#x in memory"):format(little),
    })
    one:reset()
    two:reset()
  end,
}

--- Declares a case with an Atomic Operation on an address that is not a multiple of eight. `memory`
--- is the requirement that memory stays unchanged, and `report` is the requirement that the user
--- gets a report.
local function misaligned(name, kind, memory, report)
  case {
    id = "rdmap/7306-delivered/misaligned-" .. name,
    version = 2,
    title = "The target reports an Atomic Operation on a misaligned address, and changes nothing",
    requirements = { memory, report },
    roles = { "responder", "initiator" },
    capabilities = { "agent", "atomics" },
    tags = { "atomic", "refusal", "agent" },
    parameters = { at = { 1, 4 } },

    run = function(t, p, target)
      t:good_exchange()
      local conn, pair = target:operate {}
      local region = target:region { octets = 16, put = WORD .. WORD }
      conn:send(atomic(region, { kind = kind, at = p.at }))
      -- The target has handled the request when it sends its Terminate or an answer.
      conn:next { within = 5 }
      t:check(region:get {} == WORD .. WORD, { requirement = memory, expected = "unchanged memory", actual = "other bytes in memory" })
      pair:expect_error { or_end = true, requirement = report, overdue_fails = true }
      conn:reset()
    end,
  }
end

misaligned("fetch-add", FETCH_ADD, "RDMAP-7306.5.1.1-5", "RDMAP-7306.5.1.1-6")
misaligned("cmp-swap", CMP_SWAP, "RDMAP-7306.5.1.2-6", "RDMAP-7306.5.1.2-7")
