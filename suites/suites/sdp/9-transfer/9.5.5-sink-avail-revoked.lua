-- How a target revokes its SinkAvails, and handles revoked SinkAvails (draft-pinkerton-iwarp-sdp-01
-- sections 6.3.10, 6.3.11 and 9.5.5).

-- Declare cases with a driven socket. `suites/library/sdp_case.lua` describes the parameters.
local function driven(...) return sdp_case.driven("sdp/9-transfer", ...) end
local function observed(...) return sdp_case.observed("sdp/9-transfer", ...) end

case(observed("cancelled-receives", "The target revokes SinkAvails", { "SDP-9.5.5-11", "SDP-9.5.5-14" },
  { "hello_ack", "dis_conn", "data", "sink_avail", "sink_avail_cancel" }, { version = 2 }, function(s, shown)
  s:send(sdp.mode_change { mode = 2 })
  s:command "read 2000 2000; wait 20; cancel-receives; read 2000"
  s:expect "sink_avail"
  s:expect "sink_avail"
  s:expect "sink_avail_cancel"
  s:expect_quiet { within = 0.1, requirement = "SDP-9.5.5-11", overdue_fails = true }
  s:send(sdp.sink_cancel_ack {})
  local m = s:expect("sink_avail", { requirement = "SDP-9.5.5-14", overdue_fails = true })
  s:write { stag = m.stag, va = m.va, payload = ("w"):rep(m.length) }
  s:send(sdp.rdma_wr_compl { length = m.length }, { invalidate = m.stag })
  s:command "send 10"
  s:collect(10, { past = { "sink_avail" } })
  s:close { shows = shown, past = { "sink_avail" } }
end))

case(driven("written-in-cancel", "The target ends its cancel on a RdmaWrCompl for all revoked SinkAvails", { "SDP-9.5.5-12" },
  {}, function(s)
  s:send(sdp.mode_change { mode = 2 })
  s:command "read 2000; wait 20; cancel-receives; read 2000"
  local m = s:expect "sink_avail"
  s:write { stag = m.stag, va = m.va, payload = ("w"):rep(2000) }
  s:expect "sink_avail_cancel"
  s:send(sdp.rdma_wr_compl { length = 2000 }, { invalidate = m.stag })
  s:expect("sink_avail", { requirement = "SDP-9.5.5-12", overdue_fails = true })
  s:connection():reset()
end))

case(observed("revoked-sink-avails", "If the tester revokes SinkAvails, the target answers with one SinkCancelAck",
  { "SDP-6.3.11-1", "SDP-9.5.5-10", "SDP-9.5.5-4", "SDP-9.5.5-2", "SDP-6.3.10-2" },
  { "hello_ack", "sink_cancel_ack", "src_avail", "pipelined", "mode_change", "to_pipelined" }, { version = 3 }, function(s, shown)
  s:command "mode out pipelined"
  s:expect "mode_change"
  -- The monitor judges further ModeChanges.
  s:expect_quiet { within = 0.05 }
  s:send(sdp.sink_avail { length = 2000, stag = 0x901 })
  s:send(sdp.sink_avail { length = 2000, stag = 0x902 })
  s:send(sdp.sink_avail_cancel {})
  s:expect("sink_cancel_ack", { requirement = { "SDP-6.3.11-1", "SDP-9.5.5-10" }, overdue_fails = true })
  s:expect_quiet { within = 0.1, requirement = "SDP-9.5.5-10" }
  s:send(sdp.sink_avail_cancel {})
  s:expect_quiet { within = 0.1, requirement = "SDP-9.5.5-4", overdue_fails = true }
  s:command "send 600"
  s:expect("src_avail", { requirement = { "SDP-9.5.5-2", "SDP-6.3.10-2" }, overdue_fails = true })
  s:expect_quiet { within = 0.01, shows = shown }
end))

case(observed("revoked-before-use", "The target writes nothing to a revoked SinkAvail", {},
  { "hello_ack", "dis_conn", "data", "sink_cancel_ack", "SDP-9.5.5-6", "SDP-9.5.5-7" }, {}, function(s, shown)
  s:command "mode out pipelined; send 100"
  s:expect "mode_change"
  s:expect "data"
  s:send(sdp.sink_avail { length = 2000, stag = 0x901, non_discards = 1 })
  s:send(sdp.sink_avail_cancel {})
  s:expect "sink_cancel_ack"
  s:command "send 200"
  s:collect(200)
  s:close { shows = shown }
end))
