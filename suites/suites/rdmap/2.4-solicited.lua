-- RFC 5040 section 2.4: the target's user requests notification only of Solicited Events. The user
-- is an agent: a program on the target that calls the NIC's verbs for the tester.

case {
  id = "rdmap/2.4-solicited/plain",
  title = "If its user wants only Solicited Events, the target reports a solicited Send, and not a plain Send",
  requirements = { "RDMAP-2.4-1" },
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "send", "agent" },

  run = function(t, p, target)
    t:good_exchange()
    -- The opening exchange causes the user's first completion. The target notifies the user of this
    -- completion in any case.
    local conn, pair, op = target:operate { solicited = true }
    local region = target:region { octets = 64, access = { "local_write" } }
    local works = {}
    for nth = 1, 2 do works[nth] = pair:post_receive { region = region } end
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "plain", msn = op.msn } })
    pair:expect_no_completion { requirement = "RDMAP-2.4-1" }
    conn:send(mpa.fpdu { ulpdu = rdmap.send { opcode = 5, payload = "solicited", msn = op.msn + 1 } })
    for nth = 1, 2 do pair:expect_completion { work = works[nth], requirement = "RDMAP-2.4-1", overdue_fails = true } end
    conn:reset()
  end,
}
