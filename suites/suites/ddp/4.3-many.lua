-- RFC 5041 section 4.3: an MSN has 32 bits. More than 65,536 messages on a connection show whether
-- a target keeps the MSN in 16 bits. Only the full tier runs these cases. Some of them use an agent:
-- a program on the target that calls the NIC's verbs for the tester.

--- Number of Reads of a case, or of Sends that an echo returns.
local READS = 70000
--- Number of Sends of a case with an agent. In the full tier, a transcript keeps 200,000 steps. The
--- work request of each Send needs two steps, and the Send or its completion needs one more step.
local SENDS = 65600
--- Number of Sends that a case handles at a time, and maximum number of bytes of a Send.
local AT_ONCE, SIZE = 64, 16

local ANSWERED, NUMBERED = "RDMAP-5.2.1-18", "RDMAP-7.2-15"

--- Sends READS Read Requests for the bytes `data`, each after the answer to the previous one.
local function read(t, conn, stag, to, data)
  for msn = 1, READS do
    conn:send(mpa.fpdu {
      ulpdu = rdmap.read_request { sink_stag = 0x7766, sink_to = msn, rdmardsz = #data, src_stag = stag, src_to = to, msn = msn },
    })
    local event, fpdu = conn:next { within = 10 }
    local is_answer = event == "fpdu" and fpdu.opcode == 2 and fpdu.tagged_offset == msn and fpdu.payload == data
    -- A transcript has a step for each check that passes. So only checks that fail are made.
    if not is_answer then
      local is_terminate = event == "fpdu" and fpdu.opcode == 7
      t:check(false, {
        requirement = is_terminate and { ANSWERED, NUMBERED } or ANSWERED,
        expected = ("the Response to Read %d"):format(msn),
        actual = session.describe(event, fpdu, 10),
        missing = event ~= "fpdu",
      })
    end
  end
  t:check(true, { requirement = { ANSWERED, NUMBERED }, expected = ("%d Read Responses"):format(READS), actual = "fewer" })
end

case {
  id = "ddp/4.3-many/reads-rping",
  title = "The target still answers Reads after more than 65,536 Reads of rping's buffer",
  requirements = { ANSWERED, NUMBERED },
  roles = { "responder", "initiator" },
  capabilities = { "rping" },
  tags = { "read", "slow" },
  tier = "full",

  run = function(t)
    local conn, op = t:operate()
    read(t, conn, op.stag, op.to, session.fill_buffer(conn, op, 4))
    conn:close()
  end,
}

local FIRST = "DDP-4.3-7"

case {
  id = "ddp/4.3-many/terminate-rping",
  title = "The Terminate of the target is the first message of its queue, also after more than 65,536 Reads",
  requirements = { ANSWERED, NUMBERED, FIRST },
  roles = { "responder", "initiator" },
  capabilities = { "rping" },
  tags = { "read", "terminate", "slow" },
  tier = "full",

  run = function(t)
    t:good_exchange()
    local conn, op = t:operate()
    read(t, conn, op.stag, op.to, session.fill_buffer(conn, op, 4))
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft", qn = 77, msn = 1 } }, { deviates = true })
    local terminate = conn:expect_terminate {}
    if not terminate then t:unimplemented("The target refuses an FPDU without a Terminate.") end
    t:check(terminate.msn == 1, { requirement = FIRST, expected = "MSN 1", actual = ("MSN %d"):format(terminate.msn) })
  end,
}

local DELIVERED, COUNTED = "RDMAP-5.3-5", "DDP-4.3-6"

case {
  id = "ddp/4.3-many/echo",
  title = "The target still returns and numbers Sends after more than 65,536 Sends",
  requirements = { DELIVERED, COUNTED },
  roles = { "responder", "initiator" },
  capabilities = { "echo" },
  tags = { "send", "slow" },
  tier = "full",

  run = function(t)
    t:good_exchange()
    local conn, op = t:operate()
    local first
    for nth = 1, READS do
      local payload = string.pack(">I4", nth)
      conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = payload, msn = op.msn + nth - 1 } })
      local event, fpdu = conn:next { within = 10 }
      local is_echo = event == "fpdu" and fpdu.opcode == 3 and fpdu.payload == payload
      -- A transcript has a step for each check that passes. So only checks that fail are made.
      if not is_echo then
        t:check(false, {
          requirement = DELIVERED,
          expected = ("the echo of Send %d"):format(nth),
          actual = session.describe(event, fpdu, 10),
          missing = event ~= "fpdu",
        })
      end
      first = first or fpdu.msn
      local msn = (first + nth - 1) & 0xffffffff
      if fpdu.msn ~= msn then
        t:check(false, { requirement = COUNTED, expected = ("MSN %d"):format(msn), actual = ("MSN %d"):format(fpdu.msn) })
      end
    end
    t:check(true, { requirement = { DELIVERED, COUNTED }, expected = ("%d echoes with consecutive MSNs"):format(READS), actual = "others" })
    conn:close()
  end,
}

--- Returns the declaration of a case with an agent, for both roles of the target.
local function with_agent(name, title, requirements, tags, run)
  return {
    id = "ddp/4.3-many/" .. name,
    title = title,
    requirements = requirements,
    roles = { "responder", "initiator" },
    capabilities = { "agent" },
    tags = tags,
    tier = "full",
    run = run,
  }
end

case(with_agent("reads", "The target still answers Reads after more than 65,536 Reads of a region", { ANSWERED, NUMBERED },
  { "read", "slow", "agent" }, function(t, _, target)
  t:good_exchange()
  local conn = target:operate {}
  local region = target:region { octets = 4, put = "weft" }
  read(t, conn, region.stag, region.address, "weft")
  conn:reset()
end))

local LENGTH = "RDMAP-5.3-13"

case(with_agent("receives", "The target still delivers Sends in order after more than 65,536 Sends", { DELIVERED, LENGTH },
  { "send", "receives", "slow", "agent" }, function(t, _, target)
  t:good_exchange()
  local conn, pair, op = target:operate { depth = AT_ONCE }
  local region = target:region { octets = SIZE * AT_ONCE, access = { "local_write" } }
  for from = 1, SENDS, AT_ONCE do
    local till, works, fpdus = math.min(from + AT_ONCE - 1, SENDS), {}, nil
    for nth = from, till do
      works[nth] = pair:post_receive { region = region, offset = SIZE * (nth - from), length = SIZE }
      -- The lengths of consecutive Sends differ.
      local payload = ("w"):rep(1 + nth % SIZE)
      local fpdu = mpa.fpdu { ulpdu = rdmap.send { msn = op.msn + nth - 1, payload = payload } }
      fpdus = fpdus and fpdus .. fpdu or fpdu
    end
    conn:send(fpdus)
    for nth = from, till do
      local completion = pair:expect_completion { status = { "success", "error" } }
      local is_next = completion.status == "success" and completion.work == works[nth]
      if not is_next or completion.octets ~= 1 + nth % SIZE then
        t:check(false, {
          requirement = is_next and LENGTH or DELIVERED,
          expected = ("Send %d, of %d bytes, in receive %d"):format(nth, 1 + nth % SIZE, works[nth]),
          actual = ("%d bytes in receive %d, with the status %s"):format(completion.octets, completion.work, completion.status),
        })
      end
    end
  end
  t:check(true, { requirement = { DELIVERED, LENGTH }, expected = ("%d Sends in order"):format(SENDS), actual = "others" })
  conn:reset()
end))

case(with_agent("posts", "The target still numbers its Sends consecutively after more than 65,536 Sends", { COUNTED },
  { "send", "slow", "agent" }, function(t, _, target)
  t:good_exchange()
  local conn, pair, op = target:operate { depth = AT_ONCE }
  local region = target:region { octets = SIZE }
  for from = 1, SENDS, AT_ONCE do
    local till = math.min(from + AT_ONCE - 1, SENDS)
    for nth = from, till do pair:post_send { region = region, length = 1 + nth % SIZE, signaled = nth == till } end
    for nth = from, till do
      local event, fpdu = conn:next { within = 10 }
      local is_send = event == "fpdu" and fpdu.opcode == 3 and #fpdu.payload == 1 + nth % SIZE
      if not is_send then
        -- Other cases are about the order and the bytes of Sends.
        t:check(false, { expected = ("Send %d"):format(nth), actual = session.describe(event, fpdu, 10) })
      end
      local msn = (op.target_msn + nth - 1) & 0xffffffff
      if fpdu.msn ~= msn then
        t:check(false, { requirement = COUNTED, expected = ("MSN %d"):format(msn), actual = ("MSN %d"):format(fpdu.msn) })
      end
    end
    pair:expect_completion {}
  end
  t:check(true, { requirement = COUNTED, expected = ("%d Sends with consecutive MSNs"):format(SENDS), actual = "others" })
  conn:reset()
end))

--- Number of Reads that the target's user posts, and number of Reads that wait for their answers.
--- The transcript of the case is a little too long, so it lacks some steps in the middle.
local POSTED, OUTSTANDING = 65538, 16

case(with_agent("posted-reads", "The target still numbers its Read Requests consecutively after more than 65,536 Reads", { COUNTED },
  { "read", "slow", "agent" }, function(t, _, target)
  t:good_exchange()
  local conn, pair = target:operate { depth = OUTSTANDING, ord = OUTSTANDING }
  local region = target:region { octets = SIZE }
  local first
  for from = 1, POSTED, OUTSTANDING do
    local till, answers = math.min(from + OUTSTANDING - 1, POSTED), nil
    for nth = from, till do
      pair:post_read { region = region, length = SIZE, stag = 7, to = nth, signaled = nth == till }
    end
    for nth = from, till do
      local event, fpdu = conn:next { within = 10 }
      local is_read = event == "fpdu" and fpdu.opcode == 1 and #fpdu.payload == 28
      if not is_read then
        -- Other cases are about the fields of Read Requests.
        t:check(false, { expected = ("Read Request %d"):format(nth), actual = session.describe(event, fpdu, 10) })
      end
      first = first or fpdu.msn
      local msn = (first + nth - 1) & 0xffffffff
      if fpdu.msn ~= msn then
        t:check(false, { requirement = COUNTED, expected = ("MSN %d"):format(msn), actual = ("MSN %d"):format(fpdu.msn) })
      end
      local stag, to = string.unpack(">I4i8", fpdu.payload)
      local answer = mpa.fpdu { ulpdu = rdmap.write { opcode = 2, stag = stag, tagged_offset = to, payload = ("r"):rep(SIZE) } }
      answers = answers and answers .. answer or answer
    end
    conn:send(answers)
    pair:expect_completion {}
  end
  t:check(true, { requirement = COUNTED, expected = ("%d Read Requests with consecutive MSNs"):format(POSTED), actual = "others" })
  conn:reset()
end))
