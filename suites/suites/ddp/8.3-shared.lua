-- RFC 5041 section 8.3.2, RFC 5040 section 8.1.2: receives that streams share. The case uses an
-- agent: a program on the target that calls the NIC's verbs for the tester.

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
