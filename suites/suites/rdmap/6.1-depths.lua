-- RFC 5040 sections 6.1 and 8.1.1: how many Reads of the target's user are outstanding, by an agent on the target.

local ORD = { "RDMAP-6.1-7", "RDMAP-8.1.1-14" }
local READS = 4

case {
  id = "rdmap/6.1-depths/ord",
  version = 2,
  title = "No more Reads are outstanding than the user has asked for; the others follow as those are answered, and all complete",
  requirements = ORD,
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "read", "agent" },
  parameters = { ord = { 1, 2 } },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair = target:operate { ird = 1, ord = p.ord }
    local region = target:region { octets = 8 * READS }
    local works = {}
    for nth = 1, READS do
      works[nth] = pair:post_read { region = region, offset = 8 * (nth - 1), length = 8, stag = 7, to = 8 * nth }
    end
    local waiting, asked, answered = {}, 0, 0
    while answered < READS do
      -- One that has to come has its time; one that may not is there at once, or not at all.
      local what, fpdu = conn:next { within = #waiting == 0 and 5 or 0.5 }
      if what == "fpdu" and fpdu.opcode == 1 then
        asked = asked + 1
        waiting[#waiting + 1] = fpdu
        t:check(#waiting <= p.ord, {
          requirement = ORD,
          expected = ("at most %d Read Requests that wait for their answer"):format(p.ord),
          actual = ("%d"):format(#waiting),
        })
      else
        t:check(what == nil and #waiting > 0, { expected = "a Read Request", actual = what or "nothing" })
        local request = table.remove(waiting, 1)
        local stag, to = string.unpack(">I4i8", request.payload)
        conn:send(mpa.fpdu { ulpdu = rdmap.write { opcode = 2, stag = stag, tagged_offset = to, payload = ("r"):rep(8), last = true } })
        answered = answered + 1
      end
    end
    for _, work in ipairs(works) do pair:expect_completion { work = work, operation = "read" } end
    conn:reset()

    t:liveness()
  end,
}

case {
  id = "rdmap/6.1-depths/ord-0",
  version = 1,
  title = "A user that has asked for no outstanding Read gets none out",
  requirements = ORD,
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "read", "agent" },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair = target:operate { ird = 1, ord = 0 }
    pair:post_read { region = target:region { octets = 8 }, stag = 7, to = 0, may_refuse = true }
    local what, fpdu = conn:next { within = 2 }
    t:check(what ~= "fpdu" or fpdu.opcode ~= 1, {
      requirement = ORD,
      expected = "no Read Request",
      actual = "a Read Request",
    })
    if what ~= "close" then conn:close() end

    t:liveness()
  end,
}
