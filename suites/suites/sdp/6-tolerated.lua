-- A receiver has to accept unusual messages (draft-pinkerton-iwarp-sdp-01 section 6): messages with
-- reserved bits, with flags that have no meaning in the message, or with odd addresses.

-- Expects that the target returns `payload`, in Data or SrcAvail.
local function expect_echo(s, payload, requirement)
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
    title = title,
    requirements = requirements,
    capabilities = { "sdp-echo" },
    parameters = parameters,

    run = function(t, p)
      local s = t:sdp {}
      local fields = make(p)
      fields.payload = fields.payload or "abc"
      -- The case `data` needs no control, because a control would send the same plain Data.
      s:send(sdp.data(fields), { solicited = fields.oob_pres, deviates = name ~= "data" })
      -- A user that reads only the stream does not get the Out-Of-Band byte. So an echo may omit
      -- this byte.
      expect_echo(s, fields.oob_pres and fields.payload:sub(1, -2) or fields.payload, requirements)
    end,
  }
end

data("data", "The target delivers the payload of Data to its user", { "SDP-9-5", "SDP-6.3.1-2", "SDP-11.2-3" },
  { octets = { 1, 37, 900 } }, function(p) return { payload = ("d"):rep(p.octets) } end)
data("reserved-flags", "The target ignores reserved bits of Flags", { "SDP-6.1.2-6" },
  { bits = { 0x08, 0x10, 0x20, 0x40, 0x80, 0xf8 } }, function(p) return { flags = p.bits } end)
data("req-pipe-in-data", "The target accepts REQ_PIPE in Data, and changes no Mode", { "SDP-6.1.2-18", "SDP-6.1.2-19" },
  {}, function() return { req_pipe = true } end)
data("oob-after-bytes", "The target accepts an Out-Of-Band byte after other bytes", { "SDP-6.1.2-9" },
  { octets = { 2, 100 } }, function(p) return { oob_pend = true, oob_pres = true, payload = ("o"):rep(p.octets) } end)

-- Declares a case with an SDP echo. `declared` has the other fields of the case, and can replace
-- its capabilities.
local function with_echo(name, title, requirements, declared, run)
  declared.id, declared.title = "sdp/6-tolerated/" .. name, title
  declared.requirements, declared.run = requirements, run
  declared.capabilities = declared.capabilities or { "sdp-echo" }
  return declared
end

case(with_echo("oob-pend-alone", "The target accepts OOB_PEND in a message without payload, before the Out-Of-Band byte",
  { "SDP-6.1.2-11", "SDP-9.5.3-7" }, {}, function(t)
  local s = t:sdp {}
  s:send(sdp.data { oob_pend = true }, { solicited = true, deviates = true })
  s:send(sdp.data { oob_pres = true, payload = "u" }, { solicited = true })
  s:send(sdp.data { payload = "abc" })
  expect_echo(s, "abc", { "SDP-6.1.2-11", "SDP-9.5.3-7" })
end))

case(with_echo("oob-pend-elsewhere", "The target accepts OOB_PEND in any message", { "SDP-6.1.2-10" }, {}, function(t)
  local s = t:sdp {}
  s:send(sdp.mode_change { mode = 2, oob_pend = true }, { deviates = true })
  s:expect_open { requirement = "SDP-6.1.2-10", within = 0.3 }
end))

case(with_echo("mode-change-rsvd", "The target ignores Rsvd of a ModeChange",
  { "SDP-6.3.8.3-2", "SDP-6.3.8-3", "SDP-12-19", "SDP-6.3.8.1-2", "SDP-12.5-21" },
  { version = 2, parameters = { rsvd = { 0, 1, 0xfffffff } } }, function(t, p)
  local s = t:sdp {}
  s:send(sdp.mode_change { mode = 2, rsvd = p.rsvd }, { deviates = true })
  s:expect_open { requirement = "SDP-6.3.8.3-2", within = 0.1 }
  -- Only the new Mode allows a SrcAvail without payload.
  s:send(sdp.src_avail { length = 2000 })
  s:expect_open { requirement = { "SDP-6.3.8-3", "SDP-12-19", "SDP-6.3.8.1-2", "SDP-12.5-21" }, within = 0.3 }
end))

-- A Data Sink answers when its user wants to read (section 9.2, step 2).
case(with_echo("odd-src-avail", "The target accepts a SrcAvail at any byte address",
  { "SDP-6.3.2.2-1", "SDP-9-8", "SDP-9.5.2.1-5", "SDP-6.3.5-1", "SDP-11.2-4" },
  { version = 3, parameters = { offset = { 0, 1, 3, 7 } } }, function(t, p)
  local served = { "SDP-9-8", "SDP-9.5.2.1-5", "SDP-6.3.5-1", "SDP-11.2-4" }
  -- If the target is silent, an odd address need not be the reason.
  local is_even = p.offset == 0
  local s = t:sdp {}
  s:send(sdp.src_avail { length = 2000, va = 0x700000000 + p.offset, payload = ("s"):rep(40) }, { deviates = true })
  -- The target has to read the SrcAvail or to reject it. Before that, the target may return the
  -- payload.
  local answered
  repeat
    answered = s:next { requirement = is_even and served or "SDP-6.3.2.2-1", overdue_fails = is_even }
  until answered ~= "data"
  t:check(answered == "read" or answered == "send_sm", {
    requirement = { "SDP-6.3.2.2-1", served }, expected = "an RDMA Read Request or SendSm", actual = answered,
  })
end))

case(with_echo("odd-sink-avail", "The target writes to a SinkAvail at any byte address",
  { "SDP-6.3.3.2-2", "SDP-9.3-6", "SDP-11.3-15" },
  { version = 2, capabilities = { "sdp-drive" }, parameters = { offset = { 0, 1, 3, 7 } } }, function(t, p)
  local rows = { "SDP-6.3.3.2-2", "SDP-9.3-6", "SDP-11.3-15" }
  -- If the target writes nothing, an odd address need not be the reason.
  local is_even = p.offset == 0
  local s = t:sdp {}
  s:command "mode out pipelined; wait 50; send 1500"
  s:expect "mode_change"
  s:send(sdp.sink_avail { length = 2000, stag = 0x901, va = 0x700000000 + p.offset })
  local write = s:expect_write {
    length = 1500, past = { "src_avail" }, requirement = is_even and { "SDP-9.3-6", "SDP-11.3-15" } or "SDP-6.3.3.2-2", overdue_fails = is_even,
  }
  t:check(write.va == 0x700000000 + p.offset and write.stag == 0x901, {
    requirement = rows, expected = "a Write to the advertised bytes", actual = "a Write elsewhere",
  })
  s:expect "rdma_wr_compl"
end))
