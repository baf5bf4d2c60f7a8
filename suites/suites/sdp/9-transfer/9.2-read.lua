-- How a target sends and handles SrcAvails, and how the peer reads the advertised memory
-- (draft-pinkerton-iwarp-sdp-01 sections 6.3, 9.2 and 11).

local VA = 0x700000001
local OCTETS = ("abcdefghij"):rep(200)

-- Errors of a Terminate that refuses a Read (RFC 5040 section 4.8).
local INVALID_STAG, OUT_OF_BOUNDS = "\x01\x00", "\x01\x01"

do
  local shown = sdp.shown { "hello_ack", "dis_conn", "rdma_rd_compl", "SDP-6.3.7.1-3" }

  case {
    id = "sdp/9-transfer/read-by-target",
    version = 4,
    title = "The target reads a SrcAvail in Combined Mode, reports the amount in RdmaRdCompl, and echoes the data",
    requirements = { "SDP-9.2-10", "SDP-9.2-11", "SDP-9.2-12", "SDP-9-8", "SDP-11.2-4", shown },
    capabilities = { "sdp-echo" },

    run = function(t)
      local ready = { "SDP-9-8", "SDP-11.2-4" }
      local s = t:sdp {}
      s:send(sdp.src_avail { length = 2000, payload = OCTETS:sub(1, 40) })
      -- `read` counts the bytes that were read or came as payload. `reported` counts the bytes that
      -- the target reported as read. `got` counts the bytes that the target has echoed.
      local read, reported, got = 40, 0, 0
      -- The requirements that the target violates if it sends nothing more.
      local due = ready
      while reported < 1960 do
        local event, m = s:next { requirement = due, overdue_fails = true }
        if event == "read" then
          local first = m.src_to - VA
          t:check(first >= 0 and first <= read and m.length > 0 and first + m.length <= 2000, {
            requirement = "SDP-9.2-10", expected = "a Read of advertised bytes", actual = m.length .. " bytes from byte " .. first,
          })
          s:answer_read(m, OCTETS:sub(first + 1, first + m.length))
          read = math.max(read, first + m.length)
          due = "SDP-9.2-11"
        elseif event == "rdma_rd_compl" then
          t:check(read > 40, {
            requirement = { "SDP-9.2-12", "SDP-9.2-11" }, expected = "RdmaRdCompl after a Read", actual = "RdmaRdCompl before the first Read",
          })
          reported = reported + m.length
          t:check(m.length > 0 and reported <= read - 40, {
            requirement = { "SDP-6.3.7.1-1", "SDP-9.2-13" }, expected = "at most the " .. read - 40 .. " bytes that were read", actual = reported .. " bytes",
          })
          -- If Len was too small, the target has reported all of its Reads, but not all bytes.
          due = reported == read - 40 and ready or { "SDP-6.3.7.1-1", "SDP-6.3.7.1-3" }
        elseif event == "send_sm" then
          t:unimplemented("The target rejects the SrcAvail, or the rest of it, with SendSm.")
        else
          t:check(event == "data" or event == "src_avail", { expected = "Data or SrcAvail of the echo", actual = event })
          got = got + #m.payload + (event == "src_avail" and #s:fetch(m) or 0)
        end
      end
      t:check(read == 2000, { requirement = ready, expected = "Reads of all advertised bytes", actual = "Reads up to byte " .. read })
      if got < 2000 then
        s:collect(2000 - got)
      end
      s:close { shows = shown }
    end,
  }
end

-- Declare cases with a driven socket. `suites/library/sdp_case.lua` describes the parameters.
local function driven(...) return sdp_case.driven("sdp/9-transfer", ...) end
local function observed(...) return sdp_case.observed("sdp/9-transfer", ...) end

case(observed("src-avails", "The target advertises large sends in Combined Mode, one after the other", {},
  { "hello_ack", "dis_conn", "data", "src_avail", "combined" }, { version = 2 }, function(s, shown)
  s:command "send 2000; send 3000; send 100; send 2000"
  s:collect(7100)
  s:close { shows = shown }
end))

case(driven("consumed-in-parts", "If the tester reads a SrcAvail in three parts, the target ends the SrcAvail after the last part",
  { "SDP-9.2-16", "SDP-9.2-17" }, { version = 3 }, function(s)
  s:command "send 2000; send 700"
  local m = s:expect "src_avail"
  local rest = 2000 - #m.payload
  local parts = { 500, 600, rest - 1100 }
  local at = #m.payload
  for number, len in ipairs(parts) do
    s:read { stag = m.stag, va = m.va + at, length = len }
    s:expect_response { requirement = { "SDP-9.2-16", "SDP-9.2-17" }, overdue_fails = true }
    s:send(sdp.rdma_rd_compl { length = len }, number == 3 and { invalidate = m.stag } or nil)
    at = at + len
    if number < 3 then
      s:expect_quiet { within = 0.1, requirement = { "SDP-9.2-16", "SDP-9.2-17" }, overdue_fails = true }
    end
  end
  s:expect("src_avail", { requirement = "SDP-9.2-17", overdue_fails = true })
  s:connection():reset()
end))

case(observed("read-in-parts", "The target reads a part of a SrcAvail, and rejects the rest",
  { "SDP-9.2-11", "SDP-9-9", "SDP-6.3.7.1-1", "SDP-9.2-13" }, { "hello_ack", "dis_conn", "send_sm", "rdma_rd_compl" },
  { version = 3 }, function(s, shown, t)
  s:command "answer both; max-read 700; read 3000"
  s:send(sdp.src_avail { length = 2000, payload = OCTETS:sub(1, 40) })
  local read = s:expect_read { requirement = "SDP-9.2-11", overdue_fails = true }
  local first = read.src_to - VA
  s:answer_read(read, OCTETS:sub(first + 1, first + read.length))
  local m = s:expect("rdma_rd_compl", { requirement = "SDP-9.2-11", overdue_fails = true })
  t:check(m.length == read.length, {
    requirement = { "SDP-6.3.7.1-1", "SDP-9.2-13" }, expected = read.length .. " bytes", actual = tostring(m.length) .. " bytes",
  })
  s:expect("send_sm", { requirement = "SDP-9-9", overdue_fails = true })
  local rest = OCTETS:sub(first + read.length + 1)
  for at = 1, #rest, 490 do
    s:send(sdp.data { payload = rest:sub(at, at + 489) })
  end
  s:close { shows = shown }
end))

case(observed("pipelined", "The target sends several SrcAvails in Pipelined Mode", {},
  { "hello_ack", "dis_conn", "data", "src_avail", "pipelined", "mode_change", "to_pipelined" }, { version = 2 }, function(s, shown)
  s:command "mode out pipelined; send 2000; send 3000; send 2500; send 2700; send 300"
  s:expect "mode_change"
  s:collect(10500)
  s:close { shows = shown }
end))

case(driven("read-from-first-byte", "The target's SrcAvail advertises memory that begins with its payload",
  { "SDP-6.3.2.2-2", "SDP-9.2-4", "SDP-9.2-5", "SDP-14.1-1" }, { version = 2 }, function(s, t)
  s:command "send 2000"
  local m = s:expect "src_avail"
  s:read { stag = m.stag, va = m.va, length = m.length }
  local octets, refusal = sdp_case.read_answer(s)
  -- An error about the STag or the bounds shows that Reads are enabled.
  t:check(not refusal or refusal == INVALID_STAG or refusal == OUT_OF_BOUNDS, {
    requirement = "SDP-14.1-1", expected = "a Read Response", actual = "a refusal that is not about the STag or the bounds, or no answer",
  })
  t:check(refusal ~= INVALID_STAG, { requirement = { "SDP-9.2-4", "SDP-9.2-5" }, expected = "a valid STag", actual = "a Terminate: invalid STag" })
  t:check(octets:sub(1, #m.payload) == m.payload, {
    requirement = { "SDP-6.3.2.2-2", "SDP-9.2-4", "SDP-9.2-5" }, expected = "the payload first",
    actual = refusal and "a Terminate: out of bounds" or "other bytes than expected",
  })
  s:connection():reset()
end))

case(driven("two-read", "The target's RdmaRdCompl invalidates no STag, or the STag of the SrcAvail that it completes", { "SDP-9.2-26" },
  { version = 2 }, function(s, t)
  s:send(sdp.mode_change { mode = 2 })
  s:command "wait 20; read 900 900"
  for n = 1, 2 do
    s:send(sdp.src_avail { length = 900, stag = 0x900 + n, va = VA })
  end
  for _ = 1, 2 do
    s:answer_read(s:expect_read(), OCTETS:sub(1, 900))
  end
  for n = 1, 2 do
    local m = s:expect("rdma_rd_compl", { requirement = "SDP-9.2-26", overdue_fails = true })
    local own = m.invalidates == 0 or m.invalidates == 0x900 + n
    t:check(own, { requirement = "SDP-9.2-26", overdue_fails = true, expected = "no invalidated STag, or the STag of its SrcAvail", actual = ("%#x as the invalidated STag"):format(m.invalidates) })
  end
  s:connection():reset()
end))

case(observed("max-adverts", "The target has no more open advertisements than MaxAdverts allows",
  { "SDP-6.2.1.3-3", "SDP-11.3-23" }, { "hello_ack", "dis_conn", "src_avail", "pipelined", "mode_change", "to_pipelined" },
  { version = 2, hello = { max_adverts = 2 } }, function(s, shown)
  s:command "mode out pipelined; send 2000; send 3000; send 2500; send 2700"
  s:expect "mode_change"
  local open = { s:expect "src_avail", s:expect "src_avail" } -- They stay open for a while.
  s:expect_quiet { within = 0.3, requirement = { "SDP-6.2.1.3-3", "SDP-11.3-23" }, overdue_fails = true }
  for _, m in ipairs(open) do
    s:fetch(m)
  end
  s:collect(5200)
  s:close { shows = shown }
end))

case(observed("hints", "The target sets REQ_PIPE in a completion", {},
  { "hello_ack", "dis_conn", "rdma_rd_compl", "hint", "SDP-6.3.7.1-3" }, { version = 2 }, function(s, shown)
  s:command "hints; read 3000"
  s:send(sdp.src_avail { length = 2000, payload = OCTETS:sub(1, 40) })
  s:serve(OCTETS, { va = VA, from = 40 })
  s:expect "rdma_rd_compl"
  s:close { shows = shown }
end))
