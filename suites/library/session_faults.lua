-- The illegal FPDUs of sessions with the service echo or rping, or with an agent.

local shared = ...
local ANSWER, ANSWERED, STAG, describe = shared.ANSWER, shared.ANSWERED, shared.STAG, shared.describe

--- A target that gets an invalid Read Response reports an error.
local RESPONSE = "RDMAP-5.2.2-6"
--- The requirements of a round of rping, which a fault in the Response to the target's Read tests,
--- too.
local READ = { "RDMAP-4.4-2", "DDP-5.2-6" }

--- The number of seconds in which a message that must not be delivered would be delivered.
local SILENCE = 2

--- The bytes of a Write with a wrong CRC, and the size in bytes of a correct Send after an illegal
--- FPDU.
local WRITTEN, CORRECT_SEND = ("w"):rep(32), 12

--- Returns the FPDU with one wrong byte: at offset `octet` if it is set, else in the CRC field.
local function damaged(fpdu, octet)
  return fpdu:flip(octet or #fpdu - 1)
end

--- Returns an FPDU with a Send.
local function a_send(c, size, changes)
  local fields = { payload = octets.counted(size), msn = c.msn }
  for name, value in pairs(changes or {}) do
    fields[name] = value
  end
  return mpa.fpdu { ulpdu = rdmap.send(fields) }
end

--- Returns an FPDU with a Write of `size` bytes at offset `at` of rping's buffer.
local function a_write(c, size, at)
  return mpa.fpdu { ulpdu = rdmap.write { stag = c.op.stag, tagged_offset = c.op.to + at, payload = ("w"):rep(size) } }
end

--- Returns an FPDU with a Write of four bytes to this STag and TO.
local function a_write_to(stag, to)
  return mpa.fpdu { ulpdu = rdmap.write { stag = stag, tagged_offset = to, payload = "weft" } }
end

--- Returns an FPDU with a Read Request for `size` bytes from this STag and TO.
local function a_read_from(c, size, stag, to)
  return mpa.fpdu {
    ulpdu = rdmap.read_request { sink_stag = STAG, sink_to = 0, rdmardsz = size, src_stag = stag, src_to = to, msn = c.read_msn },
  }
end

--- Returns an FPDU with a Read Request for `size` bytes at offset `at` of rping's buffer.
local function a_read(c, size, at) return a_read_from(c, size, c.op.stag, c.op.to + at) end

--- Returns a part of a Send with Invalidate, from offset `at`. The Send is a message of rping, and
--- names the STag of rping's buffer, unless `stag` is set.
local function an_invalidation(c, at, size, last, stag)
  local message = string.pack(">I8I4I4", 0x2000, 0x77656602, 64)
  return mpa.fpdu {
    ulpdu = rdmap.send {
      payload = message:sub(at + 1, at + size), msn = c.msn, mo = at, last = last, opcode = 4,
      invalidate_stag = stag or c.op.stag,
    },
  }
end

--- Returns the STag and TO of another open connection's buffer. If this connection's buffer has the
--- same STag, returns an STag that does not exist.
local function neighbour_buffer(c)
  local op = c.neighbour.op
  return op.stag ~= c.op.stag and op.stag or 0x5eed0003, op.to
end

--- Returns the FPDUs of a Response to the target's own Read. Each part of the Response has the
--- offset of its payload in the sink, and the payload. The last segment has L=1. After that, the
--- session sends nothing more for this Read.
local function a_response(c, parts)
  local source, fpdus = c.source, ""
  c.source = nil
  for index, part in ipairs(parts) do
    local at, payload = table.unpack(part)
    for from = 0, #payload - 1, source.segment do
      local piece = payload:sub(from + 1, from + source.segment)
      local last = index == #parts and from + #piece == #payload
      local to = source.to + at + from
      fpdus = fpdus .. mpa.fpdu { ulpdu = rdmap.write { opcode = 2, stag = source.stag, tagged_offset = to, payload = piece, last = last } }
    end
    c.memory = shared.splice(c.memory, at, payload)
  end
  return fpdus
end

--- Returns a fault in the Response to the target's own Read. `parts` returns the parts of the
--- Response for the requested text. The Data Sink may compare STag, TO and length with those of the
--- Read Request (RFC 5040 section 5.2.2). So the target may reject the Response, or complete the
--- Read.
local function wrong_response(parts)
  return {
    requirement = RESPONSE, reads = true, may_complete = true, shows = READ,
    build = function(c) return a_response(c, parts(c.source.text)) end,
  }
end

--- The target checks the CRC of an FPDU before it uses the FPDU. A wrong CRC is an error. After an
--- error, the target uses no further FPDU.
local CRC, INVALID, AFTER_ERROR = "MPA-4.4-19", "MPA-4.4-20", "MPA-8-13"
--- After its Terminate, the target sends no message, and the connection is closed.
local ENDED, CLOSED = "RDMAP-5.4-12", "RDMAP-7-3"

--- Returns a fault of an FPDU with a wrong CRC.
local function wrong_crc(fault)
  fault.requirement, fault.shows = CRC, { INVALID, AFTER_ERROR, table.unpack(fault.shows or {}) }
  return fault
end

--- The illegal FPDUs, by name. `sdp_faults.lua` adds SDP messages, and `portmap_session.lua` adds
--- illegal datagrams. Each fault has the requirement that the target violates if it accepts the
--- FPDU. The target has to end the connection, except after a fault with `silent`: then the target
--- may wait for missing bytes, but must not deliver the message.
---
--- `build` returns the bytes for a connection. Faults with the requirement `CRC` need a connection
--- with CRCs. `build` may then also return a correct FPDU of the same message, which is sent after
--- the wrong FPDU. In this case, `is_used` returns whether the payload of an echo has bytes of the
--- wrong FPDU. `before` sends correct FPDUs, and checks their answer. `answers` is the number of
--- messages that the target may send before it rejects the FPDU. If the target is an echo, `build`
--- returns as many Sends before the illegal FPDU. With `cuts`, TCP delivers the FPDU in pieces,
--- which end at these bytes. A negative number counts from the end of the FPDU. With `begins_send`,
--- the target may receive a Send, or its first FPDU, before it rejects the illegal FPDU. With
--- `needs_neighbour`, another connection is open (`c.neighbour`). With `access`, the buffer of the
--- target has only these rights. Such a fault needs an agent. With `reads`, the target is rping's
--- server, and waits for the Response to its own Read (`c.source`). With `may_complete`, the target
--- may complete this Read instead of rejecting the Response, and then the bytes in the sink are
--- checked. `shows` has the further requirements that a fault tests.
session.FAULTS = {
  ["wrong-crc"] = wrong_crc { build = function(c) return damaged(a_send(c, 40)) end },
  ["wrong-crc-empty"] = wrong_crc { build = function(c) return damaged(a_send(c, 0)) end },
  ["wrong-crc-long"] = wrong_crc { build = function(c) return damaged(a_send(c, c.longest), 1000) end },
  ["wrong-crc-header"] = wrong_crc { build = function(c) return damaged(a_send(c, 40), 9) end },
  ["wrong-crc-second"] = wrong_crc {
    answers = 1,
    begins_send = true,
    build = function(c) return a_send(c, 24) .. damaged(a_send(c, 40, { msn = (c.msn + 1) & 0xffffffff })) end,
  },
  ["wrong-crc-large"] = wrong_crc { build = function(c) return damaged(a_send(c, 20000), 19000) end },
  ["wrong-crc-middle"] = wrong_crc {
    begins_send = true,
    -- Byte 40 of the FPDU is byte 80 of the Send.
    is_used = function(payload) return payload:byte(81) == octets.counted(60):byte(21) ~ 0xff end,
    build = function(c)
      local middle = damaged(a_send(c, 60, { mo = 60, last = false }), 40)
      return a_send(c, 60, { last = false }) .. middle, a_send(c, 60, { mo = 120 })
    end,
  },
  -- The FPDU has 3 bytes of PAD, which the CRC covers. The first of them is wrong.
  ["wrong-crc-pad"] = wrong_crc { build = function(c) return damaged(a_send(c, 5), 25) end },
  ["wrong-crc-late"] = wrong_crc { cuts = { -2 }, build = function(c) return damaged(a_send(c, 40)) end },
  ["wrong-crc-pieces"] = wrong_crc { cuts = { 10, 30, 50 }, build = function(c) return damaged(a_send(c, 60)) end },
  ["wrong-crc-write"] = wrong_crc { build = function(c) return damaged(a_write(c, #WRITTEN, 0)) end },
  ["wrong-crc-read"] = wrong_crc { build = function(c) return damaged(a_read(c, #WRITTEN, 0)) end },
  -- The Response is correct, except for the CRC of its last segment.
  ["wrong-crc-response"] = wrong_crc {
    reads = true,
    shows = READ,
    build = function(c) return damaged(a_response(c, { { 0, c.source.text } })) end,
  },
  ["wrong-queue"] = { requirement = "DDP-7.1-1", build = function(c) return a_send(c, 4, { qn = 77 }) end },
  ["used-msn"] = { requirement = "DDP-7.1-9", build = function(c) return a_send(c, 4, { msn = (c.msn - 1) & 0xffffffff }) end },
  ["used-msn-pieces"] = {
    requirement = "DDP-7.1-9",
    cuts = { 10, 30, 50 },
    build = function(c) return a_send(c, 60, { msn = (c.msn - 1) & 0xffffffff }) end,
  },
  ["gap"] = {
    requirement = "DDP-5.4-3",
    silent = true,
    build = function(c) return a_send(c, 8, { last = false }) .. a_send(c, 8, { mo = 16 }) end,
  },
  -- A Send with Invalidate invalidates the STag when it is delivered, which is after its last
  -- segment.
  ["invalidated"] = {
    requirement = "RDMAP-5.3-8",
    answers = 3,
    begins_send = true,
    before = function(t, c)
      c.conn:send(an_invalidation(c, 0, 8, false) .. a_read(c, 8, 0))
      local event, fpdu = c.conn:next { within = ANSWER }
      t:check(event == "fpdu" and fpdu.opcode == 2, {
        requirement = ANSWERED,
        expected = "a Read Response, because the Send with Invalidate is not complete",
        actual = describe(event, fpdu),
        missing = event == nil,
      })
    end,
    build = function(c) return an_invalidation(c, 8, 8, true) .. a_write(c, 8, 0) end,
  },
  -- The target has already answered a Read of the buffer whose STag is then invalidated.
  ["invalidated-read"] = {
    requirement = "RDMAP-5.3-8",
    answers = 3,
    begins_send = true,
    before = function(t, c)
      c.conn:send(a_read(c, 8, 0))
      c.read_msn = c.read_msn + 1
      local event, fpdu = c.conn:next { within = ANSWER }
      t:check(event == "fpdu" and fpdu.opcode == 2, {
        requirement = ANSWERED, expected = "a Read Response", actual = describe(event, fpdu), missing = event == nil,
      })
    end,
    build = function(c) return an_invalidation(c, 0, 16, true) .. a_read(c, 8, 0) end,
  },
  -- A Write with another key of the buffer's STag, after a Write with the correct key.
  ["other-key"] = {
    requirement = "DDP-7.1-10",
    build = function(c) return a_write(c, 4, 0) .. a_write_to(c.op.stag ~ 0x55, c.op.to) end,
  },
  ["reserved-opcode"] = { requirement = "RDMAP-7.2-2", build = function(c) return a_send(c, 4, { opcode = 12 }) end },
  ["unknown-stag"] = { requirement = "DDP-7.1-10", build = function() return a_write_to(0x5eed0001, 0) end },
  ["write-beyond"] = { requirement = "DDP-7.1-13", build = function(c) return a_write(c, 8, c.op.length - 4) end },
  ["write-far"] = { requirement = "DDP-7.1-13", build = function(c) return a_write(c, 8, 1 << 40) end },
  -- The STag of a connection that has ended. Some targets use it again for the next connection.
  ["closed-stag"] = {
    requirement = "DDP-7.1-10",
    build = function(c)
      local buffer = c.closed and c.closed.stag ~= c.op.stag and c.closed or { stag = 0x5eed0002, to = 0 }
      return a_write_to(buffer.stag, buffer.to)
    end,
  },
  -- Each of rping's connections has its own Protection Domain, so the STag of another connection is
  -- invalid (RFC 5041 section 8.2, RFC 5040 section 8.1.1).
  ["neighbour-read"] = {
    requirement = "RDMAP-7.2-5",
    needs_neighbour = true,
    build = function(c) return a_read_from(c, 8, neighbour_buffer(c)) end,
  },
  ["neighbour-write"] = {
    requirement = "DDP-7.1-10",
    needs_neighbour = true,
    build = function(c) return a_write_to(neighbour_buffer(c)) end,
  },
  -- The target may deliver the Send before it checks the STag.
  ["neighbour-invalidate"] = {
    requirement = "RDMAP-7.2-14",
    needs_neighbour = true,
    answers = 3,
    begins_send = true,
    build = function(c) return an_invalidation(c, 0, 16, true, (neighbour_buffer(c))) end,
  },
  ["read-beyond"] = { requirement = "RDMAP-7.2-18", build = function(c) return a_read(c, 8, c.op.length - 4) end },
  ["response-short"] = wrong_response(function(text) return { { 0, text:sub(1, -2) } } end),
  ["response-misplaced"] = wrong_response(function(text) return { { 8, text } } end),
  ["response-overlong"] = wrong_response(function(text) return { { 0, text }, { #text, "overlong" } } end),
  ["response-reversed"] = wrong_response(function(text)
    local half = #text // 2
    return { { half, text:sub(half + 1) }, { 0, text:sub(1, half) } }
  end),
  -- No Read of the target is outstanding. If the target is the server of rping, its last Read had
  -- the same sink.
  ["response-again"] = {
    requirement = RESPONSE,
    begins_send = true,
    build = function(c)
      return mpa.fpdu { ulpdu = rdmap.write { opcode = 2, stag = c.op.stag, tagged_offset = c.op.to, payload = ("w"):rep(8) } }
    end,
  },
  -- The STag is valid, but its buffer does not allow remote Writes, or remote Reads.
  ["no-write-right"] = {
    requirement = "DDP-7.1-11",
    access = { "local_write", "remote_read" },
    build = function(c) return a_write(c, 8, 0) end,
  },
  ["no-read-right"] = {
    requirement = "RDMAP-8.1.1-5",
    access = { "local_write", "remote_write" },
    build = function(c) return a_read(c, 8, 0) end,
  },
}

--- Returns a correct FPDU, which is sent after the illegal FPDU: a Read Request if the connection
--- has a buffer, else the next Send.
local function correct_fpdu(c, fault)
  if c.op then return a_read(c, #WRITTEN, 0) end
  return a_send(c, CORRECT_SEND, { msn = (c.msn + (fault.answers or 0)) & 0xffffffff })
end

--- Returns whether an FPDU of the target shows that the target has used one of the correct FPDUs
--- `later`, but not the wrong FPDU before them.
local function is_about_later(c, fault, fpdu, later)
  if #later == 0 then return false end
  if fpdu.opcode == 7 then
    -- The correct Send has the MSN of the wrong FPDU. If the target rejects it, the target has used
    -- the wrong FPDU.
    if not fault.is_used and not c.op then return false end
    -- In a Terminate, the length and the DDP header of the rejected FPDU follow four bytes.
    return fpdu.payload:sub(5, 24) == later[1]:octets():sub(1, 20)
  end
  if fault.is_used then return not fault.is_used(fpdu.payload) end
  if not c.op then return fpdu.payload == octets.counted(CORRECT_SEND) end
  return fpdu.opcode == 2 and fpdu.stag == STAG and fpdu.payload ~= WRITTEN
end

--- Returns the requirement that the target violates if it does not end the connection after an FPDU
--- with a wrong CRC. `event` and `fpdu` are its reaction. `later` has the correct FPDUs that were
--- sent after the wrong FPDU. Without such FPDUs and without a reaction, sends a correct FPDU. A
--- Send that rping uses without a reaction cannot be distinguished from a dropped Send.
local function violated_by_use(c, fault, owed, event, fpdu, later)
  if event == nil and owed.check_unused then owed.check_unused() end
  local is_late = event == nil and #later == 0
  if is_late then
    later = { correct_fpdu(c, fault) }
    c.conn:send(later[1])
    event, fpdu = c.conn:next { within = ANSWER }
  end
  if event == "fpdu" and is_about_later(c, fault, fpdu, later) then return AFTER_ERROR end
  local is_written = event == "fpdu" and fpdu.payload == WRITTEN
  -- Any other late reaction does not show that the target has used the wrong FPDU.
  return (event == nil or is_late and not is_written) and INVALID or CRC
end

--- Sends an illegal FPDU on the connection `c`, and judges the reaction of the target. Then resets
--- the connection. `owed` has the functions of `session.lua` about the answers that the target owes.
--- `owed.check_unused`, if it is set, fails the case if the agent shows that the target has used
--- the illegal FPDU. `is_pending` is true if a message is incomplete, or has no answer yet.
local function violate(t, c, fault, owed, is_pending)
  local is_crc = fault.requirement == CRC
  if is_crc and not c.crc then
    t:unimplemented("A wrong CRC needs a connection with CRCs.")
  end
  if fault.before then fault.before(t, c) end
  local illegal, rest = fault.build(c)
  -- The correct FPDUs that are sent after the illegal one. The target must not use them.
  local later = {}
  if fault.silent then
    c.conn:send(illegal)
    local event, fpdu = c.conn:next { within = SILENCE }
    t:check(event ~= "fpdu" or fpdu.opcode == 7, {
      requirement = fault.requirement, expected = "no delivery", actual = describe(event, fpdu, SILENCE),
    })
    c.conn:reset()
    return
  end
  if fault.cuts then
    local cuts = {}
    for index, cut in ipairs(fault.cuts) do cuts[index] = cut < 0 and #illegal + cut or cut end
    c.conn:send(illegal, { cuts = cuts, pause = 0.1 })
  elseif c.op then
    c.conn:send(illegal)
  else
    later = rest and { rest, correct_fpdu(c, fault) } or { correct_fpdu(c, fault) }
    for _, correct in ipairs(later) do illegal = illegal .. correct end
    c.conn:send(illegal)
  end
  local within = owed.within(c)
  local event, fpdu = c.conn:next { within = within }
  -- The target may answer the earlier messages, and the correct FPDUs before the illegal FPDU.
  local others = fault.answers or 0
  while event == "fpdu" and fpdu.opcode ~= 7 do
    if not owed.take(c, fpdu) then
      if others == 0 then break end
      others = others - 1
    end
    within = owed.within(c)
    event, fpdu = c.conn:next { within = within }
  end
  local answer = owed.answer(c)
  if event == "octets" then event, fpdu = shared.after_cut(c.conn, answer) end
  if answer and #answer.got > 0 then
    local got = table.concat(answer.got)
    local want = answer.want:sub(1, #got)
    t:check(got == want, { requirement = shared.PLACED, expected = "the bytes of the answer", actual = octets.difference(got, want) })
  end
  local is_terminate = event == "fpdu" and fpdu.opcode == 7
  if is_terminate and is_crc then
    -- An error of another layer shows that MPA passed the ULPDU on. Some targets swap the two halves
    -- of the first byte.
    local first, code = fpdu.payload:byte(1, 2)
    is_terminate = first == 0x20 or code == 2 and (first == 2 or first >> 4 == 2)
  end
  -- The Send of rping's server shows that its Read is complete.
  local is_completed = fault.may_complete and event == "fpdu" and fpdu.opcode == 3
  local expected = is_crc and "a close, or a Terminate with an error of MPA" or "a close, or a Terminate"
  if fault.may_complete then expected = expected .. ", or a Send, because the Read is complete" end
  local is_end = event == "close" or is_terminate or is_completed
  local violated = fault.requirement
  if is_crc then
    violated = is_end and { CRC, INVALID, AFTER_ERROR } or violated_by_use(c, fault, owed, event, fpdu, later)
  end
  -- The reason for another reaction may be an earlier message.
  local rows = { violated, is_pending and not is_end and owed.requirement or nil }
  t:check(is_end, { requirement = rows, expected = expected, actual = describe(event, fpdu, within) })
  if is_completed then owed.check_sink(c) end
  if event == "fpdu" and not is_completed then
    event, fpdu = c.conn:next { within = ANSWER }
    t:check(event ~= "fpdu", { requirement = ENDED, expected = "no message after the Terminate", actual = describe(event, fpdu) })
    t:check(event == "close", { requirement = CLOSED, expected = "a close after the Terminate", actual = describe(event, fpdu) })
  else
    t:check(true, { requirement = { ENDED, CLOSED }, expected = "no message after the end", actual = "a close" })
  end
  c.conn:reset()
end

shared.CRC, shared.ENDED, shared.CLOSED, shared.violate = CRC, ENDED, CLOSED, violate
