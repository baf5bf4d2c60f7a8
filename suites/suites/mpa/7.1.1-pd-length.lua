-- RFC 5044 sections 7.1.1 (PD_Length) and 7.1.2 (rules 9 and 10): PD_Length is at most 512, and all
-- bytes that PD_Length counts must arrive.

local MALFORMED = { "MPA-7.1.1-26", "MPA-7.1.2-24", "MPA-7.1.2-27", "MPA-7.1.2-4" }

--- Expects that the target closes the connection without a Reply. If the target closes directly
--- after a Reply, it has detected the error, and violates only MPA-7.1.2-4.
local function expect_close(t, conn, requirement)
  local event = conn:next { within = 15 }
  t:check(event, { expected = "a close", actual = "nothing within 15 s, and the connection stays open" })
  local closes = event == "reply" and conn:next { within = 3 } == "close"
  t:check(event == "close", {
    requirement = closes and "MPA-7.1.2-4" or requirement,
    expected = "the target closes the connection and sends no byte before the close",
    actual = closes and "a Reply and then a close" or event,
  })
  t:check(true, { requirement = requirement, expected = "a close", actual = event })
end

case {
  id = "mpa/7.1.1-pd-length/too-long",
  version = 3,
  title = "The responder closes without a Reply on a Request with more than 512 bytes of private data",
  requirements = MALFORMED,
  tags = { "startup" },
  parameters = { length = { 513, 514, 1024, 32768, 65535 }, sent = { "all", "header" } },
  scales = { "length" },

  run = function(t, p)
    t:good_exchange()

    local conn = t:connect()
    -- Without the private data, a target that accepts the Request would wait for this data until its
    -- time limit, and then close too. So the data always follows.
    conn:send(mpa.request { pd_length = p.length, private_data = ("x"):rep(p.length) }, {
      cuts = p.sent == "header" and { 20 } or {},
      pause = 0.5,
      deviates = mpa.request { private_data = "12345678" },
    })
    expect_close(t, conn, MALFORMED)
  end,
}

case {
  id = "mpa/7.1.1-pd-length/surplus",
  version = 2,
  title = "The responder closes if bytes follow the Request's private data before the Reply",
  requirements = { "MPA-7.1.1-26", "MPA-7.1.2-26", "MPA-7.1.2-27", "MPA-7.1.2-4" },
  tags = { "startup" },
  parameters = { length = { 0, 4, 20 }, more = { 1, 4, 20 } },

  run = function(t, p)
    t:good_exchange()

    local conn = t:connect()
    conn:send(mpa.request { pd_length = p.length, private_data = ("x"):rep(p.length + p.more) }, {
      deviates = mpa.request { private_data = ("x"):rep(p.length) },
    })
    expect_close(t, conn, { "MPA-7.1.1-26", "MPA-7.1.2-26", "MPA-7.1.2-27", "MPA-7.1.2-4" })
  end,
}

case {
  id = "mpa/7.1.1-pd-length/fin-too-early",
  version = 4,
  title = "The responder closes without a Reply on a Request that ends before its private data does",
  requirements = { "MPA-7.1.1-26", "MPA-7.1.2-4" },
  tags = { "startup" },
  parameters = { fin = { "together", "later" } },

  run = function(t, p)
    -- A FIN directly after the Request may race with the target's set-up of the connection, if
    -- another connection has just ended. The repetitions are enough to hit this race.
    local attempts = p.fin == "together" and 12 or 1
    for _ = 1, attempts do
      for _, missing in ipairs { 1, 4, 8 } do
        t:good_exchange()

        local conn = t:connect()
        conn:send(mpa.request { pd_length = 8, private_data = ("x"):rep(8 - missing) }, {
          deviates = mpa.request { private_data = ("x"):rep(8) },
        })
        if p.fin == "later" then
          t:pause(0.5)
        end
        conn:finish()
        expect_close(t, conn, { "MPA-7.1.1-26", "MPA-7.1.2-4" })
      end
    end
  end,
}

case {
  id = "mpa/7.1.1-pd-length/stall",
  title = "The responder does not wait forever for the rest of a Request",
  requirements = { "MPA-7.1.2-28" },
  tags = { "startup", "slow" },
  tier = "default",
  parameters = { octets = { 1, 16, 19, 20, 27 } },

  run = function(t, p)
    t:good_exchange()

    local conn = t:connect()
    local request = mpa.request { private_data = "12345678" }
    conn:send(request:cut(p.octets), { deviates = request })
    conn:expect_close { requirement = "MPA-7.1.2-28", within = 120, overdue_fails = true }
  end,
}

case {
  id = "mpa/7.1.1-pd-length/reply",
  title = "The responder's PD_Length in an enhanced Reply counts the bytes after the header, with IRD and ORD",
  requirements = { "MPA-7.1.1-24", "MPA-7.1.1-29" },
  capabilities = { "revision-2" },
  tags = { "startup" },

  run = function(t)
    t:good_exchange()

    local conn = t:connect()
    conn:send(t:request { enhanced = true, revision = 2 })
    -- If PD_Length is too small, bytes are left over. If PD_Length is too great, the tester waits
    -- for bytes that do not arrive.
    conn:expect_reply {
      requirement = { "MPA-7.1.1-24", "MPA-7.1.1-29" },
      reject = false,
      enhanced = true,
      overdue_fails = true,
    }
    conn:expect_silence { requirement = "MPA-7.1.1-24", within = 1 }
    conn:close()
  end,
}

case {
  id = "mpa/7.1.1-pd-length/taken",
  version = 3,
  title = "The responder accepts private data of every length up to 512 bytes",
  requirements = { "MPA-7.1.2-25" },
  tags = { "startup" },
  parameters = { length = { 1, 2, 3, 4, 252, 253, 254, 255, 256, 257, 508, 509, 510, 511, 512 } },
  scales = { "length" },

  run = function(t, p)
    t:good_exchange()

    local conn = t:connect()
    local request = t:request { private_data = ("x"):rep(p.length) }
    -- IRD and ORD of an enhanced Request are a part of the 512 bytes.
    local more = #request - 20 - p.length
    if p.length + more > 512 then
      request = t:request { private_data = ("x"):rep(p.length - more) }
    end
    conn:send(request)
    -- The ULP decides whether the private data is acceptable. So a Reply with R=1 also shows that
    -- MPA accepted the private data.
    conn:expect_reply { requirement = "MPA-7.1.2-25" }
    conn:close()
  end,
}
