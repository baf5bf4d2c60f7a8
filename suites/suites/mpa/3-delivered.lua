-- RFC 5044 sections 2 to 6: the data that MPA delivers to DDP. An agent reports this data. The
-- agent is a program on the target that calls the NIC's verbs for the tester.

local DATA = ("weft octets that differ "):rep(100)
local FILL = ("\xa5"):rep(64)

--- An FPDU with a Send of `payload`.
local function send(msn, payload)
  return mpa.fpdu { ulpdu = rdmap.send { msn = msn, payload = payload } }
end

local COMPLETE = { "MPA-3-9", "MPA-4.3-17", "MPA-4.3-18", "MPA-4.4-8" }

local MISMATCH = {
  requirement = COMPLETE,
  expected = "the bytes of the Send in the buffer, and unchanged bytes after them",
  actual = "other bytes in memory",
}

--- Sends `size` bytes in the first Send after start-up, and expects that the target delivers it.
--- Returns whether the bytes are in the buffer and the bytes after them are unchanged.
local function expect_delivered(conn, pair, target, size)
  local region = target:region { octets = 2048, access = { "local_write" } }
  region:put { offset = size, octets = FILL }
  local work = pair:post_receive { region = region }
  local payload = DATA:sub(1, size)
  conn:send(send(1, payload))
  pair:expect_completion { work = work, operation = "receive", octets = size, requirement = COMPLETE, overdue_fails = true }
  return region:get { length = size + #FILL } == payload .. FILL
end

local SIZES = { 0, 1, 2, 3, 4, 255, 1001 }

case {
  id = "mpa/3-delivered/to-responder",
  title = "The responder delivers a ULPDU with its exact length, without PAD or CRC, with CRCs on or off",
  requirements = COMPLETE,
  capabilities = { "agent" },
  tags = { "send", "crc", "agent" },
  parameters = { size = SIZES, crc = { true, false } },

  run = function(t, p, target)
    t:good_exchange()
    local conn = t:connect()
    conn:send(t:request { crc = p.crc })
    local pair = target:expect_request {}
    pair:open {}
    pair:accept {}
    conn:expect_reply { reject = false }
    pair:expect_event { event = "established" }
    t:pause(0.2)
    t:check(expect_delivered(conn, pair, target, p.size), MISMATCH)
    conn:reset()
  end,
}

case {
  id = "mpa/3-delivered/to-initiator",
  title = "The initiator delivers a ULPDU with its exact length, without PAD or CRC, whatever C of the Reply is",
  requirements = COMPLETE,
  roles = { "initiator" },
  capabilities = { "agent" },
  tags = { "send", "crc", "agent" },
  parameters = { size = SIZES, crc = { true, false } },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair = target:connect {}
    local request = conn:expect_request {}
    conn:send(conn:reply { crc = p.crc or request.crc })
    pair:expect_event { event = "established" }
    pair:post_send { region = target:region { octets = 4, put = "mine" } }
    repeat
      local fpdu = conn:expect_fpdu {}
    until fpdu.payload == "mine"
    pair:expect_completion { operation = "send" }
    t:check(expect_delivered(conn, pair, target, p.size), MISMATCH)
    conn:reset()
  end,
}

local ORDER = { "MPA-2-4", "MPA-B.1-2" }

case {
  id = "mpa/3-delivered/at-once",
  version = 3,
  title = "If several FPDUs arrive together, the target delivers each of them separately and in order, and loses none",
  requirements = { "MPA-2-4", "MPA-B.1-2", "MPA-4.3-17", "MPA-6-4" },
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "send", "agent", "segments" },
  parameters = { count = { 2, 8 } },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair, op = target:operate { depth = 16 }
    local region = target:region { octets = 16 * p.count, access = { "local_write" } }
    local works = {}
    for nth = 1, p.count do
      works[nth] = pair:post_receive { region = region, offset = 16 * (nth - 1), length = 16 }
    end
    local stream = send(op.msn, DATA:sub(1, 1))
    for nth = 2, p.count do
      stream = stream .. send(op.msn + nth - 1, DATA:sub(1, nth % 7 + 1))
    end
    conn:send(stream)
    for nth = 1, p.count do
      local size = nth == 1 and 1 or nth % 7 + 1
      local completion = pair:expect_completion { requirement = "MPA-6-4", overdue_fails = true }
      t:check(completion.work == works[nth], {
        requirement = ORDER,
        expected = ("Send %d, in receive %d"):format(nth, works[nth]),
        actual = ("receive %d"):format(completion.work),
      })
      t:check(completion.octets == size, {
        requirement = "MPA-4.3-17",
        expected = ("%d bytes"):format(size),
        actual = ("%d bytes"):format(completion.octets),
      })
    end
    conn:reset()
  end,
}
