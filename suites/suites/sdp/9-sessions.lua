-- draft-pinkerton-iwarp-sdp-01 sections 8.2, 9, 10 and 12: the tester's SDP socket sends much data
-- in every Mode. Except in the case `illegal`, it sends only messages that the draft allows. The
-- monitor judges each message of the target, and an echo must return all bytes.

--- Sizes of sends: inside a Private Buffer, around its size, and longer than 16 bits.
local SIZES = { 1, 600, 8175, 8176, 8177, 20001, 65537, 131075 }

--- Number of random sessions of a case.
local DRAWN = 20

--- Number of the connection with the last sends of a case.
local LAST = 100

--- Declares a case with a session. `service` is the service of the target: echo, sink or source.
local function with(service, name, title, parameters, run)
  case {
    id = ("sdp/9-sessions/%s"):format(service == "echo" and name or name .. "-" .. service),
    title = title,
    requirements = session.SDP,
    capabilities = { "sdp-" .. service },
    tags = { "sessions" },
    parameters = parameters,

    run = function(t, p)
      local s = session["sdp_" .. service](t)
      run(s, p, t)
      -- The target still serves a new connection.
      for _, size in ipairs(service == "echo" and { 600 } or { 30000, 30000, 30000 }) do
        s:send(LAST, { size = size })
        s:answers(LAST)
      end
      s:finish()
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

with("echo", "urgent", "The target returns Out-Of-Band data between other data, in every Mode",
  { mode = { "combined", "pipelined", "buffered" } }, function(s, p)
    s:open(1, { mode = p.mode, source_threshold = 500, sink_threshold = 500 })
    for _, size in ipairs { 1, 30, 2000, 9000, 70000 } do
      s:send(1, { size = size, urgent = true })
      s:send(1, { size = 7 })
      s:send(1, { size = 600, urgent = true })
      s:answers(1)
    end
  end)

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

with("echo", "urgent-late", "If Out-Of-Band data waits after much other data, the target announces it in time and only once", {}, function(s)
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
end)

for _, service in ipairs { "echo", "sink" } do
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

with("echo", "many-messages", "The target returns 66,000 messages on one connection", {}, function(s)
  s:open(1, { bufs = 64 })
  s:burst(1, 66000, 1)
  s:answers(1)
end)

for _, service in ipairs { "echo", "sink", "source" } do
  with(service, "drawn", "The target serves sessions with random steps", { number = session.numbers(1, DRAWN) }, function(s, p, t)
    t:drawn_session("sdp-echo", p.number, 1)(s)
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
