-- RFC 5041 section 5.2 and RFC 5044 section 4.1. These cases use sizes and counts near the limits
-- of a counter, and sizes up to that of the largest FPDU. No RFC requires that a target receives a
-- long Send, so a target may reject it.

--- Declares a case that sends `size` bytes in segments of `segment` bytes to an echo. The Send
--- repeats `count` times (2). `tier` is a field of the case.
local function sends(name, title, parameters, fields, tier)
  case {
    id = "ddp/5.2-sizes/" .. name,
    title = title,
    tier = tier,
    requirements = session.requirements(session.ECHO),
    roles = { "responder", "initiator" },
    capabilities = { "echo" },
    tags = { "segment", "send" },
    parameters = parameters,
    scales = parameters.size and { "size" } or parameters.payload and { "payload" } or {},

    run = function(t, p)
      local options = fields(t, p)
      -- No RFC defines the longest Send that a target must receive. So first try whether the target
      -- receives a Send of this size.
      local conn, op = t:operate()
      local at, refused = 0, false
      local segment = math.min(1400, options.segment)
      repeat
        local piece = math.min(segment, options.size - at)
        local last = at + piece == options.size
        conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = octets.counted(piece), msn = op.msn, mo = at, last = last } })
        at = at + piece
      until last
      local event, fpdu = conn:next { within = 5 }
      if event == "fpdu" and fpdu.opcode == 7 then
        -- Another case judges the error code. The first byte of an error of MPA is 20. A Terminate
        -- with such an error does not count as a refusal of the Send.
        refused = fpdu.payload:byte(1) ~= 0x20
      end
      conn:reset()
      if refused or event == "close" then
        t:unimplemented(("The target receives no Send of %d bytes."):format(options.size))
      end
      local s = session.echo(t)
      for _ = 2, options.count or 2 do s:send(1, options) end
      s:send(1, { size = 40 })
      s:send(1, options)
      s:finish()
    end,
  }
end

sends("send", "The target sends back Sends of more than 65,535 bytes",
  { size = { 65535, 65536, 65540, 131072, 1000000 } }, function(_, p) return { size = p.size, segment = 1400 } end)

sends("fpdu", "The target receives FPDUs up to the largest that fits into a TCP segment",
  { payload = { 1432, 4096, 16400, 32750, 32768, 64750 } }, function(t, p)
  local payload = p.payload
  if payload > t:max_segment() then
    t:unimplemented(("An FPDU with %d bytes of payload does not fit into a TCP segment to the target."):format(payload))
  end
  return { size = payload, segment = payload }
end)

-- Rings of a target often have 1, 4 or 8 MiB.
sends("volume", "The target sends back more than 8 MiB on one connection", { size = { 65000 } },
  function(_, p) return { size = p.size, segment = 1400, count = 140 } end, "default")

case {
  id = "ddp/5.2-sizes/multiples",
  title = "The target sends back Sends that fill the last segment of its echo",
  requirements = session.requirements(session.ECHO, "DDP-4.1-4"),
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "segment", "send" },
  parameters = { segments = { 1, 2, 3, 16 } },

  run = function(t, p)
    -- The first segment of a long echo has as much payload as each full segment of the target.
    local LONG = 20000
    local conn, op = t:operate()
    for at = 0, LONG - 1, 1000 do
      local payload, last = octets.counted(1000), at + 1000 == LONG
      conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = payload, msn = op.msn, mo = at, last = last } })
    end
    local event, fpdu = conn:next { within = 10 }
    conn:reset()
    if event ~= "fpdu" or fpdu.opcode ~= 3 or #fpdu.payload == LONG then
      t:unimplemented(("The target sends no echo of %d bytes in several segments."):format(LONG))
    end
    local s = session.echo(t)
    s:send(1, { size = #fpdu.payload * p.segments, segment = 1400 })
    s:send(1, { size = 40 })
    s:finish("DDP-4.1-4")
  end,
}

--- Receives a Send, and returns its payload, the last event, and the last FPDU. If another event
--- comes, the payload is nil. The event is nil if nothing arrives.
local function receive(conn)
  local pieces = {}
  repeat
    local event, fpdu = conn:next { within = 10 }
    if event ~= "fpdu" or fpdu.opcode ~= 3 then return nil, event, fpdu end
    pieces[#pieces + 1] = fpdu.payload
    if fpdu.last then return table.concat(pieces), event, fpdu end
  until false
end

local PLACED, DELIVERED, IN_ORDER = "DDP-5.2-4", "RDMAP-5.3-5", "DDP-5.3-6"
local NUMBERED = "DDP-4.3-6"

-- No RFC states how many Sends a target must be able to receive at once. A target that has no
-- receive for a Send may reject the Send, or let it wait (RFC 5041 section 7.1). But a Send must
-- not be lost. Queues and lists of completions often have 64, 128 or 256 entries.
case {
  id = "ddp/5.2-sizes/at-once",
  version = 2,
  title = "The target sends back all Sends that arrive at once, or rejects a Send",
  requirements = { PLACED, DELIVERED, IN_ORDER, NUMBERED },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "segment", "send", "receives" },
  scales = { "count" },
  parameters = { count = { 16, 65, 130, 260 } },

  run = function(t, p)
    t:good_exchange()

    local conn, op = t:operate()
    local sent, numbers, fpdus = {}, {}, nil
    for number = 1, p.count do
      local payload = (string.pack(">I4", number) .. octets.counted(60)):sub(1, 8 + number * 7 % 53)
      local fpdu = mpa.fpdu { ulpdu = rdmap.send { payload = payload, msn = (op.msn + number - 1) & 0xffffffff } }
      sent[number], numbers[payload], fpdus = payload, number, fpdus and fpdus .. fpdu or fpdu
    end
    conn:send(fpdus, { deviates = true })
    local first
    for number, payload in ipairs(sent) do
      local echo, event, fpdu = receive(conn)
      -- The first byte of an error of MPA is 20. A Terminate with such an error does not count as a
      -- refusal of a Send.
      local is_terminate = event == "fpdu" and fpdu.opcode == 7
      if event == "close" or is_terminate and fpdu.payload:byte(1) ~= 0x20 then
        conn:reset()
        t:unimplemented(("The target rejects one of %d Sends that arrive at once."):format(p.count))
      end
      local expected = ("the echo of Send %d of %d"):format(number, p.count)
      t:check(echo, {
        requirement = DELIVERED,
        expected = expected,
        actual = event == "fpdu" and ("an FPDU with opcode %d"):format(fpdu.opcode) or event or "nothing, and the connection stays open",
        missing = event ~= "fpdu",
      })
      first = first or fpdu.msn
      local msn = (first + number - 1) & 0xffffffff
      t:check(fpdu.msn == msn, { requirement = NUMBERED, expected = ("MSN %d"):format(msn), actual = ("MSN %s"):format(fpdu.msn) })
      local got = numbers[echo] or 0
      t:check(got <= number, { requirement = IN_ORDER, expected = expected, actual = ("the echo of Send %d"):format(got) })
      t:check(echo == payload, { requirement = PLACED, expected = expected, actual = octets.difference(echo, payload) })
    end
    conn:close()
  end,
}

--- Declares a case with rping. `run` gets the session, the parameters and the tester.
local function with_rping(name, title, parameters, rows, run, shown)
  case {
    id = "ddp/5.2-sizes/" .. name,
    title = title,
    requirements = session.requirements(session.RPING, table.unpack(rows)),
    capabilities = { "rping" },
    tags = { "read", "write" },
    parameters = parameters,
    run = function(t, p)
      local s = session.rping(t)
      run(s, p, t)
      -- The monitor judges the numbers of the target's messages.
      s:finish(shown)
    end,
  }
end

with_rping("rounds", "The target still sends Read Requests, Writes and Sends after many earlier messages",
  { count = { 260 } }, { "DDP-4.3-6", table.unpack(session.ROUNDS) }, function(s, p) s:rounds(1, p.count, { size = 20 }) end, { "DDP-4.3-6" })

with_rping("sink", "The target writes to a buffer within which bit 31 or bit 32 of the TO changes",
  { to = { 0x7ffffff0, 0xfffffff0, 0xfffffffffff0 } }, session.ROUNDS, function(s, p)
  s:rounds(1, 1, { size = 40, to = p.to })
  s:rounds(1, 1, { size = 65535, to = p.to - 3000 })
end)

with_rping("read", "The target answers Reads of any size with all bytes",
  { size = { 1, 2, 3, 1439, 1441, 1442, 1443, 2897, 4093, 65534 } }, {}, function(s, p)
  s:write(1, { at = 0, size = p.size, segment = 1000 })
  s:read(1, { at = 0, size = p.size })
  s:answers(1)
  s:read(1, { at = 1, size = p.size })
end)

--- Ends the case if an FPDU with this payload does not fit into a TCP segment to the target, or
--- does not fit into the target's buffer. In a round, the last byte of the buffer stays free.
local function check_fits(t, payload)
  if payload > t:max_segment() then
    t:unimplemented(("An FPDU with %d bytes of payload does not fit into a TCP segment to the target."):format(payload))
  end
  local conn, op = t:operate()
  conn:reset()
  if payload >= op.length then
    t:unimplemented(("The target's rping uses only %d bytes, too few for this variant (-S of rping, rping_size of the target file)."):format(op.length))
  end
end

local LONG = { 1432, 4096, 16400, 32750, 32768, 64750 }

with_rping("long-write", "The target places Writes in FPDUs up to the largest that fits into a TCP segment", { payload = LONG }, {}, function(s, p, t)
  check_fits(t, p.payload)
  s:write(1, { at = 0, size = p.payload, segment = p.payload })
  s:read(1, { at = 0, size = p.payload })
end)

with_rping("long-response", "The target places Read Responses in FPDUs up to the largest that fits into a TCP segment", { payload = LONG },
  session.ROUNDS, function(s, p, t)
  check_fits(t, p.payload)
  s:rounds(1, 2, { size = p.payload, segment = p.payload })
end)

case {
  id = "ddp/5.2-sizes/high-bit",
  title = "The target compares all bits of the TO of a Write with the bounds of the buffer",
  requirements = { "DDP-7.1-13", "DDP-7.1-12", "DDP-7.2-4" },
  capabilities = { "rping" },
  tags = { "write", "refusal" },
  parameters = { bit = { 16, 24, 31, 32, 33, 40, 47, 48, 56, 62, 63 } },

  run = function(t, p)
    t:good_exchange()

    local conn, op = t:operate()
    -- The buffer is shorter than 2^16 bytes, so this offset is outside it.
    conn:send(mpa.fpdu { ulpdu = rdmap.write { stag = op.stag, tagged_offset = op.to ~ (1 << p.bit), payload = "weft" } }, { deviates = true })
    conn:expect_terminate { requirement = { "DDP-7.1-13", "DDP-7.1-12" }, code = "DDP-7.2-4", error = { "11 01", "11 03" } }
    conn:expect_close()
  end,
}

case {
  id = "ddp/5.2-sizes/high-bit-read",
  title = "The target compares all bits of the source TO of a Read with the bounds of the buffer",
  requirements = { "RDMAP-7.2-7", "RDMAP-7.2-18", "RDMAP-4.8-19" },
  capabilities = { "rping" },
  tags = { "read", "refusal" },
  parameters = { bit = { 16, 24, 31, 32, 33, 40, 47, 48, 56, 62, 63 } },

  run = function(t, p)
    t:good_exchange()

    local conn, op = t:operate()
    -- The buffer is shorter than 2^16 bytes, so this offset is outside it.
    conn:send(mpa.fpdu {
      ulpdu = rdmap.read_request { sink_stag = 0x7766, rdmardsz = 4, src_stag = op.stag, src_to = op.to ~ (1 << p.bit) },
    }, { deviates = true })
    conn:expect_terminate { requirement = { "RDMAP-7.2-7", "RDMAP-7.2-18" }, code = "RDMAP-4.8-19", error = { "01 01", "01 04" } }
    conn:expect_close()
  end,
}
