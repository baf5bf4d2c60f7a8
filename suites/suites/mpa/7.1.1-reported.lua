-- RFC 5044 sections 7.1.1 and 7.1.4: private data of start-up frames. An agent reports and sends
-- this data. The agent is a program on the target that calls the NIC's verbs for the tester.

local DATA = ("weft octets that differ "):rep(22)

--- Some connection managers store the length of the private data in one byte, so these lengths are
--- at most 255. (In an enhanced Reply, four of the bytes are IRD and ORD, so only 251 bytes are
--- left.)
local LENGTHS = { 0, 1, 3, 4, 148, 251, 255 }

--- Declares a case with an agent. `declared` has the other fields of the case.
local function with_agent(name, title, requirements, declared, run)
  declared.id, declared.title = "mpa/7.1.1-reported/" .. name, title
  declared.requirements, declared.run = requirements, run
  declared.capabilities = { "agent" }
  return declared
end

case(with_agent("request", "The responder reports exactly the private data of a Request to its user",
  { "MPA-7.1.1-27" }, { tags = { "startup", "private-data", "agent" }, parameters = { length = LENGTHS } }, function(t, p, target)
  t:good_exchange()
  local private_data = DATA:sub(1, p.length)
  local conn = t:connect()
  conn:send(mpa.request { private_data = private_data })
  local pair = target:expect_request { private_data = private_data, requirement = "MPA-7.1.1-27" }
  pair:reject {}
  conn:expect_reply { reject = true }
  conn:close()
end))

case(with_agent("long-request", "The responder reports more than 255 bytes of private data in a Request", { "MPA-7.1.1-27" },
  { tags = { "startup", "private-data", "agent" }, scales = { "length" }, parameters = { length = { 256, 257, 512 } } }, function(t, p, target)
  t:good_exchange()
  local private_data = DATA:sub(1, p.length)
  local conn = t:connect()
  conn:send(mpa.request { private_data = private_data })
  local pair = target:expect_request { private_data = private_data, requirement = "MPA-7.1.1-27", overdue_fails = true }
  pair:reject {}
  conn:expect_reply { reject = true }
  conn:close()
end))

case(with_agent("reply", "The initiator reports exactly the private data of an accepting Reply to its user", { "MPA-7.1.1-27" }, {
  roles = { "initiator" },
  tags = { "startup", "private-data", "agent" },
  parameters = { length = { 0, 1, 3, 4, 148, 251 } },
  scales = { "length" },
}, function(t, p, target)
  t:good_exchange()
  local private_data = DATA:sub(1, p.length)
  local conn, pair = target:connect {}
  conn:expect_request {}
  conn:send(conn:reply { private_data = private_data })
  pair:expect_event { event = "established", private_data = private_data, requirement = "MPA-7.1.1-27" }
  conn:reset()
end))

local OWN = { "MPA-7.1.1-24", "MPA-7.1.1-29" }

--- Expects that the frame of the target has exactly the user's private data, and that no bytes
--- follow. In an enhanced frame (RFC 6581), the private data begins after IRD and ORD.
local function expect_private_data(t, conn, frame, private_data)
  local sent = frame.octets:sub(frame.flags & 0x10 ~= 0 and 25 or 21)
  t:check(sent == private_data, {
    requirement = OWN,
    expected = ("the %d bytes that the user set"):format(#private_data),
    actual = sent:sub(1, #private_data) == private_data and ("%d bytes"):format(#sent) or "other bytes of private data",
  })
  conn:expect_silence { within = 0.5, requirement = OWN }
end

case(with_agent("sent-in-request", "The initiator's Request has exactly the private data of its user, and PD_Length counts it", OWN, {
  roles = { "initiator" },
  tags = { "startup", "private-data", "agent" },
  parameters = { length = { 0, 1, 3, 148 } },
  scales = { "length" },
}, function(t, p, target)
  t:good_exchange()
  local private_data = DATA:sub(1, p.length)
  local conn = target:connect { private_data = private_data }
  expect_private_data(t, conn, conn:expect_request { requirement = OWN }, private_data)
  conn:reset()
end))

case(with_agent("sent-in-reply", "The responder's Reply, accepting or not, has exactly its user's private data, and PD_Length counts it",
  OWN, {
  tags = { "startup", "private-data", "agent" },
  parameters = { length = { 0, 1, 3, 148 }, reject = { true, false } },
  scales = { "length" },
}, function(t, p, target)
  t:good_exchange()
  local private_data = DATA:sub(1, p.length)
  local conn = t:connect()
  conn:send(t:request {})
  local pair = target:expect_request {}
  if p.reject then
    pair:reject { private_data = private_data }
  else
    pair:open {}
    pair:accept { private_data = private_data }
  end
  expect_private_data(t, conn, conn:expect_reply { requirement = OWN, reject = p.reject }, private_data)
  conn:reset()
end))
