-- A session with a port mapper (draft-pinkerton-iwarp-sdp-01 section 7). The tester is the PM
-- Client, and the target is the PM Server. Several clients send PMReqs at once, repeat PMReqs, and
-- send PMAcks late, several times or never. The monitor judges the fields of each answer.
--
-- A transaction is a PMReq with its copies, its answers and its PMAcks. Each transaction has its
-- own AssocHandle. The port of a step selects the CpPort. If a client requests the same service
-- again with the same port, the newer transaction replaces the older one (section 7.5.2).

local shared = ...

--- The number of seconds after which the tester repeats a PMReq without an answer, and after the
--- last wait gives up. UDP may lose datagrams, so each client must repeat its PMReqs.
local WAITS = { 1, 1, 2, 2, 4 }
--- The sum of `WAITS`: the number of seconds after which a missing answer is a failure.
local ANSWER = 10
--- The number of seconds in which an answer that the draft forbids would arrive.
local SILENCE = 1
--- After a longer pause, the port mapper may have deleted the state of a PMReq. Then a copy of the
--- PMReq is a new PMReq for the port mapper. The draft specifies no time.
local FRESH = 2
--- The number of seconds after which a port mapper has deleted the state of transactions without a
--- PMAck. Then it has resources for new transactions.
local RELEASE = 30
--- The first CpPort. By themselves, operating systems assign higher ports to sockets.
local FIRST_PORT = 30000
--- Number of CpPorts for each IP family.
local PORTS = 64
--- Maximum number of UDP sockets for each IP family. A case can open at most 64 sockets, and the
--- good exchanges need some of them. Further clients share the sockets.
local V4_SOCKETS, V6_SOCKETS = 36, 18
--- Maximum number of datagrams that a fault discards.
local MAX_DISCARDED = 1000

--- A PMReq is answered: with a PMAccept if the service is mapped, otherwise with a PMDeny.
local ACCEPTED, DENIED = "PM-7.4-16", "PM-7.4-49"
--- Answers use the addresses and UDP ports of their PMReq.
local ACCEPT_PATH, DENY_PATH = "PM-7.4-17", "PM-7.4-50"
--- If several transactions are in flight, each is answered with its own AssocHandle.
local OWN = "PM-7.3.1.8-3"
--- Each copy of a PMReq is answered, and all PMAccepts have the same SDP Address.
local DUPLICATE, SAME = "PM-7.5.2-4", "PM-7.5-3"
--- A newer PMReq of the same connection is answered with its own AssocHandle.
local NEWER = "PM-7.5.2-9"

--- The requirements that each session with a port mapper tests.
session.PORTMAP = { ACCEPTED, ACCEPT_PATH, DENIED, DENY_PATH, OWN, DUPLICATE, SAME, NEWER }

--- Names of the messages, for reports.
local NAMES = { req = "a PMReq", accept = "a PMAccept", ack = "a PMAck", deny = "a PMDeny" }

--- The client that sends a fault if the client of the step uses IPv6.
local SPARE = 0

--- The illegal datagrams, by name. Each has the requirement that the target may violate.
---
--- - `answered`: the target must answer the PMReq, although the tester violates a rule. `fields`
---   are fields of the PMReq, or `build` changes the PMReq.
--- - `forbidden` returns whether the draft forbids this answer to the datagram.
--- - All other faults: the draft has no rule for an answer, but the target must still answer the
---   next PMReq.
---
--- `silent` means that no connection ends because of the fault.
local FAULTS = {
  ["pm-time"] = { requirement = "PM-7.4-9", answered = true, fields = { pm_time = 0xff } },
  ["reserved"] = { requirement = "PM-7.3.1.5-2", answered = true, fields = { reserved = 0xffff } },
  ["padding"] = {
    requirement = "PM-7.3.1.3-3",
    answered = true,
    build = function(request) return request:replace(20, "garbagegarba") end,
  },
  ["unknown-ack"] = {
    requirement = "PM-7.5.2-6",
    fields = { type = "ack" },
    forbidden = function() return true end,
  },
  ["other-ipv"] = {
    requirement = "PM-7.3.1.3-5",
    fields = { ipv = 5 },
    forbidden = function(answer) return answer.type == "accept" end,
  },
  ["other-version"] = { requirement = ACCEPTED, fields = { version = 1 } },
  ["own-accept"] = { requirement = ACCEPTED, fields = { type = "accept" } },
  ["own-deny"] = { requirement = ACCEPTED, fields = { type = "deny" } },
  ["empty"] = { requirement = ACCEPTED, build = function() return "" end },
  ["short"] = { requirement = ACCEPTED, build = function(request) return request:cut(47) end },
  ["long"] = { requirement = ACCEPTED, build = function(request) return request:octets() .. ("x"):rep(52) end },
}
for name, fault in pairs(FAULTS) do
  fault.silent = true
  session.FAULTS[name] = fault
end

--- Returns the session.
function session.portmap(t)
  -- The target works before the session. If a later exchange fails, the session is the cause.
  t:good_exchange()

  local self, opened = {}, {}
  -- The sockets of each IP family, and the number of clients that have used them.
  local sockets = { v4 = { most = V4_SOCKETS, used = 0 }, v6 = { most = V6_SOCKETS, used = 0 } }
  -- All transactions by AssocHandle. The value is false if every answer is ignored.
  local transactions = {}
  -- The newest transaction of each CpPort, and of each pair of CpPort and requested address.
  local last, newest = {}, {}
  -- The transactions that have fewer answers than PMReqs.
  local open = {}
  -- Number of AssocHandles. The first one depends on `salt`.
  local handles, salt = 0, nil
  -- The number of seconds that the session has waited.
  local waited = 0
  -- Whether the target denied a mapped service, and whether this is a failure. During the session,
  -- the target may have too few resources for all transactions (section 7.4).
  local is_denied, must_accept = false, false

  local check = shared.checker(t)

  --- Fails the case. `missing` is true if the reason is a missing answer.
  local function fail(requirement, expected, actual, missing) check(false, requirement, expected, actual, missing) end

  --- Returns a socket for a new client. As long as possible, each client has its own UDP port.
  local function socket(v6)
    local list = v6 and sockets.v6 or sockets.v4
    local index = list.used % list.most + 1
    list.used = list.used + 1
    list[index] = list[index] or { m = t:mapper { v6 = v6 } }
    return list[index]
  end

  --- Returns the client with this number, and opens it if necessary.
  local function client(number, fields)
    if not opened[number] then
      local v6 = fields and fields.v6 or false
      opened[number] = { socket = socket(v6), v6 = v6 }
    end
    return opened[number]
  end

  --- Returns the CpPort for a port of a step.
  local function cp_port(c, port)
    return FIRST_PORT + (port - 1) % PORTS + (c.v6 and PORTS or 0)
  end

  --- Returns a new AssocHandle. It must differ from those of earlier sessions, because the target
  --- may still know them. With real UDP, the CpPort of a PMReq without fields is the UDP port that
  --- the operating system has assigned.
  local function new_handle(c)
    salt = salt or (string.unpack(">I2", c.socket.m:request {}:octets(), 7))
    handles = handles + 1
    return ((salt << 20) + handles) * 0x9e3779b97f4a7c15
  end

  --- Returns the transactions of a client that have fewer answers than PMReqs. With `only`, returns
  --- at most this transaction.
  local function unanswered(c, only)
    local kept, own = {}, {}
    for _, x in ipairs(open) do
      x.is_open = x.answers < x.sent and not x.is_abandoned
      if x.is_open then
        kept[#kept + 1] = x
        if x.client == c and (not only or x == only) then own[#own + 1] = x end
      end
    end
    open = kept
    return own
  end

  --- Judges a datagram of the target.
  local function take(at, answer, is_from_there)
    local x = transactions[answer.handle]
    if x == nil then
      -- After some faults, the target may send any answer.
      if at.is_tolerant then return end
      if not answer.handle then
        at.odd = ("a datagram of %d bytes"):format(answer.length)
        return
      end
      local found = ("%s with AssocHandle %#x"):format(NAMES[answer.type], answer.handle)
      fail(OWN, "an answer with the AssocHandle of a PMReq", found)
    end
    if not x or x.is_abandoned then return end
    if answer.type ~= "accept" and answer.type ~= "deny" then
      at.odd = NAMES[answer.type]
      return
    end
    x.answers = x.answers + 1
    if newest[x.key] ~= x then
      -- Answers to copies of the older PMReq may be late.
      if x.answers > x.copies then
        newest[x.key].older = NAMES[answer.type] .. " with the AssocHandle of an older PMReq"
      end
      return
    end
    local is_accept = answer.type == "accept"
    if not is_from_there or x.client.socket ~= at then
      local found = is_from_there and "an answer to another UDP port" or "an answer from " .. answer.from
      fail(is_accept and ACCEPT_PATH or DENY_PATH, "an answer on the reverse path of the PMReq", found)
    end
    if x.service == "unmapped" and is_accept then fail(DENIED, "a PMDeny", "a PMAccept") end
    if x.service == "mapped" and not is_accept then
      if must_accept then fail(ACCEPTED, "a PMAccept", "a PMDeny") end
      is_denied = true
    end
    if not is_accept then
      x.answer = nil
      return
    end
    local address = ("%s port %d"):format(answer.ap_ip, answer.ap_port)
    if x.address and not x.is_doubtful and address ~= x.address then
      fail(SAME, "the same SDP Address as in the first PMAccept, " .. x.address, address)
    end
    x.answer, x.address = answer, address
  end

  --- Notes that the target may now answer a copy of the PMReq with another SDP Address. If an
  --- earlier answer is missing, it may arrive after the next answer, so no more addresses are
  --- compared.
  local function forget_address(x)
    x.address, x.is_doubtful = nil, x.is_doubtful or x.answers < x.copies
  end

  --- Sends copies of a PMReq.
  local function send(x, copies)
    for _, other in ipairs(open) do
      if other ~= x and other.answers < other.sent then other.is_concurrent, x.is_concurrent = true, true end
    end
    if not x.is_open then open[#open + 1] = x end
    if waited - x.since > FRESH then
      forget_address(x)
      x.since = waited
    end
    for _ = 1, copies do x.client.socket.m:send(x.request) end
    x.is_open, x.sent, x.copies = true, x.sent + copies, x.copies + copies
  end

  --- Returns the requirement that the target violates with a missing answer to a PMReq, although the
  --- reason may be another transaction. Without an answer to a copy that is alone, the requirement is
  --- `row`.
  local function probe(x, row)
    for _, other in ipairs(open) do
      other.is_abandoned = other ~= x
    end
    -- After this pause, the target has resources, and no state of other transactions.
    self:pause(RELEASE)
    x.client.socket.m:send(x.request)
    repeat
      local answer = x.client.socket.m:next { within = ANSWER }
      if not answer then return row end
    until transactions[answer.handle] == x
    -- For a service "made", the target may have had too few resources. Then a PMDeny is missing.
    if x.service == "made" and not must_accept then return nil end
    return OWN
  end

  --- Waits for all answers to a client, or for those to the transaction `only`. If answers are
  --- missing, repeats the PMReqs. Then one answer to each repeated PMReq is sufficient, because
  --- the answers to the earlier copies may be lost.
  local function settle(c, only)
    c.socket.odd = nil
    for try, seconds in ipairs(WAITS) do
      for _, x in ipairs(try > 1 and unanswered(c, only) or {}) do
        x.sent = x.answers
        send(x, 1)
      end
      while #unanswered(c, only) > 0 do
        local answer, is_from_there = c.socket.m:next { within = seconds }
        if not answer then
          waited = waited + seconds
          break
        end
        take(c.socket, answer, is_from_there)
      end
    end
    local x = unanswered(c, only)[1]
    if not x then return end
    local row = x.answers > 0 and DUPLICATE or x.older and NEWER or x.requirement
    local requirement, expected = row, x.answers > 0 and "an answer to each copy of the PMReq" or "an answer to the PMReq"
    local found = x.older or c.socket.odd
    local may_excuse = x.is_concurrent or x.service == "made" and not must_accept
    if x.answers == 0 and not x.older and may_excuse then requirement = probe(x, row) end
    fail(requirement, expected, found or ("nothing for %d s"):format(ANSWER), not found)
  end

  --- Returns a new transaction, and sends nothing yet. `fault` has the fields `fields`, `build` and
  --- `requirement` of a fault.
  local function create(c, port, service, fault)
    local number, handle = cp_port(c, port), new_handle(c)
    -- The target file declares services over IPv4, and one service over IPv6.
    service = c.v6 and "mapped" or service or "mapped"
    local wanted = { service = service, handle = handle, cp_port = number }
    for name, value in pairs(fault and fault.fields or {}) do
      wanted[name] = value
    end
    local request = c.socket.m:request(wanted)
    -- CpPort, ApPort and ApIPAddr. All clients of an IP family have the same CpIPAddr.
    local key = request:octets():sub(5, 8) .. request:octets():sub(33, 48)
    local before = newest[key]
    -- The answers to the older PMReq arrive before the target receives the newer PMReq. So the
    -- network cannot change the order of the two PMReqs.
    if before and not before.is_abandoned then settle(before.client, before) end
    local is_newer = before and service ~= "unmapped"
    local x = {
      client = c, service = service, key = key,
      request = fault and fault.build and fault.build(request) or request,
      requirement = fault and fault.requirement or is_newer and NEWER or service == "unmapped" and DENIED or ACCEPTED,
      -- If the client of the older PMReq was reset, the target may receive the two PMReqs in any
      -- order.
      is_doubtful = before and before.is_abandoned and before.answers < before.sent,
      -- `sent` is the number of answers to wait for, and `copies` is the number of all PMReqs.
      sent = 0, copies = 0, answers = 0, since = waited,
    }
    last[number], newest[key], transactions[handle] = x, x, x
    return x
  end

  --- Opens a client. With `v6`, the client uses IPv6. Does nothing if the client is open.
  function self:open(number, fields) client(number, fields) end

  --- Sends a PMReq with a new AssocHandle. `port` is a number from 1 to 64. `service` is that of
  --- `m:request`. The answer may arrive later.
  function self:request(number, port, service) send(create(client(number), port, service), 1) end

  --- Sends `count` PMReqs at once, with the ports from 1 to `count`.
  function self:burst(number, count, service)
    local c, list = client(number), {}
    for port = 1, math.min(count, PORTS) do
      list[port] = create(c, port, service)
    end
    for _, x in ipairs(list) do
      send(x, 1)
    end
  end

  --- Sends copies of the client's last PMReq with this port. If the client has no such PMReq, sends
  --- copies of a new PMReq.
  function self:resend(number, port, copies)
    local c = client(number)
    local x = last[cp_port(c, port)]
    if not x or x.client ~= c then x = create(c, port) end
    send(x, copies)
  end

  --- Sends copies of the PMAck to the client's last PMReq with this port. Does nothing if there is
  --- no PMAccept.
  function self:ack(number, port, copies)
    local c = client(number)
    local x = last[cp_port(c, port)]
    if not x or x.client ~= c then return end
    settle(c, x)
    if not x.answer then return end
    local ack = c.socket.m:ack(x.answer)
    for _ = 1, copies do
      c.socket.m:send(ack)
    end
    -- After the PMAck, the target may delete its state. Then a copy of the PMReq is a new PMReq.
    forget_address(x)
  end

  --- Waits for all answers to a client.
  function self:answers(number) settle(client(number)) end

  --- Waits.
  function self:pause(seconds)
    t:pause(seconds)
    waited = waited + seconds
  end

  --- Ends a client after all answers.
  function self:close(number)
    settle(client(number))
    opened[number] = nil
  end

  --- Ends a client, even if answers are missing.
  function self:reset(number)
    for _, x in ipairs(unanswered(client(number))) do
      x.is_abandoned = true
    end
    opened[number] = nil
  end

  --- Receives datagrams until nothing arrives. Fails if an answer with this AssocHandle is
  --- forbidden.
  local function expect_none(c, handle, fault)
    for _ = 1, MAX_DISCARDED do
      local answer, is_from_there = c.socket.m:next { within = SILENCE }
      if not answer then break end
      if answer.handle == handle and fault.forbidden(answer) then
        fail(fault.requirement, ("no %s for this datagram"):format(NAMES[answer.type]:sub(3)), NAMES[answer.type])
      end
      take(c.socket, answer, is_from_there)
    end
    waited = waited + SILENCE
  end

  --- Sends an illegal datagram after all answers to the client, and judges the answer. `FAULTS` has
  --- the names.
  function self:fault(number, name)
    local c, fault = client(number), FAULTS[name]
    if c.v6 then c = client(SPARE) end
    settle(c)
    if fault.answered then
      local x = create(c, 1, "mapped", fault)
      send(x, 1)
      settle(c, x)
    else
      local fields = { handle = new_handle(c), cp_port = cp_port(c, 1) }
      for field, value in pairs(fault.fields or {}) do
        fields[field] = value
      end
      local datagram = c.socket.m:request(fields)
      transactions[fields.handle] = false
      c.socket.m:send(fault.build and fault.build(datagram) or datagram)
      if fault.forbidden then
        expect_none(c, fields.handle, fault)
      else
        c.socket.is_tolerant = true
        local x = create(c, 1, "mapped")
        send(x, 1)
        settle(c, x)
      end
    end
    local expected = fault.forbidden and "no forbidden answer" or "an answer to the PMReq"
    check(true, fault.requirement, expected, "this behaviour")
  end

  --- Waits for all answers and ends all clients.
  function self:close_all() shared.close_all(self, opened, SPARE) end

  --- Tests each requirement of the session, with two clients.
  local function test_each()
    self:request(1, 1)
    self:request(2, 2)
    self:close(2)
    self:resend(1, 1, 1)
    self:answers(1)
    self:request(1, 1)
    self:answers(1)
    self:request(1, 3, "unmapped")
    self:answers(1)
    self:request(1, 4, "made")
    self:answers(1)
    self:resend(1, 4, 1)
    self:close(1)
  end

  --- Waits for all answers. Then tests each requirement of the session once more. Each session ends
  --- with this step. `shown` has the requirements that the monitor judges in the session.
  function self:finish(shown)
    self:close_all()
    test_each()
    if is_denied then
      self:pause(RELEASE)
      must_accept = true
      test_each()
    end
    check(true, { session.PORTMAP, shown or {} }, "the answers to all clients", "these answers")
  end

  return self
end
