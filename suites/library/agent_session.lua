-- Sessions with a target that an agent drives. The agent is a program on the target that calls the
-- verbs of the target's NIC for the tester. In a session, the target's user posts Sends, Writes and
-- Reads, and the tester sends Sends to posted receives, and writes and reads regions of the target.
-- The bytes on the wire are compared with the agent's memory, and the agent's memory is compared
-- with the bytes that the tester sent.

local shared = ...
local SEGMENT = shared.SEGMENT

--- The number of seconds between the target's Reply and the tester's first FPDU.
local SETTLE = 0.2
--- Size of each queue of a connection in work requests.
local DEPTH = 16
--- Maximum number of work requests in a queue.
local MAX_POSTED = 14
--- Default size of a region in bytes, and maximum number of regions of a connection.
local REGION, MAX_REGIONS = 4096, 9
--- Maximum number of bytes that the tester requests at once with several Read Requests.
local MAX_READ = 65536
--- Maximum number of bytes of inline data.
local MAX_INLINE = 32
--- Size in bytes of the region that an illegal FPDU names, and of the receive that an illegal Send
--- must not use.
local FAULT_REGION, FAULT_RECEIVE = 64, 64

--- Returns the functions of `session.lua` about the answers that the target owes. Before an illegal
--- FPDU, the target has sent all answers. `check_unused` fails the case if the target has used the
--- illegal FPDU.
local function nothing_owed(check_unused)
  return {
    requirement = shared.DELIVERED,
    answer = function() return nil end,
    take = function() return false end,
    within = function() return shared.ANSWER end,
    check_unused = check_unused,
  }
end

--- The settings of the target's end of a connection.
local function pair_options(device, depth)
  depth = math.min(depth, device.max_ird, device.max_ord)
  return { ird = depth, ord = depth, depth = DEPTH, parts = math.min(4, device.max_parts), inline = MAX_INLINE }
end

--- A session with a target that an agent drives. `target` is the agent of the target.
function session.agent(t, target)
  -- The target works before the session. If a later exchange fails, the session is the cause.
  t:good_exchange()

  local self, opened, device, traffic = {}, {}, target:device(), session.agent_traffic(t, target)
  local sent, has_extensions = 0, false

  --- Opens a connection with the target file's Request. Returns the connection, the target's end,
  --- the MSN of the tester's next Send, and the number of Reads that the Request permits.
  local function open_plain(options)
    local conn, pair, op = target:operate(options)
    -- The Reply to an Initiator allows as many Reads as the Request.
    if t:is_initiator() then return conn, pair, op.msn, options.ird end
    -- Bit 0x10 of byte 17 is S. An enhanced Request has the tester's ORD in bytes 23 and 24.
    local request = t:request {}:octets()
    local ord = request:byte(17) & 0x10 ~= 0 and string.unpack(">I2", request, 23) & 0x3fff or options.ird
    return conn, pair, op.msn, ord
  end

  --- Opens a connection of a Responder with markers, with the enhanced set-up, or with CRCs. Returns
  --- the values of `open_plain`.
  local function open_with(fields, options)
    local conn = t:connect()
    conn:send(t:request {
      markers = fields.markers, enhanced = fields.enhanced, revision = fields.enhanced and 2 or nil, peer_to_peer = false,
      ird = options.ord, ord = options.ird, crc = fields.crc,
    })
    local pair = target:expect_request {}
    pair:open(options)
    local opening = target:region { octets = 16, access = { "local_write" } }
    local work = pair:post_receive { region = opening }
    pair:accept(options)
    local reply = conn:expect_reply { reject = false }
    pair:expect_event { event = "established" }
    -- Some targets lose a message that arrives immediately after their Reply.
    t:pause(SETTLE)
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "opening" } })
    pair:expect_completion { work = work, octets = 7 }
    opening:destroy()
    return conn, pair, 2, reply.ird or options.ird
  end

  --- Returns the connection with this number, and opens it if necessary.
  local function connection(number, fields)
    if opened[number] then return opened[number] end
    fields = fields or {}
    local options = pair_options(device, fields.depth or 4)
    local c = {
      read_msn = 1, atomic_msn = 1, ord = options.ord, parts = options.parts, waiting = 0,
      -- Work requests in the Send Queue: those whose message is incomplete, those whose Request is
      -- unanswered, and those without a completion.
      posted = {}, requests = {}, completions = {},
      -- The posted receives. The first `filled` of them have a Send.
      receives = {}, filled = 0,
      -- Unanswered Reads of the tester, and the regions that it writes and reads.
      reads = {}, regions = {},
      crc = shared.requests_crc(t, fields),
    }
    if (fields.markers or fields.enhanced or fields.crc) and not t:is_initiator() then
      c.conn, c.pair, c.msn, c.limit = open_with(fields, options)
    else
      c.conn, c.pair, c.msn, c.limit = open_plain(options)
    end
    c.limit = math.min(c.limit, options.ird)
    opened[number] = c
    return c
  end

  --- Returns the connection with this number, after the last segment of the tester's Send.
  local function ready(number)
    local c = connection(number)
    traffic.send_segments(c, math.maxinteger)
    return c
  end

  -- `settle` and `post_receives` call each other.
  local settle

  --- Posts receives of `fields.size` bytes each, at most `count`.
  local function post_receives(c, count, fields)
    if #c.receives + count > MAX_POSTED then settle(c) end
    local size = math.max(1, fields.size)
    for _ = 1, math.min(count, MAX_POSTED - #c.receives) do
      local buffer = traffic.allocate(size, math.min(fields.parts or 1, c.parts), fields.pad or 0, { "local_write" })
      c.receives[#c.receives + 1] = { work = c.pair:post_receive { parts = buffer.parts }, buffer = buffer, size = size }
    end
  end

  --- Returns the next receive without a Send. Posts a receive if there is none.
  local function next_receive(c, fields)
    if not c.receives[c.filled + 1] then
      post_receives(c, 1, { size = fields.size + (fields.room or 0), parts = fields.parts, pad = fields.pad })
    end
    c.filled = c.filled + 1
    return c.receives[c.filled]
  end

  --- Prepares the tester's next Send, and sends no segment of it.
  local function prepare(c, fields)
    local receive = next_receive(c, fields)
    receive.message = {
      payload = traffic.payload(math.min(fields.size, receive.size)), at = 0, segment = fields.segment or SEGMENT, every = fields.every,
      solicited = fields.solicited,
    }
    c.message = receive.message
  end

  --- Completes the tester's Send, and waits for all messages, answers and completions. Then checks
  --- the memory that the tester has written.
  function settle(c)
    traffic.send_segments(c, math.maxinteger)
    traffic.drain(c)
    traffic.collect(c)
    if not c.is_written then return end
    -- When a later Send is delivered, the bytes of earlier Writes are in memory.
    prepare(c, { size = 1 })
    traffic.send_segments(c, 1)
    traffic.collect(c)
    for which = 1, MAX_REGIONS do
      if c.regions[which] then traffic.verify_region(c.regions[which]) end
    end
    if c.counter then traffic.verify_counter(c.counter) end
    c.is_written = false
  end

  --- Returns a region that the tester writes and reads. Registers it if necessary.
  local function region_of(c, which)
    c.regions[which] = c.regions[which] or traffic.register(REGION)
    return c.regions[which]
  end

  --- Returns an offset and a size that are limited to the region.
  local function part(memory, at, size)
    at = at % (#memory.octets + 1)
    return at, math.min(size, #memory.octets - at)
  end

  --- Destroys the target's objects of a connection. Its TCP connection has ended.
  local function forget(number)
    local c = opened[number]
    opened[number] = nil
    c.pair:destroy()
    for _, list in ipairs { c.receives, c.completions } do
      for _, entry in ipairs(list) do
        if entry.buffer then entry.buffer.region:destroy() end
      end
    end
    for which = 1, MAX_REGIONS do
      if c.regions[which] then c.regions[which].region:destroy() end
    end
    if c.counter then c.counter.region:destroy() end
  end

  --- Opens a connection. `depth` is the number of Reads that each side permits at a time. Does
  --- nothing if the connection is open.
  function self:open(number, fields) connection(number, fields) end

  --- Registers a region of `size` bytes. It replaces the region with the same number.
  function self:region(number, which, size)
    local c = connection(number)
    settle(c)
    if c.regions[which] then c.regions[which].region:destroy() end
    c.regions[which] = traffic.register(size)
  end

  --- Changes all bytes of a region, as a program on the target does.
  function self:fill(number, which)
    local c = connection(number)
    settle(c)
    traffic.fill(region_of(c, which))
  end

  --- For each kind of work request, a function that completes the options and posts the work
  --- request. It returns the results of the post.
  local POST = {}

  function POST.send(c, work, options, fields)
    work.opcode = 3 + (fields.invalidate and 1 or 0) + (fields.solicited and 2 or 0)
    work.invalidate = fields.invalidate and work.stag or nil
    options.solicited, options.invalidate = fields.solicited, work.invalidate
    return c.pair:post_send(options)
  end

  function POST.write(c, work, options)
    work.opcode, options.stag, options.to = 0, work.stag, work.to
    return c.pair:post_write(options)
  end

  function POST.read(c, work, options, fields)
    work.opcode, work.data, options.stag, options.to = 1, traffic.payload(fields.size), work.stag, work.to
    return c.pair:post_read(options)
  end

  function POST.add(c, work, options)
    work.opcode, work.found, options.stag, options.to = 10, 0x0102030405060708 + work.stag, work.stag, work.to
    options.add = 1
    return c.pair:post_atomic(options)
  end

  function POST.swap(c, work, options)
    work.opcode, work.found, options.stag, options.to = 10, 0x1112131415161718 + work.stag, work.stag, work.to
    options.compare, options.swap = 1, 2
    return c.pair:post_atomic(options)
  end

  --- Posts a work request of the target.
  local function post(c, kind, signaled, fields)
    local is_atomic = kind == "add" or kind == "swap"
    local is_inline = fields.inline and fields.size > 0 and fields.size <= MAX_INLINE
    local work = {
      kind = kind, signaled = signaled, is_read = is_atomic or kind == "read", data = "", got = {}, at = 0, stag = traffic.new_stag(),
      to = fields.to or 0,
    }
    -- A device may reject these work requests.
    local options = { signaled = signaled, may_refuse = is_atomic or fields.invalidate or is_inline or fields.size == 0 }
    if work.is_read then
      -- NICs for iWARP require remote_write for the sink of a Read.
      local access = { "local_write", "remote_write" }
      work.buffer = traffic.allocate(is_atomic and 8 or fields.size, 1, is_atomic and 0 or (fields.at or 0) % 64, access)
      options.parts = work.buffer.parts
    else
      traffic.make_room(c, fields.size)
      options.parts, work.data = traffic.gather(fields.size, fields.at or 0, math.min(fields.parts or 1, c.parts))
      options.fence, options.inline, work.fence = fields.fence, is_inline, fields.fence
    end
    local why
    work.work, why = POST[kind](c, work, options, fields)
    if not work.work then
      t:note("The device rejects this work request: " .. why)
      if work.buffer then work.buffer.region:destroy() end
      return
    end
    work.text = ("work request %d, a %s of %d bytes with opcode %d"):format(work.work, kind, #work.data, work.opcode)
    c.posted[#c.posted + 1], c.completions[#c.completions + 1] = work, work
    if not work.is_read then c.waiting = c.waiting + #work.data end
  end

  --- Posts `count` work requests of the target. `kind` is "send", "write" or "read", or "add" or
  --- "swap" for an Atomic Operation. Each has `size` bytes, in up to `parts` parts of two regions,
  --- near offset `at`. Writes and Reads name the TO `to` of the tester. With `unsignaled`, only the
  --- last work request has a completion.
  function self:post(number, kind, fields)
    local c, count = ready(number), fields.count or 1
    local is_atomic = kind == "add" or kind == "swap"
    has_extensions = has_extensions or is_atomic
    if c.ord == 0 and (is_atomic or kind == "read") then return end
    if #c.completions + count > MAX_POSTED then settle(c) end
    for nth = 1, count do
      local signaled = nth == count or is_atomic or not fields.unsignaled or #c.completions >= MAX_POSTED // 2
      post(c, kind, signaled, fields)
    end
  end

  --- Sends the next `count` segments of the answers to the target's Reads, with at most `segment`
  --- bytes of payload each. First waits for a Read Request, if the target's user has posted a Read.
  function self:answer(number, count, segment)
    local c, has_read = ready(number), false
    for _, work in ipairs(c.posted) do has_read = has_read or work.is_read end
    while has_read and not c.requests[1] do traffic.advance(c) end
    traffic.answer(c, count, segment)
  end

  --- Posts `count` receives of `size` bytes, in up to `parts` parts, at offset `pad` of a region.
  function self:receive(number, count, fields) post_receives(ready(number), count, fields) end

  --- Prepares a Send of `size` bytes, in segments of at most `segment` bytes of payload. Sends no
  --- segment of the Send yet. If no receive is free, posts one that is longer than the Send by
  --- `room` bytes. A receive that is too short for the Send makes the Send shorter. `every` is the
  --- size of the TCP segments into which the FPDUs are cut.
  function self:message(number, fields)
    local c = ready(number)
    traffic.make_room(c, fields.size)
    prepare(c, fields)
  end

  --- Sends the next `count` segments of the tester's Send.
  function self:segments(number, count) traffic.send_segments(connection(number), count) end

  --- Sends Immediate Data, which uses a receive.
  function self:immediate(number, solicited)
    local c = ready(number)
    has_extensions, sent = true, sent + 1
    local receive, data = next_receive(c, { size = 8 }), ("%08d"):format(sent)
    receive.message = { immediate = string.unpack(">i8", data) }
    c.conn:send(mpa.fpdu { ulpdu = rdmap.send { opcode = solicited and 9 or 8, msn = c.msn, payload = data } })
    c.msn = (c.msn + 1) & 0xffffffff
  end

  --- Writes `size` bytes at offset `at` of a region, in segments of at most `segment` bytes. The
  --- Write may come between two segments of the tester's Send.
  function self:write(number, fields)
    local c = connection(number)
    -- An unanswered Read may return the bytes before or after this Write.
    if c.reads[1] then traffic.drain(ready(number)) end
    if c.waiting > 0 then traffic.make_room(ready(number), fields.size) end
    local memory, fpdus = region_of(c, fields.region or 1), {}
    local at, size = part(memory, fields.at or 0, fields.size)
    local data, segment = traffic.payload(size), fields.segment or SEGMENT
    shared.write_segments(memory.region.stag, memory.region.address + at, data, segment, function(fpdu) fpdus[#fpdus + 1] = fpdu end)
    traffic.send_all(c.conn, fpdus)
    memory.octets, c.is_written = shared.splice(memory.octets, at, data), true
  end

  --- Returns the connection, after earlier answers if the target does not permit `count` more
  --- Requests of the tester. Also returns the number of Requests that the tester may send.
  local function with_requests(number, count)
    local c = ready(number)
    if #c.reads + count > c.limit then traffic.drain(c) end
    return c, math.min(count, c.limit)
  end

  --- Sends `count` Read Requests in one TCP write, or fewer if the target permits fewer Reads at a
  --- time. Each is for `size` bytes, and begins five bytes after the previous one. The answers may
  --- arrive later.
  function self:read(number, fields)
    local most = math.max(1, MAX_READ // math.max(1, fields.size))
    local c, count = with_requests(number, math.min(fields.count or 1, most))
    traffic.make_room(c, count * fields.size)
    local memory, fpdus = region_of(c, fields.region or 1), {}
    for nth = 1, count do
      local at, size = part(memory, (fields.at or 0) + 5 * (nth - 1), fields.size)
      local read = { opcode = 2, stag = traffic.new_stag(), want = memory.octets:sub(at + 1, at + size), got = {}, at = 0 }
      fpdus[nth] = mpa.fpdu {
        ulpdu = rdmap.read_request {
          sink_stag = read.stag, sink_to = 0, rdmardsz = size, src_stag = memory.region.stag, src_to = memory.region.address + at,
          msn = c.read_msn,
        },
      }
      c.read_msn, c.waiting = c.read_msn + 1, c.waiting + size
      c.reads[#c.reads + 1] = read
    end
    traffic.send_all(c.conn, fpdus)
  end

  --- Sends an Atomic Request for the counter of a connection. `kind` is "add", "swap" (a CmpSwap
  --- that finds the compared value) or "miss" (a CmpSwap that finds another value).
  function self:atomic(number, kind)
    local c, count = with_requests(number, 1)
    has_extensions = true
    if count == 0 then return end
    c.counter = c.counter or { region = target:region { octets = 8 }, value = 0 }
    local counter, is_add = c.counter, kind == "add"
    local compared = kind == "miss" and counter.value + 1 or counter.value
    local numbers = is_add and { 3, 0, 0, -1 } or { counter.value + 7, -1, compared, -1 }
    local head = string.pack(">I4I4I4i8", is_add and 0 or 2, c.read_msn, counter.region.stag, counter.region.address)
    local payload = head .. string.pack(">i8i8i8i8", table.unpack(numbers))
    c.conn:send(mpa.fpdu { ulpdu = rdmap.send { opcode = 10, qn = 1, msn = c.read_msn, payload = payload } })
    c.read_msn = c.read_msn + 1
    c.reads[#c.reads + 1] = { opcode = 11, want = counter.value }
    counter.value = counter.value + (is_add and 3 or kind == "swap" and 7 or 0)
    c.is_written = true
  end

  --- Waits for all messages, answers and completions on a connection.
  function self:answers(number) settle(connection(number)) end

  --- Waits.
  function self:pause(seconds) t:pause(seconds) end

  --- Closes a connection after all messages, answers and completions.
  function self:close(number)
    local c = connection(number)
    settle(c)
    c.conn:close()
    forget(number)
  end

  --- Lets the target's user end a connection after all messages, answers and completions.
  function self:disconnect(number)
    local c = connection(number)
    settle(c)
    c.pair:disconnect()
    c.conn:close()
    forget(number)
  end

  --- Resets a connection, even if messages, answers or completions are missing.
  function self:reset(number)
    connection(number).conn:reset()
    forget(number)
  end

  --- Sends an illegal FPDU after all messages, answers and completions, and expects that the target
  --- ends the connection. After that, all regions have only the bytes that legal messages placed, on
  --- this connection and on the others, and no further work request completes with success.
  function self:fault(number, name)
    local fault = session.FAULTS[name]
    if fault.requirement == shared.CRC and not connection(number).crc then
      -- A wrong CRC needs a connection with CRCs.
      self:close(number)
      connection(number, { crc = true })
    end
    local c = connection(number)
    settle(c)
    if not c.receives[1] then post_receives(c, 1, { size = FAULT_RECEIVE }) end
    local memory = traffic.register(FAULT_REGION, fault.access)
    c.op = { stag = memory.region.stag, to = memory.region.address, length = FAULT_REGION }
    local function check_unused()
      traffic.expect_failed(c, fault.requirement)
      traffic.verify_region(memory, fault.requirement)
    end
    shared.violate(t, c, fault, nothing_owed(check_unused), false)
    check_unused()
    memory.region:destroy()
    for other = 1, shared.MAX_NUMBER do
      local with = opened[other]
      for which = 1, with and not with.is_written and MAX_REGIONS or 0 do
        if with.regions[which] then traffic.verify_region(with.regions[which]) end
      end
    end
    forget(number)
  end

  --- Reads a region on each open connection except `number`, and waits for all messages, answers and
  --- completions. The end of one connection must not disturb another connection.
  function self:use_others(number)
    shared.use_others(opened, number, function(other)
      self:read(other, { size = 100 })
      settle(opened[other])
    end)
  end

  --- Closes all connections.
  function self:close_all() shared.close_all(self, opened) end

  --- Closes all connections. Each session ends with this step. `shown` has the requirements that
  --- the monitor judges in the session.
  function self:finish(shown)
    self:close_all()
    t:check(true, {
      requirement = { session.AGENT, has_extensions and session.ATOMICS or {}, shown or {} },
      expected = "the messages, answers and completions of all connections",
      actual = "these messages, answers and completions",
    })
  end

  return self
end
