-- How a target sends and handles SinkAvails with payload (draft-pinkerton-iwarp-sdp-01 section
-- 9.4).

case {
  id = "sdp/9-transfer/sink-avail-with-payload",
  title = "The target accepts the payload of a SinkAvail",
  requirements = { "SDP-6.3.3-3", "SDP-9.4-1", "SDP-9.5.1-15", "SDP-11.2-5", "SDP-11.3-6" },
  capabilities = { "sdp-drive" },

  run = function(t)
    local s = t:sdp {}
    s:command "mode out pipelined"
    s:expect "mode_change"
    s:send(sdp.sink_avail { length = 2000, stag = 0x901, payload = "send 600\n" })
    s:expect_write { length = 600, requirement = { "SDP-6.3.3-3", "SDP-9.5.1-15", "SDP-11.2-5", "SDP-11.3-6", "SDP-9.4-1" }, overdue_fails = true }
    s:expect("rdma_wr_compl", { requirement = { "SDP-6.3.3-3", "SDP-9.5.1-15", "SDP-11.2-5", "SDP-11.3-6", "SDP-9.4-1" }, overdue_fails = true })
    s:close()
  end,
}

do
  local shown = sdp.shown { "hello_ack", "dis_conn", "sink_avail", "transaction", "mode_change", "to_pipelined" }

  case {
    id = "sdp/9-transfer/transactions",
    version = 2,
    title = "The target sends Data and a SinkAvail in one message",
    requirements = shown,
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      s:send(sdp.mode_change { mode = 2 })
      s:command "mode out pipelined; wait 5; send 100; read 2000 2000"
      s:expect("sink_avail", { past = { "data", "mode_change" } })
      s:close { shows = shown, past = { "sink_avail", "data" } }
    end,
  }
end
