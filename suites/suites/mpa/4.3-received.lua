-- RFC 5044 sections 4.2, 4.3 and 8: markers that a target receives after it requested them with M=1
-- in its start-up frame.

-- Each value is the distance in bytes from the first byte of ULPDU_Length to the marker. The marker
-- is before this byte, in the DDP header (RFC 5044 Figure 4), in the payload, or between payload
-- and CRC. FPDUs begin at multiples of four, so a marker splits neither the length field nor the
-- CRC.
local PLACES = { ["in-front"] = 0, ["in-header"] = 12, ["in-payload"] = 24, ["before-crc"] = 28 }

-- The number of bytes in length field, DDP header and CRC together.
local AROUND = 2 + 18 + 4

--- Connects to a target with M=1, and exchanges a first Send and its echo. The next marker is then
--- `distance` bytes after the ULPDU_Length of the next FPDU.
local function before_marker(t, distance)
  local conn, frame = t:start_up { crc = true }
  t:check(frame.markers, { expected = "a start-up frame with M=1, as the target's file declares", actual = "M=0" })
  local position = conn:position()
  -- The first Send begins with a marker if one is due, and ends where the next FPDU has to begin.
  local start = position % 512 == 0 and position + 4 or position
  local fill = ("f"):rep(512 - distance - start - AROUND)
  conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = fill }, position = position })
  conn:expect_fpdu { payload = fill }
  return conn
end

--- Returns the next Send, whose marker has these fields.
local function marked(conn, fields)
  fields.ulpdu = rdmap.send { payload = "weftweft", msn = 2 }
  fields.position = conn:position()
  return mpa.fpdu(fields)
end

--- Declares a case in which the target accepts a Send with a marker. `changed` returns the marker's
--- fields for a variant, and the options of `conn:send`.
local function accepted(name, title, requirements, parameter, values, changed)
  case {
    id = "mpa/4.3-received/" .. name,
    title = title,
    requirements = requirements,
    roles = { "responder", "initiator" },
    capabilities = { "asks-for-markers", "echo", "crc" },
    tags = { "fpdu", "markers" },
    parameters = { place = { "in-front", "in-header", "in-payload", "before-crc" }, [parameter] = values },

    run = function(t, p)
      t:good_exchange()

      local distance = PLACES[p.place]
      local conn = before_marker(t, distance)
      local fields, options = changed(p, distance)
      options = options or {}
      options.deviates = true
      conn:send(marked(conn, fields), options)
      conn:expect_fpdu { requirement = requirements, payload = "weftweft" }
      conn:close()
    end,
  }
end

accepted("reserved-half", "The target ignores the first half of a received marker, except that the CRC covers it",
  { "MPA-4.2-3" }, "reserved", { 0x0001, 0x8000, 0xffff }, function(p)
    return { reserved = p.reserved }
  end)

accepted("low-bits", "The target treats the two low bits of a received FPDUPTR as zero",
  { "MPA-4.2-6", "MPA-4.3-9" }, "bits", { 1, 2, 3 }, function(p, distance)
    return { fpduptr = distance | p.bits }
  end)

accepted("cut", "The target removes a marker that is split over two TCP segments, and delivers the rest of the FPDU",
  { "MPA-5.1-7", "MPA-A.4-1" }, "cut", { 1, 2, 3 }, function(p, distance)
    return {}, { cuts = { distance + p.cut }, pause = 0.05 }
  end)

-- TCP's sequence number wraps to 0 at the second byte of ULPDU_Length, or at the marker. No step is
-- marked as unusual, because all of the tester's messages are normal.
case {
  id = "mpa/4.3-received/wrap",
  title = "The target accepts a marker if TCP's sequence number wraps between the FPDU's header and the marker",
  requirements = { "MPA-4.3-6" },
  capabilities = { "asks-for-markers", "echo", "crc", "segments" },
  tags = { "fpdu", "markers", "segments" },
  parameters = { place = { "in-header", "in-payload", "before-crc" }, wrap = { "header", "marker" } },

  run = function(t, p)
    t:good_exchange()

    local distance = PLACES[p.place]
    local request = t:request { crc = true }
    -- The position in the stream of the byte with the sequence number 0.
    local position = p.wrap == "header" and 512 - distance + 1 or 512
    t:first_sequence(0x100000000 - #request - position)
    local conn = before_marker(t, distance)
    conn:send(marked(conn, {}))
    conn:expect_fpdu { requirement = "MPA-4.3-6", payload = "weftweft", overdue_fails = true }
    conn:close()
  end,
}

case {
  id = "mpa/4.3-received/points-elsewhere",
  version = 2,
  title = "The target sends error 3 if it rejects a marker with a wrong pointer and a correct CRC",
  requirements = { "MPA-8-6", "RDMAP-4.8-34" },
  roles = { "responder", "initiator" },
  capabilities = { "asks-for-markers", "echo", "crc" },
  tags = { "fpdu", "markers", "terminate", "refusal" },
  parameters = { place = { "in-front", "in-header", "in-payload", "before-crc" }, off = { 4, 512 } },

  run = function(t, p)
    t:good_exchange()

    local distance = PLACES[p.place]
    local conn = before_marker(t, distance)
    conn:send(marked(conn, { fpduptr = distance + p.off }), { deviates = true })
    local answer = conn:expect_fpdu {}
    if answer.opcode ~= 7 then
      conn:close()
      t:unimplemented("The target does not check markers in segments that arrive in order. Section 8 of RFC 5044 allows this.")
    end
    local layer, code = answer.payload:byte(1, 2)
    t:check(layer == 0x20 and code == 3, {
      requirement = { "MPA-8-6", "RDMAP-4.8-34" },
      expected = "Terminate 20 03, or no rejection",
      actual = ("Terminate %02x %02x"):format(layer, code),
    })
    conn:close()
  end,
}

-- The target must ignore the first half of a marker, but the CRC covers this half, too. So a target
-- that computes the CRC without the markers does not notice the wrong byte.
case {
  id = "mpa/4.3-received/damaged",
  title = "The target rejects an FPDU if a byte of a marker is wrong and the CRC is that of the correct marker",
  requirements = { "MPA-8-2", "MPA-4.4-19", "MPA-4.4-20" },
  roles = { "responder", "initiator" },
  capabilities = { "asks-for-markers", "echo", "crc" },
  tags = { "fpdu", "markers", "crc", "refusal" },
  parameters = { place = { "in-front", "in-header", "in-payload", "before-crc" }, octet = { 0, 1 } },

  run = function(t, p)
    t:good_exchange()

    local distance = PLACES[p.place]
    local conn = before_marker(t, distance)
    conn:send(marked(conn, {}):flip(distance + p.octet), { deviates = true })
    local rows = { "MPA-8-2", "MPA-4.4-19", "MPA-4.4-20" }
    local event, fpdu = conn:next { within = 5 }
    local is_terminate = event == "fpdu" and fpdu.opcode == 7
    -- A target that only drops the FPDU has compared the CRC, but reports no error.
    t:check(is_terminate or event == "close", {
      requirement = event and rows or { "MPA-8-2", "MPA-4.4-20" },
      expected = "a close, or a Terminate", actual = session.describe(event, fpdu, 5),
    })
    if is_terminate then conn:expect_close() end
    t:check(true, { requirement = rows, expected = "a rejection", actual = "no rejection" })
    conn:reset()
  end,
}
