-- RFC 5040 section 6.2, RFC 5041 sections 3 and 6.2.1: how the target's user learns that a
-- connection ends, and what the user is allowed to do afterwards. Some connections end in the
-- middle of a message. The user is an agent: a program on the target that calls the NIC's verbs for
-- the tester.

local DOWN = { "DDP-3-10", "DDP-3-14", "DDP-6.2.1-3" }

case {
  id = "rdmap/6.2-ended/fin",
  title = "The target reports a Send and the FIN after it",
  requirements = DOWN,
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "close", "agent" },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair, op = target:operate {}
    local work = pair:post_receive { region = target:region { octets = 16, access = { "local_write" } } }
    conn:send(mpa.fpdu { ulpdu = rdmap.send { msn = op.msn, payload = "last" } })
    conn:finish()
    pair:expect_completion { work = work, octets = 4 }
    pair:expect_event { event = { "disconnected", "asynchronous" }, requirement = DOWN, overdue_fails = true }
    conn:reset()
  end,
}

case {
  id = "rdmap/6.2-ended/posts-after-it",
  title = "The target rejects work that its user posts after ending the connection, or completes it in error",
  requirements = { "DDP-6.2.1-4" },
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "close", "agent" },
  parameters = { verb = { "send", "write" } },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair = target:operate {}
    local region = target:region { octets = 16 }
    pair:disconnect()
    local fields = { region = region, length = 4, may_refuse = true }
    local work, why
    if p.verb == "send" then
      work, why = pair:post_send(fields)
    else
      fields.stag, fields.to = 7, 0
      work, why = pair:post_write(fields)
    end
    if work then
      pair:expect_completion { work = work, status = "error", requirement = "DDP-6.2.1-4", overdue_fails = true }
    else
      t:check(true, { requirement = "DDP-6.2.1-4", expected = "a rejection: " .. why, actual = "none" })
    end
    conn:close()
  end,
}

case {
  id = "rdmap/6.2-ended/outstanding",
  title = "The target completes a waiting Read in error when the peer's Terminate arrives",
  requirements = { "RDMAP-6.2.1-5" },
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "read", "error", "agent" },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair = target:operate { ird = 1, ord = 1 }
    local work = pair:post_read { region = target:region { octets = 64 }, length = 64, stag = 7, to = 0 }
    conn:expect_fpdu { opcode = 1 }
    conn:send(mpa.fpdu { ulpdu = rdmap.send { opcode = 7, qn = 2, msn = 1, payload = string.char(0x00, 0x00, 0, 0) } })
    pair:expect_completion { work = work, status = "error", requirement = "RDMAP-6.2.1-5", overdue_fails = true }
    conn:reset()
  end,
}

local TERMINATE = mpa.fpdu { ulpdu = rdmap.send { opcode = 7, qn = 2, msn = 1, payload = "\0\0\0\0" } }

--- Declares a case in which the connection ends in the middle of the tester's Send. `stop` sends
--- the first half of the Send and ends the connection.
local function half_received(ends, title, requirement, stop)
  case {
    id = "rdmap/6.2-ended/half-received-" .. ends,
    title = "The target completes the receive of a half-received Send in error when " .. title,
    requirements = { requirement },
    roles = { "responder", "initiator" },
    capabilities = { "agent" },
    tags = { "send", "close", "agent" },

    run = function(t, p, target)
      t:good_exchange()
      local conn, pair, op = target:operate {}
      local work = pair:post_receive { region = target:region { octets = 64, access = { "local_write" } } }
      local half = mpa.fpdu { ulpdu = rdmap.send { msn = op.msn, payload = ("h"):rep(32), last = false } }
      stop(conn, half, t, pair, target)
      pair:expect_completion { work = work, status = "error", requirement = requirement, overdue_fails = true }
      conn:reset()
    end,
  }
end

half_received("reset", "the peer resets the connection", "DDP-6.2.2-7", function(conn, half)
  conn:send(half)
  conn:reset()
end)
half_received("terminate", "the peer's Terminate arrives", "RDMAP-6.2.1-5", function(conn, half)
  conn:send(half .. TERMINATE, { deviates = true })
end)

-- In these two cases, the target's user ends the connection, or posts a work request that fails.
half_received("user", "the user ends the connection", "VERBS-6.4-21", function(conn, half, t, pair)
  conn:send(half)
  t:pause(0.1)
  pair:disconnect()
  -- The target may wait for this FIN before it completes the receive.
  conn:finish()
end)
half_received("local-error", "a work request of the user fails", "RDMAP-6.2.1-5", function(conn, half, t, pair, target)
  conn:send(half)
  t:pause(0.1)
  local region = target:region { octets = 16 }
  local work, why = pair:post_send { region = region, length = 16, key = region.local_key ~ 0x00ffff00, may_refuse = true }
  if not work then t:unimplemented("The device rejects such work when it is posted: " .. why) end
end)

local LOST = { "DDP-6.2.2-1", "DDP-3-3", "RDMAP-6.2-3" }

case {
  id = "rdmap/6.2-ended/reset-without-receive",
  title = "The target reports that the peer has reset the connection, also if no receive is posted",
  requirements = LOST,
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "close", "receives", "agent" },
  -- A Send without a receive may precede the reset. The target may reject it or let it wait.
  parameters = { sends = { false, true } },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair, op = target:operate {}
    if p.sends then
      conn:send(mpa.fpdu { ulpdu = rdmap.send { msn = op.msn, payload = "early" } })
      t:pause(0.1)
    end
    conn:reset()
    pair:expect_error { or_end = true, requirement = LOST, overdue_fails = true }
  end,
}

--- Size in bytes of a message that TCP does not accept at once, and of the tester's receive buffer.
local LONG, BUFFER = 1 << 20, 16384

--- Receives what the target sends until the connection ends, or until nothing arrives for 10 s.
--- `each` gets every FPDU. Returns the last event.
local function receive(conn, each)
  while true do
    local event, fpdu = conn:next { within = 10 }
    if event == "octets" then
      -- The connection ends in the middle of an FPDU. Without these bytes, the next event is the
      -- end.
      conn:expect_octets { begins = "" }
    elseif event ~= "fpdu" then
      return event
    else
      each(fpdu)
    end
  end
end

case {
  id = "rdmap/6.2-ended/while-reading",
  title = "TCP ends if the target's user ends the connection while the target answers a Read",
  requirements = { "DDP-3-11", "RDMAP-4.4-10" },
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "read", "close", "agent" },
  parameters = { verb = { "disconnect", "destroy" } },

  run = function(t, p, target)
    t:good_exchange()
    t:receive_buffer(BUFFER)
    local conn, pair = target:operate {}
    local region = target:region { octets = LONG, fill = 3 }
    local data = target:pattern(3, LONG)
    conn:send(mpa.fpdu {
      ulpdu = rdmap.read_request { sink_stag = 7, rdmardsz = LONG, src_stag = region.stag, src_to = region.address },
    })
    local got = #conn:expect_fpdu { opcode = 2 }.payload
    if p.verb == "disconnect" then pair:disconnect() else pair:destroy() end
    -- The target may send or drop the rest of the Read Response.
    local event = receive(conn, function(fpdu)
      if fpdu.opcode == 7 then return end
      local is_next = fpdu.opcode == 2 and fpdu.payload == data:sub(got + 1, got + #fpdu.payload)
      t:check(is_next, {
        requirement = "RDMAP-4.4-10",
        expected = ("the bytes of the region from offset %d"):format(got),
        actual = ("an FPDU with opcode %d and other bytes"):format(fpdu.opcode),
      })
      got = got + #fpdu.payload
    end)
    t:check(event == "close", {
      requirement = "DDP-3-11",
      expected = "a close",
      actual = ("%d bytes of the Read Response, then nothing, and the connection stays open"):format(got),
      missing = true,
    })
    t:check(true, { requirement = "RDMAP-4.4-10", expected = "only bytes of the region", actual = ("%d such bytes"):format(got) })
  end,
}

case {
  id = "rdmap/6.2-ended/while-sending",
  title = "A target that sends a long message rejects an illegal FPDU, reports the error, and sends nothing after its Terminate",
  requirements = { "RDMAP-5.4-12", "RDMAP-7-3", "DDP-7.1-20" },
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "send", "write", "terminate", "refusal", "agent" },
  parameters = { verb = { "send", "write" } },

  run = function(t, p, target)
    t:good_exchange()
    t:receive_buffer(BUFFER)
    local conn, pair, op = target:operate {}
    local fields = { region = target:region { octets = LONG, fill = 3 }, length = LONG }
    if p.verb == "send" then
      pair:post_send(fields)
    else
      fields.stag, fields.to = 7, 0
      pair:post_write(fields)
    end
    conn:expect_fpdu { opcode = p.verb == "send" and 3 or 0 }
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft", qn = 77, msn = op.msn } }, { deviates = true })
    local terminates, after = 0, 0
    local event = receive(conn, function(fpdu)
      if fpdu.opcode == 7 then
        terminates = terminates + 1
      elseif terminates > 0 then
        after = after + 1
      end
    end)
    t:check(terminates <= 1 and after == 0, {
      requirement = "RDMAP-5.4-12",
      expected = "one Terminate at most, and no message after it",
      actual = ("%d Terminates, and %d other messages after the first"):format(terminates, after),
    })
    t:check(event == "close", {
      requirement = "RDMAP-7-3",
      expected = "a close",
      actual = "nothing, and the connection stays open",
      missing = true,
    })
    pair:expect_error { or_end = true, requirement = "DDP-7.1-20", overdue_fails = true }
  end,
}

--- For each operation, the opcode of its first FPDU.
local OPCODES = { send = 3, write = 0, read = 1 }

--- Declares a case in which the connection ends while the target sends a long message, or waits for
--- the answer to its Read. `stop` ends the connection.
local function posted(ends, title, requirement, stop)
  case {
    id = "rdmap/6.2-ended/posted-" .. ends,
    title = "The target completes a long Send, Write or Read when " .. title,
    requirements = { requirement },
    roles = { "responder", "initiator" },
    capabilities = { "agent" },
    tags = { "send", "write", "read", "close", "agent" },
    parameters = { verb = { "send", "write", "read" } },

    run = function(t, p, target)
      t:good_exchange()
      t:receive_buffer(BUFFER)
      local conn, pair = target:operate { ird = 1, ord = 1 }
      local fields = { region = target:region { octets = LONG, fill = 3 }, length = LONG }
      if p.verb ~= "send" then fields.stag, fields.to = 7, 0 end
      local work = pair["post_" .. p.verb](pair, fields)
      conn:expect_fpdu { opcode = OPCODES[p.verb] }
      stop(conn)
      -- A Send or a Write may already be complete, because TCP has accepted all of its bytes.
      local status = p.verb == "read" and { "error" } or { "success", "error" }
      pair:expect_completion { work = work, status = status, requirement = requirement, overdue_fails = true }
      conn:reset()
    end,
  }
end

posted("reset", "the peer resets the connection", "DDP-6.2.2-7", function(conn) conn:reset() end)
posted("terminate", "the peer's Terminate arrives", "RDMAP-6.2.1-5", function(conn)
  conn:send(TERMINATE, { deviates = true })
  -- No RFC requires that a target receives while it cannot send. So the tester reads.
  receive(conn, function() end)
end)
