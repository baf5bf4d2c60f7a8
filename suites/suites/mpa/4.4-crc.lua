-- RFC 5044 sections 4.4 and 8: an endpoint checks CRCs if, and only if, one side requested them.

--- Expects that the target does not use an FPDU with a wrong CRC. The target has to close the
--- connection, and may send a Terminate before the close. If the Terminate has an error of DDP or
--- RDMAP, MPA passed the ULPDU on. `rows` has the requirements that the target violates if it uses
--- the FPDU (`used`), if it reports no error (`open`), if it uses the next FPDU, whose MSN is 3
--- (`later`), and if it keeps the connection open after a Terminate (`kept`).
local function expect_unused(t, conn, rows)
  local event, fpdu = conn:next { within = 15 }
  if event == "fpdu" and fpdu.opcode == 7 then
    local layer, code = fpdu.payload:byte(1, 2)
    -- In a Terminate, the DDP header of the rejected message follows six bytes.
    local is_about_later = rows.later and #fpdu.payload >= 20 and string.unpack(">I4", fpdu.payload, 17) == 3
    -- An error of MPA begins with 20 (RFC 6581 section 8). A target that swaps Layer and EType
    -- violates another rule, and does not fail here. Such a target sends 02 02 for a wrong CRC. It
    -- sends 21 03 for an error of DDP, so not every error that begins with 2 is accepted.
    local is_about_crc = code == 0x02 and (layer == 0x02 or layer >> 4 == 2)
    t:check(layer == 0x20 or is_about_crc, {
      requirement = is_about_later and rows.later or { "MPA-6-1", "MPA-6-3", "MPA-4.4-19" },
      expected = "a close, or a Terminate with an error of MPA",
      actual = ("Terminate %02x %02x"):format(layer or 0, code or 0),
    })
    conn:expect_close { requirement = rows.kept, overdue_fails = true }
  else
    local is_later = rows.later and event == "fpdu" and fpdu.payload == "next"
    t:check(event == "close", {
      requirement = event == nil and rows.open or is_later and rows.later or rows.used,
      expected = "the target closes the connection and sends nothing before the close, except a Terminate",
      actual = event and "it sent " .. (event == "fpdu" and "an FPDU" or event) or "nothing within 15 s, and the connection stays open",
    })
  end
  local all = { rows.used, rows.open, rows.later or {}, rows.kept or {} }
  t:check(true, { requirement = all, expected = "an unused FPDU", actual = "a used FPDU" })
end

--- The requirements that the target violates if it uses an FPDU with a wrong CRC, and if it reports
--- no error.
local USED = { "MPA-8-2", "MPA-4.4-19", "MPA-4.4-20", "MPA-6-1", "MPA-6-3" }
local OPEN = { "MPA-8-2", "MPA-4.4-20" }

--- Declares a case with an echo and CRCs, for both roles of the target. `declared` has the other
--- fields of the case, and can replace its roles and capabilities.
local function with_echo(name, title, requirements, declared, run)
  declared.id, declared.title = "mpa/4.4-crc/" .. name, title
  declared.requirements, declared.run = requirements, run
  declared.roles = declared.roles or { "responder", "initiator" }
  declared.capabilities = declared.capabilities or { "crc", "echo" }
  return declared
end

case(with_echo("bad-first", "The target does not deliver a first FPDU with a wrong CRC, and ends the connection",
  { "MPA-8-2", "MPA-4.4-19", "MPA-4.4-20", "MPA-6-1", "MPA-6-3", "MPA-7.1.1-12" },
  { version = 6, tags = { "fpdu", "crc" } }, function(t)
  t:good_exchange()

  local conn = t:start_up { crc = true }
  conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft" } }:flip(27), { deviates = true })
  -- Another case checks that the target sends no Terminate here.
  expect_unused(t, conn, { used = { "MPA-7.1.1-12", table.unpack(USED) }, open = OPEN })
end))

case(with_echo("after-request-without", "The target checks CRCs although the Request of the connection before had C=0",
  { "MPA-8-2", "MPA-4.4-19", "MPA-4.4-20", "MPA-6-1", "MPA-6-3", "MPA-7.1.1-12" },
  { roles = { "responder" }, tags = { "fpdu", "crc" } }, function(t)
  local first = t:start_up { crc = false }
  first:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft" } })
  first:expect_fpdu { payload = "weft" }
  first:close()

  local conn = t:start_up { crc = true }
  conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "good" } })
  conn:expect_fpdu { payload = "good" }
  conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft", msn = 2 } }:flip(27), { deviates = true })
  expect_unused(t, conn, { used = { "MPA-7.1.1-12", table.unpack(USED) }, open = OPEN })
end))

case(with_echo("missing-at-end", "The target does not deliver an FPDU whose CRC is cut at the end of the stream",
  { "MPA-4.4-10", "MPA-4.4-19", "MPA-6-1", "MPA-6-3" },
  { tags = { "fpdu", "crc" }, parameters = { missing = { 1, 4 } } }, function(t, p)
  t:good_exchange()

  local conn = t:start_up { crc = true }
  conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "good" } })
  conn:expect_fpdu { payload = "good" }
  local complete = mpa.fpdu { ulpdu = rdmap.send { payload = "weft", msn = 2 } }
  conn:send(complete:cut(#complete:octets() - p.missing), { deviates = true })
  conn:finish()
  local event, fpdu = conn:next { within = 5 }
  t:check(event ~= "fpdu" or fpdu.opcode == 7, {
    requirement = { "MPA-4.4-10", "MPA-4.4-19", "MPA-6-1", "MPA-6-3" },
    expected = "no use of the FPDU",
    actual = ("an FPDU with opcode %s"):format(fpdu and fpdu.opcode),
  })
  conn:reset()
end))

case(with_echo("bad-later", "The target delivers neither a later FPDU with a wrong CRC nor anything after it",
  { "MPA-8-2", "MPA-4.4-10", "MPA-4.4-19", "MPA-4.4-20", "MPA-6-1", "MPA-6-3", "MPA-8-13", "MPA-8-15", "MPA-9.1-1", "MPA-6-6" },
  { version = 6, tags = { "fpdu", "crc" }, parameters = { octet = { 1, 2, 14, 20, 23, 24, 27 } } }, function(t, p)
  t:good_exchange()

  local conn = t:start_up { crc = true }
  conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "good" } })
  conn:expect_fpdu { payload = "good" }
  -- The FPDU has 28 bytes: the length is bytes 0-1, the headers are 2-19, the payload is 20-23, and
  -- the CRC is 24-27. If byte 1 is changed, the length becomes smaller.
  local bad = mpa.fpdu { ulpdu = rdmap.send { payload = "evil", msn = 2 } }
  bad = bad:flip(p.octet, p.octet == 1 and 0x04 or 0xff)
  conn:send(bad .. mpa.fpdu { ulpdu = rdmap.send { payload = "next", msn = 3 } }, { deviates = true })
  local used, open = { "MPA-4.4-10", "MPA-9.1-1", table.unpack(USED) }, { "MPA-8-15", "MPA-9.1-1", table.unpack(OPEN) }
  if p.octet == 1 then
    used[#used + 1], open[#open + 1] = "MPA-6-6", "MPA-6-6"
  end
  expect_unused(t, conn, { used = used, open = open, later = { "MPA-8-13" }, kept = { "MPA-8-15" } })
  t:check(true, { requirement = "MPA-6-6", expected = "no use of a wrong length", actual = "another FPDU" })
end))

case(with_echo("unused", "The target accepts any value in the CRC field if both sides have C=0",
  { "MPA-7.1.1-10", "MPA-7.1.1-14", "MPA-4.1-7", "MPA-4.4-11" },
  { version = 2, capabilities = { "echo" }, tags = { "fpdu", "crc" }, parameters = { crc = { "zero", "ones", "good" } } }, function(t, p)
  -- If an Initiator's Request has C=1, the connection uses CRCs, whatever C of the Reply is. Such
  -- an Initiator may also close if the Reply has C=0. So check the Request first.
  local first, frame = t:start_up {}
  first:close()
  if frame.kind == "request" and frame.crc then
    t:unimplemented("This case needs a connection without CRCs, and the target requests them.")
  end

  local conn, reply = t:start_up { crc = false }
  if reply.crc then
    conn:close()
    t:unimplemented("This case needs a connection without CRCs, and the target requests them.")
  end
  local field = ({ zero = false, ones = "\xff\xff\xff\xff", good = true })[p.crc]
  conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft" }, crc = field })
  conn:expect_fpdu {
    requirement = { "MPA-7.1.1-10", "MPA-7.1.1-14", "MPA-4.1-7", "MPA-4.4-11" },
    payload = "weft",
    overdue_fails = true,
  }
  conn:close()
end))

case(with_echo("requested-by-one", "The target checks CRCs even if only the Reply has C=1",
  { "MPA-4.4-6", "MPA-7.1.1-12" }, { version = 3, roles = { "responder" }, tags = { "fpdu", "crc" } }, function(t)
  t:good_exchange()

  local conn, reply = t:start_up { crc = false }
  if not reply.crc then
    conn:close()
    t:unimplemented("The target does not request CRCs by itself.")
  end
  conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft" } }:flip(27), { deviates = true })
  -- A Terminate violates MPA-7.1.2-17, but shows that the target checks the CRC.
  conn:expect_close { requirement = { "MPA-4.4-6", "MPA-7.1.1-12" }, after_terminate = true }
end))

case(with_echo("of-terminate", "The target sends a Terminate with a correct CRC", { "MPA-4.1-6", "MPA-4.4-18" },
  { version = 2, capabilities = { "crc", "operation" }, tags = { "fpdu", "crc", "terminate" } }, function(t)
  t:good_exchange()

  local conn, op = t:operate { crc = true }
  conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft", qn = 77, msn = op.msn } }, { deviates = true })
  conn:expect_fpdu { requirement = { "MPA-4.1-6", "MPA-4.4-18" }, opcode = 7, crc = true }
  conn:reset()
end))

case(with_echo("changing", "The target sends Read Responses with correct CRCs, even while the memory is written to",
  { "MPA-4.1-6", "MPA-4.4-15" }, { capabilities = { "crc", "rping" }, tags = { "fpdu", "crc", "read", "write" } }, function(t)
  local ALL = { "MPA-4.1-6", "MPA-4.4-15" }
  local conn, op = t:operate { crc = true }
  --- Returns FPDUs that fill the buffer with this byte. Each FPDU fits into an Ethernet frame.
  local function written(octet)
    local fpdus = ""
    for at = 0, op.length - 1, 1024 do
      local payload = octet:rep(math.min(1024, op.length - at))
      local last = at + #payload == op.length
      fpdus = fpdus .. mpa.fpdu { ulpdu = rdmap.write { stag = op.stag, tagged_offset = op.to + at, payload = payload, last = last } }
    end
    return fpdus
  end
  conn:send(written("a"))
  local reads = math.min(op.ird or 1, 16)
  local requests = ""
  for msn = 1, reads do
    requests = requests .. mpa.fpdu {
      ulpdu = rdmap.read_request { sink_stag = 0x7766, rdmardsz = op.length, src_stag = op.stag, src_to = op.to, msn = msn },
    }
  end
  conn:send(requests)
  -- The tester receives nothing during this pause. So the target's TCP holds back FPDUs whose CRCs
  -- are already computed.
  t:pause(0.5)
  conn:send(written("b"))
  t:pause(0.5)
  -- A Read may return old or new bytes (RFC 5040 section 5.5), but the CRC has to match the bytes
  -- sent.
  local wrong, total, done = 0, 0, 0
  repeat
    local fpdu = conn:expect_fpdu { requirement = ALL, opcode = 2, overdue_fails = true }
    total = total + 1
    wrong = wrong + (fpdu.crc_is_right and 0 or 1)
    done = done + (fpdu.last and 1 or 0)
  until done == reads
  t:check(wrong == 0, {
    requirement = ALL,
    expected = "a correct CRC in each segment of the Read Responses",
    actual = ("%d of %d are wrong CRCs"):format(wrong, total),
  })
  conn:close()
end))

-- Every MPA implementation has to support CRCs. So this case does not need the capability `crc`,
-- and a target without CRCs fails. The default build of zrlio's softiwarp rejects C=1.
case(with_echo("requested", "The responder accepts a Request with C=1 and sends correct CRCs, even if it does not request them itself",
  { "MPA-4.4-1", "MPA-4.4-9", "MPA-7.1.1-12" },
  { roles = { "responder" }, capabilities = {}, tags = { "startup", "crc" } }, function(t)
  local ALL = { "MPA-4.4-1", "MPA-4.4-9", "MPA-7.1.1-12" }
  t:good_exchange()

  local conn = t:connect()
  conn:send(t:request { crc = true })
  conn:expect_reply { requirement = ALL, reject = false }
  t:pause(0.2)
  -- The target answers a Read of no bytes whatever its service is.
  conn:send(mpa.fpdu { ulpdu = rdmap.read_request { sink_stag = 0x7766 } })
  local event, fpdu = conn:next { within = 5 }
  t:check(event ~= "fpdu" or fpdu.crc_is_right, {
    requirement = ALL, expected = "a correct CRC", actual = "a wrong CRC",
  })
  conn:reset()
end))

case(with_echo("bad-read", "If a Read Request has a wrong CRC, a target with any service ends the connection without a Read Response",
  { "MPA-8-2", "MPA-4.4-19", "MPA-4.4-20", "MPA-6-1", "MPA-6-3", "MPA-7.1.1-12" },
  { version = 5, roles = { "responder" }, capabilities = { "crc" }, tags = { "fpdu", "crc", "read" } }, function(t)
  t:good_exchange()

  -- A Read of no bytes needs no buffer. Some targets reject it if Reads were not negotiated.
  local request = mpa.fpdu { ulpdu = rdmap.read_request { sink_stag = 0x7766 } }
  local first = t:start_up { crc = true }
  first:send(request)
  local event, fpdu = first:next { within = 5 }
  first:reset()
  if event ~= "fpdu" or fpdu.opcode ~= 2 then
    t:unimplemented("The target does not answer a Read of no bytes as the first message.")
  end

  local conn = t:start_up { crc = true }
  conn:send(request:flip(47), { deviates = true })
  -- Another case checks that the target sends no Terminate here.
  expect_unused(t, conn, { used = { "MPA-7.1.1-12", table.unpack(USED) }, open = OPEN })
end))
