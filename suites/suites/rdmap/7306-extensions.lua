-- RFC 7306 sections 4 to 6: Atomic Operations on the target's memory, and Immediate Data. The
-- target runs rping, which names a buffer in its first Read Request or Send. The cases use this
-- buffer.

local FETCH_ADD, CMP_SWAP = 0, 2

--- Returns an Atomic Request (RFC 7306 Figure 4). Missing operands are 0.
local function atomic(op, fields)
  return rdmap.send {
    opcode = 10, qn = 1, msn = fields.msn or 1, invalidate_stag = fields.word,
    payload = string.pack(">I4I4I4i8i8i8i8i8", fields.kind, fields.id or 0x01020304, fields.stag or op.stag, op.to + (fields.at or 0),
      fields.data or 0, fields.mask or 0, fields.compare or 0, fields.compare_mask or 0),
  }
end

local function put(conn, op, octets)
  conn:send(mpa.fpdu { ulpdu = rdmap.write { stag = op.stag, tagged_offset = op.to, payload = octets } })
end

--- The requirements that an Atomic Request is answered, those about the queue of the answer, and
--- the further ones about the header of the answer.
local ANSWERED = { "RDMAP-7306.5-3", "RDMAP-7306.1.1-3", "RDMAP-7306.5.2.1-8", "RDMAP-7306.5.2.1-11", "RDMAP-7306.5.2.1-21" }
local QUEUE = { "RDMAP-7306.5-5", "RDMAP-7306.5.2-2", "RDMAP-7306.5.2.2-7", "RDMAP-7306.5.2.2-8", "RDMAP-7306.4.1-4", "RDMAP-7306.4.1-10" }
local HEADER = { "RDMAP-7306.5.2.2-2", "RDMAP-7306.5.2.2-6" }

--- Returns the original value in an Atomic Response.
local function answer(t, conn, msn, id)
  local fpdu = conn:expect_fpdu { requirement = ANSWERED, overdue_fails = true }
  -- A Terminate is no answer. Any other message is an answer with a wrong opcode.
  t:check(fpdu.opcode == 11, {
    requirement = { ANSWERED, fpdu.opcode ~= 7 and "RDMAP-7306.4.1-4" or nil },
    expected = "an Atomic Response", actual = session.describe("fpdu", fpdu),
  })
  t:check(not fpdu.tagged, { requirement = { "RDMAP-7306.5.2.1-21", HEADER, QUEUE }, expected = "T=0, QN 3", actual = "T=1" })
  t:check(fpdu.qn == 3, { requirement = { "RDMAP-7306.5.2.1-21", QUEUE }, expected = "QN 3", actual = ("QN %d"):format(fpdu.qn) })
  t:check(fpdu.msn == msn, {
    requirement = { "RDMAP-7306.5.2.1-21", "RDMAP-7306.5.2.2-2" }, expected = ("MSN %d"):format(msn), actual = ("MSN %d"):format(fpdu.msn),
  })
  t:check(fpdu.mo == 0 and fpdu.last, {
    requirement = "RDMAP-7306.5.2.1-21", expected = "MO 0, L=true", actual = ("MO %d, L=%s"):format(fpdu.mo, fpdu.last),
  })
  t:check(#fpdu.payload == 12, { requirement = "RDMAP-7306.5.2.2-1", expected = "12 bytes", actual = #fpdu.payload .. " bytes" })
  local found, value = string.unpack(">I4i8", fpdu.payload)
  t:check(found == id, {
    requirement = "RDMAP-7306.5.2.2-3", expected = ("identifier %#x"):format(id), actual = ("identifier %#x"):format(found),
  })
  return value
end

--- Returns the bytes that are in the buffer now.
local function look(conn, op, msn)
  conn:send(mpa.fpdu {
    ulpdu = rdmap.read_request { sink_stag = 0x7766, rdmardsz = 8, src_stag = op.stag, src_to = op.to, msn = msn },
  })
  return conn:expect_fpdu { opcode = 2 }.payload
end

--- Declares a case with rping and Atomic Operations, for both roles of the target. `declared` has
--- the other fields of the case, and can replace its roles and capabilities.
local function with_atomics(name, title, requirements, declared, run)
  declared.id, declared.title = "rdmap/7306-extensions/" .. name, title
  declared.requirements, declared.run = requirements, run
  declared.roles = declared.roles or { "responder", "initiator" }
  declared.capabilities = declared.capabilities or { "rping", "atomics" }
  return declared
end

-- Each bit of the mask ends a field of the number. A carry does not pass the end of a field.
case(with_atomics("fetch-add", "The target answers FetchAdd with the original value, and adds field by field under the mask", {
  ANSWERED, QUEUE, HEADER, "RDMAP-7306.5.2.2-1", "RDMAP-7306.5.2.2-3", "RDMAP-7306.5.1.1-1", "RDMAP-7306.5.1.1-2", "RDMAP-7306.5.1.1-8",
  "RDMAP-7306.5-7", "RDMAP-7306.4.1-8", "RDMAP-7306.4.1-6",
}, { version = 2, tags = { "atomic" }, parameters = { value = { 1, 0xffffffff, -1 }, add = { 1, 3 }, mask = { 0, 0x80000000 } } }, function(t, p)
  local conn, op = t:operate()
  put(conn, op, string.pack("<i8", p.value))
  conn:send(mpa.fpdu { ulpdu = atomic(op, { kind = FETCH_ADD, data = p.add, mask = p.mask, id = 0x0a0b0c0d }) })
  local original = answer(t, conn, 1, 0x0a0b0c0d)
  local order = original == p.value and "<" or ">"
  t:check(original == string.unpack(order .. "i8", string.pack("<i8", p.value)), {
    requirement = "RDMAP-7306.5.1.1-1",
    expected = ("the original value, %#x"):format(p.value),
    actual = ("%#x in the Atomic Response"):format(original),
  })
  local low = (original & 0xffffffff) + p.add
  local sum, other_sum = original + p.add, original & ~0xffffffff | low & 0xffffffff
  if p.mask ~= 0 then
    sum, other_sum = other_sum, sum
  end
  local ALL = { "RDMAP-7306.5.1.1-1", "RDMAP-7306.5.1.1-2", "RDMAP-7306.5.1.1-8", "RDMAP-7306.5-7" }
  local now = string.unpack(order .. "i8", look(conn, op, 2))
  local swapped_add = string.unpack(">i8", string.pack("<i8", p.add))
  -- If the value is the result of a wrong addition, the operation did use the addressed value.
  local rows = { "RDMAP-7306.5.1.1-1", "RDMAP-7306.5-7" }
  if now == sum then
    rows = ALL
  elseif now == other_sum then
    rows = { "RDMAP-7306.5.1.1-1", "RDMAP-7306.5.1.1-2" }
  elseif now == original + swapped_add then
    rows = { "RDMAP-7306.5.1.1-1", "RDMAP-7306.5.1.1-8" }
  elseif now ~= original and math.abs(now - sum) == 1 then
    rows = { "RDMAP-7306.5.1.1-1" }
  end
  t:check(now == sum, {
    requirement = rows,
    -- The monitor judges these requirements in the response.
    shows = { "RDMAP-7306.4.1-8", "RDMAP-7306.4.1-6" },
    expected = ("%#x in memory"):format(sum), actual = ("%#x in memory"):format(now),
  })
  conn:close()
end))

case(with_atomics("invalidate-stag", "The target ignores the Invalidate STag field of an Atomic Request",
  { "RDMAP-7306.4.1-9" }, { tags = { "atomic" }, parameters = { stag = { 1, 0x12345678, "own" } } }, function(t, p)
  t:good_exchange()

  local conn, op = t:operate()
  for msn = 1, 2 do
    conn:send(mpa.fpdu { ulpdu = atomic(op, { kind = FETCH_ADD, msn = msn, word = p.stag == "own" and op.stag or p.stag }) }, { deviates = true })
    conn:expect_fpdu { requirement = "RDMAP-7306.4.1-9", opcode = 11, overdue_fails = true }
  end
  conn:close()
end))

case(with_atomics("cmp-swap", "The target answers CmpSwap with the original value, and swaps under its mask if the values match", {
  "RDMAP-7306.5.1.2-1", "RDMAP-7306.5.1.2-2", "RDMAP-7306.5.1.2-3", ANSWERED, QUEUE, HEADER, "RDMAP-7306.5.2.2-1", "RDMAP-7306.5.2.2-3",
}, {
  version = 2,
  tags = { "atomic" },
  parameters = { same = { true, false }, swap_mask = { -1, 0x00ff00ff00ff00ff }, compare_mask = { -1, 0x0f } },
}, function(t, p)
  local conn, op = t:operate()
  -- This value is the same in either byte order.
  local was, swap = 0x1122334444332211, 0x5566778888776655
  put(conn, op, string.pack("<i8", was))
  local compare = p.same and was or was ~ 1
  conn:send(mpa.fpdu {
    ulpdu = atomic(op, { kind = CMP_SWAP, data = swap, mask = p.swap_mask, compare = compare, compare_mask = p.compare_mask }),
  })
  local original = answer(t, conn, 1, 0x01020304)
  t:check(original == was, {
    requirement = "RDMAP-7306.5.1.2-1", expected = ("the original value, %#x"):format(was), actual = ("%#x in the Atomic Response"):format(original),
  })
  local wanted = p.same and (swap & p.swap_mask | was & ~p.swap_mask) or was
  local now = look(conn, op, 2)
  local little, big = string.unpack("<i8", now), string.unpack(">i8", now)
  local is_right = little == wanted or big == wanted
  t:check(is_right, {
    requirement = {
      "RDMAP-7306.5.1.2-1",
      (is_right or not p.same) and "RDMAP-7306.5.1.2-2" or {},
      (is_right or p.same) and "RDMAP-7306.5.1.2-3" or {},
    },
    expected = ("%#x in memory"):format(wanted), actual = ("%#x in memory"):format(little),
  })
  conn:close()
end))

case(with_atomics("in-order", "The target answers waiting Atomic Requests and Reads in order", {
  "RDMAP-7306.5.2.1-20", "RDMAP-7306.5.2.2-11", "RDMAP-7306.5.4-1", "RDMAP-7306.5.4-11", "RDMAP-7306.5.2.1-15", "RDMAP-7306.5.2.2-9",
  "RDMAP-7306.7-11",
}, { version = 2, capabilities = { "rping", "atomics", "revision-2" }, tags = { "atomic" } }, function(t)
  local BUFFERS = { "RDMAP-7306.5.2.1-15", "RDMAP-7306.5.2.2-9" }
  local ORDER = { "RDMAP-7306.5.2.1-20", "RDMAP-7306.5.2.2-11", "RDMAP-7306.5.4-1", "RDMAP-7306.5.4-11", "RDMAP-7306.7-11" }
  local conn, op = t:operate { revision = 2, enhanced = true, ird = 16, ord = 4 }
  put(conn, op, ("\0"):rep(8))
  local requests
  local count = math.min(op.ird or 1, 4)
  for msn = 1, count do
    local request = mpa.fpdu { ulpdu = atomic(op, { kind = FETCH_ADD, data = 1, msn = msn, id = 0x100 + msn }) }
    requests = requests and requests .. request or request
  end
  conn:send(requests)
  local first
  for msn = 1, count do
    local fpdu = conn:expect_fpdu { requirement = BUFFERS, opcode = 11, overdue_fails = true }
    -- Other cases check the queue and the length.
    t:check(fpdu.qn == 3 and #fpdu.payload == 12, {
      expected = "QN 3 and 12 bytes", actual = ("QN %s and %d bytes"):format(fpdu.qn, #fpdu.payload),
    })
    local id, value = string.unpack(">I4i8", fpdu.payload)
    first = first or value
    t:check(id == 0x100 + msn and fpdu.msn == msn and value == first + msn - 1, {
      requirement = ORDER,
      expected = ("the answer to request %d: MSN %d, value %d"):format(msn, msn, first + msn - 1),
      actual = ("identifier %#x, MSN %d, value %d"):format(id, fpdu.msn, value),
    })
  end
  conn:close()
end))

case(with_atomics("misaligned", "The target rejects an Atomic Operation on a misaligned address", {
  "RDMAP-7306.5.1.1-4", "RDMAP-7306.5.1.2-5", "RDMAP-7306.5.1.1-7", "RDMAP-7306.5.1.2-8", "RDMAP-7306.8.2-7", "RDMAP-7306.8.2-8", "RDMAP-4.8-27",
  "RDMAP-7306.8.1-3",
}, { version = 2, tags = { "atomic", "refusal" }, parameters = { at = { 1, 2, 4, 7 }, kind = { 0, 2 } } }, function(t, p)
  t:good_exchange()

  local conn, op = t:operate()
  conn:send(mpa.fpdu { ulpdu = atomic(op, { kind = p.kind, at = p.at, data = 1 }) }, { deviates = true })
  local terminate = conn:expect_terminate {
    requirement = { "RDMAP-7306.5.1.1-4", "RDMAP-7306.5.1.2-5", "RDMAP-7306.8.2-7", "RDMAP-7306.8.2-8" },
    terminate = { "RDMAP-7306.5.1.1-7", "RDMAP-7306.5.1.2-8" },
  } ---@cast terminate weft.Terminate
  local code = ("%02x %02x"):format(terminate.payload:byte(1, 2))
  t:check(code == "02 07", { requirement = "RDMAP-4.8-27", expected = "a Terminate: 02 07", actual = "it sent a Terminate: " .. code })
  t:check(not terminate.r, { requirement = "RDMAP-7306.8.1-3", expected = "R=false", actual = ("R=%s"):format(terminate.r) })
  conn:expect_close()
end))

--- Returns a case in which the target rejects the segment that `made` returns.
local function refused(name, title, requirements, parameters, made)
  return with_atomics(name, title, requirements, { tags = { "atomic", "refusal" }, parameters = parameters }, function(t, p)
    t:good_exchange()

    local conn, op = t:operate()
    conn:send(mpa.fpdu { ulpdu = made(p, op) }, { deviates = true })
    conn:expect_terminate { requirement = requirements }
    conn:expect_close()
  end)
end

case(refused("opcode", "The target rejects an undefined Atomic Operation", { "RDMAP-7306.5.2.1-5" }, { kind = { 1, 3, 15 } }, function(p, op)
  return atomic(op, { kind = p.kind, data = 1 })
end))

case(refused("stag", "The target rejects an Atomic Operation on memory that does not belong to the stream",
  { "RDMAP-7306.5-8", "RDMAP-7306.9-1" }, { wrong = { "stag", "end", "cut" } }, function(p, op)
  local length = op.length // 8 * 8
  return atomic(op, ({
    stag = { kind = FETCH_ADD, stag = op.stag ~ 0xffffffff },
    ["end"] = { kind = FETCH_ADD, at = length + 8 },
    -- The eight bytes are only partly in the buffer. If the buffer's length is a multiple of eight,
    -- they begin directly after the buffer.
    cut = { kind = FETCH_ADD, at = length },
  })[p.wrong])
end))

case(refused("response", "The target rejects an Atomic Response without a request",
  { "RDMAP-7306.5.2.2-5" }, { length = { 0, 11, 12, 13 } }, function(p)
  return rdmap.send { opcode = 11, qn = 3, payload = ("w"):rep(p.length) }
end))

case(with_atomics("immediate-size", "The target rejects Immediate Data that does not have eight bytes",
  { "RDMAP-7306.6.3-4", "RDMAP-7306.8.2-3", "RDMAP-7306.6.1-2", "RDMAP-7306.8.1-1" },
  { tags = { "immediate", "refusal" }, parameters = { length = { 0, 7, 9, 16 }, opcode = { 8, 9 } } }, function(t, p)
  t:good_exchange()

  local conn, op = t:operate()
  conn:send(mpa.fpdu { ulpdu = rdmap.send { opcode = p.opcode, msn = op.msn, payload = ("w"):rep(p.length) } }, { deviates = true })
  conn:expect_terminate { terminate = { "RDMAP-7306.6.3-4", "RDMAP-7306.8.2-3", "RDMAP-7306.6.1-2", "RDMAP-7306.8.1-1" } }
  conn:expect_close()
end))

case(with_atomics("add-nothing", "The target answers FetchAdd of zero with the current value, and changes nothing",
  { "RDMAP-7306.1.1-4" }, { tags = { "atomic" } }, function(t)
  t:good_exchange()

  local conn, op = t:operate()
  put(conn, op, "weftweft")
  conn:send(mpa.fpdu { ulpdu = atomic(op, { kind = FETCH_ADD }) })
  conn:expect_fpdu { opcode = 11, overdue_fails = true }
  local now = look(conn, op, 2)
  t:check(now == "weftweft", {
    requirement = "RDMAP-7306.1.1-4", expected = "unchanged bytes", actual = now == "weftweft" and "as expected" or "other bytes in memory",
  })
  conn:close()
end))

case(with_atomics("unrequested", "The target sends no Atomic Response without a request",
  { "RDMAP-7306.5.2.1-21" }, { roles = { "responder" }, capabilities = { "echo", "atomics" }, tags = { "atomic" } }, function(t)
  local conn = t:start_up()
  conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft" } })
  local fpdu = conn:expect_fpdu { overdue_fails = true }
  t:check(fpdu.opcode ~= 11, {
    requirement = "RDMAP-7306.5.2.1-21", expected = "no Atomic Response", actual = ("opcode %d"):format(fpdu.opcode),
  })
  conn:close()
end))

case(refused("fields", "The target rejects an Atomic Request with a wrong queue, number or offset",
  { "RDMAP-7306.8.2-4" }, { wrong = { "qn", "msn", "mo" } }, function(p, op)
  local ulpdu = atomic(op, { kind = FETCH_ADD, data = 1 })
  -- QN is bytes 6 to 9, MSN is bytes 10 to 13, and MO is bytes 14 to 17.
  return ({ qn = ulpdu:flip(6, 0x01), msn = ulpdu:flip(11, 0x01), mo = ulpdu:flip(14, 0x01) })[p.wrong]
end))

-- RV, the RDMAP version, is the first two bits of byte 1. The correct value of RV is 1.
case(refused("version", "The target rejects an Atomic Request of another RDMAP version",
  { "RDMAP-7306.8.2-6" }, { flip = { 0x40, 0x80, 0xc0 } }, function(p, op)
  return atomic(op, { kind = FETCH_ADD, data = 1 }):flip(1, p.flip)
end))

case(refused("request-size", "The target rejects an Atomic Request that does not have 52 bytes",
  { "RDMAP-7306.4.2-4" }, { more = { -52, -4, 1, 4, 64 } }, function(p, op)
  local right = atomic(op, { kind = FETCH_ADD, data = 1 })
  return p.more < 0 and right:cut(#right + p.more) or right .. ("\0"):rep(p.more)
end))
