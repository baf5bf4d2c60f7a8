-- How a target sends Out-Of-Band bytes (draft-pinkerton-iwarp-sdp-01 sections 6.1.2 and 9.5.3).

do
  local shown = sdp.shown { "hello_ack", "dis_conn", "data", "urgent", "src_avail", "combined", "SDP-9.1-1", "SDP-10-6" }

  case {
    id = "sdp/9-transfer/urgent",
    version = 2,
    title = "The target announces Out-Of-Band bytes, and sends them",
    requirements = shown,
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      s:command "send 2000; urgent 300; send 100"
      s:collect(2400)
      s:command "threshold 1000000; urgent 67000; send 50"
      s:collect(67050)
      s:send(sdp.data { oob_pend = true })
      s:send(sdp.data { oob_pres = true, payload = "send 7;" })
      s:collect(7)
      s:close { shows = shown }
    end,
  }
end

do
  local shown = sdp.shown { "hello_ack", "dis_conn", "data", "urgent" }

  case {
    id = "sdp/9-transfer/urgent-alone",
    title = "The target sets OOB_PEND at the latest in the Data with the Out-Of-Band byte",
    requirements = shown,
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      s:command "threshold 1000000; urgent 300; send 100; send 100"
      local pending, got = false, 0
      while got < 500 do
        local m = s:expect "data"
        pending, got = pending or m.oob_pend, got + #m.payload
        if m.oob_pres then
          t:check(pending, {
            requirement = { "SDP-9.5.3-5", "SDP-6.1.2-3" }, expected = "OOB_PEND up to the Data with OOB_PRES", actual = "none before OOB_PRES",
          })
        end
      end
      s:close { shows = shown }
    end,
  }
end
