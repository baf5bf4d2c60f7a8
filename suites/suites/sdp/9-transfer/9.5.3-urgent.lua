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

case {
  id = "sdp/9-transfer/urgent-waiting",
  title = "If several Out-Of-Band bytes wait for credit, the target announces each of them exactly once",
  requirements = { "SDP-6.1.2-3", "SDP-9.5.3-4", "SDP-9.5.3-5" },
  capabilities = { "sdp-echo" },

  run = function(t)
    local s, hello_ack = t:sdp { hello = sdp.hello { bufs = 3 } }
    if hello_ack.bufs < 12 then
      t:unimplemented("The target has fewer than twelve Private Buffers.")
    end
    -- The messages of the target, which may have OOB_PEND.
    local sent = { "data", "src_avail", "mode_change" }
    -- Bytes of the echo, messages with OOB_PEND, and messages with OOB_PRES.
    local got, announced, present = 0, 0, 0
    local function count(m)
      got = got + #m.payload + (m.name == "src_avail" and #s:fetch(m) or 0)
      announced = announced + (m.oob_pend and 1 or 0)
      if m.oob_pres then
        present = present + 1
        t:check(announced >= present, {
          requirement = { "SDP-6.1.2-3", "SDP-9.5.3-5" }, expected = "OOB_PEND for each Out-Of-Band byte, at the latest with the byte",
          actual = ("OOB_PEND for %d of %d bytes"):format(announced, present),
        })
      end
    end
    -- Bufs and MSeqAck stay as they were at the beginning, so the target gets no more credit. Then
    -- it has to wait with a part of the echo.
    s:counters { updates = false }
    local function send(fields, options)
      fields.bufs, fields.mseq_ack = 3, 0
      s:send(sdp.data(fields), options)
      for _, m in ipairs(s:expect_quiet { within = 0.1, past = sent }) do count(m) end
    end
    for _ = 1, 4 do send { payload = "wait" } end
    t:check(got < 16, { expected = "an echo that waits for credit", actual = "an echo of all data" })
    for _ = 1, 3 do
      send({ payload = "now", oob_pend = true, oob_pres = true }, { solicited = true })
    end
    -- Now the target gets credit for everything.
    s:counters { bufs = 16 }
    s:send(sdp.data {})
    while got < 25 do
      count(s:expect(sent, { updates = true }))
    end
    if present == 0 then
      t:unimplemented("The target returns Out-Of-Band data as other data.")
    end
    t:check(announced == present, {
      requirement = "SDP-9.5.3-4", expected = "OOB_PEND once for each Out-Of-Band byte",
      actual = ("OOB_PEND in %d messages for %d bytes"):format(announced, present),
    })
    s:counters { updates = true }
    s:close()
  end,
}
