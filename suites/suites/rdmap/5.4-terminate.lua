-- RFC 5040 sections 4.8 and 5.4: a Terminate that the target receives. One case uses an agent: a
-- program on the target that calls the NIC's verbs for the tester.

--- Returns an FPDU with a Terminate. By default, the Terminate is the first message on queue 2.
local function terminate(fields)
  fields.opcode, fields.qn, fields.msn = 7, fields.qn or 2, fields.msn or 1
  return mpa.fpdu { ulpdu = rdmap.send(fields) }
end

--- Declares a case. `declared` has the other fields of the case. By default, the case is for both
--- roles of the target, and needs the capability `operation`.
local function with_service(name, title, requirements, declared, run)
  declared.id, declared.title = "rdmap/5.4-terminate/" .. name, title
  declared.requirements, declared.run = requirements, run
  declared.roles = declared.roles or { "responder", "initiator" }
  declared.capabilities = declared.capabilities or { "operation" }
  return declared
end

case(with_service("received", "The target closes TCP after a Terminate, and sends no Terminate back",
  { "RDMAP-5.4-4" }, {
  version = 3,
  tags = { "terminate" },
  parameters = { control = { 0x00, 0x01, 0x02, 0x10, 0x11, 0x12, 0x20 }, code = { 0, 1, 0xff } },
}, function(t, p)
  t:good_exchange()

  local conn = t:operate()
  conn:send(terminate { payload = string.char(p.control, p.code, 0, 0) }, { deviates = true })
  conn:expect_close { requirement = "RDMAP-5.4-4", overdue_fails = true }
end))

case(with_service("reserved", "The target ignores the 13 reserved bits of a Terminate", { "RDMAP-4.8-7" },
  { version = 2, tags = { "terminate" }, parameters = { bits = { 0x0001, 0x0100, 0x1000, 0x1fff } } }, function(t, p)
  t:good_exchange()

  local conn = t:operate()
  conn:send(terminate { payload = string.pack(">BBI2", 0x00, 0x00, p.bits) }, { deviates = true })
  conn:expect_close { requirement = "RDMAP-4.8-7", overdue_fails = true }
end))

case(with_service("no-good", "The target ends the stream also on a malformed Terminate", { "RDMAP-5.4-10" }, {
  version = 2,
  tags = { "terminate", "refusal" },
  parameters = { wrong = { "msn-0", "msn-2", "mo", "short", "empty", "version" } },
}, function(t, p)
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
  -- The target may or may not answer with a Terminate.
  conn:expect_close { requirement = "RDMAP-5.4-10", after_terminate = true, overdue_fails = true }
end))

case(with_service("first", "The target accepts a Terminate as the first message, before any receive or Read was used",
  { "RDMAP-5.4-3" }, { version = 3, roles = { "responder" }, tags = { "terminate" } }, function(t)
  t:good_exchange()

  -- The control: after other messages, the target accepts a Terminate.
  local control = t:operate()
  control:send(terminate { payload = "\x00\x00\x00\x00" }, { deviates = true })
  control:expect_close()
  local conn = t:start_up()
  conn:send(terminate { payload = "\x00\x00\x00\x00" }, { deviates = true })
  conn:expect_close { requirement = "RDMAP-5.4-3", overdue_fails = true }
end))

case(with_service("empty-queue", "The target accepts a Terminate, and a FIN after it, when no receive is posted",
  { "RDMAP-5.4-3", "RDMAP-5.4-9" }, { capabilities = { "agent" }, tags = { "terminate", "receives", "agent" } }, function(t, _, target)
  t:good_exchange()

  local conn, pair = target:operate {}
  conn:send(terminate { payload = "\x00\x00\x00\x00" }, { deviates = true })
  conn:finish()
  -- The target may answer the Terminate only with the end of the connection.
  local event, fpdu = conn:next { within = 10 }
  t:check(event == "close", {
    requirement = "RDMAP-5.4-3",
    expected = "a close",
    actual = event == "fpdu" and ("an FPDU with opcode %d"):format(fpdu.opcode) or event or "nothing, and the connection stays open",
    missing = event == nil,
  })
  pair:expect_error { requirement = "RDMAP-5.4-9", overdue_fails = true }
end))
