-- RFC 5044 section 7.1.5: TCP recovers from loss and from another order of its segments, also while
-- the connection changes from start-up to Full Operation.

local RECOVERED = "MPA-7.1.5-4"

--- The order in which the three segments of a frame leave. A segment that occurs twice is a
--- retransmission.
local ORDERS = { reversed = { 3, 2, 1 }, swapped = { 2, 1, 3 }, repeated = { 3, 3, 2, 3, 1 } }

case {
  id = "mpa/7.1.5-segments/frame",
  title = "The target accepts a start-up frame whose TCP segments arrive in another order",
  requirements = { RECOVERED },
  roles = { "responder", "initiator" },
  capabilities = { "operation", "segments" },
  tags = { "startup", "segments" },
  parameters = { order = { "reversed", "swapped", "repeated" }, paused = { false, true } },

  run = function(t, p)
    t:good_exchange()

    local conn = t:connect()
    if t:is_initiator() then conn:expect_request {} end
    local frame = t:is_initiator() and conn:reply {} or t:request()
    conn:send_segments(frame, {
      cuts = { 4, 18 }, order = ORDERS[p.order], pause = p.paused and 0.2 or 0, deviates = frame,
    })
    if t:is_initiator() then
      conn:expect_fpdu { requirement = RECOVERED, overdue_fails = true }
    else
      conn:expect_reply { requirement = RECOVERED, reject = false, overdue_fails = true }
    end
    conn:close()
  end,
}

case {
  id = "mpa/7.1.5-segments/first-fpdu",
  title = "The responder accepts a first FPDU whose TCP segments arrive in another order",
  requirements = { RECOVERED },
  capabilities = { "echo", "segments" },
  tags = { "startup", "fpdu", "segments" },
  parameters = { order = { "reversed", "swapped", "repeated" } },

  run = function(t, p)
    t:good_exchange()

    local conn = t:start_up()
    local fpdu = mpa.fpdu { ulpdu = rdmap.send { payload = "weft" } }
    conn:send_segments(fpdu, { cuts = { 1, 20 }, order = ORDERS[p.order], deviates = true })
    conn:expect_fpdu { requirement = RECOVERED, opcode = 3, payload = "weft", overdue_fails = true }
    conn:close()
  end,
}
