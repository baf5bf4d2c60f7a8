-- Several advertisements are open while data is in flight in both directions: the order of the
-- bytes, and the limits that both sides stated at set-up (draft-pinkerton-iwarp-sdp-01 sections
-- 6.2, 9.3, 9.5.1, 11.2 and 11.3).

--- Maximum number of RDMA Reads that the tester sends at once.
local MAX_READS = 64
--- With fewer Private Buffers, a target may have no credit left while the tester leaves its
--- SrcAvails open.
local LEAST_BUFS = 8

case {
  id = "sdp/11.3-outstanding/writes",
  title = "The target takes the data of several written SinkAvails in the order of the SinkAvails, and not before their RdmaWrCompls",
  requirements = { "SDP-9.3-15", "SDP-9.3-16", "SDP-11.3-5" },
  capabilities = { "sdp-echo" },
  -- The order of the Writes, and whether the RdmaWrCompls invalidate the STags.
  parameters = { order = { "ascending", "descending", "interleaved" }, invalidate = { true, false } },

  run = function(t, p)
    local s = t:sdp { hello = sdp.hello { max_adverts = 8 } }
    s:send(sdp.mode_change { mode = 2 })
    local open = {}
    for _, m in ipairs(s:expect_quiet { within = 0.2, past = sdp_flow.COMES }) do
      if m.name == "sink_avail" then open[#open + 1] = m end
    end
    if #open < 2 then
      t:unimplemented("The target opens fewer than two SinkAvails.")
    end
    -- Each buffer gets another letter, and is not full.
    local parts = {}
    for number, m in ipairs(open) do
      parts[number] = ("abcdefgh"):sub(number, number):rep(math.min(m.length - 1, 500 + 100 * number))
    end
    --- Writes the bytes `from` to `to` of a part.
    local function write(number, from, to)
      local m = open[number]
      s:write { stag = m.stag, va = m.va + from - 1, payload = parts[number]:sub(from, to) }
    end
    for at = 1, #open do
      local number = p.order == "descending" and #open + 1 - at or at
      write(number, 1, p.order == "interleaved" and #parts[number] // 2 or #parts[number])
    end
    for number = 1, p.order == "interleaved" and #open or 0 do
      write(number, #parts[number] // 2 + 1, #parts[number])
    end
    -- A Write without its RdmaWrCompl delivers nothing.
    s:expect_quiet { within = 0.1, past = { "sink_avail", "mode_change" }, requirement = "SDP-9.3-16" }
    for number, m in ipairs(open) do
      s:send(sdp.rdma_wr_compl { length = #parts[number] }, { invalidate = p.invalidate and m.stag or nil })
    end
    -- The void SinkAvails leave MaxAdverts to the SrcAvails of the echo.
    s:send(sdp.mode_change { mode = 1 })
    local sent = table.concat(parts)
    local got = s:collect(#sent, { past = { "sink_avail" }, requirement = "SDP-11.3-5", overdue_fails = true })
    t:check(got == sent, {
      requirement = { "SDP-9.3-15", "SDP-9.3-16" }, expected = "the written bytes in the order of the SinkAvails",
      actual = octets.difference(got, sent),
    })
    s:close { past = sdp_flow.COMES }
  end,
}

--- The requirements about the number of open advertisements.
local limits = { "SDP-6.2.1.3-3", "SDP-11.3-23" }

for _, service in ipairs { "echo", "sink" } do
  local is_echo = service == "echo"
  -- Only an echo shows which bytes have arrived.
  local delivered = is_echo and "SDP-8.2-1" or nil
  -- The monitor judges these requirements in each message.
  local judged = is_echo and { "SDP-9.1-1", "SDP-9.3-5", "SDP-10-6" } or { "SDP-9.3-5" }

  case {
    id = "sdp/11.3-outstanding/mixed-" .. service,
    title = "While Writes, Data and RDMA Reads alternate, the target keeps the order of the bytes, and the limits of the Hello",
    requirements = { limits, judged, delivered },
    capabilities = { "sdp-" .. service },
    -- MaxAdverts, and the size of the tester's Private Buffers.
    parameters = { most = is_echo and { 1, 2, 8 } or { 1, 8 }, size = is_echo and { 100, 60000 } or { 100 } },

    run = function(t, p)
      local s, hello_ack = t:sdp { hello = sdp.hello { max_adverts = p.most, local_rcv_sz = p.size } }
      if hello_ack.bufs < LEAST_BUFS then
        t:unimplemented(("The target has only %d Private Buffers."):format(hello_ack.bufs))
      end
      local c = sdp_flow.new(t, s, hello_ack.act_rcv_sz, is_echo)
      c.on_sink_avail = function(m)
        t:check(#c.sent > 0 or m.non_discards == 0, {
          requirement = "SDP-9.3-5", expected = "NonDiscards 0 before the first payload", actual = "NonDiscards " .. m.non_discards,
        })
      end
      c:change(2)
      c:receive(0.2)
      if c.sink_avails == 0 then
        t:unimplemented("The target sends no SinkAvail in Pipelined Mode.")
      end
      t:check(c.sink_avails <= p.most, {
        requirement = limits, expected = ("at most %d open SinkAvails"):format(p.most), actual = ("%d open SinkAvails"):format(c.sink_avails),
      })
      -- In the middle of a round, the target has open SrcAvails and SinkAvails.
      for round = 1, 4 do
        c:write(300 + round)
        c:send(7)
        c:receive(0.03, delivered)
        c:write(3000)
        c:receive(0.03, delivered)
        c:send(900)
        c:write(5)
        c:receive(0.03, delivered)
        c:read_held()
        c:receive(0.03, delivered)
        c:read_held()
      end
      if is_echo then c:finish(delivered) end
      s:close { past = sdp_flow.COMES, shows = judged }
    end,
  }
end

--- The requirements of a Data Source in Combined Mode with an open SrcAvail.
local early = { "SDP-11.2-6", "SDP-11-10" }

--- Ends the case without a verdict if the half-connection to the tester is not in Combined Mode.
local function check_mode(t, c)
  if c.mode ~= 1 then
    t:unimplemented("The target leaves Combined Mode without a request.")
  end
end

--- Waits until the target has an open SrcAvail. A target that ends the connection violates the
--- requirement.
local function hold(t, c, requirement)
  for _ = 1, 5 do
    c:receive(0.1, requirement)
    check_mode(t, c)
    if #c.held > 0 then return end
  end
  t:unimplemented("The target sends no SrcAvail.")
end

--- Sends data in all ways while a SrcAvail of the target is open.
local function send_all_ways(t, c, requirement)
  c:send(7)
  c:write(300)
  c:receive(0.05, requirement)
  c:send(900)
  c:write(3000)
  c:receive(0.2, requirement)
  check_mode(t, c)
end

case {
  id = "sdp/11.3-outstanding/held",
  title = "No later data overtakes the data of an open SrcAvail, and an echo returns all data in order",
  requirements = { "SDP-8.2-1", early },
  capabilities = { "sdp-echo" },

  run = function(t)
    local s, hello_ack = t:sdp { hello = sdp.hello { max_adverts = 8 } }
    if hello_ack.bufs < LEAST_BUFS then
      t:unimplemented(("The target has only %d Private Buffers."):format(hello_ack.bufs))
    end
    local c = sdp_flow.new(t, s, hello_ack.act_rcv_sz, true)
    c.early = early
    c:change(2)
    c:receive(0.2)
    for _ = 1, 2 do
      c:write(50000)
      hold(t, c, "SDP-8.2-1")
      send_all_ways(t, c, "SDP-8.2-1")
      c:read_held()
      c:receive(0.05, "SDP-8.2-1")
      c:read_held()
    end
    c:finish("SDP-8.2-1")
    s:close { past = sdp_flow.COMES }
  end,
}

case {
  id = "sdp/11.3-outstanding/held-source",
  title = "A source sends no other data while its SrcAvail is open, whatever the tester sends",
  requirements = early,
  capabilities = { "sdp-source" },

  run = function(t)
    local s, hello_ack = t:sdp { hello = sdp.hello { max_adverts = 8 } }
    if hello_ack.bufs < LEAST_BUFS then
      t:unimplemented(("The target has only %d Private Buffers."):format(hello_ack.bufs))
    end
    local c = sdp_flow.new(t, s, hello_ack.act_rcv_sz)
    c.early = early
    c:change(2)
    hold(t, c)
    send_all_ways(t, c)
    c:read_held()
    -- The target continues with its next data.
    c:receive(0.1)
    s:connection():reset()
  end,
}

--- The target serves as many RDMA Reads at once as its LocIRD allows.
local at_once = "SDP-6.2.2.5-1"

--- Returns a function that reads the bytes after the payload of a SrcAvail with exactly LocIRD
--- Reads at once, several times, and then with one Read. All answers must be equal.
local function reader(t, s, loc_ird)
  return function(m)
    local from, rest = m.va + #m.payload, m.length - #m.payload
    local count = math.min(loc_ird, MAX_READS, rest)
    local size = rest // math.max(count, 1)
    local answers = {}
    for round = 1, 3 do
      local parts = {}
      for number = 1, count do
        local at = (number - 1) * size
        s:read { sink_stag = 0x100 * round + number, stag = m.stag, va = from + at, length = number < count and size or rest - at }
      end
      for number = 1, count do
        parts[number] = s:expect_response { requirement = at_once, overdue_fails = true }
      end
      answers[round] = table.concat(parts)
    end
    s:read { stag = m.stag, va = from, length = rest }
    local want = s:expect_response {}
    for _, got in ipairs(answers) do
      t:check(got == want, {
        requirement = at_once, expected = ("the same bytes with %d Reads at once as with one Read"):format(count),
        actual = octets.difference(got, want),
      })
    end
    s:send(sdp.rdma_rd_compl { length = rest }, { invalidate = m.stag })
    return want
  end
end

for _, service in ipairs { "echo", "source" } do
  case {
    id = "sdp/11.3-outstanding/reads-at-once-" .. service,
    title = "The target answers exactly LocIRD RDMA Reads at once, for one SrcAvail after the other",
    requirements = { at_once, service == "echo" and { "SDP-8.2-1" } or {} },
    capabilities = { "sdp-" .. service },

    run = function(t)
      local s, hello_ack = t:sdp { hello = sdp.hello { max_adverts = 8, loc_ord = MAX_READS } }
      local c = sdp_flow.new(t, s, hello_ack.act_rcv_sz, service == "echo")
      c.fetch = reader(t, s, hello_ack.loc_ird)
      c:change(2)
      local count = 0
      for _ = 1, 3 do
        c:receive(0.1)
        count = count + c:read_held()
        if service == "echo" then c:write(20000) end
      end
      c:receive(0.1)
      count = count + c:read_held()
      if count == 0 then
        t:unimplemented("The target sends no SrcAvail.")
      end
      if service == "echo" then
        c:finish("SDP-8.2-1")
        s:close { past = sdp_flow.COMES }
      else
        s:connection():reset()
      end
    end,
  }
end

--- Number of bytes of a short Read.
local SHORT = 16

--- Sends exactly LocIRD Reads at once, in turn to all open SrcAvails. Keeps the answers in the
--- SrcAvails.
local function read_all_open(c, s, loc_ird)
  local reads = {}
  for number = 1, math.min(loc_ird, MAX_READS) do
    local m = c.held[(number - 1) % #c.held + 1]
    local rest = math.max(m.length - #m.payload, 1)
    local at = (number - 1) * SHORT % rest
    local length = math.min(SHORT, rest - at)
    s:read { sink_stag = 0x200 + number, stag = m.stag, va = m.va + #m.payload + at, length = length }
    reads[number] = { m = m, at = at, length = length }
  end
  for _, read in ipairs(reads) do
    local answers = read.m.answers or {}
    answers[#answers + 1] = { at = read.at, length = read.length, bytes = s:expect_response { requirement = at_once, overdue_fails = true } }
    read.m.answers = answers
  end
end

do
  local rows = { limits[1], limits[2], "SDP-11.3-8", "SDP-11-15", at_once }

  case {
    id = "sdp/11.3-outstanding/pipelined-source",
    title = "In Pipelined Mode, a source keeps to MaxAdverts, sends no payload after open SrcAvails, and serves LocIRD Reads of all of them at once",
    requirements = rows,
    capabilities = { "sdp-source" },
    parameters = { most = { 1, 2, 3 } },

    run = function(t, p)
      local s, hello_ack = t:sdp { hello = sdp.hello { bufs = 64, max_adverts = p.most, loc_ord = MAX_READS } }
      s:counters { bufs = 64 }
      local c = sdp_flow.new(t, s, hello_ack.act_rcv_sz)
      hold(t, c)
      local m = table.remove(c.held, 1)
      local rest = m.length - #m.payload
      s:read { stag = m.stag, va = m.va + #m.payload, length = rest }
      s:expect_response {}
      s:send(sdp.rdma_rd_compl { length = rest, req_pipe = true }, { invalidate = m.stag })
      c:receive(0.3)
      if c.mode ~= 2 or #c.held == 0 then
        t:unimplemented("The target opens no SrcAvail in Pipelined Mode after REQ_PIPE.")
      end
      c.early = { "SDP-11.3-8", "SDP-11-15" }
      for _ = 1, 8 do
        if #c.held == 0 or c.mode ~= 2 then break end
        t:check(#c.held <= p.most, {
          requirement = limits, expected = ("at most %d open SrcAvails"):format(p.most), actual = ("%d open SrcAvails"):format(#c.held),
        })
        read_all_open(c, s, hello_ack.loc_ird)
        local oldest = table.remove(c.held, 1)
        local bytes = s:fetch(oldest)
        for _, answer in ipairs(oldest.answers or {}) do
          local want = bytes:sub(answer.at + 1, answer.at + answer.length)
          t:check(answer.bytes == want, {
            requirement = at_once, expected = "the same bytes as with one Read", actual = octets.difference(answer.bytes, want),
          })
        end
        c:receive(0.05)
      end
      t:check(true, { requirement = rows, expected = "SrcAvails in Pipelined Mode", actual = "SrcAvails in Pipelined Mode" })
      s:connection():reset()
    end,
  }
end

case {
  id = "sdp/11.3-outstanding/one-read-of-sink",
  title = "A sink has only one Read outstanding if LocIRD of the tester is 1, however long it waits for the answers",
  requirements = { "SDP-8.1.1-27", "SDP-6.2.2.6-1" },
  capabilities = { "sdp-sink" },

  run = function(t)
    local VA = 0x700000001
    local rows = { "SDP-8.1.1-27", "SDP-6.2.2.6-1" }
    local s = t:sdp { hello = sdp.hello { loc_ird = 1 } }
    local bytes = octets.counted(12000)
    s:send(sdp.src_avail { length = #bytes, payload = bytes:sub(1, 40), va = VA })
    local at, reads = 40, 0
    while at < #bytes do
      local event, m = s:next {}
      if event == "send_sm" then
        t:unimplemented("The target rejects the SrcAvail, or the rest of it, with SendSm.")
      elseif event == "read" then
        reads = reads + 1
        s:expect_quiet { within = reads <= 10 and 0.1 or 0.01, past = { "rdma_rd_compl" }, requirement = rows, overdue_fails = true }
        local first = m.src_to - VA
        s:answer_read(m, bytes:sub(first + 1, first + m.length))
        at = first + m.length
      end
    end
    t:check(at >= #bytes, { requirement = rows, expected = "Reads of all bytes, one after the other", actual = "Reads up to byte " .. at })
    s:connection():reset()
  end,
}
