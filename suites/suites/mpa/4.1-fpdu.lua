-- RFC 5044 sections 4.1 and 4.4: what the target's own FPDUs look like. The monitor judges each of them.

case {
  id = "mpa/4.1-fpdu/echo",
  version = 2,
  title = "FPDUs of the target have their length, PAD and CRC right, and no markers where M=0 was sent",
  requirements = {
    "MPA-4.1-1", "MPA-4.1-2", "MPA-4.1-3", "MPA-4.1-5", "MPA-4.1-6", "MPA-4.4-13", "MPA-4.4-14", "MPA-4.4-15", "MPA-4.4-18",
    "MPA-4.4-1", "MPA-7.1.1-8", "MPA-7.1.1-12", "MPA-7.1.2-21", "MPA-3-14",
  },
  roles = { "responder", "initiator" },
  capabilities = { "crc", "echo" },
  tags = { "fpdu", "crc" },
  parameters = { payload = { 1, 2, 3, 4, 5, 64, 512, 1000 } },

  run = function(t, p)
    local conn = t:start_up { crc = true }
    local payload = ("w"):rep(p.payload)
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = payload } })
    -- That an echo comes is for the basic cases.
    local fpdu = conn:expect_fpdu {
      shows = {
        "MPA-4.1-1", "MPA-4.1-2", "MPA-4.1-3", "MPA-4.1-5", "MPA-4.1-6", "MPA-4.4-13", "MPA-4.4-14", "MPA-4.4-15", "MPA-4.4-18",
        "MPA-7.1.1-8", "MPA-7.1.2-21", "MPA-3-14",
      },
      opcode = 3,
      payload = payload,
    }
    t:check(fpdu.crc_is_right, {
      requirement = { "MPA-7.1.1-12", "MPA-4.4-1" },
      expected = "a CRC that is right",
      actual = fpdu.crc_is_right and "it is" or "it is not",
    })
    conn:close()

    t:liveness()
  end,
}

case {
  id = "mpa/4.1-fpdu/split",
  version = 2,
  title = "An FPDU is taken in whatever pieces TCP delivers it",
  requirements = { "MPA-5.1-7", "MPA-A.4-1", "MPA-A.4-2" },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "fpdu", "segments" },
  parameters = { every = { 1, 2, 3, 5, 20, 27 } },

  run = function(t, p)
    t:good_exchange()

    local conn = t:start_up()
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft" } }, { deviates = true, every = p.every, pause = 0.01 })
    conn:expect_fpdu {
      requirement = { "MPA-5.1-7", "MPA-A.4-1", "MPA-A.4-2" },
      opcode = 3,
      payload = "weft",
      overdue_fails = true,
    }
    conn:close()

    t:liveness()
  end,
}

case {
  id = "mpa/4.1-fpdu/paused",
  version = 2,
  title = "An FPDU that stops in its middle for seconds is kept, and taken when it is whole",
  requirements = { "MPA-A.4-3" },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "fpdu", "segments" },
  parameters = { first = { 1, 2, 10, 27 } },

  run = function(t, p)
    t:good_exchange()

    local conn, op = t:operate()
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft", msn = op.msn } }, { deviates = true, cuts = { p.first }, pause = 3 })
    conn:expect_fpdu { requirement = "MPA-A.4-3", opcode = 3, payload = "weft", overdue_fails = true }
    conn:close()

    t:liveness()
  end,
}

case {
  id = "mpa/4.1-fpdu/long",
  version = 3,
  title = "An FPDU as long as a segment of Ethernet can be is taken from TCP segments of any size, those of others being whole",
  requirements = { "MPA-A.5.2-1", "MPA-B.2-1" },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "fpdu", "segments" },
  parameters = { every = { 100, 536, 1459 } },

  run = function(t, p)
    t:good_exchange()

    local conn, op = t:operate()
    -- 1460 octets with length, headers, PAD and CRC: in pieces, whole, and in pieces again.
    for number = 0, 2 do
      local payload = string.char(0x61 + number):rep(1436)
      local fpdu = mpa.fpdu { ulpdu = rdmap.send { payload = payload, msn = op.msn + number } }
      if number == 1 then
        conn:send(fpdu, { deviates = true })
      else
        conn:send(fpdu, { deviates = true, every = p.every, pause = 0.01 })
      end
      -- TCP's options may leave the target less room in a segment: then its echo has two.
      local echo = ""
      repeat
        local segment = conn:expect_fpdu { requirement = { "MPA-A.5.2-1", "MPA-B.2-1" }, opcode = 3, overdue_fails = true }
        echo = echo .. segment.payload
      until segment.last
      t:check(echo == payload, {
        requirement = { "MPA-A.5.2-1", "MPA-B.2-1" },
        expected = "the octets of the Send",
        actual = echo == payload and "they are" or #echo .. " octets, others",
      })
    end
    conn:close()

    t:liveness()
  end,
}

case {
  id = "mpa/4.1-fpdu/joined",
  version = 2,
  title = "Two FPDUs that come at once are two",
  requirements = { "MPA-5.2-1", "MPA-6-2" },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "fpdu", "segments" },

  run = function(t)
    t:good_exchange()

    local conn = t:start_up()
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "one" } } .. mpa.fpdu { ulpdu = rdmap.send { payload = "two", msn = 2 } }, { deviates = true })
    for _, payload in ipairs { "one", "two" } do
      conn:expect_fpdu { requirement = { "MPA-5.2-1", "MPA-6-2" }, payload = payload, overdue_fails = true }
    end
    conn:close()

    t:liveness()
  end,
}

case {
  id = "mpa/4.1-fpdu/pad",
  version = 2,
  title = "The octets of PAD may have any value",
  requirements = { "MPA-4.1-4" },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "fpdu" },
  -- Behind 20 octets of length and headers.
  parameters = { payload = { 1, 2, 3 }, pad = { 0x01, 0x80, 0xff } },

  run = function(t, p)
    local conn, op = t:operate()
    local payload = ("w"):rep(p.payload)
    conn:send(mpa.fpdu {
      ulpdu = rdmap.send { payload = payload, msn = op.msn }, pad = string.char(p.pad):rep(4 - p.payload),
    }, { deviates = true })
    conn:expect_fpdu { requirement = "MPA-4.1-4", opcode = 3, payload = payload, overdue_fails = true }
    conn:close()

    t:liveness()
  end,
}

case {
  id = "mpa/4.1-fpdu/shortest",
  version = 1,
  title = "The shortest ULPDUs there are, of 14 and of 18 octets, are taken",
  requirements = { "MPA-3-5" },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "fpdu", "empty" },

  run = function(t)
    t:good_exchange()

    local conn = t:start_up()
    conn:send(mpa.fpdu { ulpdu = rdmap.write() })
    conn:send(mpa.fpdu { ulpdu = rdmap.send() })
    conn:expect_fpdu { requirement = "MPA-3-5", opcode = 3, payload = "", overdue_fails = true }
    conn:close()

    t:liveness()
  end,
}

case {
  id = "mpa/4.1-fpdu/end-missing",
  version = 3,
  title = "An FPDU that lacks octets of its end is not acted on before they come, and is taken then",
  requirements = { "MPA-6-7", "MPA-5.1-7" },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "fpdu", "segments" },
  parameters = { missing = { 1, 2, 3, 4 }, payload = { 4, 5, 1000 } },

  run = function(t, p)
    t:good_exchange()

    local conn, op = t:operate()
    local payload = ("w"):rep(p.payload)
    local fpdu = mpa.fpdu { ulpdu = rdmap.send { payload = payload, msn = op.msn } }:octets()
    conn:send(fpdu:sub(1, -p.missing - 1), { deviates = true })
    conn:expect_silence { requirement = "MPA-6-7", within = 0.5, open = true }
    conn:send(fpdu:sub(-p.missing))
    -- Who waited for them and refuses the FPDU all the same has kept that rule, and does not cope with lost alignment.
    conn:expect_fpdu { requirement = "MPA-5.1-7", opcode = 3, payload = payload, overdue_fails = true }
    conn:close()

    t:liveness()
  end,
}
