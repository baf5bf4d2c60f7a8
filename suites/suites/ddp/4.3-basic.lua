-- RFC 5041 sections 4.3 and 7.1: the numbers of untagged segments that every other case rests on.

case {
  id = "ddp/4.3-basic/first-number",
  version = 1,
  title = "The first Send of each side has MSN 1",
  requirements = { "DDP-4.3-7" },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "basic", "send" },

  run = function(t)
    local conn, frame = t:start_up()
    -- An initiator has opened with the first message.
    local due = frame.kind == "request" and 2 or 1
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft" } })
    local what, fpdu = conn:next { within = 3 }
    if what == "fpdu" and fpdu.opcode == 7 then
      local layer, code = fpdu.payload:byte(1, 2)
      t:check(layer ~= 0x12 or code ~= 2 and code ~= 3, {
        requirement = "DDP-4.3-7",
        expected = "the echo of a Send with MSN 1",
        actual = ("Terminate %02x %02x, as for a wrong MSN"):format(layer or 0, code or 0),
      })
    end
    t:check(what == "fpdu" and fpdu.opcode == 3, { expected = "the echo", actual = what == "fpdu" and "another FPDU" or what or "nothing" })
    t:check(fpdu.msn == due, {
      requirement = "DDP-4.3-7", expected = ("MSN %d"):format(due), actual = ("MSN %d"):format(fpdu.msn or -1),
    })
    conn:close()

    t:liveness()
  end,
}

case {
  id = "ddp/4.3-basic/offset",
  version = 1,
  title = "A Send of two segments comes back: each segment goes where its MO says",
  requirements = { "DDP-5.2-4" },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "basic", "send", "segment" },

  run = function(t)
    -- A Send of one segment is taken: what fails then is the second.
    t:good_exchange()

    local conn = t:start_up()
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "one and ", last = false } } .. mpa.fpdu { ulpdu = rdmap.send { payload = "two segments", mo = 8 } })
    local echo = ""
    repeat
      local what, fpdu = conn:next { within = 3 }
      t:check(what == "fpdu" and fpdu.opcode == 3, {
        requirement = "DDP-5.2-4", expected = "the echo", actual = what == "fpdu" and "another FPDU" or what or "nothing, and the connection stays open",
      })
      echo = echo .. fpdu.payload
    until fpdu.last
    t:check(echo == "one and two segments", {
      requirement = "DDP-5.2-4", expected = "the octets of both segments, in their places", actual = ("%d octets that differ"):format(#echo),
    })
    conn:close()

    t:liveness()
  end,
}
