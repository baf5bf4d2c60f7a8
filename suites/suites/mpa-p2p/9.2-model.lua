-- RFC 6581 section 9.2: the peer-to-peer model and its ready-to-receive messages.

local KINDS = { send = "rtr_send", write = "rtr_write", read = "rtr_read" }

local function flags(reply)
  return ("A=%s B=%s C=%s D=%s"):format(reply.peer_to_peer, reply.rtr_send, reply.rtr_write, reply.rtr_read)
end

--- Declares a case for a responder of revision 2. `declared` has the other fields of the case, and
--- can replace its capabilities.
local function of_responder(name, title, requirements, declared, run)
  declared.id, declared.title = "mpa-p2p/9.2-model/" .. name, title
  declared.requirements, declared.run = requirements, run
  declared.capabilities = declared.capabilities or { "revision-2" }
  return declared
end

case(of_responder("peer-to-peer", "The responder answers A=1 with A=1 and at least one kind of message, whatever the Request offers",
  { "P2P-9.2-4", "P2P-9-1", "P2P-9-3", "P2P-9.2-6", "P2P-9.2-20", "P2P-9.2-22", "P2P-mail.2-1" },
  { version = 3, tags = { "startup", "enhanced" }, parameters = { offered = { "all", "send", "write", "read" } } }, function(t, p)
  t:good_exchange()

  local conn = t:connect()
  local function offers(kind)
    return p.offered == "all" or p.offered == kind
  end
  conn:send(t:request {
    enhanced = true, revision = 2, peer_to_peer = true, rtr_send = offers "send", rtr_write = offers "write", rtr_read = offers "read",
  })
  -- A target that supports none of the offered kinds has to name other kinds. It must not close.
  -- (irdma and i40iw violate this: they close if neither Write nor Read is offered.)
  local reply = conn:expect_reply {
    requirement = { "P2P-9.2-6", "P2P-9.2-20", "P2P-9.2-22", "P2P-mail.2-1" }, reject = false, enhanced = true,
  }
  -- If A is 0 and B is 1, the target may have exchanged A and B.
  local exchanged = not reply.peer_to_peer and reply.rtr_send
  t:check(not exchanged, { requirement = { "P2P-9.2-4", "P2P-9-1", "P2P-9-3" }, expected = "A=1", actual = flags(reply) })
  t:check(reply.peer_to_peer, { requirement = { "P2P-9.2-4", "P2P-9-3" }, expected = "A=1", actual = flags(reply) })
  t:check(reply.rtr_send or reply.rtr_write or reply.rtr_read, {
    requirement = { "P2P-9.2-6", "P2P-9.2-20", "P2P-9.2-22", "P2P-mail.2-1" },
    expected = "at least one of B, C and D",
    actual = flags(reply),
  })
  conn:close()
end))

case(of_responder("client-server", "The responder answers A=0 with A=0 and no kind of message, whatever B, C and D were",
  { "P2P-9.2-7", "P2P-9.2-25", "P2P-9.2-3" },
  { tags = { "startup", "enhanced" }, parameters = { kinds = { true, false } } }, function(t, p)
  t:good_exchange()

  local conn = t:connect()
  conn:send(t:request {
    enhanced = true, revision = 2, peer_to_peer = false, rtr_send = p.kinds, rtr_write = p.kinds, rtr_read = p.kinds,
  })
  local reply = conn:expect_reply { reject = false, enhanced = true }
  t:check(not reply.peer_to_peer, { requirement = "P2P-9.2-7", expected = "A=0", actual = flags(reply) })
  t:check(not (reply.rtr_send or reply.rtr_write or reply.rtr_read), {
    requirement = { "P2P-9.2-25", "P2P-9.2-3" },
    expected = "B, C and D of zero",
    actual = flags(reply),
  })
  conn:close()
end))

case(of_responder("ready", "The responder accepts each ready-to-receive message that its Reply offers, with any STag, and answers a Read",
  { "P2P-9.2-12", "P2P-9.2-14" }, {
  version = 2,
  capabilities = { "revision-2", "echo" },
  tags = { "startup", "enhanced" },
  parameters = { kind = { "send", "write", "read" }, stag = { 0, 1, 0x12345678, 0xffffffff } },
}, function(t, p)
  t:good_exchange()

  local BOTH = { "P2P-9.2-12", "P2P-9.2-14" }
  local conn, reply = t:start_up {
    enhanced = true, revision = 2, peer_to_peer = true, [KINDS[p.kind]] = true,
  }
  if not reply[KINDS[p.kind]] then
    conn:close()
    t:unimplemented(("The target does not accept a %s as ready-to-receive message."):format(p.kind))
  end
  conn:send(mpa.fpdu { ulpdu = ({
    send = rdmap.send(),
    write = rdmap.write { stag = p.stag },
    read = rdmap.read_request { sink_stag = p.stag, src_stag = p.stag },
  })[p.kind] })
  if p.kind == "read" then
    local event, fpdu = conn:next {}
    local refuses = event == "close" or event == "fpdu" and fpdu.opcode == 7
    t:check(not (refuses and p.stag ~= 0), { requirement = BOTH, expected = "an empty Read Response", actual = "a refusal" })
    local answers = event == "fpdu" and fpdu.opcode == 2 and fpdu.stag == p.stag and fpdu.payload == "" and fpdu.last
    t:check(answers, {
      requirement = "P2P-9.2-12",
      expected = ("an empty Read Response to STag %#x"):format(p.stag),
      actual = event == "fpdu" and ("an FPDU with opcode %s"):format(fpdu.opcode) or event or "nothing",
      missing = event == nil,
    })
  end
  -- A ready-to-receive Send has used the first MSN.
  conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft", msn = p.kind == "send" and 2 or 1 } })
  conn:expect_fpdu { requirement = p.kind == "read" and BOTH or "P2P-9.2-14", opcode = 3, payload = "weft", overdue_fails = true }
  t:check(true, { requirement = BOTH, expected = "an accepted ready-to-receive message", actual = "a rejected one" })
  conn:close()
end))

case(of_responder("waits", "The responder sends no FPDU before the ready-to-receive message",
  { "P2P-3-4", "P2P-mail.5-1" }, { tags = { "startup", "enhanced" } }, function(t)
  local conn = t:start_up { enhanced = true, revision = 2, peer_to_peer = true, rtr_send = true, rtr_write = true, rtr_read = true }
  conn:expect_silence { requirement = { "P2P-3-4", "P2P-mail.5-1" }, within = 2 }
  conn:close()
end))

case(of_responder("waits-not-for-ever", "The responder does not wait forever for the first FPDU",
  { "P2P-mail.6-1" }, { tags = { "startup", "enhanced", "slow" }, tier = "default" }, function(t)
  t:good_exchange()

  local conn = t:start_up { enhanced = true, revision = 2, peer_to_peer = true, rtr_send = true, rtr_write = true, rtr_read = true }
  conn:expect_close { requirement = "P2P-mail.6-1", within = 120, overdue_fails = true }
end))
