-- RFC 5040 sections 5.4 and 7.1: the target's user posts a work request for memory of the target
-- that this work request must not use. The target reports the work request, and sends nothing for
-- it. The user is an agent: a program on the target that calls the NIC's verbs for the tester.

local SIZE = 64

--- Returns the fields of a work request whose memory has a fault: an unknown key, bytes after the
--- region, another Protection Domain or, for receives, a missing right.
local function part(target, wrong)
  local region = target:region {
    octets = SIZE,
    access = wrong ~= "right" and { "local_write" } or {},
    domain = wrong == "domain" and target:domain() or nil,
  }
  local fields = { region = region, offset = wrong == "beyond" and SIZE - 8 or 0, length = 16, may_refuse = true }
  if wrong == "key" then fields.key = region.local_key ~ 0x00ffff00 end
  return fields
end

case {
  id = "rdmap/7.1-local/posted",
  title = "The target reports a Send or Write of unreadable memory, sends a Terminate, and fails the work after it",
  requirements = { "RDMAP-7.1-1", "RDMAP-7.1-3", "RDMAP-5.4-11" },
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "error", "protection", "agent" },
  parameters = { verb = { "send", "write" }, wrong = { "key", "beyond", "domain" } },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair = target:operate { ird = 1, ord = 1 }
    -- An unanswered Read holds back fenced work, so that all work is posted before anything fails.
    local read = pair:post_read { region = target:region { octets = 16 }, length = 16, stag = 7, to = 0 }
    local request = conn:expect_fpdu { opcode = 1 }
    local fields = part(target, p.wrong)
    fields.fence = true
    local work, why
    if p.verb == "send" then
      work, why = pair:post_send(fields)
    else
      fields.stag, fields.to = 7, 0
      work, why = pair:post_write(fields)
    end
    if not work then t:unimplemented("The device rejects such work when it is posted: " .. why) end
    local following = pair:post_send { region = target:region { octets = 16 }, length = 16, fence = true }
    local stag, to = string.unpack(">I4i8", request.payload)
    conn:send(mpa.fpdu { ulpdu = rdmap.write { opcode = 2, stag = stag, tagged_offset = to, payload = ("r"):rep(16), last = true } })
    pair:expect_completion { work = read }
    local terminate = conn:expect_terminate { requirement = "RDMAP-7.1-3" }
    t:check(not terminate or not terminate.d and not terminate.r, {
      requirement = "RDMAP-7.1-3",
      expected = "no Terminate, or a Terminate without headers",
      actual = "a Terminate with headers",
    })
    pair:expect_error { or_end = true, requirement = "RDMAP-7.1-1", overdue_fails = true }
    pair:expect_completion { work = following, status = "error", requirement = "RDMAP-5.4-11", overdue_fails = true }
    conn:close()
  end,
}

case {
  id = "rdmap/7.1-local/receive",
  title = "The target reports a Send whose receive names memory that is not writable",
  requirements = { "RDMAP-7.1-1" },
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "error", "protection", "agent" },
  parameters = { wrong = { "key", "beyond", "domain", "right" } },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair, op = target:operate {}
    local fields = part(target, p.wrong)
    local work, why = pair:post_receive(fields)
    if not work then
      t:check(true, { requirement = "RDMAP-7.1-1", expected = "a rejection: " .. why, actual = "none" })
      conn:reset()
      return
    end
    conn:send(mpa.fpdu { ulpdu = rdmap.send { msn = op.msn, payload = ("w"):rep(16) } })
    pair:expect_error { or_end = true, requirement = "RDMAP-7.1-1", overdue_fails = true }
    conn:reset()
  end,
}
