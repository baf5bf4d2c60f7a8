-- RFC 6581 sections 5, 6 and 10: enhanced start-up frames, and the frames that answer them.

--- Declares a case for a responder of revision 2. `declared` has the other fields of the case, and
--- can replace its capabilities.
local function of_responder(name, title, requirements, declared, run)
  declared.id, declared.title = "mpa-p2p/6-frames/" .. name, title
  declared.requirements, declared.run = requirements, run
  declared.capabilities = declared.capabilities or { "revision-2" }
  return declared
end

case(of_responder("reply", "The responder answers an enhanced Request with a Reply of revision 2 that ends after IRD and ORD",
  { "P2P-10-2", "P2P-10-9", "P2P-5-2", "P2P-6-1", "P2P-6-4", "P2P-6-6", "P2P-6-10" }, {
  version = 2,
  tags = { "startup", "enhanced" },
  parameters = { private_data = { "", "x", "12345678" }, peer_to_peer = { true, false } },
}, function(t, p)
  t:good_exchange()

  local conn = t:connect()
  conn:send(t:request {
    enhanced = true, revision = 2, private_data = p.private_data,
    peer_to_peer = p.peer_to_peer, rtr_write = p.peer_to_peer, rtr_read = p.peer_to_peer, rtr_send = p.peer_to_peer,
  })
  local event, reply = conn:next {}
  t:check(event == "reply", {
    requirement = event == "octets" and "P2P-5-2" or { "P2P-10-2", "P2P-10-9", "P2P-5-2" },
    expected = "a Reply",
    actual = event == "octets" and "a Reply that is malformed" or event or "nothing",
    missing = event == nil,
  })
  t:check(not reply.reject, { expected = "R=0", actual = "R=1" })
  local flags = ("byte 16 is %02x, revision %s"):format(reply.flags, reply.revision)
  t:check(reply.flags & 0x0f == 0, { requirement = { "P2P-6-4", "P2P-6-1" }, expected = "reserved bits of zero", actual = flags })
  t:check(reply.flags & 0x10 ~= 0, { requirement = { "P2P-10-2", "P2P-10-9", "P2P-5-2" }, expected = "S=1", actual = flags })
  t:check(reply.revision == 2, { requirement = "P2P-6-6", expected = "revision 2", actual = flags })
  local length = #reply.octets - 20
  t:check(length >= 4, { requirement = "P2P-6-10", expected = "at least the 4 bytes of IRD and ORD", actual = length .. " bytes" })
  -- Bytes that PD_Length does not count would arrive now.
  conn:expect_silence { requirement = "P2P-6-10", within = 0.5 }
  conn:close()
end))

case(of_responder("unenhanced", "The responder's Reply to a Request with S=0 has S=0, also in revision 2",
  { "P2P-10-3", "P2P-10-11", "P2P-6-3" },
  { tags = { "startup", "enhanced" }, parameters = { revision = { 1, 2 }, private_data = { "", "12345678" } } }, function(t, p)
  t:good_exchange()

  local ALL = { "P2P-10-3", "P2P-10-11", "P2P-6-3" }
  local conn = t:connect()
  conn:send(mpa.request { revision = p.revision, private_data = p.private_data })
  local reply = conn:expect_reply { requirement = ALL, overdue_fails = true }
  t:check(reply.flags & 0x10 == 0, { requirement = ALL, expected = "S=0", actual = ("byte 16 is %02x"):format(reply.flags) })
  t:check(reply.revision <= p.revision, {
    requirement = "P2P-10-3",
    expected = "at most the revision of the Request",
    actual = "revision " .. reply.revision,
  })
  conn:close()
end))

case(of_responder("revision-1", "The responder of revision 2 accepts Requests of revision 1",
  { "P2P-6-8", "P2P-10-10", "P2P-1.1-1" },
  { capabilities = { "revision-1", "revision-2" }, tags = { "startup", "enhanced" } }, function(t)
  local conn = t:connect()
  conn:send(mpa.request { revision = 1 })
  conn:expect_reply { requirement = { "P2P-6-8", "P2P-10-10", "P2P-1.1-1" }, reject = false, overdue_fails = true }
  conn:close()
end))

case(of_responder("reserved", "The responder ignores the four reserved bits after S",
  { "P2P-6-5" }, { tags = { "startup", "enhanced" }, parameters = { bits = { 0x01, 0x02, 0x04, 0x08, 0x0f } } }, function(t, p)
  t:good_exchange()

  local conn = t:connect()
  local legal = t:request { enhanced = true, revision = 2, crc = true }
  conn:send(legal:flip(16, p.bits), { deviates = legal })
  conn:expect_reply { requirement = "P2P-6-5", reject = false, enhanced = true, overdue_fails = true }
  conn:close()
end))

case(of_responder("no-room", "The responder closes, or sends R=1, if a Request with S=1 is too short for IRD and ORD",
  { "P2P-6-12" }, { tags = { "startup", "enhanced" }, parameters = { length = { 0, 1, 2, 3 } } }, function(t, p)
  t:good_exchange()

  local conn = t:connect()
  conn:send(mpa.request { flags = 0x50, revision = 2, private_data = ("\0"):rep(p.length) })
  conn:expect_close { requirement = "P2P-6-12", or_reject = true }
end))

case(of_responder("longest", "The responder accepts 508 bytes of private data after IRD and ORD",
  { "P2P-6-10" }, {
  version = 2,
  tags = { "startup", "enhanced" },
  scales = { "length" },
  -- PD_Length is larger by four. Lengths and PD_Lengths near 256 and 512 are in this list.
  parameters = { length = { 248, 249, 250, 251, 252, 253, 254, 257, 504, 505, 506, 508 } },
}, function(t, p)
  t:good_exchange()

  local conn = t:connect()
  conn:send(t:request { enhanced = true, revision = 2, private_data = ("x"):rep(p.length) })
  conn:expect_reply { requirement = "P2P-6-10", overdue_fails = true }
  conn:close()
end))

case(of_responder("not-supported", "The responder without enhanced set-up closes on an enhanced Request, and sends no Reply",
  { "P2P-10-4" }, {
  capabilities = {},
  tags = { "startup", "enhanced" },
  parameters = { ird = { 0, 1 }, private_data = { "", "12345678" } },
}, function(t, p)
  t:good_exchange()

  local conn = t:connect()
  conn:send(t:request { enhanced = true, revision = 2, ird = p.ird, ord = 0, private_data = p.private_data })
  local event, reply = conn:next { within = 15 }
  if event == "reply" and reply.flags & 0x10 ~= 0 then
    conn:close()
    t:unimplemented("This case is only for a responder without the enhanced set-up, but the target has the enhanced set-up.")
  end
  t:check(event == "close", {
    requirement = "P2P-10-4",
    expected = "the target closes the connection and sends no byte before the close",
    actual = event == "reply" and ("a Reply of revision %d with S=0"):format(reply.revision) or event or "nothing, and the connection stays open",
  })
end))
