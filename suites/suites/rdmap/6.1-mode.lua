-- RFC 5040 sections 6.1 and 8.1.1, RFC 5041 section 6.1: only messages follow start-up, and STags
-- cannot be guessed.

case {
  id = "rdmap/6.1-mode/only-messages",
  version = 2,
  title = "The target sends only messages after start-up",
  requirements = { "RDMAP-6.1-3", "DDP-6.1-2", "RDMAP-4.1-22" },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "startup", "segment" },
  parameters = { sends = { 1, 3 } },
  scales = { "sends" },

  run = function(t, p)
    local conn = t:start_up()
    for msn = 1, p.sends do
      conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft", msn = msn } })
      local event, fpdu = conn:next { within = 5 }
      local is_refusal = event == "close" or event == "fpdu" and fpdu.opcode == 7
      t:check(event ~= nil and not is_refusal, { expected = "the echo", actual = event or "nothing" })
      local is_echo = event == "fpdu" and fpdu.opcode == 3 and fpdu.payload == "weft"
      t:check(is_echo, {
        requirement = { "RDMAP-6.1-3", "DDP-6.1-2" }, shows = "RDMAP-4.1-22", expected = "the echo", actual = event == "fpdu" and "another FPDU" or event,
      })
    end
    conn:expect_silence { requirement = { "RDMAP-6.1-3", "DDP-6.1-2" }, within = 0.5, open = true }
    conn:close()
  end,
}

case {
  id = "rdmap/6.1-mode/stags",
  title = "The target does not number its STags consecutively",
  requirements = { "RDMAP-8.1.1-8", "RDMAP-8.1.1-9" },
  roles = { "responder", "initiator" },
  capabilities = { "rping" },
  tags = { "protection" },

  run = function(t)
    t:good_exchange()

    local BOTH = { "RDMAP-8.1.1-8", "RDMAP-8.1.1-9" }
    local conns, stags, steps, printed = {}, {}, {}, {}
    for number = 1, 8 do
      local conn, op = t:operate()
      stags[number] = op.stag >> 8
      printed[number] = ("%08x"):format(op.stag)
      if number > 1 then
        local step = stags[number] - stags[number - 1]
        steps[step] = (steps[step] or 0) + 1
      end
      -- The connection stays open, because the target may reuse an STag that is free again.
      conns[number] = conn
    end
    for _, conn in ipairs(conns) do
      conn:reset()
    end
    local most = 0
    for _, count in pairs(steps) do
      most = math.max(most, count)
    end
    t:check(most <= 3, {
      requirement = BOTH,
      expected = "eight STags of which at most three have the same distance to the previous one",
      actual = table.concat(printed, " "),
    })
  end,
}
