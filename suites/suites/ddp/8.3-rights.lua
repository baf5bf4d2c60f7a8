-- RFC 5041 sections 5.1.1, 7.1, 8.2 and 8.3, RFC 5040 sections 3.2, 4.8 and 8.1.1: an STag is valid
-- only for the bytes, the rights, the streams and the time that the target's user sets. The cases
-- use an agent: a program on the target that calls the NIC's verbs for the tester.

local SIZE, SEED = 64, 5

--- Returns a region of SIZE bytes that are filled with a pattern.
local function region_of(target, access, domain)
  return target:region { octets = SIZE, access = access, fill = SEED, domain = domain }
end

local ALL = { "local_write", "remote_write", "remote_read" }

--- For each fault, a function that returns a region and an offset in the region. A Write or a Read
--- of 16 bytes at this offset is not allowed.
local WRONG = {
  right = function(target, missing)
    local access = { "local_write", missing == "remote_write" and "remote_read" or "remote_write" }
    return region_of(target, access), 0
  end,
  -- One byte is after the end of the region, or one byte is before its begin.
  beyond = function(target) return region_of(target, ALL), SIZE - 15 end,
  before = function(target) return region_of(target, ALL), -1 end,
  domain = function(target) return region_of(target, ALL, target:domain()), 0 end,
}

--- Expects that the rejected data did not change the region.
local function expect_unchanged(t, target, region, requirement)
  t:check(region:get {} == target:pattern(SEED, SIZE), {
    requirement = requirement,
    expected = "an unchanged region",
    actual = "changed bytes in the region",
  })
end

--- Declares a case with a Write. `placed` has the requirements that changed bytes in the region
--- violate, in addition to DDP-7.1-16.
local function write(wrong, title, requirements, code, errors, placed)
  case {
    id = "ddp/8.3-rights/write-" .. wrong,
    version = 3,
    title = "The target rejects a Write " .. title .. ", reports the error, and changes nothing",
    requirements = { "DDP-7.1-16", "DDP-7.1-20", code, table.unpack(requirements) },
    roles = { "responder", "initiator" },
    capabilities = { "agent" },
    tags = { "write", "refusal", "protection", "agent" },

    run = function(t, p, target)
      t:good_exchange()
      local conn, pair = target:operate {}
      local region, at = WRONG[wrong](target, "remote_write")
      conn:send(mpa.fpdu { ulpdu = rdmap.write { stag = region.stag, tagged_offset = region.address + at, payload = ("w"):rep(16) } }, { deviates = true })
      conn:expect_terminate { requirement = requirements, code = code, error = errors }
      conn:expect_close()
      pair:expect_error { or_end = true, requirement = "DDP-7.1-20", overdue_fails = true }
      expect_unchanged(t, target, region, { "DDP-7.1-16", placed or requirements })
    end,
  }
end

-- RFC 5041 has no error code for a missing right. The verbs draft (draft-hilland-rddp-verbs) treats
-- a missing right like an STag of another stream. For a Write, an error of RDMAP is never correct,
-- because RDMAP's protection errors are for Read Requests (RFC 5040 Figure 10). cxgb4 and irdma
-- nevertheless report 01 02.
write("right", "to a region that does not allow remote Writes", { "DDP-7.1-11", "DDP-8.3.1-5", "RDMAP-8.1.1-5" }, "DDP-7.2-5", { "11 02", "11 00" })
write("beyond", "with one byte after the region", { "DDP-7.1-13", "DDP-8.3-1" }, "DDP-7.2-4", "11 01", { "DDP-7.1-13" })
write("before", "with one byte before the region", { "DDP-7.1-12", "DDP-8.3-1" }, "DDP-7.2-4", { "11 01", "11 03" },
  { "DDP-7.1-12" })
write("domain", "to a region of another Protection Domain", { "DDP-8.2-1", "DDP-8.3-3" }, "DDP-7.2-5", { "11 02", "11 00" })

--- Returns a Read Request for 16 bytes that the target's user does not allow the tester to read.
local function read_request(region, at)
  return mpa.fpdu {
    ulpdu = rdmap.read_request { sink_stag = 0x7766, rdmardsz = 16, src_stag = region.stag, src_to = region.address + at },
  }
end

local function read(wrong, title, requirements, code, errors)
  case {
    id = "ddp/8.3-rights/read-" .. wrong,
    title = "The target rejects a Read " .. title .. ", and reports the error",
    requirements = { "RDMAP-7.1-1", code, table.unpack(requirements) },
    roles = { "responder", "initiator" },
    capabilities = { "agent" },
    tags = { "read", "refusal", "protection", "agent" },

    run = function(t, p, target)
      t:good_exchange()
      local conn, pair = target:operate {}
      local region, at = WRONG[wrong](target, "remote_read")
      conn:send(read_request(region, at), { deviates = true })
      conn:expect_terminate { requirement = requirements, code = code, error = errors }
      conn:expect_close()
      pair:expect_error { or_end = true, requirement = "RDMAP-7.1-1", overdue_fails = true }
    end,
  }
end

-- If two errors apply, the target may report either.
read("right", "from a region that does not allow remote Reads", { "RDMAP-8.1.1-5" }, "RDMAP-4.8-20", "01 02")
read("beyond", "with one byte after the region", { "RDMAP-7.2-7" }, "RDMAP-4.8-19", "01 01")
read("before", "with one byte before the region", { "RDMAP-7.2-7" }, "RDMAP-4.8-19", { "01 01", "01 04" })
read("domain", "from a region of another Protection Domain", { "RDMAP-7.2-5", "RDMAP-8.1.1-1" }, "RDMAP-4.8-21", { "01 03", "01 00" })

local BACK = { "DDP-8.3-1", "DDP-8.3.1-4", "RDMAP-3.2-9", "RDMAP-8.1.1-4" }

case {
  id = "ddp/8.3-rights/given-back",
  title = "The target rejects a Write to, and a Read from, a deregistered region",
  requirements = BACK,
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "write", "read", "refusal", "protection", "agent" },
  parameters = { message = { "write", "read" } },

  run = function(t, p, target)
    t:good_exchange()
    local conn = target:operate {}
    local region = region_of(target, ALL)
    region:destroy()
    if p.message == "read" then
      conn:send(read_request(region, 0))
    else
      conn:send(mpa.fpdu { ulpdu = rdmap.write { stag = region.stag, tagged_offset = region.address, payload = ("w"):rep(16) } })
    end
    conn:expect_terminate { requirement = BACK }
    conn:expect_close()
  end,
}

--- Size in bytes of a Read Response that TCP does not accept at once, and of the tester's receive
--- buffer.
local LONG, BUFFER = 1 << 20, 16384

-- A part of the Read Response may already be in the buffers of TCP when the region is deregistered.
-- So the target may send any part of it.
case {
  id = "ddp/8.3-rights/during-read",
  title = "The target sends only bytes of the region if it is deregistered during a Read, and then rejects a Read of it",
  requirements = { "RDMAP-4.4-10", BACK },
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "read", "refusal", "protection", "agent" },

  run = function(t, _, target)
    t:good_exchange()
    t:receive_buffer(BUFFER)
    local conn = target:operate {}
    local region = target:region { octets = LONG, fill = SEED }
    local data, got = target:pattern(SEED, LONG), 0
    conn:send(mpa.fpdu {
      ulpdu = rdmap.read_request { sink_stag = 0x7766, rdmardsz = LONG, src_stag = region.stag, src_to = region.address },
    })
    local event, fpdu = conn:next { within = 10 }
    t:check(event == "fpdu" and fpdu.opcode == 2, { expected = "a Read Response", actual = event or "nothing" })
    region:destroy()
    while event == "fpdu" and fpdu.opcode == 2 do
      t:check(fpdu.payload == data:sub(got + 1, got + #fpdu.payload), {
        requirement = "RDMAP-4.4-10",
        expected = ("the bytes of the region from offset %d"):format(got),
        actual = octets.difference(fpdu.payload, data:sub(got + 1, got + #fpdu.payload)),
      })
      got = got + #fpdu.payload
      if fpdu.last then break end
      event, fpdu = conn:next { within = 10 }
    end
    t:check(event ~= nil, {
      requirement = "RDMAP-4.4-10",
      expected = "the rest of the Read Response, a Terminate or a close",
      actual = ("nothing after %d bytes of the Read Response, and the connection stays open"):format(got),
      missing = true,
    })
    conn:reset()
    local later = target:operate {}
    later:send(read_request(region, 0), { deviates = true })
    later:expect_terminate { requirement = BACK }
    later:expect_close()
  end,
}

case {
  id = "ddp/8.3-rights/edges",
  version = 2,
  title = "The target accepts a Write and a Read of the first and of the last byte of a region",
  requirements = { "DDP-5.1.1-1", "RDMAP-4.4-10" },
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "write", "read", "protection", "agent" },
  parameters = { at = { 0, SIZE - 1 } },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair, op = target:operate {}
    local region = region_of(target, ALL)
    local work = pair:post_receive { region = target:region { octets = 16, access = { "local_write" } } }
    conn:send(mpa.fpdu { ulpdu = rdmap.write { stag = region.stag, tagged_offset = region.address + p.at, payload = "w" } })
    conn:send(mpa.fpdu {
      ulpdu = rdmap.read_request { sink_stag = 0x7766, rdmardsz = SIZE, src_stag = region.stag, src_to = region.address },
    })
    local was = target:pattern(SEED, SIZE)
    local want = was:sub(1, p.at) .. "w" .. was:sub(p.at + 2)
    local event, fpdu = conn:next { within = 10 }
    t:check(event, { expected = "a Read Response", actual = "nothing" })
    if event == "fpdu" and fpdu.opcode == 2 then
      local memory = region:get {}
      t:check(memory == want, {
        requirement = "DDP-5.1.1-1", expected = ("a region in which only byte %d has changed"):format(p.at), actual = octets.difference(memory, want),
      })
      t:check(fpdu.payload == memory, {
        requirement = "RDMAP-4.4-10", expected = "the bytes of the region", actual = octets.difference(fpdu.payload, memory),
      })
    else
      -- Byte 7 of a Terminate is the first byte of the rejected DDP header. Bit T is set for a Write.
      local is_write = event == "fpdu" and fpdu.opcode == 7 and #fpdu.payload >= 7 and fpdu.payload:byte(7) & 0x80 ~= 0
      t:check(false, {
        requirement = is_write and "DDP-5.1.1-1" or "RDMAP-4.4-10",
        expected = "a Read Response",
        actual = is_write and "a Terminate for the Write" or event == "fpdu" and ("an FPDU of opcode %d"):format(fpdu.opcode) or event,
      })
    end
    conn:send(mpa.fpdu { ulpdu = rdmap.send { msn = op.msn, payload = "later" } })
    pair:expect_completion { work = work, octets = 5 }
    t:check(region:get {} == want, {
      requirement = "DDP-5.1.1-1",
      expected = ("a region in which only byte %d has changed"):format(p.at),
      actual = "other bytes in the region",
    })
    conn:reset()
  end,
}

--- Declares a case with a memory window that does not allow a Write of 16 bytes. `it` has the part
--- of the region that the window covers, the rights of the window, and the offset of the Write. A
--- Write that is accepted violates `requirements` and `control`. A Write that is only ignored, without
--- a refusal, violates `requirements`.
local function window(wrong, title, it, requirements, control)
  local violated = { requirements, control or {} }
  case {
    id = "ddp/8.3-rights/window-" .. wrong,
    version = 2,
    title = "The target rejects a Write to a memory window " .. title .. ", and changes nothing",
    requirements = { { "DDP-7.1-16" }, table.unpack(violated) },
    roles = { "responder", "initiator" },
    capabilities = { "agent" },
    tags = { "write", "refusal", "protection", "agent" },

    run = function(t, p, target)
      t:good_exchange()
      if target:device().max_windows == 0 then t:unimplemented("The device has no memory windows.") end
      local conn, pair = target:operate {}
      local region = region_of(target, { "local_write", "remote_write", "remote_read", "bind" })
      local bound, stag = pair:post_bind {
        window = target:window {}, to_region = region, at = it.at, octets = it.octets, access = it.access or { "remote_write" }, may_refuse = true,
      }
      if not bound then t:unimplemented("The device rejects the work request to bind a window: " .. stag) end
      pair:expect_completion { work = bound }
      if wrong == "invalidated" then
        pair:expect_completion { work = pair:post_invalidate { stag = stag } }
      end
      local wire = conn
      if wrong == "stream" then wire = target:operate {} end
      wire:send(mpa.fpdu { ulpdu = rdmap.write { stag = stag, tagged_offset = region.address + it.try, payload = ("w"):rep(16) } }, { deviates = true })
      local event, fpdu = wire:next { within = 15 }
      local is_refused = event == "close" or event == "fpdu" and fpdu.opcode == 7
      if not is_refused then
        local is_placed = region:get {} ~= target:pattern(SEED, SIZE)
        t:check(false, {
          requirement = is_placed and violated or requirements,
          expected = "a refusal",
          actual = (event or "nothing within 15 s") .. (is_placed and ", and changed bytes in the region" or ", and the region is unchanged"),
        })
      end
      if event == "fpdu" then wire:expect_close() end
      expect_unchanged(t, target, region, { { "DDP-7.1-16" }, table.unpack(violated) })
      if wrong == "stream" then conn:reset() end
    end,
  }
end

window("range", "that does not cover all bytes of the Write", { at = 16, octets = 32, try = 40 }, { "DDP-8.3-1", "DDP-7.1-13" })
window("right", "that does not allow remote Writes", { at = 0, octets = SIZE, try = 0, access = { "remote_read" } },
  { "DDP-8.3.1-5", "RDMAP-8.1.1-5", "DDP-7.1-11" })
window("invalidated", "that was invalidated", { at = 0, octets = SIZE, try = 0 },
  { "DDP-8.3.1-6", "RDMAP-8.1.1-6", "DDP-7.1-11" }, { "DDP-8.3-2", "RDMAP-8.1.1-4", "RDMAP-3.2-9" })
window("stream", "that is bound to another connection", { at = 0, octets = SIZE, try = 0 }, { "DDP-8.2-2", "DDP-8.3-3" })
