-- RFC 5044 sections 7.1.1 and 7.1.2: how an Initiator handles the Reply.

--- Waits for the Request, which shows that the target works. The tester has to send the Reply next.
local function expect_request(t)
  local conn = t:connect()
  return conn, conn:expect_request()
end

--- Returns whether the Request is enhanced (RFC 6581). After such a Request, a Terminate may
--- precede the close, because "any enhanced RDMA connection establishment error generates an MPA
--- termination message" (RFC 6581 section 8).
local function is_enhanced(request)
  return request.revision == 2 and request.flags & 0x10 ~= 0
end

--- Sends two pieces of four bytes back to back, and the rest a moment later. If the target reads
--- once for each piece, its first read gets both pieces, and its second read gets nothing.
local function send_in_a_burst(t, conn, message)
  local octets = message:octets()
  conn:send(octets:sub(1, 8), { deviates = message, every = 4 })
  t:pause(0.05)
  conn:send(octets:sub(9))
end

--- Declares a case for an initiator. `declared` has the other fields of the case.
local function of_initiator(name, title, requirements, declared, run)
  declared.id, declared.title = "mpa/7.1.2-reply/" .. name, title
  declared.requirements, declared.run = requirements, run
  declared.roles = { "initiator" }
  return declared
end

case(of_initiator("accepted", "The initiator reaches Full Operation after a correct Reply in whatever pieces TCP delivers it",
  { "MPA-7.1.2-16" }, {
  version = 3,
  capabilities = { "operation" },
  tags = { "startup", "segments" },
  parameters = { pieces = { false, true } },
}, function(t, p)
  local function accept(send)
    local conn = expect_request(t)
    send(conn, conn:reply())
    conn:expect_fpdu { requirement = "MPA-7.1.2-16", overdue_fails = true }
    conn:close()
  end

  if not p.pieces then
    accept(function(conn, reply)
      conn:send(reply)
    end)
  else
    -- The pieces race with the target's reader, and a target that sometimes misses a Reply has to
    -- fail. With one attempt per size, such a target would pass or fail by chance.
    for _ = 1, 4 do
      accept(function(conn, reply)
        send_in_a_burst(t, conn, reply)
      end)
    end
    for _, every in ipairs { 1, 2, 7, 16, 19 } do
      for _, pause in ipairs { 0.01, 0.003, 0.001, 0.0003 } do
        accept(function(conn, reply)
          conn:send(reply, { deviates = reply, every = every, pause = pause })
        end)
      end
    end
  end
end))

--- Declares a case in which the initiator closes on the Reply that `reply` returns. The close has
--- to come so soon that no start-up timer can be its cause.
local function refused_at_once(name, title, requirements, parameters, reply)
  local declared = { tags = { "startup", "refusal" }, parameters = parameters }
  return of_initiator(name, title, { requirements, "MPA-8-9" }, declared, function(t, p)
    local conn, request = expect_request(t)
    conn:send(reply(conn, p))
    local seconds = conn:expect_close { requirement = requirements, after_terminate = is_enhanced(request) }
    t:check(seconds < 3, {
      requirement = "MPA-8-9",
      expected = "a close at once, within 3 s",
      actual = ("a close after %.1f s"):format(seconds),
    })
  end)
end

case(refused_at_once("wrong-key", "The initiator closes at once on a Reply with one wrong key byte",
  { "MPA-7.1.1-4", "MPA-7.1.2-14", "MPA-7.1.2-18", "MPA-8-4" }, { octet = range(0, 15) }, function(conn, p)
  return conn:reply():flip(p.octet)
end))

case(refused_at_once("a-request", "The initiator closes if a Request answers its Request, because both sides began as initiator",
  { "MPA-7.1.2-22", "MPA-7.1-8", "MPA-7.1.2-14" }, {}, function(conn)
  return conn:reply { key = "MPA ID Req Frame" }
end))

case(refused_at_once("revision", "The initiator closes on a Reply of a revision that it does not support",
  { "MPA-7.1.1-21", "MPA-7.1.1-22", "MPA-7.1.2-14" }, { revision = { 3, 4, 128, 255 } }, function(conn, p)
  return conn:reply { revision = p.revision }
end))

case(of_initiator("revision-0", "The initiator closes gracefully on a Reply of revision 0, unless it is permissive",
  { "MPA-C.2.2-1", "MPA-C.2-1" }, { tags = { "startup", "refusal" } }, function(t)
  local conn, request = expect_request(t)
  conn:send(mpa.reply { revision = 0, markers = true })
  conn:expect_close { requirement = { "MPA-C.2.2-1", "MPA-C.2-1" }, graceful = true, after_terminate = is_enhanced(request) }
end))

--- Lengths of private data in bytes, and those for Replies with R=1. Some counters of the length
--- have eight bits.
local LENGTHS = { 1, 4, 252, 253, 254, 255, 256, 257, 508, 509, 510, 511, 512 }
local REJECTED = { 252, 255, 256, 257, 509, 512 }

--- Builds a Reply with `length` bytes of private data. IRD and ORD of an enhanced Reply are a part
--- of the 512 bytes.
local function reply_with(conn, length, reject)
  local function reply(size) return conn:reply { private_data = ("x"):rep(size), reject = reject } end
  local more = #reply(0) - 20
  return reply(math.min(length, 512 - more))
end

case(of_initiator("private-data", "The initiator accepts a Reply with up to 512 bytes of private data", { "MPA-7.1.2-25" }, {
  version = 2,
  capabilities = { "operation" },
  tags = { "startup", "private-data" },
  parameters = { length = LENGTHS },
  scales = { "length" },
}, function(t, p)
  local conn = expect_request(t)
  conn:send(reply_with(conn, p.length))
  conn:expect_fpdu { requirement = "MPA-7.1.2-25", overdue_fails = true }
  conn:close()
end))

case(of_initiator("long", "The initiator closes on a Reply with more than 512 bytes of private data",
  { "MPA-7.1.1-26", "MPA-7.1.2-24", "MPA-7.1.2-27", "MPA-7.1.2-14" },
  { tags = { "startup", "private-data", "refusal" }, scales = { "length" }, parameters = { length = { 513, 600, 1024, 65535 } } }, function(t, p)
  local conn, request = expect_request(t)
  conn:send(mpa.reply { pd_length = p.length, private_data = ("x"):rep(math.min(p.length, 2048)) }, {
    deviates = conn:reply { private_data = "12345678" },
  })
  conn:expect_close { requirement = { "MPA-7.1.1-26", "MPA-7.1.2-24", "MPA-7.1.2-27", "MPA-7.1.2-14" }, after_terminate = is_enhanced(request) }
end))

case(of_initiator("joined", "The initiator closes if more bytes arrive with the Reply than PD_Length counts",
  { "MPA-7.1.1-26", "MPA-7.1.2-26", "MPA-7.1.2-27" },
  { tags = { "startup", "private-data", "refusal" }, parameters = { what = { "octet", "words", "fpdu" } } }, function(t, p)
  local conn, request = expect_request(t)
  local extra = ({ octet = "x", words = "12345678", fpdu = mpa.fpdu { ulpdu = rdmap.send { payload = "early" } } })[p.what]
  conn:send(conn:reply() .. extra)
  conn:expect_close { requirement = { "MPA-7.1.1-26", "MPA-7.1.2-26", "MPA-7.1.2-27" }, after_terminate = is_enhanced(request) }
end))

case(of_initiator("short", "The initiator does not wait forever for a missing or incomplete Reply", { "MPA-7.1.2-28" },
  { tags = { "startup", "slow" }, tier = "default", parameters = { octets = { 0, 1, 19, 20, 23 } } }, function(t, p)
  local conn, request = expect_request(t)
  if p.octets > 0 then
    conn:send(conn:reply { pd_length = 8, private_data = "12345678" }:cut(p.octets))
  end
  conn:expect_close { requirement = "MPA-7.1.2-28", within = 120, overdue_fails = true, after_terminate = is_enhanced(request) }
end))

case(of_initiator("reserved", "The initiator ignores reserved bits of a Reply", { "MPA-7.1.1-19" },
  { capabilities = { "operation" }, tags = { "startup" }, parameters = { bits = { 0x01, 0x02, 0x04, 0x08, 0x0f } } }, function(t, p)
  local conn = expect_request(t)
  conn:send(conn:reply():flip(16, p.bits), { deviates = conn:reply() })
  conn:expect_fpdu { requirement = "MPA-7.1.1-19", overdue_fails = true }
  conn:close()
end))

case(of_initiator("rejected", "The initiator sends no FPDU after a Reply with R=1",
  { "MPA-7.1.2-15" }, { tags = { "startup", "refusal" }, parameters = { private_data = { "", "no" } } }, function(t, p)
  local conn = expect_request(t)
  conn:send(conn:reply { reject = true, private_data = p.private_data })
  -- The target may close TCP itself, or let its ULP close TCP.
  conn:expect_silence { requirement = "MPA-7.1.2-15", within = 3 }
  conn:close()
end))

case(of_initiator("rejected-long", "The initiator sends no FPDU after a Reply with R=1 and up to 512 bytes of private data",
  { "MPA-7.1.2-15" }, { tags = { "startup", "refusal", "private-data" }, parameters = { length = REJECTED }, scales = { "length" } }, function(t, p)
  local conn = expect_request(t)
  conn:send(reply_with(conn, p.length, true))
  conn:expect_silence { requirement = "MPA-7.1.2-15", within = 1 }
  conn:close()
end))

case(of_initiator("crc", "The initiator sends correct CRCs if either side has C=1", { "MPA-7.1.1-12", "MPA-4.1-6", "MPA-4.4-14" },
  { version = 2, capabilities = { "crc", "operation" }, tags = { "startup", "crc" }, parameters = { crc = { true, false } } }, function(t, p)
  local conn = t:connect()
  local request = conn:expect_request()
  conn:send(conn:reply { crc = p.crc })
  if not (p.crc or request.crc) then
    t:unimplemented("The target does not request CRCs by itself.")
  end
  -- The monitor judges other faults of the algorithm.
  local fpdu = conn:expect_fpdu { shows = "MPA-4.4-14" }
  local is_reversed = fpdu.octets:sub(-4) == mpa.fpdu { ulpdu = fpdu.ulpdu }:octets():sub(-4):reverse()
  t:check(fpdu.crc_is_right, {
    requirement = { "MPA-7.1.1-12", "MPA-4.1-6", is_reversed and "MPA-4.4-14" or nil }, expected = "a correct CRC", actual = "a wrong CRC",
  })
  conn:close()
end))

case(of_initiator("markers", "The initiator sends a marker before its first FPDU if the Reply has M=1",
  { "MPA-7.1.1-7", "MPA-4.3-10", "MPA-7.1.2-21" },
  { version = 2, capabilities = { "markers", "operation" }, tags = { "startup", "markers" } }, function(t)
  local conn = expect_request(t)
  conn:send(conn:reply { markers = true })
  -- The tester has removed the first four bytes. If they are not a marker, the other bytes are not an
  -- FPDU with a known opcode. The monitor judges the value of the marker.
  local event, fpdu = conn:next {}
  t:check(event == "fpdu" and fpdu.opcode and fpdu.crc_is_right, {
    requirement = event and event ~= "close" and { "MPA-7.1.1-7", "MPA-4.3-10", "MPA-7.1.2-21" } or "MPA-7.1.1-7",
    expected = "a marker, and then an FPDU",
    actual = event == "close" and "a close" or event and "an FPDU without a marker before it" or "nothing",
    missing = event == nil,
  })
  t:check(true, { requirement = { "MPA-4.3-10", "MPA-7.1.2-21" }, expected = "a marker, and then an FPDU", actual = "no marker" })
  conn:reset()
end))

case(of_initiator("no-markers", "The initiator sends no markers if the Reply has M=0",
  { "MPA-7.1.1-8", "MPA-7.1.2-21" }, { capabilities = { "operation" }, tags = { "startup", "markers" } }, function(t)
  local conn = expect_request(t)
  conn:send(conn:reply { markers = false })
  -- A marker before the first FPDU would look like a ULPDU_Length of zero.
  local fpdu = conn:expect_fpdu { requirement = { "MPA-7.1.1-8", "MPA-7.1.2-21" }, overdue_fails = true }
  t:check(#fpdu.ulpdu > 0, {
    requirement = { "MPA-7.1.1-8", "MPA-7.1.2-21" },
    expected = "the stream begins with a ULPDU_Length that is not zero",
    actual = "it begins with zeros",
  })
  conn:close()
end))

case(of_initiator("opens", "The initiator sends the first message, a Send with QN 0, MSN 1 and MO 0",
  { "DDP-4.3-7" }, { version = 2, capabilities = { "revision-1", "operation" }, tags = { "startup", "send" } }, function(t)
  local conn = t:connect()
  local request = conn:expect_request()
  if request.peer_to_peer then
    t:unimplemented("The target begins with a ready-to-receive message.")
  end
  conn:send(conn:reply())
  -- Other cases check QN and MO, and that the target sends its first message.
  local fpdu = conn:expect_fpdu { qn = 0, mo = 0 }
  t:check(fpdu.msn == 1, { requirement = "DDP-4.3-7", expected = "MSN 1", actual = ("MSN %s"):format(fpdu.msn) })
  conn:close()
end))
