-- RFC 5044 sections 4.3 and 7.1.1, M: every sender can insert markers, and does so for a peer that
-- requests them. In the cases `to-target`, the target requests markers.

case {
  id = "mpa/4.3-markers/requested",
  title = "The responder accepts a Request with M=1",
  requirements = { "MPA-4.3-3", "MPA-7.1.1-6" },
  tags = { "startup", "markers" },

  run = function(t)
    t:good_exchange()

    local conn = t:connect()
    conn:send(t:request { markers = true })
    conn:expect_reply { requirement = { "MPA-4.3-3", "MPA-7.1.1-6" }, reject = false }
    conn:close()
  end,
}

case {
  id = "mpa/4.3-markers/first",
  version = 2,
  title = "The responder begins with a marker of zero after M=1, and inserts later markers at the right positions",
  requirements = {
    "MPA-7.1.1-9", "MPA-4.3-10", "MPA-4.3-11", "MPA-7.1.2-21", "MPA-4.2-1", "MPA-4.2-2", "MPA-4.2-4", "MPA-4.2-5", "MPA-4.3-4",
    "MPA-4.3-1", "MPA-4.4-17",
  },
  capabilities = { "markers", "echo", "crc" },
  tags = { "fpdu", "markers" },
  parameters = { payload = { 4, 480, 600, 1200 } },

  run = function(t, p)
    t:good_exchange()

    local conn = t:connect()
    conn:send(t:request { markers = true })
    conn:expect_reply { reject = false }
    t:pause(0.2)
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = ("w"):rep(p.payload) } })
    -- The tester has removed the first four bytes. If they are not a marker, the other bytes are not
    -- the echo.
    local event, fpdu = conn:next {}
    t:check(event, { expected = "an echo", actual = "nothing" })
    t:check(event == "fpdu" and fpdu.opcode == 3 and fpdu.payload:byte(1) == 0x77, {
      requirement = { "MPA-7.1.1-9", "MPA-4.3-10", "MPA-7.1.2-21" },
      expected = "a marker, and then the echo",
      actual = event == "close" and "a close" or "an FPDU without a marker before it",
    })
    -- The monitor judges these requirements in each marker.
    local shown = { "MPA-4.3-11", "MPA-4.2-1", "MPA-4.2-2", "MPA-4.2-4", "MPA-4.2-5", "MPA-4.3-4", "MPA-4.3-1", "MPA-4.4-17" }
    t:check(true, { requirement = shown, expected = "correct markers", actual = "other markers" })
    conn:close()
  end,
}

-- In the data without markers, a marker comes after each 508 bytes. Markers are at multiples of
-- four bytes, so a marker has 127 possible positions. 127 is a prime number, so in 127 FPDUs of one
-- length the marker is at every position: in front of the FPDU, in each header, in the payload, and
-- between PAD and CRC. In the first FPDU of a connection, the marker in front of the FPDU is not
-- between two FPDUs. It is between two FPDUs again in front of FPDU 128.
local POSITIONS = 128

--- The monitor judges these requirements in each FPDU with a marker.
local MARKED = {
  "MPA-4.2-1", "MPA-4.2-2", "MPA-4.2-4", "MPA-4.2-5", "MPA-4.3-1", "MPA-4.3-4", "MPA-4.3-5", "MPA-4.3-7", "MPA-4.3-11", "MPA-4.3-14",
  "MPA-4.3-15", "MPA-4.3-16", "MPA-4.4-17",
}
--- These requirements, and the one that the monitor judges in an FPDU with several markers.
local SEVERAL = { "MPA-4.3-13", table.unpack(MARKED) }

--- The sizes in bytes of the Sends of a sweep.
local SIZES = { 4, 5, 1100 }

--- Sends Sends with a marker at each position. An FPDU with 1100 bytes of payload contains two or
--- three markers. Together, the FPDUs of this length have more than 128 KiB. The short FPDUs at the
--- end have more than 512 bytes together, so that a marker is in one of several FPDUs of an
--- interval.
local function sends(s, p)
  for _ = 1, POSITIONS do s:send(1, { size = p.size }) end
  s:send(1, { size = 1100 })
  for _ = 1, 20 do s:send(1, { size = 4 }) end
end

--- Declares a case in which a marker is at each position of the FPDUs that the target sends. If the
--- target requests markers, a marker is also at each position of the FPDUs that the target
--- receives.
local function sweep(service, what, roles, parameters, shown, rows, run)
  case {
    id = "mpa/4.3-markers/sweep-" .. service,
    version = 3,
    title = "The target inserts correct markers at all positions of " .. what,
    requirements = { session[service:upper()], shown, rows },
    roles = roles,
    capabilities = { "markers", "crc", service },
    tags = { "fpdu", "markers" },
    parameters = parameters,

    run = function(t, p)
      local s = session[service](t)
      s:open(1, { markers = true })
      run(s, p)
      s:finish(shown)
    end,
  }
end

sweep("echo", "its Sends", { "responder", "initiator" }, { size = SIZES }, SEVERAL, {}, sends)

sweep("rping", "its Read Responses, Read Requests and Writes", { "responder" }, {}, MARKED, session.ROUNDS, function(s)
  for _ = 1, POSITIONS do s:read(1, { at = 0, size = 40 }) end
  s:rounds(1, POSITIONS, { size = 31 })
end)

--- Each Read Request is answered with the bytes of the buffer. A Write places its bytes there.
local ANSWERED, PLACED = "RDMAP-5.2.1-18", "DDP-5.2-4"

--- Reads `size` bytes from the beginning of rping's buffer, and expects `data`. `op` is the second
--- result of `t:operate`.
local function read_back(t, conn, op, msn, data)
  conn:send(mpa.fpdu {
    ulpdu = rdmap.read_request { sink_stag = 0x7766, rdmardsz = #data, src_stag = op.stag, src_to = op.to, msn = msn },
  })
  local got, event, fpdu = {}, nil, nil
  repeat
    event, fpdu = conn:next { within = 10 }
    t:check(event == "fpdu" and fpdu.opcode == 2, {
      requirement = ANSWERED,
      expected = ("the Response to a Read of %d bytes"):format(#data),
      actual = session.describe(event, fpdu),
      missing = event ~= "fpdu",
    })
    got[#got + 1] = fpdu.payload
  until fpdu.last
  local response = table.concat(got)
  t:check(response == data, { requirement = PLACED, expected = "the bytes of the buffer", actual = octets.difference(response, data) })
end

case {
  id = "mpa/4.3-markers/sweep-rping-client",
  title = "The initiator inserts correct markers at all positions of its Read Responses",
  requirements = { ANSWERED, PLACED, MARKED },
  roles = { "initiator" },
  capabilities = { "markers", "crc", "rping" },
  tags = { "fpdu", "markers" },

  run = function(t)
    t:good_exchange()

    local conn, op = t:operate { markers = true }
    local data = session.fill_buffer(conn, op, 40)
    for msn = 1, POSITIONS do read_back(t, conn, op, msn, data) end
    t:check(true, { requirement = MARKED, expected = "correct markers", actual = "other markers" })
    conn:close()
  end,
}

--- Declares a case in which a marker is at each position of the FPDUs that the target receives.
--- The tester need not request markers itself.
local function to_target(name, title, service, rows, roles, parameters, run)
  case {
    id = "mpa/4.3-markers/to-target-" .. name,
    title = title,
    requirements = rows,
    roles = roles,
    capabilities = { "asks-for-markers", "crc", service },
    tags = { "fpdu", "markers" },
    parameters = parameters,

    run = function(t, p)
      local conn = t:start_up()
      local is_marked = conn:marked_position(false) ~= nil
      conn:close()
      t:check(is_marked, { expected = "a start-up frame with M=1, as the target's file declares", actual = "M=0" })
      run(t, p)
    end,
  }
end

to_target("echo", "The target delivers Sends with a marker at every position of their FPDUs", "echo", session.ECHO,
  { "responder", "initiator" }, { size = SIZES }, function(t, p)
  local s = session.echo(t)
  sends(s, p)
  s:finish()
end)

-- The FPDU of a Write with 31 bytes and the FPDU of a Read Request have 13 words each. 26 is not a
-- multiple of 127, so a marker is at every position of both.
to_target("writes", "The target places Writes and answers Read Requests with a marker at every position of their FPDUs", "rping",
  { ANSWERED, PLACED }, { "responder", "initiator" }, {}, function(t)
  t:good_exchange()

  local conn, op = t:operate()
  for msn = 1, POSITIONS do
    -- Each Write has other bytes than the Write before it.
    local data = (string.pack(">I4", msn) .. octets.counted(31)):sub(1, 31)
    conn:send(mpa.fpdu { ulpdu = rdmap.write { stag = op.stag, tagged_offset = op.to, payload = data } })
    read_back(t, conn, op, msn, data)
  end
  conn:close()
end)

-- In each round, the Send, the Read Response and the second Send have 33 words together.
to_target("rounds", "The responder reads from the tester and writes to it, with a marker at every position of the FPDUs that it receives",
  "rping", { session.RPING, session.ROUNDS }, { "responder" }, {}, function(t)
  local s = session.rping(t)
  s:rounds(1, POSITIONS, { size = 31 })
  s:finish()
end)

--- Declares a case in which a marker is inside a Terminate of the target, or directly before it.
--- `distances` has the number of bytes from the start of the FPDU to the marker. `illegal` returns
--- the FPDU that the target has to reject.
local function in_terminate(name, what, distances, illegal)
  local shown = { "MPA-7.1.1-9", "MPA-4.3-4", "MPA-4.3-1", "MPA-4.2-1", "MPA-4.2-2", "MPA-4.2-5" }
  return {
    id = "mpa/4.3-markers/" .. name,
    version = 2,
    title = "The target inserts a correct marker at any position of its Terminate for " .. what,
    requirements = shown,
    roles = { "responder", "initiator" },
    capabilities = { "markers", "crc", "echo" },
    tags = { "fpdu", "markers", "terminate" },
    parameters = { distance = distances },

    run = function(t, p)
      t:good_exchange()

      local conn = t:start_up { markers = true, crc = true }
      -- The echo of this Send has 24 bytes in addition to the payload, and no PAD. It must end
      -- `distance` bytes before a marker. An initiator has already sent a Send.
      local from = conn:marked_position(true) % 512
      -- If a marker is due now, it is before the FPDU of the echo.
      if from == 0 then from = 4 end
      local size = 512 - p.distance - 24 - from
      -- If the echo does not fit before the next marker, it contains this marker.
      if size < 0 then size = size + 512 - 4 end
      local payload = octets.counted(size)
      conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = payload } })
      local echo = conn:expect_fpdu { opcode = 3 }
      if not echo.last then
        conn:reset()
        t:unimplemented(("The target does not send %d bytes in one segment."):format(#payload))
      end
      conn:send(illegal, { deviates = true })
      local event, fpdu = conn:next { within = 10 }
      if event == "close" then t:unimplemented("The target closes the connection and sends no Terminate.") end
      -- The tester has removed the four bytes at the position of the marker. If the marker is
      -- missing, the other bytes are not a Terminate. The monitor judges the marker.
      local actual = event == "fpdu" and ("an FPDU with opcode %d"):format(fpdu.opcode) or event or "nothing"
      t:check(event == "fpdu" and fpdu.opcode == 7, { expected = "a Terminate", actual = actual })
      t:check(true, { requirement = shown, expected = "a correct marker", actual = "another marker" })
      conn:reset()
    end,
  }
end

-- The FPDU of the Terminate has 48 bytes. The marker is before the FPDU, in the headers of DDP and
-- of the Terminate, in the copied header, or between PAD and CRC.
case(in_terminate("in-terminate", "an error of DDP", { 0, 4, 12, 24, 40, 44 },
  mpa.fpdu { ulpdu = rdmap.send { payload = "weft", qn = 77, msn = 2 } }))

-- The FPDU of the Terminate has 28 bytes.
case(in_terminate("in-llp-terminate", "a wrong CRC", { 0, 4, 12, 20, 24 },
  mpa.fpdu { ulpdu = rdmap.send { payload = "weft", msn = 2 } }:flip(27)))
