-- How a target sends and handles SinkAvails, and how the peer writes to the advertised memory
-- (draft-pinkerton-iwarp-sdp-01 sections 6.3, 9.3 and 11).

local OCTETS = ("abcdefghij"):rep(200)

-- The opcode of a Terminate, and errors of a Terminate that refuses a Write (RFC 5040 sections 4.1
-- and 4.8).
local TERMINATE = 7
local INVALID_STAG, OUT_OF_BOUNDS = "\x11\x00", "\x11\x01"

do
  local shown = sdp.shown { "hello_ack", "dis_conn", "data", "sink_avail" }

  case {
    id = "sdp/9-transfer/written-by-tester",
    version = 4,
    title = "The target advertises receives in Pipelined Mode, and accepts Writes to them",
    requirements = { "SDP-11.3-5", shown },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      s:send(sdp.mode_change { mode = 2 })
      s:command "read 2000 3000 1500; send 100"
      -- The 100 bytes may come before, between, in or after the SinkAvails.
      local ms, got = {}, 0
      while #ms < 3 do
        local event, m = s:next {}
        t:check(event == "sink_avail" or event == "data", { expected = "a SinkAvail or Data", actual = event })
        got = got + #m.payload
        if event == "sink_avail" then
          t:check(#m.octets >= 36 and m.length > 0, {
            expected = "a complete SinkAvail for at least one byte", actual = #m.octets .. " bytes, Len " .. tostring(m.length),
          })
          ms[#ms + 1] = m
        end
      end
      for i = 1, 3 do
        s:write { stag = ms[i].stag, va = ms[i].va, payload = ("w"):rep(ms[i].length) }
        s:send(sdp.rdma_wr_compl { length = ms[i].length }, { invalidate = ms[i].stag })
      end
      -- If the target refuses a Write, the monitor judges the SinkAvail.
      for _, m in ipairs(s:expect_quiet { within = 0.1, past = { "data", "sink_avail" } }) do
        got = got + #m.payload
      end
      s:command "send 50"
      s:collect(150 - got, { past = { "sink_avail" }, requirement = "SDP-11.3-5", overdue_fails = true })
      s:close { shows = shown, past = { "sink_avail" } }
    end,
  }
end

case {
  id = "sdp/9-transfer/echo-of-write",
  version = 2,
  title = "The target echoes data that was written to its SinkAvail",
  requirements = {
    "SDP-6.3.3-4", "SDP-6.3.3.1-1", "SDP-6.3.3.2-1", "SDP-6.3.3.3-1", "SDP-6.3.6.1-2", "SDP-11.3-5", "SDP-14.1-2",
  },
  capabilities = { "sdp-echo" },

  run = function(t)
    local s = t:sdp {}
    s:send(sdp.mode_change { mode = 2 })
    local m = s:expect "sink_avail"
    local octets = OCTETS:sub(1, 700)
    s:expect_open { within = 0.1 }
    s:write { stag = m.stag, va = m.va, payload = octets }
    local event, fpdu = s:connection():next { within = 0.1 }
    local refusal = event == "fpdu" and fpdu.opcode == TERMINATE and fpdu.payload:sub(1, 2)
    local place = { "SDP-6.3.3-4", "SDP-6.3.3.1-1", "SDP-6.3.3.2-1" }
    t:check(refusal ~= INVALID_STAG, { requirement = "SDP-6.3.3.3-1", expected = "a valid STag", actual = "a Terminate: invalid STag" })
    t:check(refusal ~= OUT_OF_BOUNDS, { requirement = place, expected = "advertised bytes at VA", actual = "a Terminate: out of bounds" })
    t:check(not refusal and event ~= "close", {
      requirement = "SDP-14.1-2", expected = "no answer to the Write", actual = "a refusal that is not about the STag or the bounds",
    })
    s:send(sdp.rdma_wr_compl { length = 700 }, { invalidate = m.stag })
    local got = ""
    for _, sent in ipairs(s:expect_quiet { within = 0.1, past = { "data", "src_avail", "sink_avail", "mode_change" }, requirement = "SDP-6.3.6.1-2" }) do
      got = got .. sent.payload .. (sent.name == "src_avail" and s:fetch(sent) or "")
    end
    if #got < 700 then
      got = got .. s:collect(700 - #got, { past = { "sink_avail" }, requirement = "SDP-11.3-5", overdue_fails = true })
    end
    t:check(got == octets, {
      requirement = { "SDP-11.3-5", place, "SDP-6.3.3.3-1" }, expected = "the bytes that were written", actual = "other bytes than expected",
    })
    s:close { past = { "sink_avail" } }
  end,
}

do
  local shown = sdp.shown { "hello_ack", "dis_conn", "rdma_wr_compl", "mode_change", "to_pipelined" }

  case {
    id = "sdp/9-transfer/target-writes",
    version = 3,
    title = "The target writes to SinkAvails of the tester",
    requirements = { "SDP-9.3-6", "SDP-9.5.1-9", "SDP-9.5.1-14", "SDP-9.3-8", shown },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      s:command "mode out pipelined; wait 50; send 1500; send 2500"
      s:expect "mode_change"
      -- The monitor judges further ModeChanges. A pause would leave less than the 50 ms.
      s:expect_quiet { within = 0 }
      s:send(sdp.sink_avail { length = 2000, stag = 0x901, va = 0x55 })
      s:send(sdp.sink_avail { length = 2000, stag = 0x902, va = 0x155 })
      -- The monitor judges Len, the number and the order of the RdmaWrCompls.
      for _, octets in ipairs { 1500, 2000 } do
        s:expect_write {
          length = octets, past = { "rdma_wr_compl" }, requirement = { "SDP-9.3-6", "SDP-9.5.1-9", "SDP-9.5.1-14" }, overdue_fails = true,
        }
        s:expect("rdma_wr_compl", { requirement = "SDP-9.3-8", overdue_fails = true })
      end
      s:close { shows = shown, past = { "src_avail", "data", "rdma_wr_compl" } }
    end,
  }
end
