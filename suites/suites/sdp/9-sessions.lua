-- draft-pinkerton-iwarp-sdp-01 sections 8.2, 9, 10 and 12: the tester's SDP socket sends much data
-- in every Mode. Except in the case `illegal`, it sends only messages that the draft allows. The
-- monitor judges each message of the target, and an echo must return all bytes.

--- Sizes of sends: inside a Private Buffer, around its size, and longer than 16 bits.
local SIZES = { 1, 600, 8175, 8176, 8177, 20001, 65537, 131075 }

--- Number of random sessions of a case.
local DRAWN = 20

--- Number of the connection with the last sends of a case.
local LAST = 100

--- All data is delivered, in order.
local DELIVERED = "SDP-8.2-1"

--- The number of seconds after which a missing answer is a failure.
local ANSWER = 10

--- Requirements that the monitor judges in each message of a target: its number, its size, the send
--- credit that it needs, the credit that it grants, and the end of the data.
local JUDGED = {
  "SDP-6.1.3-1", "SDP-6.1.5-2", "SDP-6.1.6-1", "SDP-6.2.3-2", "SDP-8.2.1-4", "SDP-8.2.1-9", "SDP-9.1-1", "SDP-10-1", "SDP-10-6",
  "SDP-10.1-1", "SDP-10.2-1", "SDP-10.5-1", "SDP-10.5-3", "SDP-10.5-4", "SDP-10.5-5", "SDP-10.5-6", "SDP-10.5-7", "SDP-10.5-8",
}

--- Returns the requirements of two lists, each one once. The second list is optional.
local function joined(one, other)
  local all, has = { table.unpack(one) }, {}
  for _, row in ipairs(all) do has[row] = true end
  for _, row in ipairs(other or {}) do
    if not has[row] then all[#all + 1] = row end
  end
  return all
end

--- Declares a case with a session. `service` is the service of the target: echo, sink or source.
--- `declared` is optional. With its field `judged`, the case lists the requirements that the monitor
--- judges in each message. `shown` lists further requirements, and `tier` is a field of the case.
local function with(service, name, title, parameters, run, declared)
  declared = declared or {}
  local shown = joined(declared.judged and JUDGED or {}, declared.shown)
  case {
    id = ("sdp/9-sessions/%s"):format(service == "echo" and name or name .. "-" .. service),
    version = 2,
    title = title,
    requirements = { session.SDP, shown },
    capabilities = { "sdp-" .. service },
    tags = { "sessions" },
    tier = declared.tier,
    parameters = parameters,

    run = function(t, p)
      local s = session["sdp_" .. service](t)
      run(s, p, t)
      -- The target still serves a new connection.
      for _, size in ipairs(service == "echo" and { 600 } or { 30000, 30000, 30000 }) do
        s:send(LAST, { size = size })
        s:answers(LAST)
      end
      s:finish(shown)
    end,
  }
end

with("echo", "sizes", "The target returns data of every size in every Mode, and closes",
  { mode = { "combined", "pipelined", "buffered" }, answer = { "read", "send-sm", "both" }, threshold = { 500, 100000 } },
  function(s, p)
    s:open(1, { mode = p.mode, answer = p.answer, source_threshold = p.threshold, sink_threshold = 500, receive = 20000 })
    for _, size in ipairs(SIZES) do
      s:send(1, { size = size })
      s:answers(1)
    end
    for _, size in ipairs { 3000, 9000, 40 } do s:send(1, { size = size }) end
  end)

with("echo", "many", "The target returns many short sends with few Private Buffers",
  { bufs = { 3, 4, 16 }, count = { 300 } }, function(s, p)
    s:open(1, { bufs = p.bufs, recv_size = 1000 })
    s:burst(1, p.count, 5)
    s:answers(1)
    s:send(1, { size = 5000 })
  end)

with("echo", "resized", "The target returns data while its Private Buffers change their size", {}, function(s)
  s:open(1, { source_threshold = 1 << 30 })
  for _, size in ipairs { 20000, 1000, 50000, 500, 8192, 3000 } do
    s:resize(1, size)
    s:send(1, { size = 12000 })
    s:run(1, 0.02)
    s:send(1, { size = 300 })
    s:answers(1)
  end
end)

--- Sends Out-Of-Band data between other data in this Mode.
local function urgent_data(s, mode)
  s:open(1, { mode = mode, source_threshold = 500, sink_threshold = 500 })
  for _, size in ipairs { 1, 30, 2000, 9000, 70000 } do
    s:send(1, { size = size, urgent = true })
    s:send(1, { size = 7 })
    s:send(1, { size = 600, urgent = true })
    s:answers(1)
  end
end

with("echo", "urgent", "The target returns Out-Of-Band data between other data, in every Mode",
  { mode = { "combined", "pipelined", "buffered" } }, function(s, p) urgent_data(s, p.mode) end)

with("echo", "cancelled", "The target continues after cancelled sends", {}, function(s)
  s:open(1, { source_threshold = 500, max_src_avail = 30000 })
  for _, mode in ipairs { "combined", "pipelined", "combined" } do
    s:mode(1, mode)
    s:send(1, { size = 100000 })
    s:run(1, 0.001)
    s:cancel(1)
    s:send(1, { size = 400 })
    s:answers(1)
  end
end)

with("echo", "connections", "The target keeps the data of several connections apart", { connections = { 3, 8 } }, function(s, p)
  for number = 1, p.connections do s:open(number, { source_threshold = number % 2 == 0 and 500 or 16384 }) end
  for round = 1, 4 do
    for number = 1, p.connections do s:send(number, { size = 900 * number + round }) end
    s:pause(0.001)
  end
end)

with("echo", "large-buffers", "The target receives messages that fill its Private Buffers, from the first one on",
  { desired = { 9000, 20000, 60000 } }, function(s, p)
    s:open(1, { des_rem_rcv_sz = p.desired, source_threshold = 1 << 30 })
    s:send(1, { size = 40 * p.desired })
  end)

with("echo", "many-refusals", "The target still offers long sends after many SendSms", { adverts = { 1, 4 } }, function(s, p)
  s:open(1, { max_adverts = p.adverts })
  for count = 1, 40 do
    s:answer(1, count % 2 == 0 and "read" or "send-sm")
    s:send(1, { size = 20000 + count })
    s:answers(1)
  end
end)

with("echo", "reads-crossing", "The target keeps apart the Read Responses of several connections", { ird = { 1, 16 } }, function(s, p)
  for number = 1, 4 do s:open(number, { cut_fpdus = true, ird = p.ird, source_threshold = 500 }) end
  for round = 1, 4 do
    for number = 1, 4 do s:send(number, { size = 15000 * number + round }) end
    s:pause(0.02)
  end
end)

with("echo", "resized-often", "The target keeps its Private Buffers after many changes of their size", {}, function(s)
  s:open(1, { source_threshold = 1 << 30 })
  s:resizes(1, 40, 8192)
  s:burst(1, 40, 9)
  s:answers(1)
end)

with("echo", "cut", "The target receives messages and Read Responses that TCP delivers in parts",
  { cut = { "fpdus", 1448, 100 }, threshold = { 500, 1 << 30 } }, function(s, p)
    local fields = p.cut == "fpdus" and { cut_fpdus = true } or { cut = p.cut }
    fields.source_threshold, fields.recv_size = p.threshold, 8192
    s:open(1, fields)
    for _, size in ipairs { 8000, 3000, 12000 } do s:send(1, { size = size }) end
    s:answers(1)
  end)

with("echo", "addresses", "The target reads and writes buffers within which bit 31 or bit 32 of the address changes",
  { address = { 0x7fffe007, 0xffffe001, 0x12345678ffffee05 } }, function(s, p)
    s:open(1, {
      source_threshold = 500, src_avail_payload = 1, sink_threshold = 500, receive = 20000, buffers_at = p.address, max_read = 1000,
    })
    for _, size in ipairs { 9000, 20001, 140000 } do
      s:send(1, { size = size })
      s:answers(1)
    end
  end)

with("echo", "parts", "The target sends the rest of data that the tester has read in part, and nothing twice",
  { mode = { "combined", "pipelined" } }, function(s, p)
    s:open(1, { mode = p.mode, answer = "both", max_read = 3000, read_batch = 1, receive = 20000 })
    for _, size in ipairs { 20000, 40000, 70001 } do
      s:send(1, { size = size })
      s:answers(1)
    end
  end)

with("echo", "crossing", "The target keeps its data if SinkAvails cross its SrcAvails", {}, function(s)
  s:open(1, { sink_threshold = 500, receives = 1, receive = 30000, wants_pipelined = true, source_threshold = 1 << 30 })
  for round = 1, 3 do
    s:send(1, { size = 10000 })
    s:answers(1)
    s:stop_reading(1, 0.1)
    for _ = 1, 6 do s:send(1, { size = 8000 }) end
    s:run(1, 0.15)
    s:answers(1)
  end
end)

--- Sends much data, and Out-Of-Band data after it, while the tester does not read.
local function urgent_late(s)
  s:open(1, { source_threshold = 1 << 30, bufs = 8 })
  for _, size in ipairs { 100000, 30000 } do
    s:send(1, { size = size })
    s:run(1, 0.05)
    s:stop_reading(1, 0.2)
    s:send(1, { size = size })
    s:send(1, { size = 20, urgent = true })
    s:send(1, { size = 20, urgent = true })
    s:run(1, 0.1)
    s:answers(1)
  end
end

with("echo", "urgent-late", "If Out-Of-Band data waits after much other data, the target announces it in time and only once", {}, urgent_late)

do
  local shown = sdp.shown { "urgent", "SDP-9.5.3-6", "SDP-9.5.3-8" }

  with("echo", "announced", "The target announces Out-Of-Band data that it returns, in time and before the data",
    { data = { "combined", "pipelined", "buffered", "late" } }, function(s, p, t)
      -- An echo may return an Out-Of-Band byte as other data. Then the monitor can judge nothing.
      local one = t:sdp {}
      one:send(sdp.data { oob_pend = true, oob_pres = true, payload = "u" }, { solicited = true })
      if not one:expect("data").oob_pres then
        t:unimplemented("The target returns Out-Of-Band data as other data.")
      end
      one:close { shows = shown }
      if p.data == "late" then
        urgent_late(s)
      else
        urgent_data(s, p.data)
      end
    end, { shown = shown })
end

with("echo", "pipelined-back", "The target keeps its data if both half-connections are in Pipelined Mode",
  { threshold = { 500, 1 << 30 } }, function(s, p)
    s:open(1, { wants_pipelined = true, sink_threshold = 500, receive = 20000, source_threshold = p.threshold })
    -- The number of messages with payload exceeds 255.
    s:burst(1, 300, 1)
    s:answers(1)
    for _, size in ipairs { 20000, 60000, 131075 } do
      s:send(1, { size = size })
      s:burst(1, 60, 30)
      s:answers(1)
    end
  end, { judged = true })

--- Ends the case without a verdict if the target rejects a connection with Private Buffers of this
--- size. The draft does not require that a target accepts each size.
local function accepts(t, recv_size)
  t:sdp { hello = sdp.hello { local_rcv_sz = recv_size } }:connection():reset()
end

with("echo", "small-buffers", "The target sends no message that is larger than the tester's small Private Buffers",
  { recv_size = { 37, 100, 300 } }, function(s, p, t)
    accepts(t, p.recv_size)
    s:open(1, { recv_size = p.recv_size, source_threshold = 500 })
    for _, size in ipairs { 5000, 9000, 20001 } do
      s:send(1, { size = size })
      s:answers(1)
    end
  end, { judged = true })

--- Returns `size` bytes. `octets.counted` makes at most 1 MiB, so each MiB begins with its number.
local function long(size)
  local parts = {}
  for at = 0, size - 1, 1 << 20 do
    parts[#parts + 1] = (string.pack(">I4", at) .. octets.counted((1 << 20) - 4)):sub(1, size - at)
  end
  return table.concat(parts)
end

for _, service in ipairs { "echo", "sink" } do
  local size = service == "echo" and 1300000 or 5000000
  with(service, "huge", ("The target receives a send of %d bytes, and many short sends directly after it"):format(size), {},
    function(_, _, t)
      -- A session waits for the answers if much data waits for its echo. So this case uses a socket
      -- itself.
      local socket = t:sdp_socket { source_threshold = 500 }
      local sent = { long(size) }
      socket:send(sent[1])
      for number = 1, 100 do
        sent[number + 1] = ("%05d"):format(number)
        socket:send(sent[number + 1])
      end
      sent = table.concat(sent)
      local is_sent = socket:wait { sent = true, within = ANSWER }
      local ended = socket:ended()
      local is_own_end = ended and ended.reason
      -- If the tester has ended the connection because of a violation, the monitor reports it.
      t:check(is_sent and not ended, {
        requirement = not is_own_end and DELIVERED or nil, expected = "all data is sent", missing = not ended,
        actual = ended and "an end of the connection" .. (ended.reason and ", because of this violation: " .. ended.reason or "")
          or ("nothing more for %d s"):format(ANSWER),
      })
      if service == "echo" then
        socket:wait { octets = #sent, within = ANSWER }
        local got = socket:received()
        t:check(got == sent, { requirement = DELIVERED, expected = "an echo of all data", actual = octets.difference(got, sent), missing = #got < #sent })
      end
      socket:reset()
    end, { judged = true })

  with(service, "killed", "The target reads SrcAvails after connections that were reset during its RDMA Reads", {}, function(s)
    for number, killed in ipairs {
      { mode = "pipelined", sends = 20, size = 600 }, { mode = "combined", sends = 1, size = 1000000 },
      { mode = "combined", sends = 1, size = 1000000 },
    } do
      s:open(number, { mode = killed.mode, source_threshold = 60, src_avails = 20, max_adverts = 32 })
      s:stop_reading(number, 1)
      for _ = 1, killed.sends do s:send(number, { size = killed.size }) end
      s:run(number, 0.1)
      s:reset(number)
    end
    s:send(4, { size = 30000 })
    s:answers(4)
  end, { judged = true })

  with(service, "cancelled-late", "The target continues after a SrcAvailCancel that crosses the target's completion or RDMA Reads",
    { size = { 600, 30000 } }, function(s, p)
      s:open(1, { source_threshold = 60 })
      for _ = 1, 3 do
        s:stop_reading(1, 0.1)
        s:send(1, { size = p.size })
        s:run(1, 0.02)
        s:cancel(1)
        s:send(1, { size = 20 })
        s:answers(1)
      end
    end)

  with(service, "many-sources", "The target transfers the data of many SrcAvails at a time, within the limits of the tester",
    { sources = { 30 }, ird = { 1, 16 } }, function(s, p)
      s:open(1, { mode = "pipelined", source_threshold = 60, src_avails = p.sources, max_adverts = 32, ird = p.ird })
      s:stop_reading(1, 0.1)
      for _ = 1, p.sources do s:send(1, { size = 600 }) end
      s:run(1, 0.02)
      s:answers(1)
    end)

  with(service, "modes", "The target follows many changes of the Mode", {}, function(s)
    s:open(1, { source_threshold = 500 })
    for _ = 1, 3 do
      s:mode(1, "pipelined")
      s:send(1, { size = 3000 })
      s:answers(1)
      s:run(1, 0.05)
      s:mode(1, "combined")
      s:send(1, { size = 100 })
      s:answers(1)
      s:mode(1, "pipelined")
      s:send(1, { size = 30000 })
      s:answers(1)
    end
  end)

  with(service, "urgent-modes", "The target counts Out-Of-Band data in Pipelined Mode", {}, function(s)
    s:open(1, { source_threshold = 500 })
    s:mode(1, "pipelined")
    for _ = 1, 5 do
      s:send(1, { size = 30, urgent = true })
      s:run(1, 0.03)
      s:send(1, { size = 30000 })
      s:answers(1)
    end
  end)
end

with("source", "stalled", "The target keeps two credits in reserve while the tester does not read", { bufs = { 8, 16 } }, function(s, p)
  s:open(1, { bufs = p.bufs })
  for _ = 1, 3 do
    s:run(1, 0.05)
    s:stop_reading(1, 0.1)
    s:run(1, 0.2)
  end
end)

with("source", "small-buffers", "The target sends no message that is larger than the tester's small Private Buffers",
  { recv_size = { 37, 100, 300 } }, function(s, p, t)
    accepts(t, p.recv_size)
    s:open(1, { recv_size = p.recv_size })
    s:run(1, 0.2)
    s:burst(1, 20, 5)
    s:answers(1)
  end, { judged = true })

with("source", "hinted", "The target continues if the tester requests Pipelined Mode, and answers SrcAvails in parts",
  { answer = { "read", "both" }, max_read = { 3000, 1 << 30 } }, function(s, p)
    s:open(1, { wants_pipelined = true, answer = p.answer, max_read = p.max_read, read_batch = 1, receive = 4000 })
    for _, answer in ipairs { p.answer, "send-sm", p.answer } do
      s:answer(1, answer)
      s:run(1, 0.03)
      s:send(1, { size = 600 })
      s:answers(1)
    end
  end, { judged = true })

with("echo", "many-messages", "The target returns 66,000 messages on one connection", {}, function(s)
  s:open(1, { bufs = 64 })
  s:burst(1, 66000, 1)
  s:answers(1)
end, { tier = "default" })

for _, service in ipairs { "echo", "sink", "source" } do
  with(service, "drawn", "The target serves sessions with random steps", { number = session.numbers(1, DRAWN) }, function(s, p, t)
    t:drawn_session("sdp-" .. service, p.number, 1)(s)
  end)
end

with("echo", "drawn-connections", "The target serves sessions with random steps on several connections",
  { number = session.numbers(1, DRAWN) }, function(s, p, t) t:drawn_session("sdp-echo", p.number, 4)(s) end)

--- Messages after which the target should end the connection, and messages that it must accept.
local FAULTS = {
  "reserved-mid", "reserved-mid-payload", "len-short", "len-long", "short-header", "send-sm-payload", "ch-rcv-buf-payload",
  "mode-value", "mode-skipped", "src-avail-in-buffered", "left-pipelined", "ack-of-nothing", "rd-compl-too-long",
  "wr-compl-too-long", "rd-compl-of-nothing", "send-sm-of-nothing", "reserved-flags", "req-pipe-in-data",
}

case {
  id = "sdp/9-sessions/illegal",
  version = 2,
  title = "The target ends a connection on an illegal message in any Mode, and continues its other connection",
  requirements = session.requirements(session.SDP, table.unpack(FAULTS)),
  capabilities = { "sdp-echo" },
  tags = { "sessions", "violation" },
  parameters = { mode = { "combined", "pipelined", "buffered" } },

  run = function(t, p)
    local s = session.sdp_echo(t)
    for _, name in ipairs(FAULTS) do
      s:open(2, { mode = p.mode })
      s:send(2, { size = 2000 })
      s:send(1, { size = 3000 })
      s:fault(2, name)
      s:answers(1)
    end
    s:finish()
  end,
}
