-- RFC 5041 section 4.3: an MSN has 32 bits. More than 65,536 messages on a connection show whether
-- a target keeps the MSN in 16 bits. Only the full tier runs these cases. Most of them use an agent:
-- a program on the target that calls the NIC's verbs for the tester.

--- Number of Reads of a case.
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

local DELIVERED, LENGTH = "RDMAP-5.3-5", "RDMAP-5.3-13"

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

local COUNTED = "DDP-4.3-6"

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
