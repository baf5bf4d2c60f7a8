-- RFC 6581 section 9.1: if a Reply's IRD is 0x3FFF, the Initiator keeps its own ORD. If a Reply's
-- ORD is 0x3FFF, the Initiator keeps its own IRD. The cases use an agent: a program on the target
-- that calls the NIC's verbs for the tester.

local OPEN = 0x3fff

--- Waits for the enhanced Request of the target. The target's user (the agent) requests IRD 2 and
--- ORD 2.
local function connect_enhanced(t, target)
  local conn, pair = target:connect { ird = 2, ord = 2 }
  local request = conn:expect_request {}
  if request.revision == 1 or request.flags & 0x10 == 0 then
    conn:reset()
    t:unimplemented("The target does not use RFC 6581.")
  end
  return conn, pair, request
end

case {
  id = "mpa-p2p/9.1-open/ord",
  title = "If the Reply's IRD is 0x3FFF, the initiator sends as many Reads at once as its user requested",
  requirements = { "P2P-9.1-15" },
  roles = { "initiator" },
  capabilities = { "agent", "revision-2" },
  tags = { "startup", "enhanced", "read", "agent" },

  run = function(t, _, target)
    t:good_exchange()
    local conn, pair, request = connect_enhanced(t, target)
    conn:send(conn:reply { ird = OPEN, ord = request.ird })
    pair:expect_event { event = "established", requirement = "P2P-9.1-15" }
    local region = target:region { octets = 64 }
    for nth = 1, request.ord + 1 do
      pair:post_read { region = region, offset = nth, length = 1, stag = 1, to = nth, may_refuse = true }
    end
    for _ = 1, request.ord do
      repeat
        local fpdu = conn:expect_fpdu { requirement = "P2P-9.1-15", overdue_fails = true }
        -- A ready-to-receive message may come first.
        local is_read = fpdu.opcode == 1 and string.unpack(">I4", fpdu.payload, 13) == 1
      until is_read
    end
    conn:expect_silence { requirement = "P2P-9.1-15", within = 1 }
    conn:reset()
  end,
}

case {
  id = "mpa-p2p/9.1-open/ird",
  title = "The initiator connects and answers a Read of the responder if the Reply's ORD is 0x3FFF",
  requirements = { "P2P-9.1-16" },
  roles = { "initiator" },
  capabilities = { "agent", "revision-2" },
  tags = { "startup", "enhanced", "read", "agent" },

  run = function(t, _, target)
    t:good_exchange()
    local conn, pair, request = connect_enhanced(t, target)
    conn:send(conn:reply { ird = request.ord, ord = OPEN })
    pair:expect_event { event = "established", requirement = "P2P-9.1-16", overdue_fails = true }
    local region = target:region { octets = 64, put = "still here" }
    pair:post_send { region = region, length = 5 }
    repeat
      local fpdu = conn:expect_fpdu {}
    until fpdu.payload == "still"
    conn:send(mpa.fpdu { ulpdu = rdmap.read_request { sink_stag = 7, rdmardsz = 10, src_stag = region.stag, src_to = region.address } })
    conn:expect_fpdu { opcode = 2, payload = "still here", requirement = "P2P-9.1-16", overdue_fails = true }
    conn:reset()
  end,
}
