-- RFC 5044 section 7.1.2: which messages each side may send, and when.

case {
  id = "mpa/7.1.2-startup/waits-for-request",
  title = "The responder sends nothing before a Request, and does not wait forever",
  requirements = { "MPA-7.1.2-12", "MPA-7.1.2-3", "MPA-7.1.2-23" },
  tags = { "startup", "slow" },
  tier = "default",

  run = function(t)
    -- A target that sends first would fail the good exchange. So this check comes before the good
    -- exchange. The tester sends nothing here.
    local conn = t:connect()
    conn:expect_silence { requirement = { "MPA-7.1.2-12", "MPA-7.1.2-3" }, within = 2 }

    t:good_exchange()

    conn:expect_close { requirement = "MPA-7.1.2-23", within = 120, overdue_fails = true }
  end,
}

case {
  id = "mpa/7.1.2-startup/waits-for-first-fpdu",
  title = "The responder sends no FPDU and no marker before it has received an FPDU",
  requirements = { "MPA-7.1.2-17", "MPA-7.1.3-2" },
  tags = { "startup" },

  run = function(t)
    local conn = t:connect()
    conn:send(t:request())
    conn:expect_reply { reject = false }
    conn:expect_silence { requirement = { "MPA-7.1.2-17", "MPA-7.1.3-2" }, within = 2 }
    conn:close()
  end,
}

case {
  id = "mpa/7.1.2-startup/malformed-at-once",
  version = 2,
  title = "The responder closes at once, without a Reply, on a malformed Request",
  requirements = { "MPA-7.1.2-4", "MPA-7.1.2-3", "MPA-8-4", "MPA-8-9" },
  tags = { "startup" },
  parameters = { wrong = { "key", "reply-key", "revision", "pd-length" } },

  run = function(t, p)
    t:good_exchange()

    local request = ({
      key = mpa.request():flip(15),
      ["reply-key"] = mpa.reply(),
      revision = mpa.request { revision = 255 },
      ["pd-length"] = mpa.request { pd_length = 513, private_data = ("x"):rep(513) },
    })[p.wrong]
    local conn = t:connect()
    conn:send(request, { deviates = mpa.request { private_data = p.wrong == "pd-length" and "12345678" or "" } })
    local since = t:clock()
    local event = conn:next { within = 15 }
    local seconds = t:clock() - since
    t:check(event, { expected = "a close", actual = "nothing within 15 s, and the connection stays open" })
    -- A target that closes directly after a Reply has detected the invalid frame.
    local closes = event == "reply" and conn:next { within = 3 } == "close"
    local wait, all = { "MPA-7.1.2-4", "MPA-7.1.2-3" }, { "MPA-7.1.2-4", "MPA-7.1.2-3", "MPA-8-4" }
    t:check(event == "close", {
      requirement = closes and wait or all,
      expected = "the target closes the connection and sends no byte before the close",
      actual = closes and "a Reply and then a close" or event,
    })
    t:check(true, { requirement = all, expected = "a close", actual = event })
    -- The limit is shorter than usual start-up timers, so that a close by a timer fails.
    t:check(seconds < 3, {
      requirement = "MPA-8-9",
      expected = "a close at once, within 3 s",
      actual = ("a close after %.1f s"):format(seconds),
    })
  end,
}

case {
  id = "mpa/7.1.2-startup/first-fpdu-at-once",
  version = 4,
  title = "The responder is ready for an FPDU as soon as its Reply is sent",
  requirements = { "MPA-7.1.2-10", "MPA-7.1.5-5" },
  capabilities = { "echo" },
  tags = { "startup" },

  run = function(t)
    -- The FPDU has no PAD.
    local fpdu = mpa.fpdu { ulpdu = rdmap.send { payload = "at once!" } }
    local function accepted()
      local conn = t:connect()
      conn:send(t:request())
      conn:expect_reply { reject = false }
      return conn
    end
    -- The target may have an internal race, and may win it by chance. So it has to win in each of
    -- the 64 attempts.
    for attempt = 1, 64 do
      local conn = accepted()
      conn:send(fpdu)
      local event, echo = conn:next { within = 5 }
      local is_echo = event == "fpdu" and echo.opcode == 3 and echo.payload == "at once!"
      if not is_echo then
        -- This failure is a timing fault only if the target accepts the same FPDU after a pause.
        conn:close()
        local later = accepted()
        t:pause(0.5)
        -- A target may lose the first FPDU of every connection, so try a second FPDU, too.
        later:send(fpdu)
        local came, answer = later:next { within = 5 }
        if came == nil then
          later:send(fpdu)
          came, answer = later:next { within = 5 }
        end
        t:check(came == "fpdu" and answer.opcode == 3, { expected = "the echo of a later FPDU", actual = came or "nothing" })
      end
      t:check(is_echo, {
        requirement = { "MPA-7.1.2-10", "MPA-7.1.5-5" },
        expected = "the echo of an FPDU directly after the Reply",
        actual = event == "fpdu" and "another FPDU" or event or "nothing",
      })
      conn:close()
    end
  end,
}

case {
  id = "mpa/7.1.2-startup/first-fpdu-bad-crc",
  version = 2,
  title = "The responder sends nothing, not even a Terminate, after a first FPDU with a wrong CRC",
  requirements = { "MPA-7.1.2-17" },
  capabilities = { "crc" },
  tags = { "startup", "crc" },

  run = function(t)
    t:good_exchange()

    local conn = t:start_up { crc = true }
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft" } }:flip(27), { deviates = true })
    conn:expect_silence { requirement = "MPA-7.1.2-17", within = 5 }
  end,
}

case {
  id = "mpa/7.1.2-startup/split-request",
  version = 3,
  title = "The responder accepts a Request in whatever pieces TCP delivers it",
  requirements = { "MPA-7.1.2-8" },
  tags = { "startup", "segments" },

  run = function(t)
    t:good_exchange()

    local function expect_accepted(send)
      local conn = t:connect()
      send(conn, t:request { private_data = "12345678" })
      -- This wait is longer than a start-up timer of some seconds. If no answer arrives within this
      -- time, the case fails, as it does after a close.
      conn:expect_reply { requirement = "MPA-7.1.2-8", reject = false, within = 10, overdue_fails = true }
      conn:close()
    end

    -- Send two pieces back to back, and the rest a moment later. If the target reads once for each
    -- piece, its first read gets both pieces, and its second read gets nothing.
    for _ = 1, 4 do
      expect_accepted(function(conn, request)
        local octets = request:octets()
        conn:send(octets:sub(1, 8), { deviates = request, every = 4 })
        t:pause(0.05)
        conn:send(octets:sub(9))
      end)
    end
    -- The pieces race with the target's reader. The target may win by chance, so it has to win each
    -- time. With some sizes, the target rarely loses the race, so one attempt per size would pass
    -- or fail by chance.
    for _, every in ipairs { 1, 2, 3, 7, 16, 17, 18, 19 } do
      for attempt = 1, 24 do
        local pause = ({ 0.01, 0.003, 0.001, 0.0003 })[attempt % 4 + 1]
        expect_accepted(function(conn, request)
          conn:send(request, { deviates = request, every = every, pause = pause })
        end)
      end
    end
  end,
}

case {
  id = "mpa/7.1.2-startup/slow-request",
  title = "The responder accepts a Request that pauses for seconds in the middle",
  requirements = { "MPA-7.1.2-8" },
  tags = { "startup", "segments" },
  tier = "default",
  -- The pauses are in the key, before the flags, or in the private data. All pauses have 3 s.
  parameters = { first = { 1, 16, 22 }, ms = { 1500, 3000 } },

  run = function(t, p)
    t:good_exchange()

    local request = t:request { private_data = "12345678" }
    local conn = t:connect()
    local cuts = p.ms == 3000 and { p.first } or { p.first, p.first + 4 }
    conn:send(request, { deviates = request, cuts = cuts, pause = p.ms / 1000 })
    conn:expect_reply { requirement = "MPA-7.1.2-8", reject = false, within = 10, overdue_fails = true }
    conn:close()
  end,
}
