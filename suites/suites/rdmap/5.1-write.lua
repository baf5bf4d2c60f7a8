-- RFC 5040 sections 4.4, 5.1 and 5.2, RFC 5041 sections 4.2 and 5.2: the Read Request and the
-- Writes that rping's server sends.

local SOURCE, SINK = 0x77656601, 0x77656602

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
local SIZE = { "RDMAP-4.4-3", "RDMAP-4.2-3", "RDMAP-4.2-4", "RDMAP-4-1" }
local FIELDS = { "RDMAP-4.4-1", "RDMAP-4.4-2", "RDMAP-5.2.1-16" }

case {
  id = "rdmap/5.1-write/read-request",
  title = "The target's Read Request is one segment of 28 bytes on queue 1, for the buffer that the client names",
  requirements = { KIND, SIZE, FIELDS },
  capabilities = { "rping" },
  tags = { "read" },
  parameters = { stag = { 1, 0x77656601, 0xffffffff }, to = { 0, 5, 0x7fffffffffffff00, -4096 } },

  run = function(t, p)
    local conn = t:start_up()
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = advertisement(p.to, p.stag, 64) } })
    local request = conn:expect_fpdu { requirement = KIND, opcode = 1, qn = 1, overdue_fails = true }
    local octets = #request.payload
    t:check(octets == 28 and request.mo == 0 and request.last, {
      requirement = SIZE,
      expected = "28 bytes, MO 0, L=true",
      actual = ("%d bytes, MO %s, L=%s"):format(octets, request.mo, request.last),
    })
    local _, _, size, stag, to = string.unpack(">I4i8I4I4i8", request.payload)
    t:check(size == 64 and stag == p.stag and to == p.to, {
      requirement = FIELDS,
      expected = ("RDMARDSZ 64, SrcSTag %#x, SrcTO %#x"):format(p.stag, p.to),
      actual = ("RDMARDSZ %d, SrcSTag %#x, SrcTO %#x"):format(size, stag, to),
    })
    conn:reset()
  end,
}

local WRITE = {
  "DDP-4.1-2", "DDP-4.2-4", "DDP-4.2-10", "RDMAP-4.1-6", "RDMAP-4.1-18", "RDMAP-4.1-19", "RDMAP-5.1-1", "RDMAP-5.1-6", "RDMAP-3.1-3",
  "RDMAP-5.2.2-15",
}
local STAG = {
  "DDP-4.2-1", "DDP-4.2-5", "DDP-4.2-6", "DDP-4.2-11", "DDP-4.2-12", "DDP-4.2-13", "RDMAP-4.1-21", "RDMAP-5.1-11", "RDMAP-3.1-4",
}
local OFFSET = { "DDP-4.2-9", "DDP-5.2-6", "DDP-5.3-2" }
local LAST = { "DDP-4.1-4", "DDP-4.1-5" }
local DATA = { "DDP-5.2-3", "DDP-5.2-4", "RDMAP-4.3-1", "RDMAP-5.5-23" }

case {
  id = "rdmap/5.1-write/to-the-sink",
  title = "The target's Write has the client's STag, TOs that rise from the client's TO, and the data of the Read",
  requirements = { WRITE, STAG, OFFSET, LAST, DATA, "RDMAP-5.1-9", "DDP-5.3-1", "DDP-4.1-13" },
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
    conn:expect_fpdu { opcode = 3, msn = 1 }
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = advertisement(p.to, SINK, p.size), msn = 2 } })
    local written = ""
    local function check(ok, requirement, expected, actual)
      t:check(ok, { requirement = requirement, expected = expected, actual = actual })
    end
    repeat
      local fpdu = conn:expect_fpdu { requirement = WRITE, shows = "DDP-4.1-13", opcode = 0, overdue_fails = true }
      check(fpdu.tagged, WRITE, "a tagged segment", "an untagged segment")
      check(fpdu.stag == SINK, STAG, ("STag %#x"):format(SINK), ("STag %#x"):format(fpdu.stag))
      local next = p.to + #written
      check(fpdu.tagged_offset == next, OFFSET, ("TO %#x"):format(next), ("TO %#x"):format(fpdu.tagged_offset))
      written = written .. fpdu.payload
      local last = #written >= #data
      check(fpdu.last == last, LAST, ("L=%s with %d of %d bytes"):format(last, #written, #data), ("L=%s"):format(fpdu.last))
    until fpdu.last
    check(written == data, DATA, "the bytes that it read", ("%d bytes that differ"):format(#written))
    -- The Send was posted after the Write.
    conn:expect_fpdu { requirement = { "RDMAP-5.1-9", "DDP-5.3-1" }, opcode = 3, qn = 0, msn = 2, overdue_fails = true }
    conn:close()
  end,
}
