-- What a receiver has to take (draft-pinkerton-iwarp-sdp-01 section 6): reserved bits, flags where they mean nothing, odd addresses.

local VA = 0x700000001

-- The target gives back `payload`, by Data or SrcAvail.
local function echoed(s, payload, requirement)
  local got = ""
  while #got < #payload do
    local m = s:expect({ "data", "src_avail" }, { requirement = requirement, overdue_fails = true, past = { "rdma_rd_compl" } })
    got = got .. m.payload
    if m.name == "src_avail" then
      got = got .. s:fetch(m, { requirement = requirement })
    end
  end
end

local function data(name, title, requirements, parameters, make)
  case {
    id = "sdp/6-tolerated/" .. name,
    version = 1,
    title = title,
    requirements = requirements,
    roles = { "responder" },
    capabilities = { "sdp-echo" },
    parameters = parameters,

    run = function(t, p)
      local s = t:sdp {}
      local fields = make(p)
      fields.payload = fields.payload or "abc"
      -- Plain Data is what a control would send.
      s:send(sdp.data(fields), { solicited = fields.oob_pres, deviates = name ~= "data" })
      -- Who reads the stream alone is not given the Out-Of-Band octet, so an echo may leave it out.
      echoed(s, fields.oob_pres and fields.payload:sub(1, -2) or fields.payload, requirements)
      t:liveness()
    end,
  }
end

data("data", "Payload of Data is taken and given to the user", { "SDP-9-5", "SDP-6.3.1-2", "SDP-11.2-3" },
  { octets = { 1, 37, 900 } }, function(p) return { payload = ("d"):rep(p.octets) } end)
data("reserved-flags", "Reserved bits of Flags are not looked at", { "SDP-6.1.2-6" },
  { bits = { 0x08, 0x10, 0x20, 0x40, 0x80, 0xf8 } }, function(p) return { flags = p.bits } end)
data("req-pipe-in-data", "REQ_PIPE in Data is no error, and changes no Mode", { "SDP-6.1.2-18", "SDP-6.1.2-19" },
  {}, function() return { req_pipe = true } end)
data("oob-behind-octets", "An Out-Of-Band octet may stand behind others", { "SDP-6.1.2-9" },
  { octets = { 2, 100 } }, function(p) return { oob_pend = true, oob_pres = true, payload = ("o"):rep(p.octets) } end)

case {
  id = "sdp/6-tolerated/oob-pend-alone",
  version = 1,
  title = "OOB_PEND may come before its octet, with no payload",
  requirements = { "SDP-6.1.2-11", "SDP-9.5.3-7" },
  roles = { "responder" },
  capabilities = { "sdp-echo" },

  run = function(t)
    local s = t:sdp {}
    s:send(sdp.data { oob_pend = true }, { solicited = true, deviates = true })
    s:send(sdp.data { oob_pres = true, payload = "u" }, { solicited = true })
    s:send(sdp.data { payload = "abc" })
    echoed(s, "abc", { "SDP-6.1.2-11", "SDP-9.5.3-7" })
    t:liveness()
  end,
}

case {
  id = "sdp/6-tolerated/oob-pend-elsewhere",
  version = 1,
  title = "OOB_PEND may be set in any message",
  requirements = { "SDP-6.1.2-10" },
  roles = { "responder" },
  capabilities = { "sdp-echo" },

  run = function(t)
    local s = t:sdp {}
    s:send(sdp.mode_change { mode = 2, oob_pend = true }, { deviates = true })
    s:expect_open { requirement = "SDP-6.1.2-10", within = 0.3 }
    t:liveness()
  end,
}

case {
  id = "sdp/6-tolerated/mode-change-rsvd",
  version = 1,
  title = "Rsvd of a ModeChange is not looked at",
  requirements = { "SDP-6.3.8.3-2", "SDP-6.3.8-3", "SDP-12-19", "SDP-6.3.8.1-2", "SDP-12.5-21" },
  roles = { "responder" },
  capabilities = { "sdp-echo" },
  parameters = { rsvd = { 0, 1, 0xfffffff } },

  run = function(t, p)
    local s = t:sdp {}
    s:send(sdp.mode_change { mode = 2, rsvd = p.rsvd }, { deviates = true })
    local rows = { "SDP-6.3.8.3-2", "SDP-6.3.8-3", "SDP-12-19", "SDP-6.3.8.1-2", "SDP-12.5-21" }
    -- Only the new Mode allows a SrcAvail without payload.
    s:send(sdp.src_avail { length = 2000 })
    s:expect_open { requirement = rows, within = 0.3 }
    t:liveness()
  end,
}

case {
  id = "sdp/6-tolerated/odd-src-avail",
  version = 2,
  title = "A SrcAvail may name any octet",
  requirements = { "SDP-6.3.2.2-1", "SDP-9-8", "SDP-9.5.2.1-5", "SDP-6.3.5-1", "SDP-11.2-4" },
  roles = { "responder" },
  -- A Data Sink answers when somebody wants to read (section 9.2, step 2).
  capabilities = { "sdp-echo" },
  parameters = { offset = { 0, 1, 3, 7 } },

  run = function(t, p)
    local rows = { "SDP-6.3.2.2-1", "SDP-9-8", "SDP-9.5.2.1-5", "SDP-6.3.5-1", "SDP-11.2-4" }
    local s = t:sdp {}
    s:send(sdp.src_avail { length = 2000, va = 0x700000000 + p.offset, payload = ("s"):rep(40) }, { deviates = true })
    -- Reading it and refusing it are both right; doing nothing is not. The payload may come back before.
    local answered
    repeat
      answered = s:next { requirement = rows, overdue_fails = true }
    until answered ~= "data"
    t:check(answered == "read" or answered == "send_sm", {
      requirement = rows, expected = "an RDMA Read Request or SendSm", actual = answered,
    })
    t:liveness()
  end,
}

case {
  id = "sdp/6-tolerated/odd-sink-avail",
  version = 1,
  title = "A SinkAvail may name any octet, and is written to",
  requirements = { "SDP-6.3.3.2-2", "SDP-9.3-6", "SDP-11.3-15" },
  roles = { "responder" },
  capabilities = { "sdp-drive" },
  parameters = { offset = { 0, 1, 3, 7 } },

  run = function(t, p)
    local rows = { "SDP-6.3.3.2-2", "SDP-9.3-6", "SDP-11.3-15" }
    local s = t:sdp {}
    s:tell "mode out pipelined; wait 50; send 1500"
    s:expect "mode_change"
    s:send(sdp.sink_avail { length = 2000, stag = 0x901, va = 0x700000000 + p.offset })
    local write = s:expect_write { length = 1500, requirement = rows, overdue_fails = true }
    t:check(write.va == 0x700000000 + p.offset and write.stag == 0x901, {
      requirement = rows, expected = "a write to the octets that were named", actual = "one elsewhere",
    })
    s:expect("rdma_wr_compl", { requirement = rows, fields = { length = 1500 } })
    t:liveness()
  end,
}
