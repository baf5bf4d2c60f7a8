-- RFC 5044 appendix A.5.1: a target accepts a TCP segment that IP fragments carry. The fragments do
-- not overlap.

local ACCEPTED = "MPA-A.5.1-2"

--- Payload bytes of the Send. With the headers, its segment needs several fragments.
local SIZE = 1000

case {
  id = "mpa/A.5-segments/fragments",
  title = "The target accepts a Send whose TCP segment arrives in IP fragments, also if the last fragment arrives first",
  requirements = { ACCEPTED },
  roles = { "responder", "initiator" },
  capabilities = { "echo", "segments" },
  tags = { "send", "segments" },
  -- A fragment of 24 bytes has the complete TCP header.
  parameters = { fragment = { 24, 256, 512 }, last_first = { false, true } },

  run = function(t, p)
    t:good_exchange()

    local conn, op = t:operate()
    local payload = octets.counted(SIZE)
    -- While the message is withheld, TCP does not send the lost bytes again without fragments.
    conn:withhold(mpa.fpdu { ulpdu = rdmap.send { payload = payload, msn = op.msn } }, { deviates = true })
    conn:send_segment(1, { fragment = p.fragment, last_first = p.last_first })
    conn:expect_fpdu { requirement = ACCEPTED, opcode = 3, payload = payload, overdue_fails = true }
    conn:send_withheld()
    conn:close()
  end,
}
