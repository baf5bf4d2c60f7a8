-- RFC 5040 sections 5.1 to 5.3: the messages that the target's user posts. The user is an agent: a
-- program on the target that calls the NIC's verbs for the tester.

local DATA = ("weft octets that differ "):rep(200)
local STAG = 0x77656601

--- Declares a case with an agent, for both roles of the target. `declared` has the other fields of
--- the case.
local function with_agent(name, title, requirements, declared, run)
  declared.id, declared.title = "rdmap/5.1-posted/" .. name, title
  declared.requirements, declared.run = requirements, run
  declared.roles = { "responder", "initiator" }
  declared.capabilities = { "agent" }
  return declared
end

case(with_agent("write", "The target sends a posted Write to the STag and the Tagged Offset that the user gives",
  { "RDMAP-5.1-1", "RDMAP-5.1-6", "DDP-4.2-5", "DDP-5.2-6", "RDMAP-4.3-1" },
  { tags = { "write", "agent" }, scales = { "size" }, parameters = { size = { 1, 64, 4096 }, to = { 0, 5, -8192 } } }, function(t, p, target)
  t:good_exchange()
  local conn, pair = target:operate {}
  local region = target:region { octets = 4096, access = { "local_write" }, put = DATA:sub(1, 4096) }
  local work = pair:post_write { region = region, length = p.size, stag = STAG, to = p.to }
  local written = ""
  repeat
    local fpdu = conn:expect_fpdu { requirement = { "RDMAP-5.1-1", "RDMAP-5.1-6" }, opcode = 0 }
    t:check(fpdu.tagged, { requirement = "RDMAP-5.1-1", expected = "a tagged segment", actual = "an untagged segment" })
    -- A Write may end with an empty segment, whose STag and TO do not matter (RFC 5041 section
    -- 5.2).
    if #fpdu.payload > 0 then
      t:check(fpdu.stag == STAG, {
        requirement = "DDP-4.2-5",
        expected = ("STag %#x"):format(STAG),
        actual = ("STag %#x"):format(fpdu.stag),
      })
      t:check(fpdu.tagged_offset == p.to + #written, {
        requirement = "DDP-5.2-6",
        expected = ("Tagged Offset %#x"):format(p.to + #written),
        actual = ("Tagged Offset %#x"):format(fpdu.tagged_offset),
      })
    end
    written = written .. fpdu.payload
  until fpdu.last or #written > p.size
  t:check(written == DATA:sub(1, p.size), {
    requirement = "RDMAP-4.3-1",
    expected = ("the %d bytes of the user's buffer"):format(p.size),
    actual = octets.difference(written, DATA:sub(1, p.size)),
  })
  pair:expect_completion { work = work, operation = "write" }
  conn:reset()
end))

case(with_agent("order", "The target sends Writes and Sends in the order in which they were posted, each Write to its own STag",
  { "RDMAP-5.1-9", "DDP-4.2-5" }, { tags = { "write", "send", "agent" } }, function(t, p, target)
  t:good_exchange()
  local conn, pair = target:operate {}
  local region = target:region { octets = 64, put = DATA:sub(1, 64) }
  -- A Send with Invalidate comes first. The STag that it names is invalid afterwards.
  local gone, why = pair:post_send { region = region, length = 1, invalidate = STAG, may_refuse = true }
  if not gone then t:unimplemented("The device rejects such a Send: " .. why) end
  for nth = 2, 7 do
    if nth % 3 == 1 then
      pair:post_send { region = region, length = nth }
    else
      pair:post_write { region = region, length = nth, stag = STAG + nth, to = 4096 * nth }
    end
  end
  for nth = 1, 7 do
    local opcode = nth == 1 and 4 or nth % 3 == 1 and 3 or 0
    local fpdu = conn:expect_fpdu {}
    t:check(fpdu.opcode == opcode and #fpdu.payload == nth, {
      requirement = "RDMAP-5.1-9",
      expected = ("opcode %d with %d bytes as message %d"):format(opcode, nth, nth),
      actual = ("opcode %d with %d bytes"):format(fpdu.opcode, #fpdu.payload),
    })
    if opcode == 0 then
      t:check(fpdu.stag == STAG + nth, {
        requirement = "DDP-4.2-5",
        expected = ("STag %#x"):format(STAG + nth),
        actual = ("STag %#x"):format(fpdu.stag),
      })
    end
  end
  conn:reset()
end))

local SINK = 4096

--- Answers a Read Request in segments of `cut` bytes. Sends the last segment only if `complete` is
--- set.
local function respond(conn, request, data, cut, complete)
  local stag, to = string.unpack(">I4i8", request.payload)
  for at = 0, #data - 1, cut do
    local piece = data:sub(at + 1, at + cut)
    local last = at + #piece == #data
    if complete or not last then
      conn:send(mpa.fpdu { ulpdu = rdmap.write { opcode = 2, stag = stag, tagged_offset = to + at, payload = piece, last = last } })
    end
  end
end

case(with_agent("read", "The target completes a posted Read when all of its Response has arrived, and not before",
  { "RDMAP-4.4-2", "RDMAP-5.2.2-9", "RDMAP-5.5-23", "RDMAP-5.5-21", "DDP-4.1-8" },
  { version = 2, tags = { "read", "agent" } }, function(t, p, target)
  t:good_exchange()
  local conn, pair, op = target:operate { ird = 1, ord = 1 }
  local region = target:region { octets = SINK }
  local received = pair:post_receive { region = target:region { octets = 16, access = { "local_write" } } }
  local work = pair:post_read { region = region, length = 3000, stag = STAG, to = 8192 }
  local request = conn:expect_fpdu { opcode = 1 }
  t:check(#request.payload == 28, { expected = "a Read Request of 28 bytes", actual = #request.payload .. " bytes" })
  local size = string.unpack(">I4", request.payload, 13)
  t:check(size == 3000, { requirement = "RDMAP-4.4-2", expected = "RDMARDSZ 3000", actual = ("RDMARDSZ %d"):format(size) })
  respond(conn, request, DATA:sub(1, 3000), 1024, false)
  pair:expect_no_completion { within = 1, requirement = { "RDMAP-5.5-21", "DDP-4.1-8" } }
  local stag, to = string.unpack(">I4i8", request.payload)
  local rest = DATA:sub(2049, 3000)
  conn:send(mpa.fpdu { ulpdu = rdmap.write { opcode = 2, stag = stag, tagged_offset = to + 2048, payload = rest, last = true } })
  -- A message after the Response shows that the device still reports arrivals.
  conn:send(mpa.fpdu { ulpdu = rdmap.send { msn = op.msn, payload = "later" } })
  pair:expect_completion { work = received, operation = "receive" }
  pair:expect_completion { work = work, operation = "read", requirement = { "RDMAP-5.2.2-9", "RDMAP-5.5-23" }, overdue_fails = true }
  local got = region:get { length = 3000 }
  t:check(got == DATA:sub(1, 3000), {
    requirement = "RDMAP-5.2.2-9",
    expected = "the bytes of the Response in the user's buffer",
    actual = octets.difference(got, DATA:sub(1, 3000)),
  })
  conn:reset()
end))

case(with_agent("reads-in-order", "The target completes waiting Reads, and a Send between them, in the order in which they were posted",
  { "RDMAP-5.5-12", "RDMAP-5.5-19" }, { version = 2, tags = { "read", "send", "agent" } }, function(t, p, target)
  t:good_exchange()
  local conn, pair = target:operate { ird = 2, ord = 2 }
  local region = target:region { octets = SINK, put = "later" }
  local works = {
    pair:post_read { region = region, offset = 64, length = 64, stag = STAG, to = 0 },
    pair:post_send { region = region, length = 5 },
    pair:post_read { region = region, offset = 128, length = 64, stag = STAG, to = 64 },
  }
  -- If the connection allows one Read at a time, the second Request may wait for the first
  -- answer.
  local requests, sends = 0, 0
  while requests < 2 or sends < 1 do
    local fpdu = conn:expect_fpdu {}
    if fpdu.opcode == 1 then
      requests = requests + 1
      respond(conn, fpdu, DATA:sub(1, 64), 1024, true)
    else
      sends = sends + 1
    end
  end
  local completions, reads = {}, {}
  for nth = 1, 3 do
    completions[nth] = pair:expect_completion {}
    if completions[nth].work ~= works[2] then reads[#reads + 1] = completions[nth].work end
  end
  -- If only the Send is in the wrong place, the Reads are in the correct order.
  local is_reads = reads[1] == works[1] and reads[2] == works[3]
  local is_all = is_reads and completions[2].work == works[2]
  t:check(is_all, {
    requirement = is_reads and not is_all and "RDMAP-5.5-12" or { "RDMAP-5.5-12", "RDMAP-5.5-19" },
    expected = "the first Read, the Send, the second Read",
    actual = ("work requests %d, %d, %d (posted in the order %d, %d, %d)"):format(completions[1].work, completions[2].work, completions[3].work, table.unpack(works)),
  })
  conn:reset()
end))

-- Before Linux 5.17, siw continued after the answer to the first Read ("Fix broken RDMA Read
-- Fence/Resume logic").
case(with_agent("fence", "The target sends work with a Read Fence after all earlier Reads are answered, not before",
  { "VERBS-8.2.2.2-2" },
  { tags = { "read", "send", "write", "agent" }, parameters = { verb = { "send", "write" }, reads = { 1, 2, 3 } } }, function(t, p, target)
  t:good_exchange()
  local conn, pair = target:operate { ird = 4, ord = 4 }
  local region = target:region { octets = SINK, put = "fenced" }
  for nth = 1, p.reads do
    pair:post_read { region = region, offset = 64 * nth, length = 64, stag = STAG, to = 64 * nth }
  end
  local fields = { region = region, length = 6, fence = true }
  if p.verb == "send" then
    pair:post_send(fields)
  else
    fields.stag, fields.to = STAG, 0
    pair:post_write(fields)
  end
  local waiting, answered = {}, 0
  while answered < p.reads do
    -- If a Request has to come, wait long enough for it. A message that must not come would come at
    -- once.
    local event, fpdu = conn:next { within = #waiting == 0 and 5 or 0.5 }
    if event == "fpdu" then
      t:check(fpdu.opcode == 1, {
        requirement = "VERBS-8.2.2.2-2",
        expected = ("only Read Requests, while %d of %d Reads are answered"):format(answered, p.reads),
        actual = ("opcode %d"):format(fpdu.opcode),
      })
      waiting[#waiting + 1] = fpdu
    else
      t:check(event == nil and #waiting > 0, { expected = "a Read Request", actual = event or "nothing" })
      respond(conn, table.remove(waiting, 1), DATA:sub(1, 64), 1024, true)
      answered = answered + 1
    end
  end
  local opcode = p.verb == "send" and 3 or 0
  conn:expect_fpdu { requirement = "VERBS-8.2.2.2-2", opcode = opcode, payload = "fenced", overdue_fails = true }
  conn:reset()
end))

case(with_agent("long", "The target sends posted messages of more than 64 KiB completely, and completes Reads of this size",
  { "RDMAP-4.3-1", "DDP-5.2-5", "DDP-5.2-6", "RDMAP-4.4-2", "RDMAP-5.2.2-9" }, {
  version = 2,
  tags = { "write", "send", "read", "segment", "agent" },
  parameters = { verb = { "send", "write", "read" }, size = { 65536, 200000 } },
}, function(t, p, target)
  -- The last check of a variant covers all requirements, also those about the other verbs.
  local ALL = { "RDMAP-4.3-1", "DDP-5.2-5", "DDP-5.2-6", "RDMAP-4.4-2", "RDMAP-5.2.2-9" }
  t:good_exchange()
  local conn, pair = target:operate { ird = 1, ord = 1 }
  local data = octets.counted(p.size)
  local region = target:region { octets = p.size, put = p.verb ~= "read" and data or nil }
  local work
  if p.verb == "read" then
    work = pair:post_read { region = region, length = p.size, stag = STAG, to = 8192 }
    local request = conn:expect_fpdu { opcode = 1 }
    t:check(#request.payload == 28, { expected = "a Read Request of 28 bytes", actual = #request.payload .. " bytes" })
    local size = string.unpack(">I4", request.payload, 13)
    t:check(size == p.size, { requirement = "RDMAP-4.4-2", expected = ("RDMARDSZ %d"):format(p.size), actual = ("RDMARDSZ %d"):format(size) })
    respond(conn, request, data, 1024, true)
    pair:expect_completion { work = work, operation = "read", requirement = "RDMAP-5.2.2-9", overdue_fails = true }
    local got = region:get { length = p.size }
    t:check(got == data, {
      requirement = got == data and ALL or "RDMAP-5.2.2-9", expected = "the bytes of the Response", actual = octets.difference(got, data),
    })
  else
    if p.verb == "send" then
      work = pair:post_send { region = region, length = p.size }
    else
      work = pair:post_write { region = region, length = p.size, stag = STAG, to = 0 }
    end
    local offset = p.verb == "send" and "DDP-5.2-5" or "DDP-5.2-6"
    local bytes = p.verb == "send" and "DDP-5.2-5" or "RDMAP-4.3-1"
    local got = 0
    repeat
      local fpdu = conn:expect_fpdu { requirement = bytes, opcode = p.verb == "send" and 3 or 0, overdue_fails = true }
      local at = p.verb == "send" and fpdu.mo or fpdu.tagged_offset
      if #fpdu.payload > 0 then
        t:check(at == got, { requirement = offset, expected = ("offset %d"):format(got), actual = ("offset %d"):format(at) })
      end
      local want = data:sub(got + 1, got + #fpdu.payload)
      t:check(fpdu.payload == want, {
        requirement = bytes, expected = ("the bytes of the user's buffer from %d on"):format(got), actual = octets.difference(fpdu.payload, want),
      })
      got = got + #fpdu.payload
    until fpdu.last
    t:check(got == p.size, {
      requirement = got == p.size and ALL or bytes, expected = ("%d bytes"):format(p.size), actual = ("%d bytes"):format(got),
    })
    pair:expect_completion { work = work }
  end
  conn:reset()
end))
