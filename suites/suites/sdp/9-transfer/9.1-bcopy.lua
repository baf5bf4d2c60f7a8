-- How a target sends and receives bytes in Data messages (draft-pinkerton-iwarp-sdp-01 sections
-- 6.3, 9.1 and 11).

do
  local shown = sdp.shown { "hello_ack", "dis_conn" }

  case {
    id = "sdp/9-transfer/bcopy",
    version = 2,
    title = "The target echoes small sends in Data",
    requirements = { "SDP-9-5", "SDP-6.3.1-2", "SDP-11.2-3", shown },
    capabilities = { "sdp-echo" },

    run = function(t)
      local s = t:sdp {}
      for _, octets in ipairs { "x", ("y"):rep(300), ("z"):rep(400) } do
        s:send(sdp.data { payload = octets })
        local got = s:collect(#octets, { requirement = { "SDP-9-5", "SDP-6.3.1-2", "SDP-11.2-3" }, overdue_fails = true })
        t:check(got == octets, { requirement = { "SDP-9-5", "SDP-6.3.1-2", "SDP-11.2-3" }, overdue_fails = true, expected = "the bytes that were sent", actual = "other bytes than expected" })
      end
      s:close { shows = shown }
    end,
  }
end

case {
  id = "sdp/9-transfer/pipelined-echo",
  title = "The target accepts Data, and a SrcAvail without payload, in Pipelined Mode",
  requirements = { "SDP-11.3-3" },
  capabilities = { "sdp-echo" },

  run = function(t)
    local s = t:sdp {}
    s:send(sdp.mode_change { mode = 2 })
    s:send(sdp.data { payload = "abc" })
    s:collect(3, { past = { "sink_avail" }, requirement = "SDP-11.3-3", overdue_fails = true })
    s:close { past = { "sink_avail" } }
  end,
}

do
  local shown = sdp.shown { "hello_ack", "src_avail", "SDP-6.2-1", "SDP-8.1.1-4" }

  case {
    id = "sdp/9-transfer/source",
    version = 2,
    title = "The target sends the data of its user",
    requirements = shown,
    capabilities = { "sdp-source" },

    run = function(t)
      local s = t:sdp {}
      s:collect(5800)
      s:close { shows = shown }
    end,
  }
end
