-- RFC 5040 sections 3.1, 3.2, 5.3, 5.4 and 5.5: how the target reports arriving messages and the
-- end of the stream to its user. The user is an agent: a program on the target that calls the NIC's
-- verbs for the tester.

local DATA = ("weft octets that differ "):rep(200)

--- Payload bytes per segment.
local CUT = 1024

--- Returns the segment that begins at offset `at` of a Send of `payload`.
local function segment(msn, payload, at)
  local piece = payload:sub(at + 1, at + CUT)
  return mpa.fpdu { ulpdu = rdmap.send { msn = msn, mo = at, payload = piece, last = at + #piece == #payload } }
end

--- Sends `payload` to the target, cut into segments.
local function send(conn, msn, payload)
  for at = 0, math.max(#payload - 1, 0), CUT do conn:send(segment(msn, payload, at)) end
end

local LENGTH = { "RDMAP-3.1-6", "RDMAP-3.2-2", "RDMAP-5.3-13", "RDMAP-5.3-3" }

--- Declares a case with an agent, for both roles of the target. `declared` has the other fields of
--- the case.
local function with_agent(name, title, requirements, declared, run)
  declared.id, declared.title = "rdmap/3.2-delivered/" .. name, title
  declared.requirements, declared.run = requirements, run
  declared.roles = { "responder", "initiator" }
  declared.capabilities = { "agent" }
  return declared
end

case(with_agent("length", "The target reports the length of a Send, and its bytes are in the buffer",
  LENGTH, { version = 2, tags = { "send", "agent" }, scales = { "size" }, parameters = { size = { 1, 1023, 1024, 3000, 4096 } } }, function(t, p, target)
  t:good_exchange()
  local conn, pair, op = target:operate {}
  local region = target:region { octets = 4096, access = { "local_write" } }
  local work = pair:post_receive { region = region }
  send(conn, op.msn, DATA:sub(1, p.size))
  pair:expect_completion { work = work, operation = "receive", octets = p.size, requirement = LENGTH }
  local got = region:get { length = p.size }
  t:check(got == DATA:sub(1, p.size), {
    requirement = "RDMAP-3.2-2",
    expected = ("the %d bytes of the Send in the buffer"):format(p.size),
    actual = octets.difference(got, DATA:sub(1, p.size)),
  })
  conn:reset()
end))

--- Expects no further completion of `pair`. A target that reports a message twice, or reports
--- something that is not a message, does so soon.
local function expect_nothing_more(pair, requirement)
  pair:expect_no_completion { within = 1, requirement = requirement }
end

local ORDER = { "RDMAP-5.3-5", "RDMAP-5.5-8", "RDMAP-B-1", "DDP-5.3-6", "DDP-5.4-5", "DDP-5.1.2-2" }

case(with_agent("order", "The target reports Sends in the order in which they were sent, each in the oldest receive",
  ORDER, { tags = { "send", "agent" } }, function(t, p, target)
  t:good_exchange()
  local conn, pair, op = target:operate {}
  local region = target:region { octets = 64, access = { "local_write" } }
  local works = {}
  for nth = 1, 4 do works[nth] = pair:post_receive { region = region, offset = 16 * (nth - 1), length = 16 } end
  for nth = 1, 4 do send(conn, op.msn + nth - 1, DATA:sub(1, nth)) end
  for nth = 1, 4 do
    local completion = pair:expect_completion {}
    t:check(completion.work == works[nth] and completion.octets == nth, {
      requirement = ORDER,
      expected = ("Send %d, of %d bytes, in receive %d"):format(nth, nth, works[nth]),
      actual = ("%d bytes in receive %d"):format(completion.octets, completion.work),
    })
  end
  conn:reset()
end))

local ONE = { "RDMAP-5.3-2", "DDP-1.2-1" }

case(with_agent("one-receive-each", "The target completes exactly one receive for each Send, and only once, even for an empty Send",
  { "RDMAP-5.3-2", "RDMAP-5.3-17", "DDP-1.2-1", "DDP-1.2-3", "DDP-3-4", "DDP-5.3-5" },
  { version = 3, tags = { "send", "agent" } }, function(t, p, target)
  t:good_exchange()
  local conn, pair, op = target:operate {}
  local region = target:region { octets = 48, access = { "local_write" } }
  local works = {}
  for nth = 1, 3 do works[nth] = pair:post_receive { region = region, offset = 16 * (nth - 1), length = 16 } end
  send(conn, op.msn, "")
  send(conn, op.msn + 1, "one")
  -- The second Send shows that the device reports arrivals. If the report of the first Send is
  -- still missing then, the device did not report the first Send.
  local completion = pair:expect_completion { work = works[2], requirement = ONE }
  t:check(completion.octets == 3, {
    requirement = { "DDP-1.2-3", "DDP-3-4" }, expected = "3 bytes", actual = ("%d bytes"):format(completion.octets),
  })
  local got = region:get { offset = 16, length = 3 }
  t:check(got == "one", {
    requirement = "DDP-1.2-3",
    expected = "the 3 bytes of the Send at the beginning of its buffer of 16 bytes",
    actual = octets.difference(got, "one"),
  })
  pair:expect_completion { work = works[1], octets = 0, requirement = { "RDMAP-5.3-17", ONE }, overdue_fails = true }
  expect_nothing_more(pair, { "DDP-5.3-5", ONE })
  conn:reset()
end))

case(with_agent("segments", "The target reports a Send of several segments with all its bytes, after its last segment",
  { "DDP-5.4-6", "DDP-3-8", "RDMAP-5.5-20" },
  { version = 2, tags = { "send", "agent", "segment" }, parameters = { size = { 1025, 2048, 4095 } } }, function(t, p, target)
  t:good_exchange()
  local conn, pair, op = target:operate {}
  local region = target:region { octets = 4096, access = { "local_write" } }
  local work = pair:post_receive { region = region }
  local payload, last = DATA:sub(1, p.size), (p.size - 1) // CUT * CUT
  for at = 0, last - 1, CUT do conn:send(segment(op.msn, payload, at)) end
  pair:expect_no_completion { within = 1, requirement = { "DDP-3-8", "RDMAP-5.5-20" } }
  conn:send(segment(op.msn, payload, last))
  pair:expect_completion { work = work, octets = p.size, requirement = { "DDP-5.4-6", "DDP-3-8" } }
  conn:reset()
end))

case(with_agent("write", "The target does not report a Write, but the Write's bytes are in memory when it reports a later Send",
  { "RDMAP-5.1-2", "RDMAP-3.2-5", "RDMAP-5.5-11", "RDMAP-5.1-10", "RDMAP-B-4", "DDP-5.1.1-1", "DDP-5.2-4" },
  { version = 3, tags = { "write", "agent" }, scales = { "size" }, parameters = { size = { 1, 1024, 3000 }, at = { 0, 17 } } }, function(t, p, target)
  t:good_exchange()
  local conn, pair, op = target:operate {}
  local sink = target:region { octets = 4096, fill = 3 }
  local work = pair:post_receive { region = target:region { octets = 16, access = { "local_write" } } }
  for at = 0, p.size - 1, 1024 do
    local piece = DATA:sub(at + 1, math.min(at + 1024, p.size))
    conn:send(mpa.fpdu {
      ulpdu = rdmap.write {
        stag = sink.stag, tagged_offset = sink.address + p.at + at, payload = piece, last = at + #piece == p.size,
      },
    })
  end
  send(conn, op.msn, "later")
  local completion = pair:expect_completion {}
  t:check(completion.work == work and completion.octets == 5, {
    requirement = { "RDMAP-5.1-2", "RDMAP-3.2-5" },
    expected = "the Send's 5 bytes as the first completion",
    actual = ("%d bytes in receive %d"):format(completion.octets, completion.work),
  })
  local was = target:pattern(3, 4096)
  local want, got = was:sub(1, p.at) .. DATA:sub(1, p.size) .. was:sub(p.at + p.size + 1), sink:get {}
  local expected = ("the %d bytes of the Write at offset %d of the region, and no other change"):format(p.size, p.at)
  local after = p.at + p.size + 1
  t:check(got:sub(1, p.at) == was:sub(1, p.at) and got:sub(after) == was:sub(after), {
    requirement = { "DDP-5.1.1-1", "DDP-5.2-4" }, expected = expected, actual = octets.difference(got, want),
  })
  t:check(got == want, {
    requirement = { "RDMAP-5.5-11", "RDMAP-5.1-10", "RDMAP-B-4", "DDP-5.2-4" }, expected = expected, actual = octets.difference(got, want),
  })
  conn:reset()
end))

case(with_agent("read", "The target reports nothing for a Read by the peer",
  { "RDMAP-5.2.1-4", "RDMAP-3.2-7" }, { tags = { "read", "agent" } }, function(t, p, target)
  t:good_exchange()
  local conn, pair, op = target:operate { ird = 1, ord = 1 }
  local source = target:region { octets = 64, access = { "local_write", "remote_read" }, put = DATA:sub(1, 64) }
  local work = pair:post_receive { region = target:region { octets = 16, access = { "local_write" } } }
  conn:send(mpa.fpdu {
    ulpdu = rdmap.read_request { sink_stag = 7, sink_to = 0, rdmardsz = 64, src_stag = source.stag, src_to = source.address },
  })
  conn:expect_fpdu { opcode = 2, payload = DATA:sub(1, 64) }
  send(conn, op.msn, "later")
  local completion = pair:expect_completion {}
  t:check(completion.work == work and completion.octets == 5, {
    requirement = { "RDMAP-5.2.1-4", "RDMAP-3.2-7" },
    expected = "the Send's 5 bytes as the first completion",
    actual = ("%d bytes in receive %d"):format(completion.octets, completion.work),
  })
  conn:reset()
end))

case(with_agent("invalidated", "The target reports the STag that a Send has invalidated",
  { "RDMAP-3.2-10" }, { tags = { "send", "invalidate", "agent" }, parameters = { opcode = { 4, 6 } } }, function(t, p, target)
  t:good_exchange()
  if target:device().max_windows == 0 then t:unimplemented("The device has no memory windows.") end
  local conn, pair, op = target:operate {}
  local region = target:region { octets = 64, access = { "local_write", "remote_write", "remote_read", "bind" } }
  local bound, stag = pair:post_bind { window = target:window {}, to_region = region, may_refuse = true }
  if not bound then t:unimplemented("The device rejects the work request to bind a window: " .. stag) end
  pair:expect_completion { work = bound }
  local work = pair:post_receive { region = region }
  conn:send(mpa.fpdu { ulpdu = rdmap.send { msn = op.msn, opcode = p.opcode, invalidate_stag = stag, payload = "gone" } })
  local completion = pair:expect_completion { work = work, octets = 4 }
  t:check(completion.invalidated == stag, {
    requirement = "RDMAP-3.2-10",
    expected = ("STag %#x"):format(stag),
    actual = completion.invalidated and ("STag %#x"):format(completion.invalidated) or "none reported",
  })
  conn:reset()
end))

--- Ways in which the tester ends the stream. It sends a faulty FPDU, a Terminate or a reset.
local ENDS = {
  refused = function(conn)
    conn:send(mpa.fpdu { ulpdu = rdmap.write { stag = 0xfffffe01, tagged_offset = 0, payload = "x" } }, { deviates = true })
  end,
  crc = function(conn, op)
    conn:send(mpa.fpdu { ulpdu = rdmap.send { msn = op.msn, payload = "weft" } }:flip(27), { deviates = true })
  end,
  reset = function(conn) conn:reset() end,
  terminate = function(conn)
    conn:send(mpa.fpdu { ulpdu = rdmap.send { opcode = 7, qn = 2, msn = 1, payload = string.char(0x00, 0x00, 0, 0) } })
  end,
}

--- Declares a case in which the target reports the end of the stream. `judge` checks the report.
local function reported(ends, title, requirements, judge)
  case {
    id = "rdmap/3.2-delivered/" .. ends,
    version = 2,
    title = title,
    requirements = requirements,
    roles = { "responder", "initiator" },
    capabilities = { "agent" },
    tags = { "error", "agent" },

    run = function(t, p, target)
      t:good_exchange()
      -- Bit 0x40 of byte 16 is C. The target file sets C for the tester's start-up frames.
      if ends == "crc" and t:request {}:octets():byte(17) & 0x40 == 0 then
        t:unimplemented("The target file requests no CRCs.")
      end
      local conn, pair, op = target:operate {}
      local work = pair:post_receive { region = target:region { octets = 16, access = { "local_write" } } }
      ENDS[ends](conn, op)
      judge(pair, work)
      if ends ~= "reset" then conn:reset() end
    end,
  }
end

-- The specifications require a report to the user, but do not define its form. It may be an event,
-- a completion in error, or the end of the connection. For a Terminate of the peer, the end of the
-- connection is not enough, because every FIN also ends the connection.
reported("terminate", "The target reports a Terminate of the peer to its user", { "RDMAP-5.4-9", "RDMAP-3.2-4" }, function(pair)
  pair:expect_error { requirement = { "RDMAP-5.4-9", "RDMAP-3.2-4" }, overdue_fails = true }
end)
reported("refused", "The target reports a Write to an STag that does not exist", { "DDP-7.1-20", "DDP-8.3-4", "DDP-6.2.2-6" }, function(pair)
  pair:expect_error { or_end = true, requirement = { "DDP-7.1-20", "DDP-8.3-4", "DDP-6.2.2-6" }, overdue_fails = true }
end)
reported("crc", "The target reports an FPDU with a wrong CRC, and completes posted work in error", { "DDP-6.2.2-5", "DDP-6.2.2-7" }, function(pair, work)
  pair:expect_error { or_end = true, requirement = "DDP-6.2.2-5", overdue_fails = true }
  pair:expect_completion { work = work, status = "error", requirement = "DDP-6.2.2-7", overdue_fails = true }
end)
reported("reset", "The target reports the loss of the connection", { "DDP-6.2.2-1", "DDP-3-3", "RDMAP-6.2-3" }, function(pair)
  pair:expect_error { or_end = true, requirement = { "DDP-6.2.2-1", "DDP-3-3", "RDMAP-6.2-3" }, overdue_fails = true }
end)

case(with_agent("long", "The target receives Sends and Writes of more than 64 KiB completely, and answers Reads of this size",
  { "RDMAP-5.3-13", "DDP-1.2-3", "DDP-5.1.1-1", "RDMAP-4.4-9" }, {
  version = 2,
  tags = { "send", "write", "read", "segment", "agent" },
  parameters = { message = { "send", "write", "read" }, size = { 65536, 200000 } },
}, function(t, p, target)
  -- The last check of a variant covers all requirements, also those about the other messages.
  local ALL = { "RDMAP-5.3-13", "DDP-1.2-3", "DDP-5.1.1-1", "RDMAP-4.4-9" }
  t:good_exchange()
  local conn, pair, op = target:operate { ird = 1, ord = 1 }
  local data = octets.counted(p.size)
  if p.message == "read" then
    local region = target:region { octets = p.size, put = data }
    conn:send(mpa.fpdu {
      ulpdu = rdmap.read_request { sink_stag = 7, rdmardsz = p.size, src_stag = region.stag, src_to = region.address },
    })
    local pieces, got = {}, 0
    repeat
      local fpdu = conn:expect_fpdu { requirement = "RDMAP-4.4-9", opcode = 2, overdue_fails = true }
      if #fpdu.payload > 0 then
        t:check(fpdu.tagged_offset == got, { requirement = "RDMAP-4.4-9", expected = ("TO %d"):format(got), actual = ("TO %d"):format(fpdu.tagged_offset) })
      end
      pieces[#pieces + 1], got = fpdu.payload, got + #fpdu.payload
    until fpdu.last or got > p.size
    local read = table.concat(pieces)
    t:check(read == data, {
      requirement = read == data and ALL or "RDMAP-4.4-9", expected = "the bytes of the region", actual = octets.difference(read, data),
    })
  else
    local region = target:region { octets = p.size, access = { "local_write", "remote_write" } }
    local small = target:region { octets = 16, access = { "local_write" } }
    local work = pair:post_receive { region = p.message == "send" and region or small }
    local msn = op.msn
    for at = 0, p.size - 1, CUT do
      local piece = data:sub(at + 1, at + CUT)
      local last = at + #piece == p.size
      conn:send(mpa.fpdu { ulpdu = p.message == "send" and rdmap.send { msn = msn, mo = at, payload = piece, last = last }
        or rdmap.write { stag = region.stag, tagged_offset = region.address + at, payload = piece, last = last } })
    end
    if p.message == "send" then
      pair:expect_completion { work = work, operation = "receive", octets = p.size, requirement = "RDMAP-5.3-13", overdue_fails = true }
    else
      conn:expect_silence { requirement = "DDP-5.1.1-1", within = 0.5, open = true }
      send(conn, msn, "later")
      pair:expect_completion { work = work, operation = "receive" }
    end
    local got = region:get { length = p.size }
    local placed = p.message == "send" and "DDP-1.2-3" or "DDP-5.1.1-1"
    t:check(got == data, {
      requirement = got == data and ALL or placed, expected = "the bytes that were sent", actual = octets.difference(got, data),
    })
  end
  conn:reset()
end))
