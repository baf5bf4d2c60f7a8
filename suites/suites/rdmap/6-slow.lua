-- RFC 5040 sections 5.2 and 5.3, RFC 5041 section 5.2: the peer pauses for seconds in the middle of
-- a message. No rule limits this time, so the target has to wait for the rest, and its other
-- connections work meanwhile.

--- The number of seconds after which a missing answer is a failure.
local ANSWER = 10
--- The number of milliseconds of all pauses of a variant.
local TOTAL = 3000

local DELIVERED, PLACED = "RDMAP-5.3-5", "DDP-5.2-4"
local ANSWERED, COMPLETES, ACCEPTED = "RDMAP-5.2.1-18", "RDMAP-5.5-23", "MPA-7.1.2-8"

--- The pauses are between the segments of a message, or inside the FPDU of its only segment.
local PARAMETERS = { ms = { 1500, 3000 }, where = { "segments", "fpdu" } }

local describe = session.describe

--- Receives a message with this opcode, and returns its payload, the last event and the last FPDU.
--- If another event comes, the payload is nil. The event is nil if nothing arrives.
local function receive(conn, opcode)
  local pieces = {}
  while true do
    local event, fpdu = conn:next { within = ANSWER }
    if event ~= "fpdu" or fpdu.opcode ~= opcode then return nil, event, fpdu end
    pieces[#pieces + 1] = fpdu.payload
    if fpdu.last then return table.concat(pieces), event, fpdu end
  end
end

--- Checks that a message arrived, and that it has these bytes. `result` has the results of
--- `receive`.
local function check_message(t, result, want, requirement, what)
  local got, event, fpdu = table.unpack(result, 1, 3)
  t:check(got, { requirement = requirement, expected = what, actual = describe(event, fpdu, ANSWER), missing = not got })
  t:check(got == want, { requirement = PLACED, expected = what, actual = octets.difference(got, want) })
end

--- Sends a Send on a connection of the echo service, and checks its echo. `c` has the connection
--- and the MSN of the next Send.
local function echo(t, c, payload, what)
  c.conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = payload, msn = c.msn } })
  c.msn = c.msn + 1
  check_message(t, table.pack(receive(c.conn, 3)), payload, DELIVERED, what)
end

--- Reads the first bytes of rping's buffer, and compares them with `want`. `c` has the connection,
--- its parameters, and the MSN of the next Read Request.
local function read(t, c, want, what)
  c.conn:send(mpa.fpdu {
    ulpdu = rdmap.read_request { sink_stag = 0x7766, rdmardsz = #want, src_stag = c.op.stag, src_to = c.op.to, msn = c.read_msn },
  })
  c.read_msn = c.read_msn + 1
  check_message(t, table.pack(receive(c.conn, 2)), want, ANSWERED, what)
end

--- Returns a function that uses another connection. The function does nothing if the target serves
--- one connection at a time.
local function neighbour(t, service)
  if not session.serves_two(t) then return function() end end
  local conn, op = t:operate()
  local c = { conn = conn, op = op, msn = op.msn, read_msn = 1 }
  local what = "an answer on another connection during a pause"
  if service == "echo" then
    -- With these 8 bytes, the FPDU needs no padding, so the case does not depend on its length.
    return function() echo(t, c, "meantime", what) end
  end
  local data = session.fill_buffer(conn, op, 8)
  return function() read(t, c, data, what) end
end

--- Does the same with a new connection, which needs no completed Read of the target.
local function new_neighbour(t)
  if not session.serves_two(t, t:start_up()) then return function() end end
  return function()
    local conn = t:start_up(nil, { requirement = ACCEPTED })
    conn:reset()
  end
end

--- Sends the pieces of a message, with pauses between the first ones. Uses the other connection
--- before and after each pause.
local function send_slowly(t, p, conn, pieces, use_other)
  for nth, piece in ipairs(pieces) do
    if nth > 1 and (nth - 1) * p.ms <= TOTAL then
      use_other()
      t:pause(p.ms / 1000)
      use_other()
    end
    conn:send(piece, nth == 1 and { deviates = true } or nil)
  end
end

--- Returns the pieces of a message of `size` bytes. `segment` returns the FPDU of a segment: the
--- bytes from one offset up to another offset, and whether it is the last segment.
local function pieces_of(p, size, segment)
  if p.where == "segments" then
    local third = size // 3
    return { segment(0, third, false), segment(third, 2 * third, false), segment(2 * third, size, true) }
  end
  -- The pauses are in the length field and in the payload.
  local fpdu = segment(0, size, true):octets()
  local middle = #fpdu // 2
  return { fpdu:sub(1, 1), fpdu:sub(2, middle), fpdu:sub(middle + 1) }
end

case {
  id = "rdmap/6-slow/send",
  version = 2,
  title = "The target delivers a Send whose peer pauses for seconds in the middle of it",
  requirements = { DELIVERED, PLACED },
  capabilities = { "echo" },
  tags = { "send", "segment", "connections" },
  tier = "default",
  parameters = PARAMETERS,

  run = function(t, p)
    t:good_exchange()
    local use_other = neighbour(t, "echo")
    local conn, op = t:operate()
    local payload = octets.counted(1200)
    send_slowly(t, p, conn, pieces_of(p, #payload, function(from, till, last)
      return mpa.fpdu { ulpdu = rdmap.send { payload = payload:sub(from + 1, till), msn = op.msn, mo = from, last = last } }
    end), use_other)
    check_message(t, table.pack(receive(conn, 3)), payload, DELIVERED, "the echo of the slow Send")
    echo(t, { conn = conn, msn = op.msn + 1 }, "afterwards", "the echo of the next Send")
    conn:close()
  end,
}

--- Number of bytes of a Write or of a Read Response.
local SIZE = 60

case {
  id = "rdmap/6-slow/write",
  version = 2,
  title = "The target places a Write whose peer pauses for seconds in the middle of it",
  requirements = { PLACED, ANSWERED },
  capabilities = { "rping" },
  tags = { "write", "segment", "connections" },
  tier = "default",
  parameters = PARAMETERS,

  run = function(t, p)
    t:good_exchange()
    local use_other = neighbour(t, "rping")
    local conn, op = t:operate()
    local payload = octets.counted(math.min(SIZE, op.length))
    send_slowly(t, p, conn, pieces_of(p, #payload, function(from, till, last)
      return mpa.fpdu { ulpdu = rdmap.write { stag = op.stag, tagged_offset = op.to + from, payload = payload:sub(from + 1, till), last = last } }
    end), use_other)
    read(t, { conn = conn, op = op, read_msn = 1 }, payload, "the bytes of the slow Write")
    conn:close()
  end,
}

case {
  id = "rdmap/6-slow/response",
  version = 2,
  title = "The target completes its Read if the peer pauses for seconds in the middle of the Read Response",
  requirements = { COMPLETES, PLACED, ANSWERED, ACCEPTED },
  capabilities = { "rping" },
  tags = { "read", "segment", "connections" },
  tier = "default",
  parameters = PARAMETERS,

  run = function(t, p)
    local use_other = new_neighbour(t)
    local conn = t:start_up()
    -- The server of rping writes a C string, so only the last byte of the data is zero.
    local data = ("0123456789"):rep(6):sub(1, SIZE - 1) .. "\0"
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = string.pack(">I8I4I4", 0x1000, 0x77656601, SIZE) } })
    local request = conn:expect_fpdu { opcode = 1 }
    t:check(#request.payload == 28, { expected = "a Read Request of 28 bytes", actual = #request.payload .. " bytes" })
    local stag, to = string.unpack(">I4i8", request.payload)
    send_slowly(t, p, conn, pieces_of(p, SIZE, function(from, till, last)
      return mpa.fpdu {
        ulpdu = rdmap.write { opcode = 2, stag = stag, tagged_offset = to + from, payload = data:sub(from + 1, till), last = last },
      }
    end), use_other)
    t:check(true, { requirement = ACCEPTED, expected = "a Reply with R=0 on each connection", actual = "none" })
    local signal, event, fpdu = receive(conn, 3)
    t:check(signal, {
      requirement = COMPLETES,
      expected = "a Send, because the Read is complete",
      actual = describe(event, fpdu, ANSWER),
      missing = not signal,
    })
    read(t, { conn = conn, op = { stag = stag, to = to }, read_msn = 1 }, data, "the bytes of the slow Read Response")
    conn:close()
  end,
}
