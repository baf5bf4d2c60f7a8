-- RFC 6581 sections 6 to 9 as the Initiator's: its enhanced Request, what it makes of the Reply, its ready-to-receive message.

local NAMES = { send = "rtr_send", write = "rtr_write", read = "rtr_read" }
local OPCODES = { send = 3, write = 0, read = 1 }

--- The enhanced Request of the target, where it sends one. `requirement` is about its form.
local function asked(t, requirement)
  local conn = t:connect()
  local request = conn:expect_request { requirement = requirement }
  if request.revision == 1 and request.flags & 0x1f == 0 then
    conn:close()
    t:unimplemented("The target does not ask for anything of RFC 6581.")
  end
  return conn, request
end

local function kinds(request)
  return ("A=%s B=%s C=%s D=%s"):format(request.peer_to_peer, request.rtr_send, request.rtr_write, request.rtr_read)
end

--- The same, in the peer-to-peer model.
local function asked_as_peer(t)
  local conn, request = asked(t)
  if not request.peer_to_peer then
    conn:close()
    t:unimplemented("The target does not ask for the peer-to-peer model.")
  end
  return conn, request
end

case {
  id = "mpa-p2p/9-initiator/request",
  version = 1,
  title = "An enhanced Request has S=1, revision 2 and four octets of words, which PD_Length counts",
  requirements = { "P2P-6-1", "P2P-6-2", "P2P-6-4", "P2P-6-6", "P2P-6-10", "P2P-9.2-2", "MPA-7.1.1-24" },
  roles = { "initiator" },
  capabilities = { "revision-2" },
  tags = { "startup", "enhanced" },

  run = function(t)
    local FORM = { "P2P-6-1", "P2P-6-2", "P2P-6-6", "P2P-6-10", "MPA-7.1.1-24" }
    local conn, request = asked(t, FORM)
    t:check(request.revision == 2 and request.flags & 0x10 ~= 0, {
      requirement = FORM,
      expected = "S=1 and revision 2",
      actual = ("octet 16 is %02x, revision %d"):format(request.flags, request.revision),
    })
    t:check(request.flags & 0x0f == 0, {
      requirement = "P2P-6-4",
      expected = "reserved bits of zero",
      actual = ("octet 16 is %02x"):format(request.flags),
    })
    local some = request.rtr_send or request.rtr_write or request.rtr_read
    t:check(not request.peer_to_peer or some, {
      requirement = "P2P-9.2-2",
      expected = "at least one of B, C and D with A=1",
      actual = kinds(request),
    })
    conn:close()

    t:liveness()
  end,
}

case {
  id = "mpa-p2p/9-initiator/ready",
  version = 1,
  title = "The ready-to-receive message is the first FPDU, the only one of its kind, of the kind that the Reply has, and empty",
  requirements = { "P2P-9.2-9", "P2P-1.1-2", "P2P-1.1-3", "P2P-3-3", "P2P-5-4", "P2P-9.3-1", "P2P-mail.4-1" },
  roles = { "initiator" },
  capabilities = { "revision-2", "operation" },
  tags = { "startup", "enhanced" },
  parameters = { kind = { "send", "write", "read" } },

  run = function(t, p)
    local conn, request = asked_as_peer(t)
    if not request[NAMES[p.kind]] then
      conn:close()
      t:unimplemented(("The target does not offer a %s as ready-to-receive message."):format(p.kind))
    end
    conn:send(conn:reply { rtr_send = p.kind == "send", rtr_write = p.kind == "write", rtr_read = p.kind == "read" })
    local FIRST = { "P2P-9.2-9", "P2P-3-3", "P2P-5-4", "P2P-9.3-1", "P2P-mail.4-1" }
    local EMPTY = { "P2P-1.1-2" }
    local fpdu = conn:expect_fpdu { requirement = FIRST, opcode = OPCODES[p.kind], overdue_fails = true }
    local asks = p.kind == "read" and fpdu.payload:sub(13, 16) or fpdu.payload
    t:check(asks == "" or asks == "\0\0\0\0" and p.kind == "read", {
      requirement = EMPTY,
      expected = "no octets",
      actual = ("%d octets of payload"):format(#fpdu.payload),
    })
    if p.kind == "read" then
      -- A Read Response of no octets, to the sink that the Read Request names.
      local stag, to = fpdu.payload:sub(1, 4), fpdu.payload:sub(5, 12)
      conn:send(mpa.fpdu { ulpdu = rdmap.write { opcode = 2 }:replace(2, stag .. to) })
    end
    conn:expect_fpdu { requirement = { "P2P-1.1-3", "P2P-9.3-1" }, opcode = 3, overdue_fails = true }
    conn:close()

    t:liveness()
  end,
}

case {
  id = "mpa-p2p/9-initiator/send-counts",
  version = 1,
  title = "A Send as ready-to-receive message has MSN 1, and the Send behind it MSN 2",
  requirements = { "P2P-9.2-13", "RDMAP-5.3-16" },
  roles = { "initiator" },
  capabilities = { "revision-2", "operation" },
  tags = { "startup", "enhanced", "send" },

  run = function(t)
    local conn, request = asked_as_peer(t)
    if not request.rtr_send then
      conn:close()
      t:unimplemented("The target does not offer a Send as ready-to-receive message.")
    end
    conn:send(conn:reply { rtr_write = false, rtr_read = false })
    for msn = 1, 2 do
      conn:expect_fpdu {
        requirement = { "P2P-9.2-13", "RDMAP-5.3-16" }, opcode = 3, qn = 0, msn = msn, mo = 0, overdue_fails = true,
      }
    end
    conn:close()

    t:liveness()
  end,
}

case {
  id = "mpa-p2p/9-initiator/choice",
  version = 1,
  title = "Of several kinds that the Reply has, one message is sent",
  requirements = { "P2P-1.1-3", "P2P-9.2-9", "P2P-mail.0-1" },
  roles = { "initiator" },
  capabilities = { "revision-2", "operation" },
  tags = { "startup", "enhanced" },

  run = function(t)
    local conn, request = asked_as_peer(t)
    conn:send(conn:reply())
    local fpdu = conn:expect_fpdu { requirement = { "P2P-1.1-3", "P2P-9.2-9", "P2P-mail.0-1" }, overdue_fails = true }
    local chosen = {}
    for kind, name in pairs(NAMES) do
      if request[name] then chosen[OPCODES[kind]] = true end
    end
    t:check(chosen[fpdu.opcode] and (fpdu.opcode == 1 or fpdu.payload == ""), {
      requirement = { "P2P-9.2-9", "P2P-mail.0-1" },
      expected = "a message of one of the kinds, and empty",
      actual = ("opcode %d, %d octets of payload"):format(fpdu.opcode, #fpdu.payload),
    })
    conn:close()

    t:liveness()
  end,
}

case {
  id = "mpa-p2p/9-initiator/no-kind",
  version = 1,
  title = "A Reply with A=1 and no kind that the Initiator can send is answered by Terminate 20 07, and the end of the connection",
  requirements = { "P2P-9.2-16", "P2P-9.2-23", "P2P-8-3", "P2P-8-5", "RDMAP-4.8-36" },
  roles = { "initiator" },
  capabilities = { "revision-2" },
  tags = { "startup", "enhanced", "terminate", "refusal" },

  run = function(t)
    local conn = asked_as_peer(t)
    conn:send(conn:reply { rtr_send = false, rtr_write = false, rtr_read = false }, { deviates = conn:reply() })
    conn:expect_terminate {
      requirement = "P2P-9.2-16", told = "P2P-8-5", error = "20 07", code = { "P2P-9.2-23", "P2P-8-3", "RDMAP-4.8-36" },
    }
    conn:expect_close { requirement = "P2P-9.2-16", within = 60, overdue_fails = true }

    t:liveness()
  end,
}

case {
  id = "mpa-p2p/9-initiator/no-room",
  version = 1,
  title = "A Reply with S=1 that has no room for the words ends the connection, and no FPDU follows it",
  requirements = { "P2P-6-12" },
  roles = { "initiator" },
  capabilities = { "revision-2" },
  tags = { "startup", "enhanced", "refusal" },
  parameters = { length = { 0, 1, 2, 3 } },

  run = function(t, p)
    local conn = asked(t)
    conn:send(mpa.reply { flags = 0x50, revision = 2, private_data = ("\0"):rep(p.length) })
    -- Such a Reply is malformed whatever was asked for. A Terminate may tell of it (RFC 6581 section 8).
    conn:expect_close { requirement = "P2P-6-12", after_terminate = true, overdue_fails = true }

    t:liveness()
  end,
}

case {
  id = "mpa-p2p/9-initiator/too-many-reads",
  version = 1,
  title = "A Reply whose ORD is more than the Initiator can hold is answered by Terminate 20 06, and the end of the connection",
  requirements = { "P2P-9.1-10", "P2P-9.1-24", "P2P-8-2", "P2P-8-4", "RDMAP-4.8-36" },
  roles = { "initiator" },
  capabilities = { "revision-2" },
  tags = { "startup", "enhanced", "terminate", "refusal" },

  run = function(t)
    local conn = asked_as_peer(t)
    conn:send(conn:reply { ord = 0x3ffe }, { deviates = conn:reply() })
    -- One that can hold so many Reads goes on, and is right: its first FPDU (length, DDP's octet, RDMAP's) is no Terminate then.
    local first = conn:expect_octets { requirement = "P2P-9.1-10", begins = "", keep = true }
    if #first >= 4 and first:byte(4) & 0x0f ~= 7 then
      conn:close()
      t:unimplemented("The target goes on: it can hold 0x3FFE Reads.")
    end
    local told = conn:expect_terminate {
      requirement = "P2P-9.1-10", told = "P2P-9.1-10", error = "20 06", code = { "P2P-9.1-24", "P2P-8-2", "RDMAP-4.8-36" },
    } ---@cast told weft.Terminate
    t:check(not (told.m or told.d or told.r) and #told.rest == 0, {
      requirement = "P2P-8-4",
      expected = "no header parts",
      actual = ("M=%s D=%s R=%s, %d octets behind"):format(told.m, told.d, told.r, #told.rest),
    })
    conn:expect_close { requirement = "P2P-9.1-10", within = 60, overdue_fails = true }

    t:liveness()
  end,
}

case {
  id = "mpa-p2p/9-initiator/ird",
  version = 1,
  title = "As many Reads as the Request's IRD says are served at a time",
  requirements = { "P2P-9.1-1" },
  roles = { "initiator" },
  capabilities = { "revision-2", "rping" },
  tags = { "startup", "enhanced", "read" },

  run = function(t)
    local conn, op = t:operate { revision = 2, enhanced = true }
    local reads = op.ird or 0
    if reads < 1 or reads > 4096 then
      conn:close()
      t:unimplemented(("The target's IRD is %d."):format(reads))
    end
    local requests = ""
    for msn = 1, reads do
      requests = requests .. mpa.fpdu {
        ulpdu = rdmap.read_request { sink_stag = 0x7700, rdmardsz = 4, src_stag = op.stag, src_to = op.to, msn = msn },
      }
    end
    conn:send(requests)
    for _ = 1, reads do
      conn:expect_fpdu { requirement = "P2P-9.1-1", opcode = 2, overdue_fails = true }
    end
    conn:close()

    t:liveness()
  end,
}

case {
  id = "mpa-p2p/9-initiator/raised-ird",
  version = 1,
  title = "A Reply whose ORD is one more than the Request's IRD has so many Reads served at a time, or is refused by a Terminate",
  requirements = { "P2P-9.1-23" },
  roles = { "initiator" },
  capabilities = { "revision-2", "rping" },
  tags = { "startup", "enhanced", "read" },

  run = function(t)
    t:good_exchange()

    local conn, request = asked(t)
    local reads = request.ird + 1
    if request.ird > 4096 then
      conn:close()
      t:unimplemented(("The target's IRD is %d."):format(request.ird))
    end
    conn:send(conn:reply { ord = reads })
    local what, first = conn:next()
    if what == "fpdu" and first.opcode == 7 then
      conn:close()
      t:liveness()
      t:unimplemented("The target does not raise its IRD: it sends a Terminate, as it may.")
    end
    t:check(what == "fpdu", { requirement = "P2P-9.1-23", expected = "an FPDU", actual = what or "nothing" })
    if first.opcode == 1 then
      -- A ready-to-receive message that is to be answered: sink STag and TO stand first in it.
      local stag, to = string.unpack(">I4i8", first.payload)
      conn:send(mpa.fpdu { ulpdu = rdmap.write { opcode = 2, stag = stag, tagged_offset = to } })
    end
    -- Of no octets, they name no buffer.
    local requests = ""
    for msn = 1, reads do
      requests = requests .. mpa.fpdu { ulpdu = rdmap.read_request { sink_stag = 0x7700, msn = msn } }
    end
    conn:send(requests)
    for served = 1, reads do
      repeat
        what, first = conn:next()
        t:check(what == "fpdu" and first.opcode ~= 7, {
          requirement = "P2P-9.1-23",
          expected = reads .. " Read Responses",
          actual = ("%d, then %s"):format(served - 1, what == "fpdu" and "a Terminate" or what or "nothing"),
        })
      until first.opcode == 2
    end
    t:check(true, { requirement = "P2P-9.1-23", expected = reads .. " Read Responses", actual = "as many" })
    conn:close()

    t:liveness()
  end,
}
