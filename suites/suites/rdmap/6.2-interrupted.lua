-- RFC 5040 sections 5.4, 6.2 and 7, RFC 5041 section 6.2: a connection ends in the middle of a
-- message. The tester ends it with a FIN, a reset, a Terminate or an illegal FPDU.

--- Size in bytes of the tester's receive buffer. TCP accepts only a part of a longer message before
--- the tester reads. So the target is still sending the message when the connection ends.
local BUFFER = 4096

--- The number of seconds after which a missing close or a missing message is a failure.
local ANSWER = 10
--- The number of seconds in which a message that must not be delivered would be delivered.
local SILENCE = 2

local SINK = 0x7766

local TERMINATE = mpa.fpdu { ulpdu = rdmap.send { opcode = 7, qn = 2, msn = 1, payload = "\0\0\0\0" } }

--- Returns an FPDU with an invalid queue number.
local function illegal(op) return mpa.fpdu { ulpdu = rdmap.send { payload = "weft", qn = 77, msn = op.msn } } end

--- Receives what the target sends, until the connection ends or until nothing arrives for `within`
--- seconds. `each` gets every FPDU that is not a Terminate. If `each` returns true, the function
--- returns. The result has the last event, the number of Terminates, and the number of other FPDUs
--- after the first Terminate.
local function receive(conn, within, each)
  local result = { terminates = 0, after = 0 }
  while true do
    local event, fpdu = conn:next { within = within }
    result.event = event
    if event == "octets" then
      -- The connection ends in the middle of an FPDU. Without these bytes, the next event is the
      -- end.
      conn:expect_octets { begins = "" }
    elseif event ~= "fpdu" then
      return result
    elseif fpdu.opcode == 7 then
      result.terminates = result.terminates + 1
    elseif result.terminates > 0 then
      result.after = result.after + 1
    elseif each(fpdu) then
      return result
    end
  end
end

--- Describes the end of a connection.
local function describe(result)
  local terminate = result.terminates > 0 and "a Terminate, then " or ""
  return terminate .. (result.event or "nothing, and the connection stays open")
end

--- Checks that the target has closed the connection.
local function check_close(t, result, requirement)
  t:check(result.event == "close", {
    requirement = requirement, expected = "a close", actual = describe(result), missing = result.event == nil,
  })
end

local LAST = "RDMAP-5.4-12"

--- Checks that the target has sent one Terminate at most, and nothing after it.
local function check_last(t, result)
  t:check(result.terminates <= 1 and result.after == 0, {
    requirement = LAST,
    expected = "one Terminate at most, and no message after it",
    actual = ("%d Terminates, and %d other messages after the first"):format(result.terminates, result.after),
  })
end

local ANSWERED = "RDMAP-5.2.1-18"

--- Opens a connection and fills rping's buffer. Returns the connection, its parameters, a Read
--- Request for the buffer, and a record of the Read Response. The record checks each FPDU: the FPDU
--- has to be the next part of the Response.
local function open(t)
  local conn, op = t:operate()
  local data = session.fill_buffer(conn, op, op.length)
  local request = mpa.fpdu {
    ulpdu = rdmap.read_request { sink_stag = SINK, rdmardsz = #data, src_stag = op.stag, src_to = op.to },
  }
  local response = { octets = 0, is_complete = false }
  function response.add(fpdu)
    local at = response.octets
    local is_next = fpdu.opcode == 2 and (fpdu.payload == "" or fpdu.stag == SINK and fpdu.tagged_offset == at)
    local want = data:sub(at + 1, at + #fpdu.payload)
    t:check(is_next and fpdu.payload == want, {
      requirement = ANSWERED,
      expected = ("the bytes of the buffer from offset %d"):format(at),
      actual = is_next and octets.difference(fpdu.payload, want) or ("an FPDU with opcode %d and another offset"):format(fpdu.opcode),
    })
    response.octets = at + #fpdu.payload
    response.is_complete = fpdu.last and response.octets == #data
    return response.is_complete
  end
  return conn, op, request, response
end

--- Declares a case in which the connection ends while the target answers a Read. `stop` sends the
--- Read Request, ends the connection, and checks the target's end. After this, the target has to
--- answer a Read on a new connection.
local function read(name, title, requirements, stop)
  case {
    id = "rdmap/6.2-interrupted/read-" .. name,
    title = title,
    requirements = { ANSWERED, requirements },
    capabilities = { "rping" },
    tags = { "read", "close" },

    run = function(t)
      t:good_exchange()
      t:receive_buffer(BUFFER)
      local conn, op, request, response = open(t)
      stop(t, conn, op, request, response)
      conn:reset()

      local second, _, again, answer = open(t)
      second:send(again)
      local result = receive(second, ANSWER, answer.add)
      t:check(answer.is_complete, {
        requirement = ANSWERED,
        expected = "a complete Read Response on a new connection",
        actual = ("%d bytes, then %s"):format(answer.octets, describe(result)),
        missing = result.event == nil,
      })
      second:close()
    end,
  }
end

-- RFC 5041 section 6.2.1: the half-closed target continues to send. But the verbs draft
-- (draft-hilland-rddp-verbs section 6.2.2.4) requires a Terminate, so a Terminate is not a failure.
read("fin", "A target that answers a Read when the peer's FIN arrives completes the Read Response, or sends a Terminate",
  "DDP-6.2.1-6", function(t, conn, _, request, response)
  conn:send(request)
  conn:finish()
  local result = receive(conn, ANSWER, response.add)
  t:check(response.is_complete or result.terminates > 0, {
    requirement = "DDP-6.2.1-6",
    expected = "the complete Read Response, or a Terminate",
    actual = ("%d bytes of the Read Response, then %s"):format(response.octets, describe(result)),
    missing = result.event == nil,
  })
end)

read("reset", "The target still works if the peer resets the connection during a Read", {}, function(_, conn, _, request)
  conn:send(request)
  conn:reset()
end)

read("terminate", "A target that answers a Read closes TCP when the peer's Terminate arrives", "RDMAP-5.4-4",
  function(t, conn, _, request, response)
  conn:send(request .. TERMINATE, { deviates = true })
  -- The target may send or drop the rest of the Read Response (RFC 5040 section 5.4).
  local result = receive(conn, ANSWER, function(fpdu) response.add(fpdu) end)
  check_close(t, result, "RDMAP-5.4-4")
end)

read("fault", "A target that answers a Read sends nothing after its Terminate for a later FPDU, and closes TCP",
  { LAST, "RDMAP-7-3" }, function(t, conn, op, request, response)
  conn:send(request .. illegal(op), { deviates = true })
  local result = receive(conn, ANSWER, function(fpdu) response.add(fpdu) end)
  check_last(t, result)
  check_close(t, result, "RDMAP-7-3")
end)

local EARLY, COMPLETES = "RDMAP-5.5-21", "RDMAP-5.5-23"

--- Declares a case in which the tester ends the connection in the middle of its Read Response.
--- rping's server sends a Send after each completed Read. So this Send must not arrive.
local function response(name, title, requirements, stop)
  case {
    id = "rdmap/6.2-interrupted/response-" .. name,
    title = title,
    requirements = { COMPLETES, requirements },
    capabilities = { "rping" },
    tags = { "read", "close" },

    run = function(t)
      local conn = t:start_up()
      conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = string.pack(">I8I4I4", 0x1000, 0x77656601, 64) } })
      local request = conn:expect_fpdu { opcode = 1 }
      t:check(#request.payload == 28, { expected = "a Read Request of 28 bytes", actual = #request.payload .. " bytes" })
      local stag, to = string.unpack(">I4i8", request.payload)
      local half = rdmap.write { opcode = 2, stag = stag, tagged_offset = to, payload = ("r"):rep(32), last = false }
      stop(t, conn, mpa.fpdu { ulpdu = half })
      conn:reset()
      -- In this exchange, the target completes another Read.
      t:liveness { requirement = COMPLETES }
    end,
  }
end

--- Checks that the target did not complete the Read.
local function check_incomplete(t, sends)
  t:check(sends == 0, {
    requirement = EARLY, expected = "no Send, because the Read is not complete", actual = sends .. " Sends",
  })
end

response("fin", "The target does not complete a Read if a FIN arrives in the middle of the Read Response", EARLY,
  function(t, conn, half)
  local sends = 0
  conn:send(half)
  conn:finish()
  receive(conn, SILENCE, function() sends = sends + 1 end)
  check_incomplete(t, sends)
end)

response("terminate", "The target closes TCP if a Terminate arrives in the middle of a Read Response, and does not complete the Read",
  { EARLY, "RDMAP-5.4-4" }, function(t, conn, half)
  local sends = 0
  conn:send(half .. TERMINATE, { deviates = true })
  local result = receive(conn, ANSWER, function() sends = sends + 1 end)
  check_incomplete(t, sends)
  check_close(t, result, "RDMAP-5.4-4")
end)

response("reset", "The target still completes Reads if the peer resets a connection in the middle of a Read Response", {},
  function(_, conn, half)
  conn:send(half)
  conn:reset()
end)

--- Returns the FPDUs of a Send of `size` bytes, in segments of 1,000 bytes, and its payload.
local function send_of(op, size)
  local payload, fpdus = octets.counted(size), {}
  for at = 0, size - 1, 1000 do
    local piece = payload:sub(at + 1, at + 1000)
    fpdus[#fpdus + 1] = mpa.fpdu { ulpdu = rdmap.send { payload = piece, msn = op.msn, mo = at, last = at + #piece == size } }
  end
  return fpdus, payload
end

local UNFINISHED = { "DDP-5.4-2", "MPA-6-7" }

--- Checks that the target did not deliver the Send. An echo violates `requirement`.
local function check_undelivered(t, echoes, requirement)
  t:check(echoes == 0, {
    requirement = requirement, expected = "no echo, because the Send is not complete", actual = echoes .. " FPDUs of an echo",
  })
end

case {
  id = "rdmap/6.2-interrupted/send-fin",
  version = 2,
  title = "The target does not deliver a Send if a FIN arrives in the middle of it",
  requirements = UNFINISHED,
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "send", "close", "segment" },
  -- The FIN comes between two FPDUs, before the last byte of the CRC field, or after the first byte
  -- of an FPDU.
  parameters = { place = { "segment", "crc", "length" } },

  run = function(t, p)
    t:good_exchange()
    local conn, op = t:operate()
    local fpdus, echoes, echoed = send_of(op, 3000), 0, 0
    local cut = ({ segment = 0, crc = #fpdus[3] - 1, length = 1 })[p.place]
    conn:send(fpdus[1])
    conn:send(fpdus[2])
    if cut > 0 then conn:send(fpdus[3]:cut(cut)) end
    conn:finish()
    receive(conn, SILENCE, function(fpdu) echoes, echoed = echoes + 1, echoed + #fpdu.payload end)
    -- If the echo has all bytes, the target used the incomplete FPDU. Otherwise, it delivered the
    -- Send without its last segment.
    local row = echoed == 3000 and "MPA-6-7" or "DDP-5.4-2"
    check_undelivered(t, echoes, echoes == 0 and UNFINISHED or row)
    conn:reset()
  end,
}

case {
  id = "rdmap/6.2-interrupted/send-terminate",
  version = 2,
  title = "The target closes TCP if a Terminate arrives in the middle of a Send, and does not deliver the Send",
  requirements = { "DDP-5.4-2", "RDMAP-5.4-4" },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "send", "terminate", "segment" },

  run = function(t)
    t:good_exchange()
    local conn, op = t:operate()
    local fpdus, echoes = send_of(op, 3000), 0
    conn:send(fpdus[1], { deviates = true })
    conn:send(fpdus[2] .. TERMINATE, { deviates = true })
    local result = receive(conn, ANSWER, function() echoes = echoes + 1 end)
    check_undelivered(t, echoes, "DDP-5.4-2")
    check_close(t, result, "RDMAP-5.4-4")
  end,
}

case {
  id = "rdmap/6.2-interrupted/crossing",
  title = "The target sends one Terminate at most and closes TCP, if the peer's FIN or Terminate follows an illegal FPDU",
  requirements = { LAST, "RDMAP-7-3" },
  roles = { "responder", "initiator" },
  capabilities = { "operation" },
  tags = { "terminate", "refusal", "close" },
  parameters = { ends = { "fin", "terminate" } },

  run = function(t, p)
    t:good_exchange()
    local conn, op = t:operate()
    conn:send(p.ends == "fin" and illegal(op) or illegal(op) .. TERMINATE, { deviates = true })
    if p.ends == "fin" then conn:finish() end
    local result = receive(conn, ANSWER, function() end)
    check_last(t, result)
    check_close(t, result, "RDMAP-7-3")
  end,
}

local HALF_CLOSED = { "DDP-6.2.1-6", "DDP-6.2.1-1" }

-- RFC 5041 section 6.2.1: the half-closed target continues to send. If its user then ends the
-- connection, the target first sends all data. As in the case above, a Terminate is not a failure.
case {
  id = "rdmap/6.2-interrupted/echo-fin",
  title = "A target that sends a message when the peer's FIN arrives completes the message, or sends a Terminate",
  requirements = HALF_CLOSED,
  capabilities = { "echo" },
  tags = { "send", "close" },

  run = function(t)
    t:good_exchange()
    -- The window is smaller than an FPDU. So the target is still sending the echo when its first
    -- FPDU arrives.
    t:receive_buffer(BUFFER // 4)
    local conn, op = t:operate()
    local fpdus, payload = send_of(op, 4000)
    for _, fpdu in ipairs(fpdus) do conn:send(fpdu) end
    -- The first FPDU shows that the target's user has posted the echo.
    local first = conn:expect_fpdu { opcode = 3 }
    conn:finish()
    local echo, is_complete, result = first.payload, first.last, { terminates = 0 }
    if not is_complete then
      result = receive(conn, ANSWER, function(fpdu)
        echo, is_complete = echo .. fpdu.payload, fpdu.last
        return is_complete
      end)
    end
    t:check(is_complete and echo == payload or result.terminates > 0, {
      requirement = HALF_CLOSED,
      expected = "the complete echo, or a Terminate",
      actual = ("%d bytes of the echo, then %s"):format(#echo, describe(result)),
      missing = result.event == nil,
    })
    conn:reset()
  end,
}

--- Payload bytes of the Sends of a long backlog, and the number of these Sends that are sent at
--- once. A message of a script has at most 1 MiB.
local SEND, AT_ONCE = 16000, 62
--- The number of seconds after a long backlog in which the tester reads nothing. In this time, the
--- target receives the backlog and fills the buffers of TCP with echoes.
local BACKLOG_WAIT = 3
--- Payload bytes of all Sends of a backlog. The first two sizes are those of a single Send. A
--- target may reject a Send of such a size, and then sends its Terminate for this Send. TCP of a
--- target on this machine accepts only about 3 MB of the last size before the tester reads.
local BACKLOGS = { 4000, 60000, 3900000 }
--- Over Ethernet, TCP accepts much less, so a shorter backlog is enough. If the target stops
--- reading because it cannot send, TCP of both sides still accepts the Sends of such a backlog.
local SEGMENTS = 160

--- Sends Sends with `size` bytes in total, and then the FPDU that `last` returns for the next MSN.
--- The tester reads nothing meanwhile. So the target still has echoes to send when the last FPDU
--- arrives.
local function send_backlog(conn, op, size, last)
  local each = size <= BACKLOGS[2] and size or SEND
  local joined, sends, msn = nil, 0, op.msn
  for _ = 1, size, each do
    local send
    for _, fpdu in ipairs((send_of({ msn = msn }, each))) do send = send and send .. fpdu or fpdu end
    joined, sends, msn = joined and joined .. send or send, sends + 1, msn + 1
    if sends == AT_ONCE then
      conn:send(joined, { deviates = true })
      joined, sends = nil, 0
    end
  end
  conn:send(joined and joined .. last(msn) or last(msn), { deviates = true })
end

--- A target violates this requirement if it cuts an FPDU and then sends a Terminate or a FIN. The
--- monitor judges the requirement, because it distinguishes a FIN from a reset. After a reset, the
--- end of an FPDU may be missing.
local FRAMED = "MPA-4.1-1"

--- Sends a backlog, and then an FPDU that the target has to reject. Returns the end of the
--- connection. `start_up` has fields of the tester's start-up frame. `each` gets the FPDUs of the
--- echoes.
local function end_in_backlog(t, size, start_up, last, each)
  t:good_exchange()
  size = math.min(size, SEGMENTS * t:max_segment())
  t:receive_buffer(BUFFER)
  local conn, op = t:operate(start_up)
  send_backlog(conn, op, size, last)
  if size > BACKLOGS[2] then t:pause(BACKLOG_WAIT) end
  return receive(conn, ANSWER, each)
end

--- Notes that all bytes before the end were FPDUs.
local function note_framing(t)
  t:check(true, { requirement = FRAMED, expected = "complete FPDUs until the FIN or the reset", actual = "other bytes" })
end

case {
  id = "rdmap/6.2-interrupted/echo-fault",
  version = 2,
  title = "A target that sends long messages sends nothing after its Terminate, closes TCP, and cuts no FPDU",
  requirements = { LAST, "RDMAP-7-3", FRAMED },
  capabilities = { "echo" },
  tags = { "send", "terminate", "refusal" },
  parameters = { size = BACKLOGS },

  run = function(t, p)
    local result = end_in_backlog(t, p.size, nil, function(msn) return illegal { msn = msn } end, function() end)
    check_last(t, result)
    check_close(t, result, "RDMAP-7-3")
    note_framing(t)
  end,
}

local CLOSED, CHECKED, CRC = { "RDMAP-7-3", "MPA-8-15" }, "MPA-4.4-19", "MPA-4.1-6"

case {
  id = "rdmap/6.2-interrupted/echo-wrong-crc",
  title = "A target that sends long messages rejects a wrong CRC, sends nothing after its Terminate, closes TCP, and cuts no FPDU",
  requirements = { LAST, CLOSED, CHECKED, CRC, FRAMED },
  capabilities = { "echo", "crc" },
  tags = { "send", "terminate", "refusal", "crc" },
  parameters = { size = BACKLOGS },

  run = function(t, p)
    local function wrong_crc(msn) return mpa.fpdu { ulpdu = rdmap.send { payload = "evil", msn = msn } }:flip(27) end
    local right, delivered = true, false
    local result = end_in_backlog(t, p.size, { crc = true }, wrong_crc, function(fpdu)
      right, delivered = right and fpdu.crc_is_right, delivered or fpdu.payload == "evil"
    end)
    -- If the target has cut an FPDU, the next bytes are taken for the rest of this FPDU.
    t:check(right, { requirement = CRC, expected = "a correct CRC in each FPDU", actual = "a wrong CRC" })
    t:check(not delivered, { requirement = CHECKED, expected = "no echo of the Send with a wrong CRC", actual = "its echo" })
    check_last(t, result)
    check_close(t, result, CLOSED)
    note_framing(t)
  end,
}
