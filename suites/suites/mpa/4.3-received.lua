-- RFC 5044 sections 4.2, 4.3 and 8: markers in what a target receives that asked for them, M=1 in its start-up frame.

-- Where the marker stands, in octets from the first one of ULPDU_Length: in front of it, behind the first of the DDP header (Figure 4), in the payload,
-- and between the payload and the CRC. FPDUs begin at multiples of four, and so a marker cuts neither length field nor CRC.
local PLACES = { ["in-front"] = 0, ["in-header"] = 12, ["in-payload"] = 24, ["before-crc"] = 28 }

-- Octets of length field, DDP header and CRC.
local AROUND = 2 + 18 + 4

--- A connection to a target that has M=1, on which a first Send went there and back; the marker that comes next stands `distance` octets behind the
--- ULPDU_Length of the FPDU that comes next.
local function before_marker(t, distance)
  local conn, frame = t:start_up { crc = true }
  t:check(frame.markers, { expected = "a start-up frame with M=1, as the target's file declares", actual = "M=0" })
  local position = conn:position()
  -- The first Send begins with a marker where one is due, and ends where the next FPDU is to begin.
  local behind = position % 512 == 0 and position + 4 or position
  local fill = ("f"):rep(512 - distance - behind - AROUND)
  conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = fill }, position = position })
  conn:expect_fpdu { payload = fill }
  return conn
end

--- The Send that comes then, with a marker that has these fields.
local function marked(conn, fields)
  fields.ulpdu = rdmap.send { payload = "weftweft", msn = 2 }
  fields.position = conn:position()
  return mpa.fpdu(fields)
end

--- A case in which such a Send is taken: `changed` gives the marker's fields, and how the octets are sent, for a choice.
local function taken(name, title, requirements, parameter, values, changed)
  case {
    id = "mpa/4.3-received/" .. name,
    version = 1,
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
      local fields, how = changed(p, distance)
      how = how or {}
      how.deviates = true
      conn:send(marked(conn, fields), how)
      conn:expect_fpdu { requirement = requirements, payload = "weftweft" }
      conn:close()

      t:liveness()
    end,
  }
end

taken("reserved-half", "The first half of a marker means nothing to who receives it, but that the CRC covers it",
  { "MPA-4.2-3" }, "reserved", { 0x0001, 0x8000, 0xffff }, function(p)
    return { reserved = p.reserved }
  end)

taken("low-bits", "The two low bits of FPDUPTR count as zero for who receives them",
  { "MPA-4.2-6", "MPA-4.3-9" }, "bits", { 1, 2, 3 }, function(p, distance)
    return { fpduptr = distance | p.bits }
  end)

taken("cut", "An FPDU whose marker lies in two TCP segments is delivered without it",
  { "MPA-5.1-7", "MPA-A.4-1" }, "cut", { 1, 2, 3 }, function(p, distance)
    return {}, { cuts = { distance + p.cut }, pause = 0.05 }
  end)

case {
  id = "mpa/4.3-received/points-elsewhere",
  version = 1,
  title = "Who refuses a marker that points elsewhere, under a right CRC, tells error 3",
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
      t:unimplemented("The target does not check markers in segments that arrive in order, which section 8 leaves to it.")
    end
    local layer, code = answer.payload:byte(1, 2)
    t:check(layer == 0x20 and code == 3, {
      requirement = { "MPA-8-6", "RDMAP-4.8-34" },
      expected = "Terminate 20 03, or no refusal",
      actual = ("Terminate %02x %02x"):format(layer, code),
    })
    conn:close()

    t:liveness()
  end,
}
