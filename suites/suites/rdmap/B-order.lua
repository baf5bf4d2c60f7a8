-- RFC 5040 appendix B: the order of operations, as the target's user observes it. The user is an
-- agent: a program on the target that calls the NIC's verbs for the tester.

local DATA = "in order"

case {
  id = "rdmap/B-order/send-then-read",
  title = "The target answers a Read of a receive's buffer with the bytes of the Send before it",
  requirements = { "RDMAP-B-3" },
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "send", "read", "agent" },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair, op = target:operate { ird = 1, ord = 1 }
    local region = target:region { octets = 8 }
    local work = pair:post_receive { region = region }
    conn:send(mpa.fpdu { ulpdu = rdmap.send { msn = op.msn, payload = DATA } })
    conn:send(mpa.fpdu {
      ulpdu = rdmap.read_request { sink_stag = 0x7766, rdmardsz = 8, src_stag = region.stag, src_to = region.address },
    })
    conn:expect_fpdu { requirement = "RDMAP-B-3", opcode = 2, payload = DATA }
    pair:expect_completion { work = work, octets = 8 }
    conn:reset()
  end,
}
