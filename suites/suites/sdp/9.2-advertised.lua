-- The memory that a SrcAvail advertises, and the ways to answer it (draft-pinkerton-iwarp-sdp-01
-- sections 9.2, 9.5.2, 9.5.4, 11 and 14.1).

local VA = 0x700000001
local OCTETS = ("abcdefghij"):rep(200)

-- Errors of a Terminate that refuses a Read (RFC 5040 section 4.8).
local INVALID_STAG, OUT_OF_BOUNDS = "\x01\x00", "\x01\x01"

-- Expects only Data, until `due` bytes have arrived. Returns the number of received bytes.
local function take(s, due, options)
  local got = 0
  while got < due do
    got = got + #s:expect("data", options).payload
  end
  return got
end

-- Declares a case with a driven socket. `suites/library/sdp_case.lua` describes the parameters.
local function driven(...) return sdp_case.driven("sdp/9.2-advertised", ...) end

case(driven("readable", "The target serves late Reads of its SrcAvail by STag and VA, as many at once as LocIRD allows",
  { "SDP-9.2-23", "SDP-6.3.2-4", "SDP-14.1-1", "SDP-6.2.2.5-1" }, { version = 2 }, function(s, t, hello_ack)
  s:command "send 2000"
  local m = s:expect "src_avail"
  t:pause(2)
  for number = 1, hello_ack.loc_ird do
    s:read { stag = m.stag, va = m.va + #m.payload + number, length = 10 }
  end
  for _ = 1, hello_ack.loc_ird do
    local _, refusal = sdp_case.read_answer(s)
    t:check(refusal ~= INVALID_STAG, { requirement = "SDP-9.2-23", expected = "an STag that is still valid", actual = "a Terminate: invalid STag" })
    t:check(refusal ~= OUT_OF_BOUNDS, { requirement = "SDP-6.3.2-4", expected = "advertised bytes at VA", actual = "a Terminate: out of bounds" })
    t:check(not refusal, {
      requirement = { "SDP-14.1-1", "SDP-6.2.2.5-1" }, expected = "a Read Response",
      actual = "a refusal that is not about the STag or the bounds, or no answer",
    })
  end
  s:connection():reset()
end))

case(driven("readable-in-cancel", "The target lets the tester read a SrcAvail that is being revoked, and accepts its RdmaRdCompl",
  { "SDP-9.2-24", "SDP-9.5.4-11" }, {}, function(s)
  s:command "send 2000; wait 20; cancel-sends; send 1500"
  local m = s:expect "src_avail"
  s:expect "src_avail_cancel"
  -- For the target, this Read crosses its SrcAvailCancel.
  s:fetch(m, { requirement = "SDP-9.2-24", overdue_fails = true })
  s:expect("src_avail", { requirement = "SDP-9.5.4-11", overdue_fails = true })
  s:connection():reset()
end))

case(driven("part-then-send-sm", "After the RdmaRdCompl of a part and then a SendSm, the target sends exactly the rest in Data",
  { "SDP-9.2-19" }, {}, function(s, t)
  s:command "send 2000"
  local m = s:expect "src_avail"
  s:read { stag = m.stag, va = m.va + #m.payload, length = 500 }
  s:expect_response {}
  s:send(sdp.rdma_rd_compl { length = 500 })
  s:send(sdp.send_sm {})
  local rest = 1500 - #m.payload
  local got = take(s, rest, { requirement = "SDP-9.2-19", overdue_fails = true })
  t:check(got == rest, { requirement = "SDP-9.2-19", expected = rest .. " bytes", actual = got .. " bytes" })
  s:close()
end))

case(driven("part-then-waits", "The target sends no Data after the RdmaRdCompl of a part, and sends the next bytes after the RdmaRdCompl of the rest",
  { "SDP-9.2-22" }, {}, function(s)
  s:command "send 2000; send 10"
  local m = s:expect "src_avail"
  local rest = 2000 - #m.payload
  s:read { stag = m.stag, va = m.va + #m.payload, length = rest }
  s:expect_response {}
  s:send(sdp.rdma_rd_compl { length = rest - 500 })
  s:expect_quiet { requirement = "SDP-9.2-22", within = 0.5 }
  s:send(sdp.rdma_rd_compl { length = 500 })
  take(s, 10, {})
  s:close()
end))

local forced = { "SDP-9.2-6", "SDP-9.5.2.1-1", "SDP-11-3", "SDP-12-13" }

for _, mode in ipairs { "Combined", "Pipelined" } do
  case {
    id = "sdp/9.2-advertised/send-sm-in-" .. mode:lower(),
    title = "The target accepts a SendSm as the answer to a SrcAvail in " .. mode .. " Mode",
    requirements = forced,
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      s:command((mode == "Pipelined" and "mode out pipelined; " or "") .. "send 2000")
      local m = s:expect("src_avail", { past = { "mode_change" } })
      s:send(sdp.send_sm {})
      take(s, 2000 - #m.payload, { requirement = forced, overdue_fails = true })
      s:close()
    end,
  }
end

case(driven("deadlock", "The target sends its data after a SendSm if both sides have an open SrcAvail and none reads",
  { "SDP-9.2-40" }, {}, function(s)
  s:command "send 2000; wait 2000"
  local m = s:expect "src_avail"
  s:send(sdp.src_avail { length = 2000, payload = OCTETS:sub(1, 40) })
  s:send(sdp.send_sm {})
  -- The target may also send a SendSm.
  take(s, 2000 - #m.payload, { requirement = "SDP-9.2-40", overdue_fails = true, past = { "send_sm" } })
  s:connection():reset()
end))

case(driven("requested-in-order", "The target rejects two SrcAvails, the second after all bytes of the first have come in Data",
  { "SDP-9.2-37", "SDP-11.3-10" }, { version = 2 }, function(s)
  s:send(sdp.mode_change { mode = 2 })
  s:command "answer send-sm; wait 20; read 900 700"
  for number, len in ipairs { 900, 700 } do
    s:send(sdp.src_avail { length = len, stag = 0x900 + number, va = VA })
  end
  local function send(len)
    s:send(sdp.data { payload = OCTETS:sub(1, len - 50) })
    s:send(sdp.data { payload = OCTETS:sub(1, 50) })
  end
  s:expect "send_sm"
  send(900)
  -- If the target counts other bytes, it may end the connection.
  local is_second = false
  for _, m in ipairs(s:expect_quiet { within = 0.1, past = { "send_sm" }, requirement = "SDP-9.2-37" }) do
    is_second = is_second or m.name == "send_sm"
  end
  if not is_second then s:expect("send_sm", { requirement = "SDP-11.3-10", overdue_fails = true }) end
  send(700)
  s:command "send 10"
  s:collect(10, { requirement = { "SDP-9.2-37", "SDP-11.3-10" }, overdue_fails = true })
  s:close()
end))

case(driven("several", "The target reads several SrcAvails in Pipelined Mode in order, and reports them in order",
  { "SDP-10.1-2", "SDP-11-11", "SDP-11.3-4", "SDP-11.3-22" }, { version = 2 }, function(s, t)
  local accepted = { "SDP-11-11", "SDP-11.3-4", "SDP-11.3-22" }
  local lens = { 900, 700, 500 }
  s:send(sdp.mode_change { mode = 2 })
  -- These receives are too small to be advertised.
  s:command "wait 20; read 900 700 500"
  for number, len in ipairs(lens) do
    s:send(sdp.src_avail { length = len, stag = 0x900 + number, va = VA })
  end
  local reads, reported = 0, 0
  while reported < #lens do
    local event, m = s:next { requirement = accepted, overdue_fails = true }
    if event == "read" then
      reads = reads + 1
      s:answer_read(m, OCTETS:sub(1, m.length))
    else
      reported = reported + 1
      t:check(event == "rdma_rd_compl" and m.length == lens[reported], {
        requirement = "SDP-10.1-2", expected = "RdmaRdCompl of " .. lens[reported] .. " bytes", actual = event .. " of " .. tostring(m.length),
      })
    end
  end
  t:check(reads >= #lens, { requirement = accepted, expected = "Reads of all SrcAvails", actual = reads .. " Reads" })
  s:connection():reset()
end))

case(driven("read-at-all", "The target reads a SrcAvail that suits a receive", { "SDP-9-7" }, {}, function(s)
  s:command "read 3000"
  s:send(sdp.src_avail { length = 2000, payload = OCTETS:sub(1, 40), va = VA })
  s:expect_read { requirement = "SDP-9-7", overdue_fails = true }
  s:connection():reset()
end))

case {
  id = "sdp/9.2-advertised/one-read-at-a-time",
  title = "The target has no more Reads outstanding than the tester's LocIRD and the target's LocORD allow",
  requirements = { "SDP-8.1.1-27", "SDP-6.2.2.6-1" },
  capabilities = { "sdp-drive" },

  run = function(t)
    local s, hello_ack = t:sdp { hello = sdp.hello { loc_ird = 1 } }
    t:check(hello_ack.loc_ord == 1, { expected = "LocORD 1", actual = "LocORD " .. hello_ack.loc_ord })
    s:command "max-read 700; read 3000"
    s:send(sdp.src_avail { length = 2000, payload = OCTETS:sub(1, 40), va = VA })
    s:expect_read {}
    s:expect_quiet { within = 0.2, requirement = { "SDP-8.1.1-27", "SDP-6.2.2.6-1" }, overdue_fails = true }
    s:connection():reset()
  end,
}

case(driven("revoked-in-process", "The target reads nothing more of a SrcAvail after a SrcAvailCancel, however much is left",
  { "SDP-9.5.4-3" }, {}, function(s)
  s:command "max-read 700; read 3000"
  s:send(sdp.src_avail { length = 2000, payload = OCTETS:sub(1, 40), va = VA })
  local read = s:expect_read {}
  s:send(sdp.src_avail_cancel {})
  local first = read.src_to - VA
  s:answer_read(read, OCTETS:sub(first + 1, first + read.length))
  s:expect("rdma_rd_compl", { fields = { length = read.length }, requirement = "SDP-9.5.4-3", overdue_fails = true })
  s:expect("send_sm", { requirement = "SDP-9.5.4-3", overdue_fails = true })
  s:close()
end))

case(driven("without-invalidate", "The target allows no second Read of a SrcAvail, even if RdmaRdCompl invalidated nothing",
  { "SDP-9.2-30" }, {}, function(s)
  s:command "send 2000"
  local m = s:expect "src_avail"
  s:read { stag = m.stag, va = m.va + #m.payload, length = 2000 - #m.payload }
  s:expect_response {}
  s:send(sdp.rdma_rd_compl { length = 2000 - #m.payload })
  s:command "send 10"
  s:collect(10)
  s:read { stag = m.stag, va = m.va, length = 10 }
  s:expect_end { requirement = "SDP-9.2-30", overdue_fails = true }
end))

case(driven("mode-change-beside", "The target accepts a ModeChange to Pipelined Mode while a SrcAvail of its sender is open",
  { "SDP-12.3-2" }, {}, function(s)
  s:command "wait 50; read 900"
  s:send(sdp.src_avail { length = 900, payload = OCTETS:sub(1, 40), va = VA })
  s:send(sdp.mode_change { mode = 2 })
  local read = s:expect_read { requirement = "SDP-12.3-2", overdue_fails = true }
  s:answer_read(read, OCTETS:sub(1, read.length))
  s:expect("rdma_rd_compl", { requirement = "SDP-12.3-2", overdue_fails = true })
  s:connection():reset()
end))
