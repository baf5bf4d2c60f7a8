-- RFC 5040 sections 5.2 and 5.3: many Sends of each kind, and many Reads, on one connection or on
-- several connections one after the other. A target may count messages, or use up a table entry for
-- each of them. The cases of `ddp/4.3-many` send more than 65,536 messages, but only in the full
-- tier.

--- Number of messages of a case. Tables of a target often have 64 or 128 entries.
local COUNT = 160
--- Number of Reads. Some of them are empty.
local READS = 300
--- The number of seconds after which a missing answer is a failure.
local ANSWER = 10

local DELIVERED, INVALIDATED = "RDMAP-5.3-5", "RDMAP-5.3-8"

--- Calls `use` for each of `count` messages. With several connections, closes the connection after
--- each share of the messages, and opens the next one.
local function spread(s, count, connections, use)
  local share = count // connections
  for nth = 1, count do
    use(nth)
    if nth % share == 0 and nth < count then s:close(1) end
  end
end

case {
  id = "rdmap/5.3-many/solicited",
  title = "The target delivers each of many Sends with Solicited Event",
  requirements = session.requirements(session.ECHO),
  capabilities = { "echo" },
  tags = { "send", "connections" },
  tier = "default",
  -- Every Send, or every second Send, has a Solicited Event.
  parameters = { every = { 1, 2 }, connections = { 1, 32 } },

  run = function(t, p)
    local s = session.echo(t)
    local count = COUNT * p.every
    spread(s, count, p.connections, function(nth)
      s:send(1, { size = 8 + nth * 7 % 53, solicited = nth % p.every == 0 })
    end)
    s:send(1, { size = 3000, segment = 1000, solicited = true })
    s:send(1, { size = 40 })
    s:finish()
  end,
}

case {
  id = "rdmap/5.3-many/empty",
  title = "The target delivers each of many Sends without payload",
  requirements = session.requirements(session.ECHO),
  capabilities = { "echo" },
  tags = { "send", "empty", "connections" },
  tier = "default",
  parameters = { connections = { 1, 32 } },

  run = function(t, p)
    local s = session.echo(t)
    -- The other Sends show that the echoes keep their order.
    spread(s, COUNT, p.connections, function(nth) s:send(1, { size = nth % 10 == 0 and 12 or 0 }) end)
    s:send(1, { size = 3000, segment = 1000 })
    s:finish()
  end,
}

case {
  id = "rdmap/5.3-many/reads",
  title = "The target answers each of many Reads, with and without payload",
  requirements = session.requirements(session.RPING),
  capabilities = { "rping" },
  tags = { "read", "empty", "connections" },
  tier = "default",
  parameters = { connections = { 1, 10 } },

  run = function(t, p)
    local s = session.rping(t)
    spread(s, READS, p.connections, function(nth)
      s:read(1, { at = nth * 5, size = nth % 3 == 0 and 0 or 1 + nth % 40 })
    end)
    s:write(1, { at = 0, size = 50 })
    s:read(1, { at = 0, size = 60 })
    s:finish()
  end,
}

--- Number of connections. On each of them, a Send invalidates the STag of rping's buffer.
local CONNECTIONS = 100
--- Maximum number of messages that the target may send before it rejects the Read: the Write and
--- the Send of rping's round.
local OTHERS = 3

-- The tester knows one STag of each connection, so each connection has one Send with Invalidate.
case {
  id = "rdmap/5.3-many/invalidates",
  title = "The target invalidates the STag of each Send with Invalidate on many connections",
  requirements = { INVALIDATED, DELIVERED },
  capabilities = { "rping" },
  tags = { "send", "invalidate", "read", "connections" },
  tier = "default",

  run = function(t)
    t:good_exchange()
    for nth = 1, CONNECTIONS do
      local conn, op = t:operate(nil, nth > 1 and { requirement = DELIVERED } or nil)
      -- The Sends have Invalidate, or Solicited Event and Invalidate.
      local send = mpa.fpdu {
        ulpdu = rdmap.send {
          payload = string.pack(">I8I4I4", 0x2000, 0x77656602, 64), msn = op.msn, opcode = nth % 2 == 0 and 4 or 6, invalidate_stag = op.stag,
        },
      }
      local read = mpa.fpdu { ulpdu = rdmap.read_request { sink_stag = 0x7766, rdmardsz = 8, src_stag = op.stag, src_to = op.to } }
      conn:send(send .. read, { deviates = true })
      local event, fpdu = conn:next { within = ANSWER }
      local others = 0
      while event == "fpdu" and fpdu.opcode ~= 7 and fpdu.opcode ~= 2 and others < OTHERS do
        others = others + 1
        event, fpdu = conn:next { within = ANSWER }
      end
      local is_rejected = event == "close" or event == "fpdu" and fpdu.opcode == 7
      t:check(is_rejected, {
        requirement = INVALIDATED,
        expected = ("a close, or a Terminate, because Send %d has invalidated the STag"):format(nth),
        actual = session.describe(event, fpdu, ANSWER),
      })
      conn:reset()
    end
    t:liveness { requirement = DELIVERED }
  end,
}
