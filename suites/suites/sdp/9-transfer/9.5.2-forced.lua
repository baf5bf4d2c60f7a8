-- A peer may answer a SrcAvail with SendSm, and then gets the bytes in Data
-- (draft-pinkerton-iwarp-sdp-01 sections 9.2, 9.5.2.1 and 11).

local OCTETS = ("abcdefghij"):rep(200)

-- Declare cases with a driven socket. `suites/library/sdp_case.lua` describes the parameters.
local function driven(...) return sdp_case.driven("sdp/9-transfer", ...) end
local function observed(...) return sdp_case.observed("sdp/9-transfer", ...) end

case(observed("refused-by-tester", "The target sends Data after a SendSm",
  { "SDP-9.2-31", "SDP-9.2-32", "SDP-9.2-33", "SDP-9.2-35", "SDP-9.5.2.1-2", "SDP-9.5.2.1-6", "SDP-11-4" },
  { "hello_ack", "dis_conn", "data", "src_avail", "combined" }, { version = 3 }, function(s, shown, t)
  s:command "send 2000"
  local m = s:expect "src_avail"
  t:check(#m.octets >= 32, { expected = "a complete SrcAvail", actual = #m.octets .. " bytes" })
  -- The messages before the SendSm are not judged here.
  s:expect_quiet { within = 0.05 }
  s:send(sdp.send_sm {})
  local each = { "SDP-9.2-33", "SDP-9.2-35", "SDP-9.5.2.1-2", "SDP-9.5.2.1-6" }
  local first = { "SDP-9.2-31", "SDP-9.2-32", "SDP-11-4", each }
  local got = #s:expect("data", { requirement = first, overdue_fails = true }).payload
  while got < 2000 - #m.payload do
    got = got + #s:expect("data", { requirement = each, overdue_fails = true }).payload
  end
  s:command "send 700"
  s:collect(700)
  s:close { shows = shown }
end))

case(driven("refused-in-pipelined", "The target sends Data after a SendSm for the first of two SrcAvails, and keeps the second open",
  { "SDP-9.2-33", "SDP-11.3-9" }, {}, function(s)
  s:command "mode out pipelined; send 2000; send 1500"
  s:expect "mode_change"
  s:expect "src_avail"
  local second = s:expect "src_avail"
  s:send(sdp.send_sm {})
  local got = 0
  while got < 2000 do
    got = got + #s:expect("data", { requirement = { "SDP-11.3-9", "SDP-9.2-33" }, overdue_fails = true }).payload
  end
  s:fetch(second, { requirement = { "SDP-11.3-9", "SDP-9.2-33" }, overdue_fails = true })
  s:close()
end))

case(observed("refused-by-target", "The target rejects a SrcAvail with SendSm", { "SDP-9.5.2.1-5", "SDP-6.3.5-1", "SDP-9-8" },
  { "hello_ack", "dis_conn", "send_sm" }, { version = 2 }, function(s, shown)
  s:command "answer send-sm; read 3000"
  s:send(sdp.src_avail { length = 2000, payload = OCTETS:sub(1, 40) })
  s:expect("send_sm", { requirement = { "SDP-9.5.2.1-5", "SDP-6.3.5-1", "SDP-9-8" }, overdue_fails = true })
  for at = 41, 2000, 490 do
    s:send(sdp.data { payload = OCTETS:sub(at, at + 489) })
  end
  s:close { shows = shown }
end))
