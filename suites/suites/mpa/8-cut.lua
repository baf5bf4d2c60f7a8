-- RFC 5044 section 8: the peer's FIN arrives in the middle of an FPDU, of a message, or of the
-- answer to the target's Read. The rest can never arrive. For MPA, this FIN is an error (code 1).
-- After an error, MPA delivers nothing more, so the connection is torn down. The target may send a
-- Terminate before. The cases of `rdmap/6.2-interrupted` judge whether the target delivers the
-- incomplete message.

--- The number of seconds after which a missing close is a failure.
local ANSWER = 10
--- The number of seconds between the last bytes and the FIN, if they arrive separately.
local PAUSE = 0.2

local ENDED = "MPA-8-15"

--- Receives what the target sends until the connection ends, or until nothing arrives for ANSWER
--- seconds. Returns the last event, the number of Terminates, and the number of other FPDUs.
local function receive(conn)
  local terminates, others = 0, 0
  while true do
    local event, fpdu = conn:next { within = ANSWER }
    if event == "octets" then
      -- The connection ends in the middle of an FPDU. Without these bytes, the next event is the
      -- end.
      conn:expect_octets { begins = "" }
    elseif event ~= "fpdu" then
      return event, terminates, others
    elseif fpdu.opcode == 7 then
      terminates = terminates + 1
    else
      others = others + 1
    end
  end
end

--- Sends a FIN, with `pause` after a pause, and checks that the target ends the connection.
local function finish(t, conn, pause)
  if pause then t:pause(PAUSE) end
  conn:finish()
  local event, terminates, others = receive(conn)
  t:check(others == 0, { expected = "no message except a Terminate", actual = others .. " other FPDUs" })
  t:check(event == "close", {
    requirement = ENDED,
    expected = "a close, because the rest of the message can never arrive",
    actual = (terminates > 0 and "a Terminate, then " or "") .. (event or "nothing, and the connection stays open"),
    missing = event == nil,
  })
  conn:reset()
end

--- Sends FPDUs. `place` has the number of complete FPDUs, and the number of bytes of the next FPDU.
local function send_until(conn, fpdus, place)
  local complete, cut = table.unpack(place)
  for nth = 1, complete do conn:send(fpdus[nth]) end
  if cut > 0 then conn:send(fpdus[complete + 1]:cut(cut)) end
end

--- The places of the FIN in a Send of three FPDUs, each with 1,024 bytes. 20 bytes of length and
--- header precede the payload. The last 4 bytes are the CRC.
local IN_SEND = {
  length = { 0, 1 }, header = { 0, 11 }, payload = { 0, 500 }, segment = { 2, 0 }, later = { 2, 500 }, crc = { 2, 1022 },
}

case {
  id = "mpa/8-cut/send",
  title = "The target ends a connection whose peer sends a FIN in the middle of a Send",
  requirements = { ENDED },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "send", "close", "segment" },
  tier = "default",
  parameters = { place = { "length", "header", "payload", "segment", "later", "crc" }, pause = { false, true } },

  run = function(t, p)
    t:good_exchange()
    local conn, op = t:operate()
    local payload, fpdus = octets.counted(3000), {}
    for at = 0, 2000, 1000 do
      local piece = payload:sub(at + 1, at + 1000)
      fpdus[#fpdus + 1] = mpa.fpdu { ulpdu = rdmap.send { payload = piece, msn = op.msn, mo = at, last = at == 2000 } }
    end
    send_until(conn, fpdus, IN_SEND[p.place])
    finish(t, conn, p.pause)
  end,
}

case {
  id = "mpa/8-cut/first",
  title = "The responder ends a connection whose peer sends a FIN in the middle of the first FPDU",
  requirements = { ENDED },
  capabilities = { "echo" },
  tags = { "send", "close", "startup" },
  tier = "default",
  -- The FPDU has 64 bytes.
  parameters = { cut = { 1, 11, 30, 62 }, pause = { false, true } },

  run = function(t, p)
    t:good_exchange()
    local conn = t:start_up()
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = ("w"):rep(40) } }:cut(p.cut))
    finish(t, conn, p.pause)
  end,
}

--- Distance in bytes from the first byte of ULPDU_Length to the marker (RFC 5044 Figure 4).
local MARKERS = { ["in-front"] = 0, ["in-header"] = 12, ["in-payload"] = 24 }

case {
  id = "mpa/8-cut/marker",
  title = "The target ends a connection whose peer sends a FIN in the middle of a marker",
  requirements = { ENDED },
  roles = { "responder", "initiator" },
  capabilities = { "asks-for-markers", "echo", "crc" },
  tags = { "send", "close", "markers" },
  tier = "default",
  parameters = { place = { "in-front", "in-header", "in-payload" } },

  run = function(t, p)
    t:good_exchange()
    local conn, frame = t:start_up { crc = true }
    t:check(frame.markers, { expected = "a start-up frame with M=1, as the target's file declares", actual = "M=0" })
    -- The first Send ends where the next FPDU has to begin. If it begins with a marker, it has 4
    -- more bytes. 24 bytes are length, header and CRC.
    local distance, position = MARKERS[p.place], conn:position()
    local start = position % 512 == 0 and position + 4 or position
    local fill = ("f"):rep(512 - distance - start - 24)
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = fill }, position = position })
    conn:expect_fpdu { payload = fill }
    local marked = mpa.fpdu { ulpdu = rdmap.send { payload = "weftweft", msn = 2 }, position = conn:position() }
    conn:send(marked:cut(distance + 2))
    finish(t, conn, false)
  end,
}

--- The places of the FIN in a Read Response, or in a Write, of two FPDUs with 52 bytes each. 16
--- bytes of length and header precede the payload. With `none`, the target's Read has no answer.
local IN_TAGGED = {
  none = { 0, 0 }, length = { 0, 1 }, header = { 0, 9 }, payload = { 0, 30 }, segment = { 1, 0 }, later = { 1, 30 }, crc = { 1, 50 },
}

--- Returns the two FPDUs of a Write, or of a Read Response (opcode 2).
local function tagged(opcode, stag, to)
  local fpdus = {}
  for nth = 1, 2 do
    local at = 32 * (nth - 1)
    fpdus[nth] = mpa.fpdu {
      ulpdu = rdmap.write { opcode = opcode, stag = stag, tagged_offset = to + at, payload = ("r"):rep(32), last = nth == 2 },
    }
  end
  return fpdus
end

case {
  id = "mpa/8-cut/response",
  title = "The target ends a connection whose peer sends a FIN before the Response to the target's Read is complete",
  requirements = { ENDED },
  capabilities = { "rping" },
  tags = { "read", "close", "segment" },
  tier = "default",
  parameters = { place = { "none", "length", "header", "payload", "segment", "later", "crc" }, pause = { false, true } },

  run = function(t, p)
    t:good_exchange()
    local conn = t:start_up()
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = string.pack(">I8I4I4", 0x1000, 0x77656601, 64) } })
    local request = conn:expect_fpdu { opcode = 1 }
    t:check(#request.payload == 28, { expected = "a Read Request of 28 bytes", actual = #request.payload .. " bytes" })
    local stag, to = string.unpack(">I4i8", request.payload)
    send_until(conn, tagged(2, stag, to), IN_TAGGED[p.place])
    finish(t, conn, p.pause)
  end,
}

case {
  id = "mpa/8-cut/write",
  title = "The target ends a connection whose peer sends a FIN in the middle of an FPDU with a part of a Write",
  requirements = { ENDED },
  capabilities = { "rping" },
  tags = { "write", "close", "segment" },
  tier = "default",
  parameters = { place = { "length", "header", "payload", "later", "crc" }, pause = { false, true } },

  run = function(t, p)
    t:good_exchange()
    local conn, op = t:operate()
    send_until(conn, tagged(0, op.stag, op.to), IN_TAGGED[p.place])
    finish(t, conn, p.pause)
  end,
}
