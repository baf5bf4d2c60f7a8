-- RFC 5040 section 3.1: DDP and the layers below it deliver in order and reliably. The TCP segments
-- arrive in another order here. The user is an agent: a program on the target that calls the NIC's
-- verbs for the tester.

local IN_ORDER = "RDMAP-3.1-11"

case {
  id = "rdmap/3.1-segments/order",
  title = "The target reports Sends in the order in which they were sent if their TCP segments arrive in another order",
  requirements = { IN_ORDER },
  roles = { "responder", "initiator" },
  capabilities = { "agent", "segments" },
  tags = { "send", "segments", "agent" },
  parameters = { order = { "reversed", "repeated" } },

  run = function(t, p, target)
    t:good_exchange()

    local conn, pair, op = target:operate {}
    local region = target:region { octets = 64, access = { "local_write" } }
    local works, message, cuts = {}, nil, {}
    for nth = 1, 4 do
      works[nth] = pair:post_receive { region = region, offset = 16 * (nth - 1), length = 16 }
      local fpdu = mpa.fpdu { ulpdu = rdmap.send { payload = ("w"):rep(nth), msn = op.msn + nth - 1 } }
      if message then cuts[#cuts + 1] = #message end
      message = message and message .. fpdu or fpdu
    end
    local order = p.order == "reversed" and { 4, 3, 2, 1 } or { 4, 3, 4, 2, 2, 1 }
    conn:send_segments(message, { cuts = cuts, order = order, deviates = true })
    for nth = 1, 4 do
      local completion = pair:expect_completion { requirement = IN_ORDER, overdue_fails = true }
      t:check(completion.work == works[nth] and completion.octets == nth, {
        requirement = IN_ORDER,
        expected = ("Send %d, of %d bytes, in receive %d"):format(nth, nth, works[nth]),
        actual = ("%d bytes in receive %d"):format(completion.octets, completion.work),
      })
    end
    conn:reset()
  end,
}
