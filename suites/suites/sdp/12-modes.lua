-- How a target changes Flow Control Modes (draft-pinkerton-iwarp-sdp-01 section 12).

-- Declare cases with a driven socket. `suites/library/sdp_case.lua` describes the parameters.
local function driven(...) return sdp_case.driven("sdp/12-modes", ...) end
local function observed(...) return sdp_case.observed("sdp/12-modes", ...) end

case(observed("all", "The target changes its half-connection through all Modes, and follows the tester in the other half", {},
  { "hello_ack", "dis_conn", "data", "src_avail", "combined", "pipelined", "buffered", "mode_change", "to_pipelined", "to_combined", "to_buffered", "out_of_buffered", "SDP-12-7", "SDP-12-20", "SDP-12.1-2", "SDP-12.4-3", "SDP-12.5-8", "SDP-12.5-13" },
  { version = 2 }, function(s, shown)
  s:command "mode out pipelined; send 2000; send 300"
  s:expect "mode_change"
  s:collect(2300)
  s:command "mode out combined; send 2000; send 300"
  s:collect(2300, { past = { "mode_change" } })
  s:command "mode out buffered; send 900; send 300"
  s:collect(1200, { past = { "mode_change" } })
  s:send(sdp.mode_change { mode = 1, s = 1 })
  s:command "send 2000"
  s:collect(2000)
  s:send(sdp.mode_change { mode = 0 })
  s:command "mode in combined; send 10"
  s:collect(10, { past = { "mode_change" } })
  s:close { shows = shown, past = { "mode_change" } }
end))

case(driven("out-of-buffered", "The target leaves Buffered Mode if the Data Sink changes the Mode",
  { "SDP-6.3.8-3", "SDP-6.3.8.1-1", "SDP-11-5", "SDP-12-19", "SDP-12.2-2", "SDP-12.5-17", "SDP-12.5-20" }, {}, function(s)
  s:command "mode out buffered; wait 20; send 300"
  s:expect "mode_change"
  s:expect("data", { fields = { payload_length = 300 } })
  s:send(sdp.mode_change { mode = 1, s = 1 })
  s:command "send 2000"
  s:expect("src_avail", { requirement = { "SDP-6.3.8.1-1", "SDP-12.2-2", "SDP-12.5-17", "SDP-12.5-20", "SDP-11-5", "SDP-6.3.8-3", "SDP-12-19" }, overdue_fails = true })
  s:connection():reset()
end))

case {
  id = "sdp/12-modes/out-of-pipelined",
  version = 2,
  title = "The target sends no SinkAvail after the return to Combined Mode",
  requirements = { "SDP-12-21", "SDP-12.5-9", "SDP-12.5-24" },
  capabilities = { "sdp-echo" },

  run = function(t)
    local rows = { "SDP-12-21", "SDP-12.5-9", "SDP-12.5-24" }
    local s = t:sdp {}
    s:send(sdp.mode_change { mode = 2 })
    s:expect "sink_avail"
    s:expect_quiet { within = 0.1, past = { "sink_avail" } }
    s:send(sdp.mode_change { mode = 1 })
    s:send(sdp.data { payload = "abc" })
    s:collect(3, { requirement = rows, overdue_fails = true })
    s:expect_quiet { within = 0.3, requirement = rows, overdue_fails = true }
    s:close()
  end,
}

case(driven("written-then-combined", "The target sends no RdmaWrCompl after the ModeChange out of Pipelined Mode",
  { "SDP-12.4-7", "SDP-12.5-2" }, {}, function(s)
  s:command "mode out pipelined; wait 20; send 1500; wait 1; mode out combined; wait 20; send 10"
  s:expect "mode_change"
  s:send(sdp.sink_avail { length = 2000, stag = 0x901 })
  s:expect_write { length = 1500 }
  s:expect("rdma_wr_compl", { requirement = { "SDP-12.4-7", "SDP-12.5-2" }, overdue_fails = true })
  s:expect("mode_change", { requirement = { "SDP-12.4-7", "SDP-12.5-2" }, overdue_fails = true, fields = { mode = 1 } })
  s:collect(10, { requirement = { "SDP-12.4-7", "SDP-12.5-2" }, overdue_fails = true })
  s:close()
end))

case(driven("frozen", "The target sends no ModeChange after an unacknowledged ModeChange out of Pipelined Mode",
  { "SDP-12.4-3", "SDP-12.5-8" }, {}, function(s)
  s:command "mode out pipelined; wait 10; mode out combined; wait 10; mode out buffered"
  s:counters { updates = false }
  s:expect "mode_change"
  s:expect "mode_change"
  s:expect_quiet { within = 0.3, requirement = { "SDP-12.4-3", "SDP-12.5-8" }, overdue_fails = true }
  s:send(sdp.data {})
  s:expect("mode_change", { fields = { mode = 0 } })
  s:close()
end))

case(driven("with-open-src-avail", "The target does not change to Buffered Mode while a SrcAvail is open",
  { "SDP-12.1-2", "SDP-12.5-13" }, {}, function(s)
  s:command "send 2000; wait 10; mode out buffered"
  local m = s:expect "src_avail"
  s:expect_quiet { within = 0.3, requirement = { "SDP-12.1-2", "SDP-12.5-13" }, overdue_fails = true }
  s:fetch(m)
  s:expect("mode_change", { fields = { mode = 0 } })
  s:close()
end))

case {
  id = "sdp/12-modes/hints-to-source",
  title = "After hints to change the Mode, a source sends only ModeChanges that the draft allows",
  requirements = { "SDP-12-12", "SDP-12.1-2", "SDP-12.5-13" },
  capabilities = { "sdp-source" },

  run = function(t)
    local s = t:sdp { hello = sdp.hello { bufs = 64, max_adverts = 8 } }
    s:counters { bufs = 64 }
    -- The SrcAvails that are open, and the Mode of the half-connection to the tester.
    local open, mode = {}, 1
    local function receive()
      for _, m in ipairs(s:expect_quiet { within = 0.2, past = { "data", "src_avail", "mode_change" } }) do
        if m.name == "src_avail" then open[#open + 1] = m end
        if m.name == "mode_change" then
          t:check(m.mode ~= mode, { requirement = "SDP-12-12", expected = "a change to another Mode", actual = "a change to the current Mode" })
          t:check(m.mode ~= 0 or #open == 0, {
            requirement = { "SDP-12.1-2", "SDP-12.5-13" }, expected = "no change to Buffered Mode while SrcAvails are open",
            actual = ("a change to Buffered Mode while %d SrcAvails are open"):format(#open),
          })
          mode = m.mode
        end
      end
    end
    --- Reads the oldest SrcAvail, and requests Pipelined Mode.
    local function read()
      local m = table.remove(open, 1)
      local rest = m.length - #m.payload
      s:read { stag = m.stag, va = m.va + #m.payload, length = rest }
      s:expect_response {}
      s:send(sdp.rdma_rd_compl { length = rest, req_pipe = true }, { invalidate = m.stag })
      receive()
    end
    --- Rejects the oldest SrcAvail. The MSeqAck shows that all earlier ModeChanges have arrived.
    local function reject()
      table.remove(open, 1)
      s:send(sdp.send_sm {})
      receive()
    end

    receive()
    if #open == 0 then
      t:unimplemented("The target sends no SrcAvail.")
    end
    read()
    if mode ~= 2 or #open < 4 then
      t:unimplemented("The target does not open four SrcAvails in Pipelined Mode after REQ_PIPE.")
    end
    -- The target is in Pipelined Mode, so this REQ_PIPE has no effect.
    read()
    -- Two SendSms are a hint to change to Combined Mode, and then to Buffered Mode.
    reject()
    reject()
    s:connection():reset()
  end,
}

case(driven("wait-for-src-avail", "The target sends no payload after an open SrcAvail",
  { "SDP-11-7", "SDP-11-10", "SDP-11.2-6", "SDP-11.2-7" }, { version = 2 }, function(s, t)
  s:command "send 2000; send 300; send 2000"
  s:expect "src_avail"
  local payload, adverts = 0, 0
  for _, m in ipairs(s:expect_quiet { within = 0.3, past = { "data", "src_avail" } }) do
    payload = payload + (m.name == "data" and #m.payload or 0)
    adverts = adverts + (m.name == "src_avail" and 1 or 0)
  end
  t:check(payload == 0, { requirement = { "SDP-11-10", "SDP-11.2-6" }, expected = "no payload in Data", actual = payload .. " bytes" })
  t:check(adverts == 0, { requirement = { "SDP-11-7", "SDP-11.2-7" }, expected = "no further SrcAvail", actual = adverts .. " SrcAvails" })
  s:connection():reset()
end))
