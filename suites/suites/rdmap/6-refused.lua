-- RFC 5040 sections 5.2 and 5.3, RFC 5041 section 3: the target refuses many start-ups, and ends
-- many connections with a Terminate. It still has the resources for a connection with as many
-- messages at a time as before. The cases of `rdmap/6-connections` use one kind of refusal, and
-- then send one message at a time.

--- Number of refused or incomplete start-ups, and of connections that end with a Terminate. Tables
--- of a target often have 64 entries.
local BROKEN, ENDED = 100, 100
--- Number of Sends, and maximum number of Reads, that the tester sends at once.
local SENDS, READS = 32, 16
--- The number of seconds after which a missing answer is a failure.
local ANSWER = 10

local DELIVERED, PLACED, ANSWERED = "RDMAP-5.3-5", "DDP-5.2-4", "RDMAP-5.2.1-18"

local describe = session.describe

--- The refused or incomplete start-ups. Each function gets a new connection.
local START_UPS = {
  function(t, conn)
    conn:send(t:request():flip(3))
    conn:close()
  end,
  function(_, conn)
    conn:send(mpa.request { revision = 255 })
    conn:close()
  end,
  function(t, conn)
    conn:send(t:request():octets():sub(1, 10))
    conn:reset()
  end,
  function(t, conn)
    conn:send(t:request():octets():sub(1, 18))
    conn:close()
  end,
  function(_, conn) conn:reset() end,
}

--- Returns the illegal FPDUs for a connection with these parameters.
local function illegal_fpdus(op)
  return {
    rdmap.send { payload = "weft", qn = 77, msn = op.msn },
    rdmap.send { payload = "weft", opcode = 12, msn = op.msn },
    rdmap.write { payload = "weft", stag = 0x5eed0001 },
    rdmap.read_request { sink_stag = 0x7766, rdmardsz = 4, src_stag = 0x5eed0001 },
  }
end

--- Opens the connections that the target refuses or ends. `row` is the requirement that the target
--- violates if it does not serve a connection.
local function refuse(t, row)
  for nth = 1, BROKEN do
    START_UPS[nth % #START_UPS + 1](t, t:connect())
  end
  for nth = 1, ENDED do
    local conn, op = t:operate(nil, { requirement = row })
    local fpdus = illegal_fpdus(op)
    conn:send(mpa.fpdu { ulpdu = fpdus[nth % #fpdus + 1] })
    local event, fpdu = conn:next { within = ANSWER }
    if event == "fpdu" and fpdu.opcode == 7 then event, fpdu = conn:next { within = ANSWER } end
    -- Other cases judge the Terminate and the close.
    t:check(event == "close", { expected = "a Terminate and a close, or a close", actual = describe(event, fpdu, ANSWER) })
    conn:reset()
  end
end

--- Declares a case. `use` opens a connection, sends many messages at once, and checks the answers.
--- It gets the options of `t:operate`, and returns what failed: nil if nothing failed, else the
--- message, the event and the FPDU.
local function refused(service, title, capabilities, row, use)
  case {
    id = "rdmap/6-refused/" .. service,
    title = title,
    requirements = { row, PLACED },
    capabilities = capabilities,
    tags = { "connections", "startup", "terminate" },
    tier = "default",

    run = function(t)
      t:good_exchange()
      -- No RFC states how many messages a target accepts at once. So the case compares the target
      -- before and after.
      local failed, event, fpdu = use(t)
      if failed then
        t:unimplemented(("The target does not answer that many messages at once: %s instead of %s."):format(describe(event, fpdu, ANSWER), failed))
      end
      refuse(t, row)
      failed, event, fpdu = use(t, { requirement = row })
      t:check(not failed, {
        requirement = row,
        expected = failed or "the answers to all messages, as before the refused connections",
        actual = failed and describe(event, fpdu, ANSWER) or "other answers",
        missing = failed and event ~= "fpdu" or false,
      })
    end,
  }
end

refused("echo", "The target returns Sends that arrive at once, also after it has refused or ended many connections", { "echo" }, DELIVERED,
  function(t, options)
  local conn, op = t:operate(nil, options)
  local sent, fpdus = {}, nil
  for nth = 1, SENDS do
    sent[nth] = string.pack(">I4", nth) .. octets.counted(600 + nth)
    local fpdu = mpa.fpdu { ulpdu = rdmap.send { payload = sent[nth], msn = op.msn + nth - 1 } }
    fpdus = fpdus and fpdus .. fpdu or fpdu
  end
  conn:send(fpdus)
  for nth, payload in ipairs(sent) do
    local echo = ""
    repeat
      local event, fpdu = conn:next { within = ANSWER }
      if event ~= "fpdu" or fpdu.opcode ~= 3 then
        conn:reset()
        return ("the echo of Send %d of %d"):format(nth, SENDS), event, fpdu
      end
      echo = echo .. fpdu.payload
    until fpdu.last
    t:check(echo == payload, { requirement = PLACED, expected = "the bytes of the Send", actual = octets.difference(echo, payload) })
  end
  conn:close()
end)

refused("rping", "The target answers Reads that arrive at once, also after it has refused or ended many connections", { "rping", "revision-2" },
  ANSWERED, function(t, options)
  local conn, op = t:operate({ enhanced = true, ird = READS, ord = READS }, options)
  local size = math.min(48, op.length)
  local data, fpdus = session.fill_buffer(conn, op, size), nil
  local count = math.max(1, math.min(op.ird or 1, READS))
  for nth = 1, count do
    local fpdu = mpa.fpdu {
      ulpdu = rdmap.read_request { sink_stag = 0x7760 + nth, rdmardsz = size, src_stag = op.stag, src_to = op.to, msn = nth },
    }
    fpdus = fpdus and fpdus .. fpdu or fpdu
  end
  conn:send(fpdus)
  for nth = 1, count do
    local got = ""
    repeat
      local event, fpdu = conn:next { within = ANSWER }
      if event ~= "fpdu" or fpdu.opcode ~= 2 then
        conn:reset()
        return ("the Response to Read %d of %d"):format(nth, count), event, fpdu
      end
      got = got .. fpdu.payload
    until fpdu.last
    t:check(got == data, { requirement = PLACED, expected = "the bytes of the buffer", actual = octets.difference(got, data) })
  end
  conn:close()
end)
