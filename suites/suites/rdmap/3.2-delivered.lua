-- RFC 5040 sections 3.1, 3.2, 5.3 and 5.5: what the target's user is told of Sends that arrive, by an agent on the target.

local DATA = ("weft octets that differ "):rep(200)

--- Sends `payload` to the target, cut into segments as a sender cuts.
local function send(conn, msn, payload)
  for at = 0, math.max(#payload - 1, 0), 1024 do
    local piece = payload:sub(at + 1, at + 1024)
    conn:send(mpa.fpdu { ulpdu = rdmap.send { msn = msn, mo = at, payload = piece, last = at + #piece == #payload } })
  end
end

local LENGTH = { "RDMAP-3.1-6", "RDMAP-3.2-2", "RDMAP-5.3-3", "RDMAP-5.3-13" }

case {
  id = "rdmap/3.2-delivered/length",
  version = 1,
  title = "The user is told how many octets a Send had, and they are in the buffer",
  requirements = { "RDMAP-3.1-6", "RDMAP-3.2-2", "RDMAP-5.3-3", "RDMAP-5.3-13" },
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "send", "agent" },
  parameters = { size = { 1, 1023, 1024, 3000, 4096 } },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair, op = target:operate {}
    local region = target:region { octets = 4096, access = { "local_write" }, fill = 7 }
    local work = pair:post_receive { region = region }
    send(conn, op.msn, DATA:sub(1, p.size))
    pair:expect_completion { work = work, operation = "receive", octets = p.size, requirement = LENGTH, overdue_fails = true }
    local rest = target:pattern(7, 4096):sub(p.size + 1)
    t:check(region:get {} == DATA:sub(1, p.size) .. rest, {
      requirement = "RDMAP-3.2-2",
      expected = ("the %d octets of the Send in the buffer, and behind them what was there"):format(p.size),
      actual = "the buffer's octets are compared",
    })
    conn:reset()

    t:liveness()
  end,
}
