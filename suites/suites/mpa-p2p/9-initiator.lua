-- RFC 6581 sections 6 to 9 for the Initiator: its enhanced Request, its reaction to the Reply, and
-- its ready-to-receive message.

local NAMES = { send = "rtr_send", write = "rtr_write", read = "rtr_read" }
local OPCODES = { send = 3, write = 0, read = 1 }

--- Waits for the enhanced Request of the target. `requirement` concerns the form of the Request.
local function expect_enhanced(t, requirement)
  local conn = t:connect()
  local request = conn:expect_request { requirement = requirement }
  if request.revision == 1 and request.flags & 0x1f == 0 then
    conn:close()
    t:unimplemented("The target does not use RFC 6581.")
  end
  return conn, request
end

local function kinds(request)
  return ("A=%s B=%s C=%s D=%s"):format(request.peer_to_peer, request.rtr_send, request.rtr_write, request.rtr_read)
end

--- Like `expect_enhanced`, but waits for a Request in the peer-to-peer model.
local function expect_peer_to_peer(t)
  local conn, request = expect_enhanced(t)
  if not request.peer_to_peer then
    conn:close()
    t:unimplemented("The target does not request the peer-to-peer model.")
  end
  return conn, request
end

--- Returns whether an FPDU has a Send or a Write without payload, or a Read Request for no bytes.
local function is_empty(fpdu)
  if fpdu.opcode == OPCODES.read then return fpdu.payload:sub(13, 16) == "\0\0\0\0" end
  return (fpdu.opcode == OPCODES.send or fpdu.opcode == OPCODES.write) and fpdu.payload == ""
end

--- Declares a case for an initiator of revision 2. `declared` has the other fields of the case, and
--- can replace its capabilities.
local function of_initiator(name, title, requirements, declared, run)
  declared.id, declared.title = "mpa-p2p/9-initiator/" .. name, title
  declared.requirements, declared.run = requirements, run
  declared.roles = { "initiator" }
  declared.capabilities = declared.capabilities or { "revision-2" }
  return declared
end

case(of_initiator("request", "The initiator's enhanced Request has S=1, revision 2, and IRD and ORD, which PD_Length counts",
  { "P2P-6-1", "P2P-6-2", "P2P-6-4", "P2P-6-6", "P2P-6-10", "P2P-9.2-2", "MPA-7.1.1-24" },
  { version = 2, tags = { "startup", "enhanced" } }, function(t)
  local conn, request = expect_enhanced(t, { "P2P-6-10", "MPA-7.1.1-24" })
  local fields = ("byte 16 is %02x, revision %d"):format(request.flags, request.revision)
  t:check(request.revision == 2, { requirement = "P2P-6-6", expected = "revision 2", actual = fields })
  t:check(request.flags & 0x10 ~= 0, { requirement = "P2P-6-1", expected = "S=1", actual = fields })
  -- The monitor judges whether the private data has IRD and ORD.
  t:check(true, { requirement = "P2P-6-2", expected = "IRD and ORD", actual = "no IRD and ORD" })
  t:check(request.flags & 0x0f == 0, {
    requirement = "P2P-6-4",
    expected = "reserved bits of zero",
    actual = ("byte 16 is %02x"):format(request.flags),
  })
  local some = request.rtr_send or request.rtr_write or request.rtr_read
  t:check(not request.peer_to_peer or some, {
    requirement = "P2P-9.2-2",
    expected = "at least one of B, C and D with A=1",
    actual = kinds(request),
  })
  conn:close()
end))

case(of_initiator("ready", "The initiator sends one empty ready-to-receive message of the Reply's kind as its first FPDU",
  { "P2P-9.2-9", "P2P-1.1-2", "P2P-1.1-3", "P2P-3-3", "P2P-5-4", "P2P-9.3-1", "P2P-mail.4-1" }, {
  version = 2,
  capabilities = { "revision-2", "operation" },
  tags = { "startup", "enhanced" },
  parameters = { kind = { "send", "write", "read" } },
}, function(t, p)
  local conn, request = expect_peer_to_peer(t)
  if not request[NAMES[p.kind]] then
    conn:close()
    t:unimplemented(("The target does not offer a %s as ready-to-receive message."):format(p.kind))
  end
  conn:send(conn:reply { rtr_send = p.kind == "send", rtr_write = p.kind == "write", rtr_read = p.kind == "read" })
  local FIRST = { "P2P-9.2-9", "P2P-3-3", "P2P-5-4", "P2P-9.3-1", "P2P-mail.4-1" }
  local EMPTY = { "P2P-1.1-2" }
  local fpdu = conn:expect_fpdu { requirement = FIRST, overdue_fails = true }
  if fpdu.opcode ~= OPCODES[p.kind] then
    -- If the right message follows, this FPDU came too early. Otherwise an empty message is a
    -- ready-to-receive message of another kind.
    local event, later = conn:next { within = 2 }
    local is_early = event == "fpdu" and later.opcode == OPCODES[p.kind] and is_empty(later)
    t:check(false, {
      requirement = not is_early and is_empty(fpdu) and { "P2P-9.2-9", "P2P-9.3-1", "P2P-mail.4-1" } or FIRST,
      expected = ("an empty message with opcode %d"):format(OPCODES[p.kind]),
      actual = ("an FPDU with opcode %s"):format(fpdu.opcode),
    })
  end
  t:check(true, { requirement = FIRST, expected = "a ready-to-receive message", actual = "another message" })
  t:check(is_empty(fpdu), {
    requirement = EMPTY,
    expected = "no bytes",
    actual = ("%d bytes of payload"):format(#fpdu.payload),
  })
  if p.kind == "read" then
    -- Answer with an empty Read Response to the sink that the Read Request names.
    local stag, to = fpdu.payload:sub(1, 4), fpdu.payload:sub(5, 12)
    conn:send(mpa.fpdu { ulpdu = rdmap.write { opcode = 2 }:replace(2, stag .. to) })
  end
  conn:expect_fpdu { requirement = "P2P-1.1-3", opcode = 3, overdue_fails = true }
  conn:close()
end))

case(of_initiator("send-counts", "The initiator's ready-to-receive Send has MSN 1, and its next Send has MSN 2",
  { "P2P-9.2-13", "RDMAP-5.3-16" },
  { version = 2, capabilities = { "revision-2", "operation" }, tags = { "startup", "enhanced", "send" } }, function(t)
  local conn, request = expect_peer_to_peer(t)
  if not request.rtr_send then
    conn:close()
    t:unimplemented("The target does not offer a Send as ready-to-receive message.")
  end
  conn:send(conn:reply { rtr_write = false, rtr_read = false })
  for msn = 1, 2 do
    local fpdu = conn:expect_fpdu { requirement = "P2P-9.2-13", opcode = 3, qn = 0, mo = 0, overdue_fails = true }
    t:check(fpdu.msn == msn, {
      requirement = { "P2P-9.2-13", "RDMAP-5.3-16" }, expected = ("MSN %d"):format(msn), actual = ("MSN %s"):format(fpdu.msn),
    })
  end
  conn:close()
end))

case(of_initiator("choice", "The initiator sends one ready-to-receive message if the Reply has several kinds",
  { "P2P-1.1-3", "P2P-9.2-9", "P2P-mail.0-1" },
  { capabilities = { "revision-2", "operation" }, tags = { "startup", "enhanced" } }, function(t)
  local conn, request = expect_peer_to_peer(t)
  conn:send(conn:reply())
  local fpdu = conn:expect_fpdu { requirement = { "P2P-1.1-3", "P2P-9.2-9", "P2P-mail.0-1" }, overdue_fails = true }
  local chosen = {}
  for kind, name in pairs(NAMES) do
    if request[name] then chosen[OPCODES[kind]] = true end
  end
  t:check(chosen[fpdu.opcode] and (fpdu.opcode == 1 or fpdu.payload == ""), {
    requirement = { "P2P-9.2-9", "P2P-mail.0-1" },
    expected = "an empty message of one of the kinds in the Reply",
    actual = ("opcode %d, %d bytes of payload"):format(fpdu.opcode, #fpdu.payload),
  })
  conn:close()
end))

case(of_initiator("no-kind", "The initiator sends Terminate 20 07 and closes if the Reply offers no ready-to-receive message that it can send",
  { "P2P-9.2-16", "P2P-9.2-23", "P2P-8-3", "P2P-8-5", "RDMAP-4.8-36" },
  { tags = { "startup", "enhanced", "terminate", "refusal" } }, function(t)
  local conn = expect_peer_to_peer(t)
  conn:send(conn:reply { rtr_send = false, rtr_write = false, rtr_read = false }, { deviates = conn:reply() })
  conn:expect_terminate {
    requirement = "P2P-9.2-16", terminate = "P2P-8-5", error = "20 07", code = { "P2P-9.2-23", "P2P-8-3", "RDMAP-4.8-36" },
  }
  conn:expect_close { requirement = "P2P-9.2-16", within = 60, overdue_fails = true }
end))

--- Lengths of private data after IRD and ORD in bytes, and those for Replies with R=1. With IRD and
--- ORD, PD_Length is larger by four.
local LENGTHS = { 248, 249, 250, 251, 252, 253, 254, 257, 504, 505, 506, 508 }
local REJECTED = { 251, 252, 253, 257, 505, 508 }

case(of_initiator("longest", "The initiator accepts 508 bytes of private data after IRD and ORD", { "P2P-6-10" }, {
  capabilities = { "revision-2", "operation" },
  tags = { "startup", "enhanced", "private-data" },
  parameters = { length = LENGTHS },
  scales = { "length" },
}, function(t, p)
  local conn = expect_enhanced(t)
  conn:send(conn:reply { private_data = ("x"):rep(p.length) })
  conn:expect_fpdu { requirement = "P2P-6-10", overdue_fails = true }
  conn:close()
end))

case(of_initiator("rejected-longest", "The initiator sends no FPDU after an enhanced Reply with R=1 and up to 508 bytes of private data",
  { "MPA-7.1.2-15" }, { tags = { "startup", "enhanced", "refusal", "private-data" }, parameters = { length = REJECTED }, scales = { "length" } }, function(t, p)
  local conn = expect_enhanced(t)
  conn:send(conn:reply { reject = true, private_data = ("x"):rep(p.length) })
  conn:expect_silence { requirement = "MPA-7.1.2-15", within = 1 }
  conn:close()
end))

case(of_initiator("no-room", "The initiator closes without an FPDU if a Reply with S=1 is too short for IRD and ORD",
  { "P2P-6-12" }, { tags = { "startup", "enhanced", "refusal" }, parameters = { length = { 0, 1, 2, 3 } } }, function(t, p)
  local conn = expect_enhanced(t)
  conn:send(mpa.reply { flags = 0x50, revision = 2, private_data = ("\0"):rep(p.length) })
  -- Such a Reply is malformed, whatever the Request was. The target may send a Terminate (RFC
  -- 6581 section 8).
  conn:expect_close { requirement = "P2P-6-12", after_terminate = true, overdue_fails = true }
end))

case(of_initiator("too-many-reads", "The initiator sends Terminate 20 06 and closes if the Reply's ORD is more than the initiator supports",
  { "P2P-9.1-10", "P2P-9.1-24", "P2P-8-2", "P2P-8-4", "RDMAP-4.8-36" },
  { tags = { "startup", "enhanced", "terminate", "refusal" } }, function(t)
  local conn = expect_peer_to_peer(t)
  conn:send(conn:reply { ord = 0x3ffe }, { deviates = conn:reply() })
  -- A target that supports this number of Reads may continue. Then its first FPDU is not a
  -- Terminate. The opcode of an FPDU is in byte 3, after two bytes of length and one byte of DDP.
  local first = conn:expect_octets { requirement = "P2P-9.1-10", begins = "", keep = true }
  if #first >= 4 and first:byte(4) & 0x0f ~= 7 then
    conn:close()
    t:unimplemented("The target continues: it supports 0x3FFE Reads.")
  end
  local terminate = conn:expect_terminate {
    requirement = "P2P-9.1-10", terminate = "P2P-9.1-10", error = "20 06", code = { "P2P-9.1-24", "P2P-8-2", "RDMAP-4.8-36" },
  } ---@cast terminate weft.Terminate
  t:check(not (terminate.m or terminate.d or terminate.r) and #terminate.rest == 0, {
    requirement = "P2P-8-4",
    expected = "no header parts",
    actual = ("M=%s D=%s R=%s, %d more bytes"):format(terminate.m, terminate.d, terminate.r, #terminate.rest),
  })
  conn:expect_close { requirement = "P2P-9.1-10", within = 60, overdue_fails = true }
end))

case(of_initiator("ird", "The initiator serves as many Reads at a time as its IRD allows",
  { "P2P-9.1-1" }, { capabilities = { "revision-2", "rping" }, tags = { "startup", "enhanced", "read" } }, function(t)
  local conn, op = t:operate { revision = 2, enhanced = true }
  local reads = op.ird or 0
  if reads < 1 or reads > 4096 then
    conn:close()
    t:unimplemented(("The target's IRD is %d."):format(reads))
  end
  local requests = ""
  for msn = 1, reads do
    requests = requests .. mpa.fpdu {
      ulpdu = rdmap.read_request { sink_stag = 0x7700, rdmardsz = 4, src_stag = op.stag, src_to = op.to, msn = msn },
    }
  end
  conn:send(requests)
  for _ = 1, reads do
    conn:expect_fpdu { requirement = "P2P-9.1-1", opcode = 2, overdue_fails = true }
  end
  conn:close()
end))

case(of_initiator("raised-ird", "If the Reply's ORD is one more than the initiator's IRD, the initiator serves ORD Reads at a time, or sends a Terminate",
  { "P2P-9.1-23" }, { capabilities = { "revision-2", "rping" }, tags = { "startup", "enhanced", "read" } }, function(t)
  t:good_exchange()

  local conn, request = expect_enhanced(t)
  local reads = request.ird + 1
  if request.ird > 4096 then
    conn:close()
    t:unimplemented(("The target's IRD is %d."):format(request.ird))
  end
  conn:send(conn:reply { ord = reads })
  local event, first = conn:next()
  if event == "fpdu" and first.opcode == 7 then
    conn:close()
    t:liveness()
    t:unimplemented("The target does not raise its IRD. It sends a Terminate, which is allowed.")
  end
  t:check(event == "fpdu", { requirement = "P2P-9.1-23", expected = "an FPDU", actual = event or "nothing" })
  if first.opcode == 1 then
    -- This ready-to-receive message is a Read Request, so the tester has to answer it. Its payload
    -- begins with the sink's STag and TO.
    local stag, to = string.unpack(">I4i8", first.payload)
    conn:send(mpa.fpdu { ulpdu = rdmap.write { opcode = 2, stag = stag, tagged_offset = to } })
  end
  -- The Read Requests read no bytes, so they name no buffer.
  local requests = ""
  for msn = 1, reads do
    requests = requests .. mpa.fpdu { ulpdu = rdmap.read_request { sink_stag = 0x7700, msn = msn } }
  end
  conn:send(requests)
  for served = 1, reads do
    repeat
      event, first = conn:next()
      t:check(event == "fpdu" and first.opcode ~= 7, {
        requirement = "P2P-9.1-23",
        expected = reads .. " Read Responses",
        actual = ("%d, then %s"):format(served - 1, event == "fpdu" and "a Terminate" or event or "nothing"),
      })
    until first.opcode == 2
  end
  t:check(true, { requirement = "P2P-9.1-23", expected = reads .. " Read Responses", actual = "as many" })
  conn:close()
end))
