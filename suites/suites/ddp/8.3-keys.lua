-- RFC 5041 sections 5.1.1, 7.1, 8.2 and 8.3, RFC 5040 sections 3.2, 4.4, 7.2 and 8.1.1: STags after
-- many registrations, regions whose first Tagged Offset is 0, and STags that are used after their
-- connection has ended. The cases use an agent: a program on the target that calls the NIC's verbs
-- for the tester.

local SIZE, SEED = 64, 5
local ALL = { "local_write", "remote_write", "remote_read" }

--- Returns an FPDU with a Read Request for `length` bytes.
local function read_request(stag, to, length, msn)
  return mpa.fpdu {
    ulpdu = rdmap.read_request { sink_stag = 0x7766, rdmardsz = length, src_stag = stag, src_to = to, msn = msn },
  }
end

--- Returns an FPDU with a Write of `length` bytes.
local function write(stag, to, length)
  return mpa.fpdu { ulpdu = rdmap.write { stag = stag, tagged_offset = to, payload = ("w"):rep(length) } }
end

--- Receives a Read Response, and returns its payload. If another event comes, returns nil and this
--- event. The event is nil if nothing arrives.
local function receive(conn)
  local pieces = {}
  repeat
    local event, fpdu = conn:next { within = 10 }
    if event ~= "fpdu" or fpdu.opcode ~= 2 then return nil, event, fpdu end
    pieces[#pieces + 1] = fpdu.payload
  until fpdu.last
  return table.concat(pieces)
end

--- Declares a case with an agent, for both roles of the target. `declared` has the other fields of
--- the case.
local function with_agent(name, title, requirements, declared, run)
  declared.id, declared.title = "ddp/8.3-keys/" .. name, title
  declared.requirements, declared.run = requirements, run
  declared.roles = { "responder", "initiator" }
  declared.capabilities = { "agent" }
  return declared
end

--- Checks that a rejected Write did not change the region.
local function check_unchanged(t, target, region, requirement)
  local got, was = region:get {}, target:pattern(SEED, SIZE)
  t:check(got == was, { requirement = requirement, expected = "an unchanged region", actual = octets.difference(got, was) })
end

-- A target violates all four requirements if it accepts an old key. If it rejects a new key, it
-- violates those about the user's choice.
local BACK, NEW = { "DDP-8.3-1", "DDP-8.3.1-4", "RDMAP-3.2-9", "RDMAP-8.1.1-4" }, { "DDP-8.3.1-4", "RDMAP-8.1.1-4" }
local BYTES = "RDMAP-4.4-10"

--- Declares a case that registers a region, reads it and deregisters it, `rounds` times. Then the
--- tester uses the keys of the first, the middle and the last region.
local function churn(name, rounds, tier)
  return with_agent(name, ("The target accepts the key of each of %d regions, and rejects it after the region was deregistered"):format(rounds),
    { BACK, BYTES }, {
    tier = tier,
    tags = { "write", "read", "refusal", "protection", "agent" },
    parameters = { message = { "write", "read" } },
  }, function(t, p, target)
    t:good_exchange()
    local conn, old = target:operate {}, {}
    for round = 1, rounds do
      local region = target:region { octets = SIZE, access = ALL, fill = round }
      conn:send(read_request(region.stag, region.address, SIZE, round))
      local data, event, fpdu = receive(conn)
      local want = target:pattern(round, SIZE)
      -- A transcript has a step for each check that passes. So only checks that fail are made.
      if data ~= want then
        t:check(false, {
          requirement = data and BYTES or NEW,
          expected = ("the bytes of region %d"):format(round),
          actual = data and octets.difference(data, want) or session.describe(event, fpdu, 10),
          missing = data == nil and event ~= "fpdu",
        })
      end
      old[round] = { stag = region.stag, address = region.address }
      region:destroy()
    end
    conn:reset()
    t:check(true, { requirement = BYTES, expected = "the bytes of each region", actual = "other bytes" })
    -- A target may use a key again. So an old key is invalid only if no region has it now.
    local region, tried = target:region { octets = SIZE, access = ALL, fill = SEED }, 0
    for _, round in ipairs { 1, rounds // 2, rounds } do
      local key = old[round]
      if key.stag ~= region.stag then
        local wire = target:operate {}
        if p.message == "read" then
          wire:send(read_request(key.stag, key.address, 16))
        else
          wire:send(write(key.stag, key.address, 16))
        end
        wire:expect_terminate { requirement = BACK }
        wire:expect_close()
        tried = tried + 1
      end
    end
    if tried == 0 then t:unimplemented("The device gives the same key to each region.") end
    check_unchanged(t, target, region, BACK)
  end)
end

case(churn("churn", 50))
case(churn("churn-long", 1000, "full"))

--- Registers a region whose first byte has the Tagged Offset 0, opens a connection, and reads the
--- region. Returns the connection, its pair, its parameters and the region.
local function zero_based(t, target)
  local access = { "local_write", "remote_write", "remote_read", "zero_based" }
  local region, why = target:region { octets = SIZE, access = access, fill = SEED, may_refuse = true }
  if not region then t:unimplemented("The device registers no zero-based regions: " .. why) end
  local conn, pair, op = target:operate {}
  conn:send(read_request(region.stag, 0, SIZE))
  local data, event = receive(conn)
  t:check(data or event, { expected = "a Read Response", actual = "nothing" })
  if not data then
    conn:reset()
    -- Some drivers ignore the flag for zero-based regions.
    t:unimplemented("The device does not make the region zero-based: it rejects a Read at Tagged Offset 0.")
  end
  return conn, pair, op, region, data
end

local PLACED = "DDP-5.1.1-1"

case(with_agent("zero-edges", "The target accepts a Write to, and a Read of, the first and the last byte of a zero-based region",
  { PLACED, BYTES }, { tags = { "write", "read", "protection", "agent" }, parameters = { at = { 0, SIZE - 1 } } }, function(t, p, target)
  t:good_exchange()
  local conn, _, _, region, data = zero_based(t, target)
  local was = target:pattern(SEED, SIZE)
  t:check(data == was, { requirement = BYTES, expected = "the bytes of the region", actual = octets.difference(data, was) })
  conn:send(write(region.stag, p.at, 1))
  conn:send(read_request(region.stag, p.at, 1, 2))
  local byte, event, fpdu = receive(conn)
  -- Byte 7 of a Terminate is the first byte of the rejected DDP header. Bit T is set for a Write.
  local is_terminate = event == "fpdu" and fpdu.opcode == 7 and #fpdu.payload >= 7
  local is_write = is_terminate and fpdu.payload:byte(7) & 0x80 ~= 0
  t:check(byte, {
    requirement = is_write and PLACED or BYTES, expected = "a Read Response", actual = session.describe(event, fpdu, 10), missing = event ~= "fpdu",
  })
  local got, want = region:get {}, was:sub(1, p.at) .. "w" .. was:sub(p.at + 2)
  t:check(got == want, {
    requirement = PLACED, expected = ("a region in which only byte %d has changed"):format(p.at), actual = octets.difference(got, want),
  })
  t:check(byte == "w", { requirement = BYTES, expected = "the byte that was written", actual = octets.difference(byte, "w") })
  conn:reset()
end))

--- Offset and length of the parts of a zero-based region that are not completely inside it.
local BEYOND = { after = { SIZE, 1 }, across = { SIZE - 1, 2 } }

case(with_agent("zero-write", "The target rejects a Write with one byte after the end of a zero-based region",
  { "DDP-7.1-12", "DDP-7.1-13", "DDP-7.2-4", "DDP-7.1-16" },
  { tags = { "write", "refusal", "protection", "agent" }, parameters = { part = { "after", "across" } } }, function(t, p, target)
  t:good_exchange()
  local conn, _, _, region = zero_based(t, target)
  local at, length = table.unpack(BEYOND[p.part])
  conn:send(write(region.stag, at, length), { deviates = true })
  conn:expect_terminate { requirement = { "DDP-7.1-12", "DDP-7.1-13" }, code = "DDP-7.2-4", error = "11 01" }
  conn:expect_close()
  check_unchanged(t, target, region, "DDP-7.1-16")
end))

case(with_agent("zero-read", "The target rejects a Read with one byte after the end of a zero-based region",
  { "RDMAP-7.2-7", "RDMAP-7.2-18", "RDMAP-4.8-19" },
  { tags = { "read", "refusal", "protection", "agent" }, parameters = { part = { "after", "across" } } }, function(t, p, target)
  t:good_exchange()
  local conn, _, _, region = zero_based(t, target)
  local at, length = table.unpack(BEYOND[p.part])
  conn:send(read_request(region.stag, at, length, 2), { deviates = true })
  conn:expect_terminate { requirement = { "RDMAP-7.2-7", "RDMAP-7.2-18" }, code = "RDMAP-4.8-19", error = "01 01" }
  conn:expect_close()
end))

--- For each kind of association, a function that returns an STag and the options of a later
--- connection on which the STag is not valid.
local STAGS = {
  -- The window is bound to the first connection.
  window = function(t, target, region, pair)
    if target:device().max_windows == 0 then t:unimplemented("The device has no memory windows.") end
    local bound, stag = pair:post_bind { window = target:window {}, to_region = region, access = { "remote_write" }, may_refuse = true }
    if not bound then t:unimplemented("The device rejects the work request to bind a window: " .. stag) end
    pair:expect_completion { work = bound }
    return stag, {}
  end,
  domain = function(_, target, region) return region.stag, { domain = target:domain() } end,
}

--- Declares a case in which the connection of an STag ends, and the tester then uses the STag on
--- another connection.
local function ended(association, title, requirements)
  return with_agent("ended-" .. association, "The target rejects a Write to " .. title .. ", and changes nothing",
    { "DDP-7.1-16", table.unpack(requirements) },
    { tags = { "write", "refusal", "protection", "close", "agent" }, parameters = { ends = { "close", "reset" } } }, function(t, p, target)
    t:good_exchange()
    local first, pair = target:operate {}
    local region = target:region { octets = SIZE, access = { "local_write", "remote_write", "remote_read", "bind" }, fill = SEED }
    local stag, options = STAGS[association](t, target, region, pair)
    if p.ends == "reset" then first:reset() else first:finish() end
    pair:expect_error { or_end = true }
    if p.ends == "close" then first:close() end
    local conn = target:operate(options)
    conn:send(write(stag, region.address, 16), { deviates = true })
    conn:expect_terminate { requirement = requirements }
    conn:expect_close()
    check_unchanged(t, target, region, "DDP-7.1-16")
  end)
end

case(ended("window", "a memory window of a connection that has ended", { "DDP-8.2-2", "DDP-8.3-3" }))
case(ended("domain", "a region of another Protection Domain whose connection has ended", { "DDP-8.2-1", "DDP-8.3-3" }))
