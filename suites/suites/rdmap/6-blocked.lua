-- RFC 5041 section 5.2, RFC 5040 sections 5.2 and 5.3: TCP's receive window is closed or small, so
-- a side cannot send. When the window opens, the side continues where it stopped.

--- Sizes in bytes of the tester's receive buffer. A small buffer makes TCP's window small, and the
--- window closes soon if the tester does not read.
local SMALL, MEDIUM = 4096, 16384

--- The number of seconds after which a missing message is a failure. If the window was closed for a
--- minute, the target's TCP may wait for another minute before it sends again.
local ANSWER, LATE_ANSWER = 10, 90

local DELIVERED, IN_ORDER, PLACED = "RDMAP-5.3-5", "DDP-5.3-6", "DDP-5.2-4"
local ANSWERED = "RDMAP-5.2.1-18"

local describe = session.describe

--- The number of bytes that the tester reads one at a time: in the default tier, and in a minute.
local FEW, MINUTE_OF_BYTES = 12, 240
--- The number of seconds between two of these bytes. If a window is small, a sender may wait before
--- it sends a single byte (RFC 9293 section 3.8.6.2.1). Linux waits for about 0.2 s.
local BETWEEN = 0.25

--- Waits for `seconds`. Then reads `count` bytes one at a time, so TCP's window opens by one byte at
--- a time.
local function read_late(t, conn, seconds, count)
  t:pause(seconds)
  for _ = 1, count do
    if not conn:read_part(1, { within = ANSWER }) then return end
    t:pause(BETWEEN)
  end
end

--- Receives a message with this opcode, and returns its payload. If another event arrives, returns
--- nil, the description of the event, the event, and the FPDU if the event is one.
local function receive(conn, opcode, within)
  local pieces = {}
  repeat
    local event, fpdu = conn:next { within = within }
    if event ~= "fpdu" or fpdu.opcode ~= opcode then return nil, describe(event, fpdu, within), event, fpdu end
    pieces[#pieces + 1] = fpdu.payload
  until fpdu.last
  return table.concat(pieces)
end

--- Ends the case if the target has ended a connection whose peer did not read for a minute. No
--- requirement forbids this: an application may end a connection on which nothing moves.
local function check_open(t, conn, event, seconds)
  if seconds >= 60 and (event == "close" or event == "octets") then
    conn:reset()
    t:liveness()
    t:unimplemented(("The target ends a connection whose peer does not read for %d s."):format(seconds))
  end
end

--- Declares a case in which the tester reads no echo for `seconds`, and then `count` bytes one at a
--- time.
local function unread_echo(name, title, seconds, count, tier)
  local total = seconds + count * BETWEEN
  case {
    id = "rdmap/6-blocked/" .. name,
    title = title,
    requirements = { DELIVERED, IN_ORDER, PLACED },
    capabilities = { "echo" },
    tags = { "send", "blocked" },
    tier = tier,

    run = function(t)
      t:good_exchange()
      t:receive_buffer(SMALL)
      local conn, op = t:operate()
      local sent = {}
      for nth = 1, 8 do
        local payload = string.pack(">I4", nth) .. octets.counted(3996)
        sent[nth] = payload
        for at = 0, #payload - 1, 1000 do
          conn:send(mpa.fpdu {
            ulpdu = rdmap.send { payload = payload:sub(at + 1, at + 1000), msn = op.msn + nth - 1, mo = at, last = at + 1000 == #payload },
          })
        end
      end
      read_late(t, conn, seconds, count)
      for nth, payload in ipairs(sent) do
        local echo, other, event = receive(conn, 3, total >= 60 and LATE_ANSWER or ANSWER)
        check_open(t, conn, event, total)
        local expected = ("the echo of Send %d"):format(nth)
        t:check(echo, { requirement = DELIVERED, expected = expected, actual = other or expected, missing = event ~= "fpdu" })
        t:check(echo:sub(1, 4) == payload:sub(1, 4), { requirement = IN_ORDER, expected = expected, actual = "the echo of another Send" })
        t:check(echo == payload, { requirement = PLACED, expected = "the bytes of the Send", actual = octets.difference(echo, payload) })
      end
      conn:close()
    end,
  }
end

unread_echo("unread-echo", "The target sends all echoes after the peer did not read for 2 s", 2, 0)
unread_echo("unread-echo-minute", "The target sends all echoes after the peer did not read for a minute", 60, 0, "full")
unread_echo("slow-echo", "The target sends all echoes after the peer read one byte at a time", 2, FEW)
unread_echo("slow-echo-minute", "The target sends all echoes after the peer read one byte at a time for a minute", 2,
  MINUTE_OF_BYTES, "full")

--- The number of Sends of a flood, and the payload bytes of each. They exceed all buffers of TCP.
local FLOOD, FLOOD_SIZE = 256, 16000
--- The number of seconds after which a missing echo of a flood is a failure.
local FLOOD_ANSWER = 40

-- No RFC requires that a target receives while it cannot send. So the tester continues with its
-- Sends while it reads the echoes.
case {
  id = "rdmap/6-blocked/flood",
  title = "The target sends all echoes after both directions were blocked",
  requirements = { DELIVERED, IN_ORDER, PLACED },
  capabilities = { "echo" },
  tags = { "send", "blocked" },

  run = function(t)
    t:good_exchange()
    local conn, op = t:operate()
    local sent = {}
    for nth = 1, FLOOD do
      local payload, fpdus = string.pack(">I4", nth) .. octets.counted(FLOOD_SIZE - 4), nil
      for at = 0, FLOOD_SIZE - 1, 1000 do
        local fpdu = mpa.fpdu {
          ulpdu = rdmap.send { payload = payload:sub(at + 1, at + 1000), msn = op.msn + nth - 1, mo = at, last = at + 1000 == FLOOD_SIZE },
        }
        fpdus = fpdus and fpdus .. fpdu or fpdu
      end
      sent[nth] = payload
      conn:send(fpdus, { queued = true })
    end
    t:pause(2)
    for nth, payload in ipairs(sent) do
      local echo, other, event, fpdu = receive(conn, 3, FLOOD_ANSWER)
      local first, code = (event == "fpdu" and fpdu.opcode == 7 and fpdu.payload or "\0\0"):byte(1, 2)
      -- Without a receive, the target reports that it has no buffer, that the MSN is out of range,
      -- or that the message is too long (RFC 5041 section 7.2).
      if first == 0x12 and (code == 2 or code == 3 or code == 5) then
        conn:reset()
        t:unimplemented("The target has no receive for each of the unanswered Sends.")
      end
      -- An application may end a connection whose peer does not read.
      if event == "close" then
        conn:reset()
        t:liveness()
        t:unimplemented("The target ends a connection whose peer does not read.")
      end
      local expected = ("the echo of Send %d"):format(nth)
      t:check(echo, { requirement = DELIVERED, expected = expected, actual = other or expected, missing = event ~= "fpdu" })
      t:check(echo:sub(1, 4) == payload:sub(1, 4), { requirement = IN_ORDER, expected = expected, actual = "the echo of another Send" })
      t:check(echo == payload, { requirement = PLACED, expected = "the bytes of the Send", actual = octets.difference(echo, payload) })
    end
    conn:close()
  end,
}

--- Declares a case in which the tester reads no byte of a Read Response for `seconds`, and then
--- `count` bytes one at a time.
local function unread_response(name, title, seconds, count, tier)
  local total = seconds + count * BETWEEN
  case {
    id = "rdmap/6-blocked/" .. name,
    title = title,
    requirements = { ANSWERED },
    capabilities = { "rping" },
    tags = { "read", "blocked" },
    tier = tier,

    run = function(t)
      t:good_exchange()
      t:receive_buffer(SMALL)
      local conn, op = t:operate()
      if op.length < 4 * SMALL then
        t:unimplemented(("The target's rping uses only %d bytes, too few for this case (-S of rping, rping_size of the target file)."):format(op.length))
      end
      local data = session.fill_buffer(conn, op, op.length)
      conn:send(mpa.fpdu {
        ulpdu = rdmap.read_request { sink_stag = 0x7766, rdmardsz = #data, src_stag = op.stag, src_to = op.to },
      })
      read_late(t, conn, seconds, count)
      local response, other, event = receive(conn, 2, total >= 60 and LATE_ANSWER or ANSWER)
      check_open(t, conn, event, total)
      t:check(response == data, {
        requirement = ANSWERED,
        expected = "a Read Response with the bytes of the buffer",
        actual = response and octets.difference(response, data) or other,
        missing = not response,
      })
      conn:close()
    end,
  }
end

unread_response("unread-response", "The target completes a Read Response after the peer did not read for 2 s", 2, 0)
unread_response("unread-response-minute", "The target completes a Read Response after the peer did not read for a minute", 60, 0, "full")
unread_response("slow-response", "The target completes a Read Response after the peer read one byte at a time", 2, FEW)
unread_response("slow-response-minute", "The target completes a Read Response after the peer read one byte at a time for a minute", 2,
  MINUTE_OF_BYTES, "full")

--- Declares a case with a session whose connections have a small window.
local function small_window(service, title, more, run)
  case {
    id = "rdmap/6-blocked/small-window-" .. service,
    title = title,
    requirements = session.requirements(session[service:upper()], table.unpack(more)),
    capabilities = { service },
    tags = { "blocked" },

    run = function(t)
      t:receive_buffer(SMALL)
      local s = session[service](t)
      run(s)
      s:finish()
    end,
  }
end

small_window("echo", "The target sends messages that are longer than TCP's window", {}, function(s)
  for _, size in ipairs { 4000, 1, 3999, 2001 } do s:send(1, { size = size, segment = 1400 }) end
  s:answers(1)
  for _ = 1, 8 do s:send(1, { size = 4000, segment = 1400 }) end
end)

small_window("rping", "The target sends Read Responses and Writes that are longer than TCP's window", session.ROUNDS, function(s)
  s:write(1, { at = 0, size = 65535 })
  s:read(1, { at = 0, size = 65535 })
  s:answers(1)
  s:rounds(1, 2, { size = 65535 })
end)

--- Size in bytes of a message that TCP does not accept at once.
local LONG = 1 << 20
--- Payload bytes of the tester's segments, and the number of segments that are sent at once.
local CUT, JOINED = 1024, 64

--- Sends a message of LONG bytes in segments. `ulpdu` returns the segment at an offset.
local function send_long(conn, ulpdu)
  for at = 0, LONG - 1, CUT * JOINED do
    local fpdus = {}
    for offset = at, math.min(at + CUT * JOINED, LONG) - 1, CUT do
      local fpdu = mpa.fpdu { ulpdu = ulpdu(offset) }
      fpdus = offset == at and fpdu or fpdus .. fpdu
    end
    conn:send(fpdus)
  end
end

-- No RFC requires that a target receives while it cannot send. If the target does not accept the
-- tester's message, the case is inconclusive.
case {
  id = "rdmap/6-blocked/both",
  version = 2,
  title = "The target completes a long message in each direction if the tester reads nothing before it has sent its message",
  requirements = { "DDP-5.2-3", PLACED },
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "send", "read", "blocked", "agent" },
  parameters = { verb = { "send", "read" } },

  run = function(t, p, target)
    t:good_exchange()
    t:receive_buffer(MEDIUM)
    local conn, pair, op = target:operate { ird = 1, ord = 1 }
    local source = target:region { octets = LONG, fill = 3 }
    local sink = target:region { octets = LONG }
    local pattern, data = target:pattern(3, LONG), octets.counted(LONG)
    local works = {}
    if p.verb == "send" then
      works[1] = pair:post_receive { region = sink, length = LONG }
      works[2] = pair:post_send { region = source, length = LONG }
      send_long(conn, function(at)
        return rdmap.send { payload = data:sub(at + 1, at + CUT), msn = op.msn, mo = at, last = at + CUT == LONG }
      end)
    else
      works[1] = pair:post_read { region = sink, length = LONG, stag = 7, to = 0 }
      local request = conn:expect_fpdu { opcode = 1 }
      local stag, to = string.unpack(">I4i8", request.payload)
      conn:send(mpa.fpdu {
        ulpdu = rdmap.read_request { sink_stag = 0x7766, rdmardsz = LONG, src_stag = source.stag, src_to = source.address },
      })
      send_long(conn, function(at)
        return rdmap.write { opcode = 2, stag = stag, tagged_offset = to + at, payload = data:sub(at + 1, at + CUT), last = at + CUT == LONG }
      end)
    end
    local got, other = receive(conn, p.verb == "send" and 3 or 2, ANSWER)
    t:check(got == pattern, {
      requirement = "DDP-5.2-3",
      expected = ("a message of %d bytes"):format(LONG),
      actual = got and octets.difference(got, pattern) or other,
      missing = not got,
    })
    -- The message of the target has arrived, so a missing completion of the second work request
    -- shows nothing about it.
    for nth, work in ipairs(works) do
      pair:expect_completion { work = work, requirement = nth == 1 and PLACED or nil, within = ANSWER, overdue_fails = true }
    end
    for at = 0, LONG - 1, 1 << 18 do
      local part = sink:get { offset = at, length = 1 << 18 }
      local want = data:sub(at + 1, at + (1 << 18))
      t:check(part == want, { requirement = PLACED, expected = "the bytes that were sent", actual = octets.difference(part, want) })
    end
    conn:reset()
  end,
}
