-- RFC 5044 sections 4.4 and 8: CRCs are checked where one side asked for them, and only there.

--- The target does not use an FPDU with a wrong CRC: it closes, behind a Terminate or without. An error of DDP or RDMAP in that shows that the ULPDU was
--- handed on.
local function expect_unused(t, conn, requirement)
  local what, fpdu = conn:next { within = 15 }
  if what == "fpdu" and fpdu.opcode == 7 then
    local layer, code = fpdu.payload:byte(1, 2)
    -- 02 02 is no error of RDMAP. With Layer and EType exchanged, which is another rule's, it is MPA's error for a wrong CRC.
    local is_exchanged = layer == 0x02 and code == 0x02
    t:check((layer or 0) >> 4 == 2 or is_exchanged, {
      requirement = { "MPA-6-1", "MPA-6-3", "MPA-4.4-19" },
      expected = "a close, or a Terminate with an error of MPA",
      actual = ("Terminate %02x %02x"):format(layer or 0, code or 0),
    })
    conn:expect_close { requirement = requirement, overdue_fails = true }
    return
  end
  t:check(what == "close", {
    requirement = requirement,
    expected = "the target closes the connection and sends no octet before but a Terminate",
    actual = what and "it sent " .. (what == "fpdu" and "an FPDU" or what) or "nothing within 15 s, and the connection stays open",
  })
end

case {
  id = "mpa/4.4-crc/bad-first",
  version = 4,
  title = "A first FPDU with a wrong CRC is not delivered, and ends the connection",
  requirements = { "MPA-8-2", "MPA-4.4-19", "MPA-4.4-20", "MPA-6-1", "MPA-6-3", "MPA-7.1.1-12" },
  roles = { "responder", "initiator" },
  capabilities = { "crc", "echo" },
  tags = { "fpdu", "crc" },

  run = function(t)
    t:good_exchange()

    local conn = t:start_up { crc = true }
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft" } }:flip(27), { deviates = true })
    -- That no Terminate may come here is for another case.
    expect_unused(t, conn, { "MPA-8-2", "MPA-4.4-19", "MPA-4.4-20", "MPA-6-1", "MPA-6-3", "MPA-7.1.1-12" })

    t:liveness()
  end,
}

case {
  id = "mpa/4.4-crc/bad-later",
  version = 4,
  title = "An FPDU with a wrong CRC behind a good one is not delivered, nor is anything behind it",
  requirements = { "MPA-8-2", "MPA-4.4-10", "MPA-4.4-19", "MPA-4.4-20", "MPA-6-1", "MPA-6-3", "MPA-8-13", "MPA-8-15", "MPA-9.1-1", "MPA-6-6" },
  roles = { "responder", "initiator" },
  capabilities = { "crc", "echo" },
  tags = { "fpdu", "crc" },
  parameters = { octet = { 1, 2, 14, 20, 23, 24, 27 } },

  run = function(t, p)
    t:good_exchange()

    local conn = t:start_up { crc = true }
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "good" } })
    conn:expect_fpdu { payload = "good" }
    -- 28 octets: length 0-1, headers 2-19, payload 20-23, CRC 24-27. The length is changed to a smaller one.
    local bad = mpa.fpdu { ulpdu = rdmap.send { payload = "evil", msn = 2 } }
    bad = bad:flip(p.octet, p.octet == 1 and 0x04 or 0xff)
    conn:send(bad .. mpa.fpdu { ulpdu = rdmap.send { payload = "next", msn = 3 } }, { deviates = true })
    expect_unused(t, conn, {
      "MPA-8-2", "MPA-4.4-10", "MPA-4.4-19", "MPA-4.4-20", "MPA-6-1", "MPA-6-3", "MPA-8-13", "MPA-8-15", "MPA-9.1-1", "MPA-6-6",
    })

    t:liveness()
  end,
}

case {
  id = "mpa/4.4-crc/unused",
  version = 2,
  title = "Where both sides have C=0 the CRC field is taken whatever it holds",
  requirements = { "MPA-7.1.1-10", "MPA-7.1.1-14", "MPA-4.1-7", "MPA-4.4-11" },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "fpdu", "crc" },
  parameters = { crc = { "zero", "ones", "good" } },

  run = function(t, p)
    -- An Initiator that has C=1 uses CRCs whatever the Reply says, and may even close on C=0; so its Request is looked at first.
    local first, frame = t:start_up {}
    first:close()
    if frame.kind == "request" and frame.crc then
      t:unimplemented("The target asks for CRCs, so they are never unused.")
    end

    local conn, reply = t:start_up { crc = false }
    if reply.crc then
      conn:close()
      t:unimplemented("The target asks for CRCs, so they are never unused.")
    end
    local field = ({ zero = false, ones = "\xff\xff\xff\xff", good = true })[p.crc]
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft" }, crc = field })
    conn:expect_fpdu {
      requirement = { "MPA-7.1.1-10", "MPA-7.1.1-14", "MPA-4.1-7", "MPA-4.4-11" },
      payload = "weft",
      overdue_fails = true,
    }
    conn:close()

    t:liveness()
  end,
}

case {
  id = "mpa/4.4-crc/asked-by-one",
  version = 2,
  title = "Where only the Reply has C=1 CRCs are checked all the same",
  requirements = { "MPA-4.4-6", "MPA-7.1.1-12" },
  roles = { "responder" },
  capabilities = { "crc", "echo" },
  tags = { "fpdu", "crc" },

  run = function(t)
    t:good_exchange()

    local conn, reply = t:start_up { crc = false }
    if not reply.crc then
      conn:close()
      t:unimplemented("The target does not ask for CRCs by itself.")
    end
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft" } }:flip(27), { deviates = true })
    conn:expect_close { requirement = { "MPA-4.4-6", "MPA-7.1.1-12" } }

    t:liveness()
  end,
}

case {
  id = "mpa/4.4-crc/of-terminate",
  version = 2,
  title = "A Terminate has a right CRC as every FPDU has",
  requirements = { "MPA-4.1-6", "MPA-4.4-18" },
  roles = { "responder", "initiator" },
  capabilities = { "crc", "operation" },
  tags = { "fpdu", "crc", "terminate" },

  run = function(t)
    t:good_exchange()

    local conn, op = t:operate { crc = true }
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft", qn = 77, msn = op.msn } }, { deviates = true })
    conn:expect_fpdu { requirement = { "MPA-4.1-6", "MPA-4.4-18" }, opcode = 7, crc = true }
    conn:reset()

    t:liveness()
  end,
}

case {
  id = "mpa/4.4-crc/changing",
  version = 1,
  title = "The CRCs of Read Responses are right, though the memory that is read is written to meanwhile",
  requirements = { "MPA-4.1-6", "MPA-4.4-15" },
  roles = { "responder", "initiator" },
  capabilities = { "crc", "rping" },
  tags = { "fpdu", "crc", "read", "write" },

  run = function(t)
    local ALL = { "MPA-4.1-6", "MPA-4.4-15" }
    local conn, op = t:operate { crc = true }
    --- All of the buffer, in segments of Ethernet.
    local function written(octet)
      local fpdus = ""
      for at = 0, op.length - 1, 1024 do
        local payload = octet:rep(math.min(1024, op.length - at))
        local last = at + #payload == op.length
        fpdus = fpdus .. mpa.fpdu { ulpdu = rdmap.write { stag = op.stag, tagged_offset = op.to + at, payload = payload, last = last } }
      end
      return fpdus
    end
    conn:send(written("a"))
    local reads = math.min(op.ird or 1, 16)
    local requests = ""
    for msn = 1, reads do
      requests = requests .. mpa.fpdu {
        ulpdu = rdmap.read_request { sink_stag = 0x7766, rdmardsz = op.length, src_stag = op.stag, src_to = op.to, msn = msn },
      }
    end
    conn:send(requests)
    -- Nobody takes what the target sends: its TCP holds a part of it back, with CRCs that are made already.
    t:pause(0.5)
    conn:send(written("b"))
    t:pause(0.5)
    -- Which of the octets a Read gives is left open (RFC 5040 section 5.5); that the CRC is that of the octets sent is not.
    local wrong, seen, done = 0, 0, 0
    repeat
      local fpdu = conn:expect_fpdu { requirement = ALL, opcode = 2, overdue_fails = true }
      seen = seen + 1
      wrong = wrong + (fpdu.crc_is_right and 0 or 1)
      done = done + (fpdu.last and 1 or 0)
    until done == reads
    t:check(wrong == 0, {
      requirement = ALL,
      expected = "a right CRC in each segment of the Read Responses",
      actual = ("%d of %d are wrong"):format(wrong, seen),
    })
    conn:close()

    t:liveness()
  end,
}

case {
  id = "mpa/4.4-crc/asked",
  version = 1,
  title = "A Request with C=1 is accepted, and the CRCs are right then, also of a target that does without by itself",
  -- CRCs are for every MPA: who cannot make them has no capability that excuses it. zrlio's softiwarp, as it is built by default, refuses C=1.
  requirements = { "MPA-4.4-1", "MPA-4.4-9", "MPA-7.1.1-12" },
  roles = { "responder" },
  tags = { "startup", "crc" },

  run = function(t)
    local ALL = { "MPA-4.4-1", "MPA-4.4-9", "MPA-7.1.1-12" }
    t:good_exchange()

    local conn = t:connect()
    conn:send(t:request { crc = true })
    conn:expect_reply { requirement = ALL, reject = false }
    t:pause(0.2)
    -- A Read of no octets is answered whatever service there is.
    conn:send(mpa.fpdu { ulpdu = rdmap.read_request { sink_stag = 0x7766 } })
    local what, fpdu = conn:next { within = 5 }
    t:check(what ~= "fpdu" or fpdu.crc_is_right, {
      requirement = ALL, expected = "a right CRC", actual = "a wrong one",
    })
    conn:reset()

    t:liveness()
  end,
}

case {
  id = "mpa/4.4-crc/bad-read",
  version = 2,
  title = "A Read Request with a wrong CRC is not answered, and ends the connection, whatever service there is",
  requirements = { "MPA-8-2", "MPA-4.4-19", "MPA-4.4-20", "MPA-6-1", "MPA-6-3", "MPA-7.1.1-12" },
  roles = { "responder" },
  capabilities = { "crc" },
  tags = { "fpdu", "crc", "read" },

  run = function(t)
    t:good_exchange()

    -- A Read of no octets needs no buffer. Some targets refuse it where nobody has agreed on Reads.
    local request = mpa.fpdu { ulpdu = rdmap.read_request { sink_stag = 0x7766 } }
    local first = t:start_up { crc = true }
    first:send(request)
    local what, fpdu = first:next { within = 5 }
    first:reset()
    if what ~= "fpdu" or fpdu.opcode ~= 2 then
      t:unimplemented("The target does not answer a Read of no octets as the first message.")
    end

    local conn = t:start_up { crc = true }
    conn:send(request:flip(47), { deviates = true })
    -- That no Terminate may come here is for another case.
    expect_unused(t, conn, { "MPA-8-2", "MPA-4.4-19", "MPA-4.4-20", "MPA-6-1", "MPA-6-3", "MPA-7.1.1-12" })

    t:liveness()
  end,
}
