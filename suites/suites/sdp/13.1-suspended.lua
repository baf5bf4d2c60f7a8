-- A suspension while data is in flight and advertisements are open, and the state of the new
-- connection (draft-pinkerton-iwarp-sdp-01 sections 6.3.3.4 and 13.1).

--- The port in a SuspComm.
local PORT = 7000

--- The requirements of an answer to SuspComm.
local answers, ends = "SDP-13.1.1-11", "SDP-13.1.1-15"

for _, service in ipairs { "echo", "sink" } do
  case {
    id = "sdp/13.1-suspended/in-transfer-" .. service,
    title = "With open SinkAvails and data in flight, the target answers SuspComm with SuspCommAck, and ends TCP",
    requirements = { answers, ends },
    capabilities = { "sdp-" .. service },

    run = function(t)
      local s, hello_ack = t:sdp { hello = sdp.hello { max_adverts = 8 } }
      local c = sdp_flow.new(t, s, hello_ack.act_rcv_sz)
      c:change(2)
      c:receive(0.1)
      c:write(300)
      c:send(7)
      c:write(200)
      s:send(sdp.susp_comm { port = PORT })
      s:expect("susp_comm_ack", { past = sdp_flow.COMES, requirement = answers, overdue_fails = true })
      -- The monitor judges messages and RDMA operations after the SuspCommAck.
      s:expect_end {
        graceful = true, past = { "data", "sink_avail", "src_avail", "susp_comm_ack" }, requirement = ends, overdue_fails = true,
      }
    end,
  }
end

-- Declares a case with a driven socket. `suites/library/sdp_case.lua` describes the parameters.
-- Over TCP, weft does not accept the new connection of a target. So a case for every echo would
-- end without a verdict.
local function driven(...) return sdp_case.driven("sdp/13.1-suspended", ...) end

case(driven("continues", "On the new connection, the target sends exactly the rest of its data, and counts messages from the beginning",
  { "SDP-8.2-1", "SDP-13.1.1-16", "SDP-13.1.1-19", "SDP-6.3.3.4-1" }, {}, function(s, t)
  -- The SrcAvail stays open, so the other 300 bytes wait. The receive is still posted later.
  s:command "send 2000; send 300; read 2000"
  local m = s:expect "src_avail"
  s:expect_quiet { within = 0.05 }
  s:send(sdp.susp_comm { port = PORT })
  s:expect "susp_comm_ack"
  s:expect_end { graceful = true }
  local again, hello = t:accept_sdp { port = PORT, requirement = "SDP-13.1.1-16", overdue_fails = true }
  t:check(hello.mseq == 0, { requirement = "SDP-13.1.1-19", expected = "MSeq 0", actual = "MSeq " .. hello.mseq })
  local rest = 2300 - #m.payload
  local got = again:collect(rest, { requirement = "SDP-8.2-1", overdue_fails = true })
  t:check(#got == rest, { requirement = "SDP-8.2-1", expected = ("the rest, %d bytes"):format(rest), actual = ("%d bytes"):format(#got) })
  again:expect_quiet { within = 0.2, requirement = "SDP-8.2-1" }
  -- The messages of the first connection do not count any more.
  again:send(sdp.mode_change { mode = 2 })
  local sink = again:expect "sink_avail"
  t:check(sink.non_discards == 0, {
    requirement = "SDP-6.3.3.4-1", expected = "NonDiscards 0", actual = "NonDiscards " .. sink.non_discards,
  })
  again:write { stag = sink.stag, va = sink.va, payload = ("w"):rep(2000) }
  again:send(sdp.rdma_wr_compl { length = 2000 }, { invalidate = sink.stag })
  again:command "send 10"
  again:collect(10, { requirement = "SDP-8.2-1", overdue_fails = true })
  again:close { past = { "sink_avail" } }
end))
