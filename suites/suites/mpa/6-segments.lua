-- RFC 5044 section 6: the target finds each FPDU if TCP segments arrive in another order, or more
-- than once. TCP brings the bytes into their order. A receiver that reads early segments at once
-- finds FPDUs by their markers.

local FOUND = "MPA-6-5"

--- Each function returns the order in which `count` segments leave.
local ORDERS = {
  reversed = function(count)
    local order = {}
    for number = count, 1, -1 do order[#order + 1] = number end
    return order
  end,
  swapped = function(count)
    local order = {}
    for number = 2, count, 2 do
      order[number - 1], order[number] = number, number - 1
    end
    return order
  end,
  -- The first copy of a segment arrives early. The second copy repeats bytes that have arrived.
  repeated = function(count)
    local order = {}
    for number = count, 1, -1 do
      order[#order + 1] = number
      order[#order + 1] = number
    end
    return order
  end,
}

--- Returns the offsets at which `length` bytes are cut into segments of `size` bytes.
local function every(size, length)
  local cuts = {}
  for cut = size, length - 1, size do cuts[#cuts + 1] = cut end
  return cuts
end

--- Declares a case with two Sends of 424 bytes each, cut into segments of `size` bytes. With 20
--- bytes, an FPDU has many segments. With 500 bytes, one segment has the end of the first FPDU and
--- the beginning of the second.
local function two_sends(name, title, capabilities, fields)
  return {
    id = "mpa/6-segments/" .. name,
    title = title,
    requirements = { FOUND },
    roles = { "responder", "initiator" },
    capabilities = capabilities,
    tags = { "fpdu", "segments" },
    parameters = { size = { 20, 100, 500 }, order = { "reversed", "swapped", "repeated" } },

    run = function(t, p)
      t:good_exchange()

      local conn, op = t:operate(fields)
      local payloads = { ("one "):rep(100), ("two "):rep(100) }
      local message = mpa.fpdu { ulpdu = rdmap.send { payload = payloads[1], msn = op.msn } }
        .. mpa.fpdu { ulpdu = rdmap.send { payload = payloads[2], msn = op.msn + 1 } }
      local cuts = every(p.size, #message)
      conn:send_segments(message, { cuts = cuts, order = ORDERS[p.order](#cuts + 1), deviates = true })
      for _, payload in ipairs(payloads) do
        conn:expect_fpdu { requirement = FOUND, opcode = 3, payload = payload, overdue_fails = true }
      end
      conn:close()
    end,
  }
end

case(two_sends("reordered", "The target delivers two Sends whose TCP segments arrive in another order",
  { "echo", "segments" }, {}))

case(two_sends("marked", "The target delivers two Sends with markers whose TCP segments arrive in another order",
  { "asks-for-markers", "echo", "crc", "segments" }, { crc = true }))
