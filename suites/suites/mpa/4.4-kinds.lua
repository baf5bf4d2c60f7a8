-- RFC 5044 section 4.4: a wrong CRC in each kind of FPDU. MPA checks the CRC before it passes the
-- ULPDU on, so no other layer may react to the ULPDU.

--- Declares a case that sends one FPDU with a wrong CRC after correct FPDUs. `declared` has the
--- other fields of the case.
local function wrong(name, service, kinds, declared)
  local requirements = session.requirements(session[service:upper()], kinds[1])
  declared.id = "mpa/4.4-kinds/" .. name
  declared.requirements = requirements
  declared.capabilities = { "crc", service }
  declared.tags = { "fpdu", "crc" }
  declared.parameters = { kind = kinds }

  declared.run = function(t, p)
    if p.kind == "wrong-crc-large" and t:max_segment() < 20000 then
      t:unimplemented("Such a long FPDU does not fit into a TCP segment to the target.")
    end
    local s = session[service](t)
    s:open(1, { crc = true })
    s:fault(1, p.kind)
    s:finish()
  end
  return declared
end

local TITLE = "The target rejects a wrong CRC in each kind of FPDU, and no layer above MPA reacts to the FPDU"

case(wrong("echo", "echo", {
  "wrong-crc", "wrong-crc-empty", "wrong-crc-long", "wrong-crc-large", "wrong-crc-header", "wrong-crc-second", "wrong-crc-middle",
  "wrong-crc-late", "wrong-crc-pieces",
}, { version = 4, title = TITLE, roles = { "responder", "initiator" } }))

case(wrong("rping", "rping", { "wrong-crc-write", "wrong-crc-read", "wrong-crc-empty" },
  { version = 4, title = TITLE, roles = { "responder", "initiator" } }))

-- The client of rping never reads, so the target is the server.
case(wrong("response", "rping", { "wrong-crc-response" },
  { title = "The target rejects a wrong CRC in a Read Response, and does not complete its Read" }))

--- The size of the memory that a message with a wrong CRC would change, and the seed of its bytes.
local SIZE, SEED = 64, 6
--- The requirements that the target violates if it accepts an FPDU with a wrong CRC, and if it
--- passes the ULPDU of such an FPDU to DDP.
local ACCEPTED = { "MPA-8-2", "MPA-4.4-19", "MPA-4.4-20", "MPA-6-1", "MPA-6-3" }
local PASSED = { "MPA-6-1", "MPA-4.4-19" }

--- For each kind of message, a function that prepares the target for 32 bytes into a region, and
--- returns the ULPDU with these bytes.
local INTO = {
  send = function(_, pair, op, region, payload)
    pair:post_receive { region = region }
    return rdmap.send { msn = op.msn, payload = payload }
  end,
  write = function(_, _, _, region, payload)
    return rdmap.write { stag = region.stag, tagged_offset = region.address, payload = payload }
  end,
  response = function(conn, pair, _, region, payload)
    pair:post_read { region = region, length = #payload, stag = 7, to = 0 }
    local stag, to = string.unpack(">I4i8", conn:expect_fpdu { opcode = 1 }.payload)
    return rdmap.write { opcode = 2, stag = stag, tagged_offset = to, payload = payload }
  end,
}

case {
  id = "mpa/4.4-kinds/memory",
  title = "The target rejects a Send, a Write or a Read Response with a wrong CRC, and changes no memory",
  requirements = ACCEPTED,
  roles = { "responder", "initiator" },
  capabilities = { "agent", "crc" },
  tags = { "fpdu", "crc", "agent" },
  -- Either the CRC field or a byte of the payload is wrong.
  parameters = { message = { "send", "write", "response" }, wrong = { "crc", "payload" } },

  run = function(t, p, target)
    t:good_exchange()
    -- Bit 0x40 of byte 16 is C. The target file sets C for the tester's start-up frames.
    if t:request {}:octets():byte(17) & 0x40 == 0 then
      t:unimplemented("The target file requests no CRCs.")
    end
    local conn, pair, op = target:operate { ird = 1, ord = 1 }
    local region = target:region { octets = SIZE, fill = SEED }
    local fpdu = mpa.fpdu { ulpdu = INTO[p.message](conn, pair, op, region, ("w"):rep(32)) }
    -- The FPDU has no PAD, and ends with the four bytes of the CRC.
    conn:send(fpdu:flip(p.wrong == "crc" and #fpdu - 1 or #fpdu - 5), { deviates = true })
    conn:expect_terminate { requirement = ACCEPTED }
    conn:expect_close()
    local got, was = region:get {}, target:pattern(SEED, SIZE)
    t:check(got == was, { requirement = PASSED, expected = "unchanged memory", actual = octets.difference(got, was) })
  end,
}
