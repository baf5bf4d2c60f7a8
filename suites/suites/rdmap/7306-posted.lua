-- RFC 7306 section 5: the Atomic Operations that the target's user posts. The user is an agent: a
-- program on the target that calls the NIC's verbs for the tester.

local STAG, TO = 0x77656601, 0x1000
local FETCH_ADD, CMP_SWAP = 0, 2

--- Expects an Atomic Request (RFC 7306 Figure 4). Returns its Request Identifier and its payload.
local function expect_request(t, conn, kind)
  local payload = conn:expect_fpdu { opcode = 10 }.payload
  local is, request_id, stag, to = string.unpack(">I4I4I4i8", payload)
  t:check(#payload == 52 and is == kind and stag == STAG and to == TO, {
    expected = ("an Atomic Request of kind %d for STag %#x, TO %#x"):format(kind, STAG, TO),
    actual = ("%d bytes of kind %d for STag %#x, TO %#x"):format(#payload, is, stag, to),
  })
  return request_id, payload
end

local function respond(conn, msn, request_id, value)
  conn:send(mpa.fpdu { ulpdu = rdmap.send { opcode = 11, qn = 3, msn = msn, payload = string.pack(">I4i8", request_id, value) } })
end

--- Returns the original value that the target reports. libibverbs puts it into the memory of the
--- operation.
local function expect_original(pair, work, region, offset, requirement)
  local completion = pair:expect_completion { work = work, requirement = requirement, overdue_fails = true }
  return completion.found or string.unpack("=i8", region:get { offset = offset, length = 8 })
end

local function number(value) return ("%#x"):format(value) end

--- Operands that differ in every byte.
local ADD, COMPARE, SWAP, WAS = 0x0102030405060708, 0x1112131415161718, 0x2122232425262728, 0x3132333435363738

case {
  id = "rdmap/7306-posted/atomic",
  title = "The target sends an Atomic Operation with the user's operands, and reports the original value",
  requirements = { "RDMAP-7306.5.2.2-10" },
  roles = { "responder", "initiator" },
  capabilities = { "agent", "atomics" },
  tags = { "atomic", "agent" },
  parameters = { kind = { FETCH_ADD, CMP_SWAP } },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair = target:operate { ord = 2 }
    local region = target:region { octets = 8 }
    local fields = { region = region, stag = STAG, to = TO, may_refuse = true }
    if p.kind == FETCH_ADD then
      fields.add = ADD
    else
      fields.compare, fields.swap = COMPARE, SWAP
    end
    local work, why = pair:post_atomic(fields)
    if not work then t:unimplemented("The device rejects such an operation: " .. why) end
    local request_id, payload = expect_request(t, conn, p.kind)
    local change, _, compare = string.unpack(">i8i8i8", payload, 21)
    local matches = p.kind == FETCH_ADD and change == ADD or change == SWAP and compare == COMPARE
    t:check(matches, { expected = "the operands of the user", actual = ("%s, %s as operands"):format(number(change), number(compare)) })
    respond(conn, 1, request_id, WAS)
    local value = expect_original(pair, work, region, 0, "RDMAP-7306.5.2.2-10")
    t:check(value == WAS, { requirement = "RDMAP-7306.5.2.2-10", expected = "the original value " .. number(WAS), actual = number(value) .. " reported" })
    conn:reset()
  end,
}

case {
  id = "rdmap/7306-posted/two",
  title = "The target completes each of two Atomic Operations with its own Response",
  requirements = { "RDMAP-7306.5-6" },
  roles = { "responder", "initiator" },
  capabilities = { "agent", "atomics" },
  tags = { "atomic", "agent" },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair = target:operate { ord = 2 }
    local region = target:region { octets = 16 }
    local works = {}
    for nth = 1, 2 do
      local work, why = pair:post_atomic { region = region, offset = 8 * (nth - 1), length = 8, stag = STAG, to = TO, add = nth, may_refuse = true }
      if not work then t:unimplemented("The device rejects such an operation: " .. why) end
      works[nth] = work
    end
    -- If the ORD is only one, the second Request waits for the first Response.
    respond(conn, 1, expect_request(t, conn, FETCH_ADD), WAS)
    respond(conn, 2, expect_request(t, conn, FETCH_ADD), WAS + 1)
    for nth = 1, 2 do
      local value = expect_original(pair, works[nth], region, 8 * (nth - 1), "RDMAP-7306.5-6")
      t:check(value == WAS + nth - 1, {
        requirement = "RDMAP-7306.5-6",
        expected = ("operation %d found %s"):format(nth, number(WAS + nth - 1)),
        actual = number(value) .. " reported",
      })
    end
    conn:reset()
  end,
}

case {
  id = "rdmap/7306-posted/held-back",
  title = "The target does not complete an Atomic Operation before its Response arrives",
  requirements = { "RDMAP-7306.5.4-10" },
  roles = { "responder", "initiator" },
  capabilities = { "agent", "atomics" },
  tags = { "atomic", "agent" },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair = target:operate {}
    local region = target:region { octets = 8 }
    local work, why = pair:post_atomic { region = region, stag = STAG, to = TO, add = 1, may_refuse = true }
    if not work then t:unimplemented("The device rejects such an operation: " .. why) end
    local request_id = expect_request(t, conn, FETCH_ADD)
    pair:expect_no_completion { requirement = "RDMAP-7306.5.4-10" }
    respond(conn, 1, request_id, WAS)
    pair:expect_completion { work = work }
    conn:reset()
  end,
}
