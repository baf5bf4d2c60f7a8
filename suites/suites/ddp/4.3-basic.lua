-- RFC 5041 sections 4.3 and 7.1: basic checks of the numbers in untagged segments. Every other case
-- relies on these checks.

--- Checks that the answer does not reject the MSN of the Send, which is 1. A Terminate 12 02 or 12
--- 03 would reject this MSN (RFC 5041 section 7.1).
local function check_msn_is_accepted(t, event, fpdu, expected)
  if event ~= "fpdu" or fpdu.opcode ~= 7 then return end
  local layer, code = fpdu.payload:byte(1, 2)
  t:check(layer ~= 0x12 or code ~= 2 and code ~= 3, {
    requirement = "DDP-4.3-7", expected = expected, actual = ("Terminate %02x %02x, as for a wrong MSN"):format(layer or 0, code or 0),
  })
end

case {
  id = "ddp/4.3-basic/first-number",
  title = "The first Send of each side has MSN 1",
  requirements = { "DDP-4.3-7" },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "basic", "send" },

  run = function(t)
    local conn, frame = t:start_up()
    -- A target that is the initiator has already sent its first message, with MSN 1.
    local due = frame.kind == "request" and 2 or 1
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft" } })
    local event, fpdu = conn:next { within = 3 }
    check_msn_is_accepted(t, event, fpdu, "the echo of a Send with MSN 1")
    t:check(event == "fpdu" and fpdu.opcode == 3, { expected = "the echo", actual = event == "fpdu" and "another FPDU" or event or "nothing" })
    t:check(fpdu.msn == due, {
      requirement = "DDP-4.3-7", expected = ("MSN %d"):format(due), actual = ("MSN %d"):format(fpdu.msn or -1),
    })
    conn:close()
  end,
}

case {
  id = "ddp/4.3-basic/offset",
  title = "The target returns a Send of two segments, with each segment in the place that its MO gives",
  requirements = { "DDP-5.2-4" },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "basic", "send", "segment" },

  run = function(t)
    -- The target has to accept a Send of one segment first, so that a failure concerns the second
    -- segment.
    t:good_exchange()

    local conn = t:start_up()
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "one and ", last = false } } .. mpa.fpdu { ulpdu = rdmap.send { payload = "two segments", mo = 8 } })
    local echo = ""
    repeat
      local event, fpdu = conn:next { within = 3 }
      t:check(event == "fpdu" and fpdu.opcode == 3, {
        requirement = "DDP-5.2-4", expected = "the echo", actual = event == "fpdu" and "another FPDU" or event or "nothing, and the connection stays open",
      })
      echo = echo .. fpdu.payload
    until fpdu.last
    t:check(echo == "one and two segments", {
      requirement = "DDP-5.2-4", expected = "the bytes of both segments, in their places", actual = ("%d bytes that differ"):format(#echo),
    })
    conn:close()
  end,
}

--- The first message that rping's client sends. It has the address, the STag and the length of the
--- client's data. The server reads this data.
local RPING = string.pack(">I8I4I4", 0x1000, 0x77656601, 64)

case {
  id = "ddp/4.3-basic/first-number-rping",
  title = "The target answers rping's first Send with a Read Request and a Send that both have MSN 1",
  requirements = { "DDP-4.3-7" },
  capabilities = { "rping" },
  tags = { "basic", "send", "read" },

  run = function(t)
    local conn = t:start_up()
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = RPING } })
    local event, fpdu = conn:next { within = 3 }
    check_msn_is_accepted(t, event, fpdu, "a Read Request after a Send with MSN 1")
    local is_read = event == "fpdu" and fpdu.opcode == 1
    t:check(is_read, { expected = "the Read Request", actual = event == "fpdu" and "another FPDU" or event or "nothing" })
    local numbers = { fpdu.msn }
    -- A Read Request begins with the sink's STag and TO.
    conn:send(mpa.fpdu { ulpdu = rdmap.write { opcode = 2, payload = octets.counted(64) }:replace(2, fpdu.payload:sub(1, 12)) })
    event, fpdu = conn:next { within = 3 }
    local is_send = event == "fpdu" and fpdu.opcode == 3
    t:check(is_send, { expected = "the Send that follows the Read", actual = event == "fpdu" and "another FPDU" or event or "nothing" })
    numbers[2] = fpdu.msn
    t:check(numbers[1] == 1 and numbers[2] == 1, {
      requirement = "DDP-4.3-7",
      expected = "MSN 1 of the Read Request and of the Send",
      actual = ("MSN %d and %d"):format(numbers[1] or -1, numbers[2] or -1),
    })
    conn:close()
  end,
}

case {
  id = "ddp/4.3-basic/offset-rping",
  title = "The target accepts rping's first Send in two segments, each in the place that its MO gives",
  requirements = { "DDP-5.2-4" },
  capabilities = { "rping" },
  tags = { "basic", "send", "segment" },

  run = function(t)
    -- The target has to accept a Send of one segment first, so that a failure concerns the second
    -- segment.
    t:good_exchange()

    local conn = t:start_up()
    conn:send(
      mpa.fpdu { ulpdu = rdmap.send { payload = RPING:sub(1, 8), last = false } } .. mpa.fpdu { ulpdu = rdmap.send { payload = RPING:sub(9), mo = 8 } }
    )
    local event, fpdu = conn:next { within = 3 }
    t:check(event == "fpdu" and fpdu.opcode == 1, {
      requirement = "DDP-5.2-4",
      expected = "the Read Request",
      actual = event == "fpdu" and "another FPDU" or event or "nothing, and the connection stays open",
    })
    -- The Read Request ends with the size, STag and TO of the source.
    t:check(fpdu.payload:sub(13) == string.pack(">I4I4I8", 64, 0x77656601, 0x1000), {
      requirement = "DDP-5.2-4",
      expected = "a Read of the buffer that the two segments describe",
      actual = "a Read of another buffer",
    })
    conn:close()
  end,
}
