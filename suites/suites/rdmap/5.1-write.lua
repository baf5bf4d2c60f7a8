-- RFC 5040 sections 4.4, 5.1 and 5.2, RFC 5041 sections 4.2 and 5.2: the Read Request and the
-- Writes that rping's server sends.

local SOURCE, SINK = 0x77656601, 0x77656602

--- The STag `SINK` with its bytes in reverse order.
local SINK_REVERSED = 0x02666577

--- The message in which rping's client describes a buffer.
local function advertisement(to, stag, size)
  return string.pack(">i8I4I4", to, stag, size)
end

--- Returns bytes of which only the last is zero, because rping's server writes a C string.
local function text(size)
  local data = ("weft-0123456789-"):rep(size // 16 + 1):sub(1, size - 1)
  return data .. "\0"
end

--- Sends a Read Response in segments.
local function respond(conn, stag, to, data)
  for at = 0, math.max(#data - 1, 0), 1024 do
    local piece = data:sub(at + 1, at + 1024)
    conn:send(mpa.fpdu {
      ulpdu = rdmap.write {
        opcode = 2, stag = stag, tagged_offset = to + at, payload = piece, last = at + #piece == #data,
      },
    })
  end
end

-- Each list has the requirements that one field or property decides.
local KIND = { "RDMAP-4.1-7", "RDMAP-5.2.1-1", "RDMAP-5.2.1-10", "RDMAP-5.2.1-11", "RDMAP-5.2.1-12" }
local QUEUE = { "RDMAP-4.1-7", "RDMAP-5.2.1-11", "RDMAP-5.2.1-12" }
local COMPLETE = { "RDMAP-4.4-1", "RDMAP-4.4-3", "RDMAP-4.2-3", "RDMAP-4-1" }
local NO_MORE = { "RDMAP-4.4-1", "RDMAP-4.4-3", "RDMAP-4.2-3", "RDMAP-4.2-4" }
local FIELDS = { "RDMAP-4.4-1", "RDMAP-4.4-2", "RDMAP-5.2.1-16" }

case {
  id = "rdmap/5.1-write/read-request",
  version = 2,
  title = "The target's Read Request is one segment of 28 bytes on queue 1, for the buffer that the client names",
  requirements = { KIND, COMPLETE, NO_MORE, FIELDS },
  capabilities = { "rping" },
  tags = { "read" },
  parameters = { stag = { 1, 0x77656601, 0xffffffff }, to = { 0, 5, 0x7fffffffffffff00, -4096 } },

  run = function(t, p)
    local conn = t:start_up()
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = advertisement(p.to, p.stag, 64) } })
    local request = conn:expect_fpdu { requirement = "RDMAP-4.1-7", opcode = 1, overdue_fails = true }
    local function check(ok, requirement, expected, actual)
      t:check(ok, { requirement = requirement, expected = expected, actual = actual })
    end
    check(not request.tagged, KIND, "an untagged segment", "a tagged segment")
    check(request.qn == 1, QUEUE, "queue 1", ("queue %s"):format(request.qn))
    check(request.mo == 0 and request.last, "RDMAP-4.4-3", "MO 0, L=true", ("MO %s, L=%s"):format(request.mo, request.last))
    local octets = #request.payload
    check(octets >= 28, COMPLETE, "28 bytes", octets .. " bytes")
    check(octets <= 28, NO_MORE, "28 bytes", octets .. " bytes")
    local _, _, size, stag, to = string.unpack(">I4i8I4I4i8", request.payload)
    local is_size, is_source = size == 64, stag == p.stag and to == p.to
    local expected = ("RDMARDSZ 64, SrcSTag %#x, SrcTO %#x"):format(p.stag, p.to)
    local actual = ("RDMARDSZ %d, SrcSTag %#x, SrcTO %#x"):format(size, stag, to)
    -- If both are wrong, the layout of the header is wrong.
    check(is_size or is_source, FIELDS, expected, actual)
    check(is_size, size > 64 and { "RDMAP-4.4-2", "RDMAP-5.2.1-16" } or "RDMAP-4.4-2", expected, actual)
    check(is_source, "RDMAP-5.2.1-16", expected, actual)
    conn:reset()
  end,
}

local OPCODE = { "RDMAP-4.1-6", "RDMAP-5.2.2-15", "DDP-4.2-4", "DDP-4.2-10", "RDMAP-3.1-3" }
local ORDER = { "RDMAP-5.1-9", "DDP-5.3-1" }
local TAGGED = { "DDP-4.1-2", "RDMAP-4.1-6", "RDMAP-4.1-18", "RDMAP-4.1-19", "RDMAP-4.1-21", "RDMAP-5.1-1", "RDMAP-5.1-6" }
local STAG = { "DDP-4.2-5", "DDP-4.2-11", "DDP-4.2-12", "RDMAP-3.1-4" }
local ONE_STAG = { "DDP-4.2-6", "DDP-4.2-13", "RDMAP-5.1-11" }
local OFFSET = { "DDP-4.2-9", "DDP-5.2-6" }
local LAST = { "DDP-4.1-4", "DDP-4.1-5" }
local DATA = { "DDP-5.2-4", "RDMAP-4.3-1" }

--- Returns whether a later segment of the Write begins at this TO.
local function arrives_later(conn, to)
  local is_write, fpdu
  repeat
    local event
    event, fpdu = conn:next { within = 1 }
    is_write = event == "fpdu" and fpdu.opcode == 0
  until not is_write or fpdu.tagged_offset == to
  return is_write
end

--- Returns the requirements that an FPDU of another opcode violates, if the segment of the Write at
--- `next` has to come. `is_first` shows whether this is the first segment.
local function opcode_rows(conn, opcode, next, is_first)
  if opcode == 3 then
    -- This Send was posted after the Write.
    return (is_first or arrives_later(conn, next)) and ORDER or "DDP-5.2-3"
  elseif opcode == 7 then
    return "DDP-5.2-3"
  elseif is_first then
    return opcode == 2 and { "RDMAP-4.1-6", "RDMAP-5.2.2-15" } or "RDMAP-4.1-6"
  end
  return { "RDMAP-4.1-6", "DDP-4.2-4", "DDP-4.2-10", "RDMAP-3.1-3" }
end

--- Returns the requirements that a segment violates whose TO is not `next`. `position` is the
--- position in `data` of the byte that belongs to `next`. `previous` is the TO of the segment
--- before, if there is one.
local function offset_rows(conn, fpdu, next, data, position, previous)
  local to = fpdu.tagged_offset
  local from = position + to - next
  local is_right = from >= 0 and fpdu.payload == data:sub(from + 1, from + #fpdu.payload)
  -- The TO belongs to this payload, so an earlier segment is missing or comes later.
  if to > next and is_right then return arrives_later(conn, next) and "DDP-5.3-2" or "DDP-5.2-3" end
  return previous and to <= previous and { OFFSET, "DDP-5.3-2" } or OFFSET
end

case {
  id = "rdmap/5.1-write/to-the-sink",
  version = 2,
  title = "The target's Write has the client's STag, TOs that rise from the client's TO, and the data of the Read",
  requirements = {
    OPCODE, ORDER, TAGGED, STAG, ONE_STAG, OFFSET, LAST, DATA, "DDP-4.2-1", "DDP-5.2-3", "DDP-5.3-2", "RDMAP-5.5-23", "DDP-4.1-13",
  },
  capabilities = { "rping" },
  tags = { "write", "segment" },
  parameters = { size = { 23, 64, 1500, 4096, 65535 }, to = { 0, 5, 0x7fffffffffff0000, -65536 } },
  scales = { "size" },

  run = function(t, p)
    local conn, op = t:operate()
    if p.size > op.length then
      t:unimplemented(("The target's rping uses only %d bytes, too few for this variant (-S of rping, rping_size of the target file)."):format(op.length))
    end
    -- This connection has only shown the size of the buffer. The exchange starts again on a new
    -- connection.
    conn:reset()
    conn = t:start_up()
    local data = text(p.size)
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = advertisement(0x1000, SOURCE, p.size) } })
    local request = conn:expect_fpdu { opcode = 1 }
    t:check(#request.payload == 28, { expected = "a Read Request of 28 bytes", actual = #request.payload .. " bytes" })
    local stag, to = string.unpack(">I4i8", request.payload)
    respond(conn, stag, to, data)
    -- If the Read is not complete for the target, it sends nothing more.
    local ready = conn:expect_fpdu { requirement = "RDMAP-5.5-23", overdue_fails = true }
    t:check(ready.opcode == 3 and ready.msn == 1, { expected = "the first Send", actual = ("opcode %s"):format(ready.opcode) })
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = advertisement(p.to, SINK, p.size), msn = 2 } })
    local written = ""
    local function check(ok, requirement, expected, actual)
      t:check(ok, { requirement = requirement, expected = expected, actual = actual })
    end
    local previous
    repeat
      local fpdu = conn:expect_fpdu { requirement = "DDP-5.2-3", shows = "DDP-4.1-13", overdue_fails = true }
      local next = p.to + #written
      local is_write = fpdu.opcode == 0
      local rows = is_write and { OPCODE, ORDER } or opcode_rows(conn, fpdu.opcode, next, not previous)
      check(is_write, rows, "opcode 0", ("opcode %s"):format(fpdu.opcode))
      check(fpdu.tagged, TAGGED, "a tagged segment", "an untagged segment")
      local is_sink = fpdu.stag == SINK
      local stag, sink = ("STag %#x"):format(fpdu.stag), ("STag %#x"):format(SINK)
      check(fpdu.stag ~= SINK_REVERSED, { STAG, "DDP-4.2-1" }, sink, stag)
      check(is_sink, (is_sink or previous) and { STAG, ONE_STAG } or STAG, sink, stag)
      local is_next = fpdu.tagged_offset == next
      rows = is_next and { OFFSET, "DDP-5.3-2" } or offset_rows(conn, fpdu, next, data, #written, previous)
      check(is_next, rows, ("TO %#x"):format(next), ("TO %#x"):format(fpdu.tagged_offset))
      previous = fpdu.tagged_offset
      written = written .. fpdu.payload
      local last = #written >= #data
      local is_right = fpdu.last == last
      rows = is_right and LAST or last and "DDP-4.1-4" or arrives_later(conn, p.to + #written) and "DDP-4.1-5" or "DDP-5.2-3"
      check(is_right, rows, ("L=%s with %d of %d bytes"):format(last, #written, #data), ("L=%s"):format(fpdu.last))
    until fpdu.last
    check(#written == #data, "RDMAP-4.3-1", ("%d bytes"):format(#data), ("%d bytes"):format(#written))
    check(written == data, DATA, "the bytes that it read", octets.difference(written, data))
    -- The Send was posted after the Write.
    conn:expect_fpdu { requirement = ORDER, opcode = 3, overdue_fails = true }
    conn:close()
  end,
}
