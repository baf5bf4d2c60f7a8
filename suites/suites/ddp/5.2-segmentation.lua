-- RFC 5041 sections 4.3, 5.2 and 5.3: the untagged segments that a target sends, seen in what it echoes.

-- By the field that decides them.
local KIND = {
  "DDP-4.1-3", "RDMAP-4.1-9", "RDMAP-4.1-20", "RDMAP-5.3-1", "RDMAP-5.3-12", "DDP-4.3-1",
}
local QUEUE = { "DDP-4.3-5", "DDP-4.3-14", "DDP-4.3-15", "RDMAP-3.1-2", "RDMAP-5.3-15" }
local NUMBER = { "DDP-4.3-9", "DDP-4.3-16" }
local OFFSET = { "DDP-1.2-5", "DDP-4.3-10", "DDP-4.3-11", "DDP-5.2-5" }
local LAST = { "DDP-4.1-4", "DDP-4.1-5" }
local WHOLE = { "DDP-5.2-1", "DDP-5.2-3", "DDP-4.4-1" }
-- What the monitor says about each segment decides these.
local SEEN = {
  "DDP-4.1-1", "DDP-4.1-6", "DDP-4.1-7", "DDP-4.1-10", "DDP-4.1-12", "DDP-4.3-3", "RDMAP-3.1-1", "RDMAP-3.1-9", "RDMAP-4.1-1",
  "RDMAP-4.1-2", "RDMAP-4.1-4", "RDMAP-4.1-16",
}

local function all(...)
  local joined = {}
  for _, list in ipairs { ... } do
    for _, id in ipairs(list) do
      joined[#joined + 1] = id
    end
  end
  return joined
end

--- Octets that differ from place to place.
local function text(length)
  local words = {}
  for number = 1, length // 6 + 1 do
    words[number] = ("w%04d "):format(number)
  end
  return table.concat(words):sub(1, length)
end

--- A Send in segments of so many octets.
local function cut(payload, msn, most)
  local fpdus
  for mo = 0, math.max(#payload - 1, 0), most do
    local piece = payload:sub(mo + 1, mo + most)
    local fpdu = mpa.fpdu { ulpdu = rdmap.send { payload = piece, msn = msn, mo = mo, last = mo + #piece == #payload } }
    fpdus = fpdus and fpdus .. fpdu or fpdu
  end
  return fpdus
end

--- The echo of a Send: right in each field of each segment, and the same octets.
local function expect_echo(t, conn, payload, msn)
  local echo = ""
  local function holds(ok, requirement, expected, actual)
    t:check(ok, { requirement = requirement, expected = expected, actual = actual })
  end
  repeat
    local fpdu = conn:expect_fpdu { requirement = KIND, shows = SEEN, opcode = 3, overdue_fails = true }
    holds(not fpdu.tagged, KIND, "an untagged segment", "a tagged one")
    holds(fpdu.qn == 0, QUEUE, "QN 0", ("QN %d"):format(fpdu.qn))
    holds(fpdu.msn == msn, NUMBER, ("MSN %d"):format(msn), ("MSN %d"):format(fpdu.msn))
    holds(fpdu.mo == #echo, OFFSET, ("MO %d"):format(#echo), ("MO %d"):format(fpdu.mo))
    echo = echo .. fpdu.payload
    local last = #echo >= #payload
    holds(fpdu.last == last, LAST, ("L=%s with %d of %d octets"):format(last, #echo, #payload), ("L=%s"):format(fpdu.last))
  until fpdu.last
  holds(echo == payload, WHOLE, ("the %d octets that were sent"):format(#payload), ("%d octets that differ"):format(#echo))
end

case {
  id = "ddp/5.2-segmentation/echo",
  version = 1,
  title = "The segments of a Send have one queue and one MSN, MO goes on from 0, the last alone has L, and all of the data is there",
  requirements = all(KIND, QUEUE, NUMBER, OFFSET, LAST, WHOLE, SEEN),
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "segment", "send" },
  parameters = { length = { 1, 2, 3, 4, 1441, 1442, 1443, 2900, 4000 }, cut = { 100, 1024 } },

  run = function(t, p)
    local conn, frame = t:start_up()
    local payload = text(p.length)
    conn:send(cut(payload, 1, p.cut))
    -- An initiator has opened with the first message.
    expect_echo(t, conn, payload, frame.kind == "request" and 2 or 1)
    conn:close()

    t:liveness()
  end,
}

case {
  id = "ddp/5.2-segmentation/empty",
  version = 1,
  title = "A Send of no octets is one segment of no octets",
  requirements = { "DDP-5.2-8", "DDP-4.4-1", "RDMAP-3.1-5" },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "segment", "send", "empty" },

  run = function(t)
    t:good_exchange()

    local conn, op = t:operate()
    conn:send(mpa.fpdu { ulpdu = rdmap.send { msn = op.msn } })
    conn:expect_fpdu {
      requirement = { "DDP-5.2-8", "DDP-4.4-1", "RDMAP-3.1-5" },
      opcode = 3, payload = "", msn = 2, mo = 0, last = true, overdue_fails = true,
    }
    conn:expect_silence { requirement = "DDP-5.2-8", within = 0.5, open = true }
    conn:close()

    t:liveness()
  end,
}

case {
  id = "ddp/5.2-segmentation/numbers",
  version = 1,
  title = "Messages are numbered from 1, one more each, and go out in their order",
  requirements = { "DDP-4.3-6", "DDP-4.3-7", "DDP-5.2-7", "DDP-5.3-1", "RDMAP-5.3-16" },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "segment", "send" },
  parameters = { sends = { 2, 5, 12 }, at_once = { true, false } },

  run = function(t, p)
    local ALL = { "DDP-4.3-6", "DDP-4.3-7", "DDP-5.2-7", "DDP-5.3-1", "RDMAP-5.3-16" }
    local conn, frame = t:start_up()
    local opened = frame.kind == "request" and 1 or 0
    local waiting
    local function expect(number)
      conn:expect_fpdu {
        requirement = ALL, opcode = 3, qn = 0, msn = opened + number, mo = 0, payload = "number " .. number, overdue_fails = true,
      }
    end
    for number = 1, p.sends do
      local fpdu = mpa.fpdu { ulpdu = rdmap.send { payload = "number " .. number, msn = number } }
      if p.at_once then
        waiting = waiting and waiting .. fpdu or fpdu
      else
        conn:send(fpdu)
        expect(number)
      end
    end
    if waiting then
      conn:send(waiting)
      for number = 1, p.sends do
        expect(number)
      end
    end
    conn:close()

    t:liveness()
  end,
}

case {
  id = "ddp/5.2-segmentation/not-too-small",
  version = 1,
  title = "No segment of a long Send, but for the last, has less than 128 octets",
  -- DDP may post a ULPDU of any size (RFC 5044 section 3), so a short one does not prove an MULPDU below 128 (MPA-4.5-8).
  requirements = { "MPA-4.5-6" },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "segment", "send" },

  run = function(t)
    t:good_exchange()

    local conn, op = t:operate()
    conn:send(cut(text(4000), op.msn, 1024))
    repeat
      local fpdu = conn:expect_fpdu { opcode = 3 }
      t:check(fpdu.last or #fpdu.ulpdu >= 128, {
        requirement = "MPA-4.5-6",
        expected = "a ULPDU of at least 128 octets, since the TCP segment has room for it",
        actual = #fpdu.ulpdu .. " octets",
      })
    until fpdu.last
    conn:close()

    t:liveness()
  end,
}

case {
  id = "ddp/5.2-segmentation/many",
  version = 1,
  title = "Sends go on to be numbered and taken in their order far behind the first ones",
  -- A number that is kept in eight bits, and a ring of receives that is taken round, show here.
  requirements = { "DDP-4.3-6", "DDP-5.2-7", "RDMAP-5.3-16" },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "segment", "send" },
  parameters = { sends = { 300 } },

  run = function(t, p)
    local conn, frame = t:start_up()
    local opened = frame.kind == "request" and 1 or 0
    for number = 1, p.sends do
      conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "number " .. number, msn = number } })
      conn:expect_fpdu {
        requirement = { "DDP-4.3-6", "DDP-5.2-7", "RDMAP-5.3-16" },
        opcode = 3, qn = 0, msn = opened + number, mo = 0, payload = "number " .. number, overdue_fails = true,
      }
    end
    conn:close()

    t:liveness()
  end,
}
