-- RFC 5040 sections 4.8 and 5.4: a Terminate that the target receives.

--- A Terminate of four octets.
local function terminate(fields)
  fields.opcode, fields.qn, fields.msn = 7, fields.qn or 2, fields.msn or 1
  return mpa.fpdu { ulpdu = rdmap.send(fields) }
end

case {
  id = "rdmap/5.4-terminate/received",
  version = 2,
  title = "A Terminate ends the stream: TCP is closed, and no Terminate comes back",
  requirements = { "RDMAP-5.4-3", "RDMAP-5.4-4" },
  roles = { "responder", "initiator" },
  capabilities = { "operation" },
  tags = { "terminate" },
  parameters = { control = { 0x00, 0x01, 0x02, 0x10, 0x11, 0x12, 0x20 }, code = { 0, 1, 0xff } },

  run = function(t, p)
    t:good_exchange()

    local conn = t:operate()
    conn:send(terminate { payload = string.char(p.control, p.code, 0, 0) }, { deviates = true })
    conn:expect_close { requirement = { "RDMAP-5.4-3", "RDMAP-5.4-4" }, overdue_fails = true }

    t:liveness()
  end,
}

case {
  id = "rdmap/5.4-terminate/reserved",
  version = 2,
  title = "The 13 reserved bits of a Terminate are not looked at",
  requirements = { "RDMAP-4.8-7" },
  roles = { "responder", "initiator" },
  capabilities = { "operation" },
  tags = { "terminate" },
  parameters = { bits = { 0x0001, 0x0100, 0x1000, 0x1fff } },

  run = function(t, p)
    t:good_exchange()

    local conn = t:operate()
    conn:send(terminate { payload = string.pack(">BBI2", 0x00, 0x00, p.bits) }, { deviates = true })
    conn:expect_close { requirement = "RDMAP-4.8-7", overdue_fails = true }

    t:liveness()
  end,
}

case {
  id = "rdmap/5.4-terminate/no-good",
  version = 2,
  title = "A Terminate that is no good ends the stream all the same",
  requirements = { "RDMAP-5.4-10" },
  roles = { "responder", "initiator" },
  capabilities = { "operation" },
  tags = { "terminate", "refusal" },
  parameters = { wrong = { "msn-0", "msn-2", "mo", "short", "empty", "version" } },

  run = function(t, p)
    t:good_exchange()

    local conn = t:operate()
    local payload = "\x00\x00\x00\x00"
    local wrong = ({
      ["msn-0"] = { payload = payload, msn = 0 },
      ["msn-2"] = { payload = payload, msn = 2 },
      mo = { payload = payload, mo = 1 << 24 },
      short = { payload = "\x00\x00" },
      empty = {},
      version = { payload = payload, rdmap_version = 2 },
    })[p.wrong]
    conn:send(terminate(wrong), { deviates = true })
    -- Whether the answer is a Terminate is left open.
    conn:expect_close { requirement = "RDMAP-5.4-10", after_terminate = true, overdue_fails = true }

    t:liveness()
  end,
}

case {
  id = "rdmap/5.4-terminate/first",
  version = 2,
  title = "A Terminate is taken as the first message, where no receive and no Read was ever used",
  requirements = { "RDMAP-5.4-3" },
  roles = { "responder", "initiator" },
  tags = { "terminate" },

  run = function(t)
    t:good_exchange()

    local conn = t:start_up()
    conn:send(terminate { payload = "\x00\x00\x00\x00" }, { deviates = true })
    conn:expect_close { requirement = "RDMAP-5.4-3", overdue_fails = true }

    t:liveness()
  end,
}
