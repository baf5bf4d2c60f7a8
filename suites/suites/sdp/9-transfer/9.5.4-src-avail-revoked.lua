-- How a target revokes its SrcAvails, and handles revoked SrcAvails (draft-pinkerton-iwarp-sdp-01
-- sections 6.3.9 and 9.5.4).

local VA = 0x700000001
local OCTETS = ("abcdefghij"):rep(200)

-- Declares a case with a driven socket, which is weft's own SDP socket that executes commands.
-- `run` gets the connection, on which SDP has started. `declared` has the other fields of the case.
local function driven(name, title, requirements, declared, run)
  declared.id, declared.title = "sdp/9-transfer/" .. name, title
  declared.requirements = requirements
  declared.capabilities = { "sdp-drive" }
  declared.run = function(t)
    run((t:sdp {}), t)
  end
  return declared
end

-- Like `driven`, but adds the requirements that the monitor judges in the messages `shown`.
local function observed(name, title, requirements, shown, declared, run)
  shown = sdp.shown(shown)
  return driven(name, title, { requirements, shown }, declared, function(s, t)
    run(s, shown, t)
  end)
end

case(observed("cancelled-send", "The target revokes a SrcAvail", { "SDP-9.5.4-12" },
  { "hello_ack", "dis_conn", "src_avail", "combined", "src_avail_cancel" }, { version = 2 }, function(s, shown)
  s:command "send 2000; wait 20; cancel-sends; send 1500"
  s:expect "src_avail"
  s:expect "src_avail_cancel"
  s:expect_quiet { within = 0.1 }
  s:send(sdp.send_sm {})
  s:collect(1500, { requirement = "SDP-9.5.4-12", overdue_fails = true })
  s:close { shows = shown }
end))

case(observed("cancelled-sends", "The target revokes several SrcAvails at once", { "SDP-9.5.4-12", "SDP-9.5.4-10" },
  { "hello_ack", "dis_conn", "src_avail", "pipelined", "src_avail_cancel", "mode_change", "to_pipelined" }, { version = 2 }, function(s, shown)
  s:command "mode out pipelined; send 2000; send 2500; wait 20; cancel-sends; send 1500"
  s:expect "mode_change"
  s:expect "src_avail"
  s:expect "src_avail"
  s:expect "src_avail_cancel"
  s:expect_quiet { within = 0.1, requirement = "SDP-9.5.4-10", overdue_fails = true }
  s:send(sdp.send_sm {})
  s:collect(1500, { requirement = "SDP-9.5.4-12", overdue_fails = true })
  s:close { shows = shown }
end))

case(observed("revoked-by-tester", "If the tester revokes a SrcAvail, the target answers with SendSm",
  { "SDP-9.5.4-2", "SDP-6.3.9-2" }, { "hello_ack", "dis_conn", "send_sm", "SDP-9.5.4-9" }, { version = 2 }, function(s, shown)
  s:command "wait 20; read 3000"
  s:send(sdp.src_avail { length = 2000, payload = OCTETS:sub(1, 40) })
  s:send(sdp.src_avail_cancel {})
  s:expect("send_sm", { requirement = { "SDP-9.5.4-2", "SDP-6.3.9-2" }, overdue_fails = true })
  s:expect_quiet { within = 0.1, requirement = { "SDP-9.5.4-2", "SDP-6.3.9-2" }, overdue_fails = true }
  s:close { shows = shown }
end))

case(driven("revoked-by-tester-several", "The target sends one SendSm for three revoked SrcAvails",
  { "SDP-6.3.9-2", "SDP-9.5.4-9" }, {}, function(s)
  s:send(sdp.mode_change { mode = 2 })
  s:command "wait 50; read 3000"
  for n = 1, 3 do
    s:send(sdp.src_avail { length = 1000, stag = 0x100 + n })
  end
  s:send(sdp.src_avail_cancel {})
  s:expect("send_sm", { requirement = { "SDP-9.5.4-9", "SDP-6.3.9-2" }, overdue_fails = true, past = { "sink_avail" } })
  s:expect_quiet { within = 0.2, past = { "sink_avail" }, requirement = { "SDP-9.5.4-9", "SDP-6.3.9-2" }, overdue_fails = true }
  s:close { past = { "sink_avail" } }
end))

case(observed("revoked-while-read", "The target ends a SrcAvail that the tester revokes while the target reads it",
  { "SDP-9.5.4-5", "SDP-6.1.6-3", "SDP-9.5.4-7", "SDP-9.5.4-6" }, { "hello_ack", "dis_conn", "data", "rdma_rd_compl" },
  { version = 2 }, function(s, shown, t)
  s:command "read 3000; wait 10; send 50"
  s:send(sdp.src_avail { length = 2000, payload = OCTETS:sub(1, 40) })
  local read = s:expect_read {}
  s:send(sdp.src_avail_cancel {})
  local cancel = s:counters().mseq - 1
  local m = s:expect "data"
  t:check(m.mseq_ack < cancel, { requirement = { "SDP-9.5.4-5", "SDP-6.1.6-3" }, overdue_fails = true, expected = "an MSeqAck below the cancel's MSeq", actual = "MSeqAck " .. m.mseq_ack })
  local first = read.src_to - VA
  s:answer_read(read, OCTETS:sub(first + 1, first + read.length))
  s:expect("rdma_rd_compl", { fields = { length = read.length }, requirement = "SDP-9.5.4-7", overdue_fails = true })
  s:expect_quiet { within = 0.1, past = { "send_sm" }, requirement = "SDP-9.5.4-6", overdue_fails = true }
  s:close { shows = shown }
end))

case {
  id = "sdp/9-transfer/cancel-of-nothing",
  version = 2,
  title = "The target does not answer cancels without an advertisement",
  requirements = { "SDP-9.5.4-4", "SDP-9.5.5-4" },
  -- Other sockets also send data of their own.
  capabilities = { "sdp-echo" },

  run = function(t)
    local s = t:sdp {}
    s:send(sdp.src_avail_cancel {})
    s:expect_quiet { within = 0.3, requirement = "SDP-9.5.4-4", overdue_fails = true }
    s:send(sdp.sink_avail_cancel {})
    s:expect_quiet { within = 0.3, requirement = "SDP-9.5.5-4", overdue_fails = true }
    s:close()
  end,
}
