-- How a target handles advertisements that cross data, another advertisement or a ModeChange
-- (draft-pinkerton-iwarp-sdp-01 sections 9.5.1, 11.3 and 12.4).

-- Declares a case with a driven socket. `suites/library/sdp_case.lua` describes the parameters.
local function observed(...) return sdp_case.observed("sdp/9-transfer", ...) end

case(observed("stale", "The target does not use a SinkAvail that earlier data has made stale",
  { "SDP-9.5.1-12", "SDP-9.5.1-3", "SDP-9.5.1-13", "SDP-11.3-14" },
  { "hello_ack", "dis_conn", "data", "src_avail", "pipelined", "mode_change", "to_pipelined", "SDP-9.5.2.2-2" }, { version = 3 }, function(s, shown, t)
  s:command "mode out pipelined; send 100; send 1500; send 1500"
  s:expect "mode_change"
  s:expect "data"
  s:send(sdp.sink_avail { length = 2000, stag = 0x901, mseq_ack = 1 })
  -- Only a Write or an RdmaWrCompl uses the SinkAvail.
  local came = s:expect_quiet {
    within = 0.3, past = { "data", "src_avail", "sink_avail", "mode_change" },
    requirement = { "SDP-9.5.1-12", "SDP-9.5.1-3", "SDP-9.5.1-13", "SDP-9.5.2.2-2", "SDP-11.3-14" },
  }
  local got = 0
  for _, m in ipairs(came) do
    got = got + #m.payload
    if m.name == "src_avail" then
      t:check(#m.octets >= 32, { expected = "a complete SrcAvail", actual = #m.octets .. " bytes" })
      got = got + #s:fetch(m)
    end
  end
  if got < 3000 then s:collect(3000 - got) end
  s:close { shows = shown }
end))

case(observed("crossing", "The target writes to a SinkAvail that crosses a SrcAvail",
  { "SDP-11.3-12", "SDP-11.3-15", "SDP-11.3-16", "SDP-11-12" },
  { "hello_ack", "dis_conn", "src_avail", "pipelined", "rdma_wr_compl", "mode_change", "to_pipelined", "SDP-9.3-8" },
  { version = 4 }, function(s, shown)
  s:command "mode out pipelined; send 1800"
  s:expect "mode_change"
  s:expect "src_avail"
  -- The messages before the SinkAvail are not judged here.
  s:expect_quiet { within = 0.05 }
  s:send(sdp.sink_avail { length = 2000, stag = 0x901, va = 5, mseq_ack = 1 })
  s:expect_write {
    length = 1800, past = { "rdma_wr_compl" }, requirement = { "SDP-11.3-12", "SDP-11.3-15", "SDP-11.3-16", "SDP-11-12" }, overdue_fails = true,
  }
  s:expect("rdma_wr_compl", { requirement = "SDP-9.3-8", overdue_fails = true })
  s:close { shows = shown }
end))

case(observed("crossing-back", "The target does not read a SrcAvail that crosses a SinkAvail", { "SDP-11.3-20" },
  { "hello_ack", "dis_conn", "sink_avail" }, { version = 2 }, function(s, shown)
  s:send(sdp.mode_change { mode = 2 })
  s:command "read 2000 2000"
  local before = s:counters()
  local m = s:expect "sink_avail"
  s:expect_quiet { within = 0.05, past = { "sink_avail" } }
  s:send(sdp.src_avail { length = 1500, mseq_ack = before.mseq_ack })
  s:expect_quiet { within = 0.1, requirement = "SDP-11.3-20", overdue_fails = true }
  s:write { stag = m.stag, va = m.va, payload = ("w"):rep(1500) }
  s:send(sdp.rdma_wr_compl { length = 1500 }, { invalidate = m.stag })
  s:close { shows = shown, past = { "sink_avail", "data" } }
end))

-- The Writes end before the ModeChange, and no Write follows it.
case(observed("written-then-left", "The target uses a SinkAvail in Pipelined Mode, but no SinkAvail that crosses the ModeChange out of this Mode", {}, {
  "hello_ack", "dis_conn", "data", "rdma_wr_compl", "mode_change", "to_pipelined", "to_combined",
  "SDP-12.4-6", "SDP-12.4-8", "SDP-12.4-11", "SDP-12.4-12", "SDP-12.5-4", "SDP-12.5-7", "SDP-9.5.1-17",
}, {}, function(s, shown)
  s:command "mode out pipelined; send 100; wait 30; send 1500; wait 1; mode out combined; wait 400; send 300"
  s:expect "mode_change"
  s:expect "data"
  s:send(sdp.sink_avail { length = 2000, stag = 0x901, non_discards = 1 })
  -- The monitor observes the order of the Write, RdmaWrCompl and the ModeChange.
  s:expect_open { within = 0.2 }
  -- The MSeqAck of these SinkAvails shows that they cross the ModeChange.
  local before = s:counters().mseq_ack - 1
  s:send(sdp.sink_avail { length = 2000, stag = 0x902, non_discards = 1, mseq_ack = before })
  s:send(sdp.sink_avail { length = 2000, stag = 0x903, non_discards = 1, mseq_ack = before })
  s:collect(300)
  s:close { shows = shown }
end))
