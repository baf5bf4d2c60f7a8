-- After an acknowledged change of its Private Buffers, a target uses the new size, also while
-- advertisements are open and data is in flight (draft-pinkerton-iwarp-sdp-01 sections 9.3, 9.5.1,
-- 10 and 10.6).

--- Maximum number of bytes that the tester requests for a Private Buffer.
local MOST = 65536
--- Number of messages after which a target has used up its old Private Buffers, in addition to
--- their number. The maximum limits the length of the case.
local MORE, MAX_MESSAGES = 8, 300
--- The tester requests smaller Private Buffers only if they have at least this number of bytes.
local LEAST = 128

--- Requests Private Buffers of this size, and sends one byte at a time until the target answers.
--- `bufs` is the number of the target's Private Buffers.
local function resize(c, s, size, bufs)
  s:send(sdp.ch_rcv_buf { des_sz = size })
  for _ = 1, math.min(bufs + MORE, MAX_MESSAGES) do
    c:receive(0.01)
    c:read_held()
    if c.ack then return end
    c:send(1)
  end
  for _ = 1, MAX_MESSAGES do
    if c.ack then return end
    c:expect({ "ch_rcv_buf_ack", "data", "src_avail", "sink_avail" }, "SDP-10.6-11")
    c:read_held()
  end
end

--- Sends short messages. Each of them makes a SinkAvail stale, so the target can advertise again.
--- Afterwards, no SinkAvail is left from the time before.
local function exchange(c)
  for _ = 1, #c.open + 2 do
    c:send(1)
    c:receive(0.03)
    c:read_held()
  end
end

--- Sends messages that fill the Private Buffers. The target violates the requirement if it does not
--- accept them.
local function fill(c, requirement)
  for _ = 1, 3 do
    c:send(c.size)
    c:receive(0.05, requirement)
    c:read_held()
  end
end

--- Opens a connection on which the target has sent SinkAvails. `wanted` is DesRemRcvSz of the
--- Hello. `judge` gets the stream and each SinkAvail.
local function start(t, service, wanted, judge)
  local s, hello_ack = t:sdp { hello = sdp.hello { max_adverts = 8, des_rem_rcv_sz = wanted } }
  local c = sdp_flow.new(t, s, hello_ack.act_rcv_sz, service == "echo")
  c.on_sink_avail = function(m) judge(c, m) end
  c:change(2)
  c:receive(0.2)
  c:read_held()
  if c.sink_avails == 0 then
    t:unimplemented("The target sends no SinkAvail in Pipelined Mode.")
  end
  return s, c, hello_ack.bufs
end

--- Ends the case. `requirement` is about messages that fill the Private Buffers.
local function finish(t, s, c, service, requirement)
  if service == "echo" then
    c:finish("SDP-8.2-1")
  else
    s:expect_open { within = 0.2, requirement = requirement }
  end
  if service == "source" then
    s:connection():reset()
  else
    s:close { past = sdp_flow.COMES }
  end
end

--- Checks that a SinkAvail advertises more bytes than the Private Buffers have.
local function check_length(t, c, m, requirement)
  t:check(m.length > c.size, {
    requirement = requirement, expected = ("a SinkAvail for more than %d bytes"):format(c.size), actual = ("%d bytes"):format(m.length),
  })
end

for _, service in ipairs { "echo", "sink", "source" } do
  -- Only an echo shows which bytes have arrived.
  local delivered = service == "echo" and { "SDP-8.2-1" } or {}

  case {
    id = "sdp/10.6-resized/larger-" .. service,
    title = "After a change to larger Private Buffers, the target accepts messages and sends SinkAvails by the new size",
    requirements = { "SDP-10.6-10", "SDP-10.6-11", "SDP-10.6-16", "SDP-10.6.2-1", delivered },
    capabilities = { "sdp-" .. service },

    run = function(t)
      local longest = 0
      local s, c, bufs = start(t, service, nil, function(c, m)
        if c.ack then check_length(t, c, m, "SDP-10.6-16") else longest = math.max(longest, m.length) end
      end)
      -- If the target takes this size, it must not advertise the same receives again.
      local old = c.size
      resize(c, s, math.max(old + 1, math.min(longest, MOST)), bufs)
      t:check(c.ack ~= nil, { requirement = "SDP-10.6-11", expected = "a ChRcvBufAck", actual = "other messages" })
      t:check(c.size >= old, {
        requirement = "SDP-10.6-10", expected = ("at least the old size, %d bytes"):format(old), actual = ("%d bytes"):format(c.size),
      })
      local before = c.sink_avails
      exchange(c)
      fill(c, "SDP-10.6.2-1")
      exchange(c)
      t:check(true, {
        requirement = { "SDP-10.6-16", "SDP-10.6.2-1" }, expected = "messages and SinkAvails that suit the new size",
        actual = ("%d SinkAvails"):format(c.sink_avails - before),
      })
      finish(t, s, c, service, "SDP-10.6.2-1")
    end,
  }

  case {
    id = "sdp/10.6-resized/smaller-" .. service,
    title = "During a change to smaller Private Buffers, the target sends SinkAvails by the old size until its ChRcvBufAck, then by the new size",
    requirements = { "SDP-10.6-8", "SDP-10.6-9", "SDP-10.6-11", "SDP-10.6-15", "SDP-10.6-16", delivered },
    capabilities = { "sdp-" .. service },

    run = function(t)
      local is_requested = false
      local s, c, bufs = start(t, service, 2500, function(c, m)
        if is_requested then check_length(t, c, m, c.ack and "SDP-10.6-16" or "SDP-10.6-15") end
      end)
      if c.size < LEAST then
        t:unimplemented(("The target's Private Buffers have only %d bytes."):format(c.size))
      end
      local old, wanted = c.size, c.size // 3
      is_requested = true
      resize(c, s, wanted, bufs)
      t:check(c.ack ~= nil, { requirement = "SDP-10.6-11", expected = "a ChRcvBufAck", actual = "other messages" })
      t:check(c.size <= old, {
        requirement = "SDP-10.6-8", expected = ("at most the old size, %d bytes"):format(old), actual = ("%d bytes"):format(c.size),
      })
      t:check(c.size >= wanted, {
        requirement = "SDP-10.6-9", expected = ("at least the requested size, %d bytes"):format(wanted), actual = ("%d bytes"):format(c.size),
      })
      local before = c.sink_avails
      exchange(c)
      fill(c)
      exchange(c)
      t:check(true, {
        requirement = { "SDP-10.6-15", "SDP-10.6-16" }, expected = "SinkAvails that suit the size in force",
        actual = ("%d SinkAvails after the ChRcvBufAck"):format(c.sink_avails - before),
      })
      finish(t, s, c, service)
    end,
  }
end
