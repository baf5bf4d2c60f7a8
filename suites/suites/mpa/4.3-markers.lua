-- RFC 5044 sections 4.3 and 7.1.1, M: every sender can insert markers, and does so for a peer that
-- requests them.

case {
  id = "mpa/4.3-markers/requested",
  title = "The responder accepts a Request with M=1",
  requirements = { "MPA-4.3-3", "MPA-7.1.1-6" },
  tags = { "startup", "markers" },

  run = function(t)
    t:good_exchange()

    local conn = t:connect()
    conn:send(t:request { markers = true })
    conn:expect_reply { requirement = { "MPA-4.3-3", "MPA-7.1.1-6" }, reject = false }
    conn:close()
  end,
}

case {
  id = "mpa/4.3-markers/first",
  title = "The responder begins with a marker of zero after M=1, and inserts later markers at the right positions",
  requirements = {
    "MPA-7.1.1-9", "MPA-4.3-10", "MPA-4.3-11", "MPA-7.1.2-21", "MPA-4.2-1", "MPA-4.2-2", "MPA-4.2-4", "MPA-4.2-5", "MPA-4.3-4",
    "MPA-4.3-1", "MPA-4.4-17",
  },
  capabilities = { "markers", "echo", "crc" },
  tags = { "fpdu", "markers" },
  parameters = { payload = { 4, 480, 600, 1200 } },

  run = function(t, p)
    t:good_exchange()

    local conn = t:connect()
    conn:send(t:request { markers = true })
    conn:expect_reply { reject = false }
    t:pause(0.2)
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = ("w"):rep(p.payload) } })
    conn:expect_octets {
      requirement = { "MPA-7.1.1-9", "MPA-4.3-10", "MPA-4.3-11", "MPA-7.1.2-21" },
      shows = { "MPA-4.2-1", "MPA-4.2-2", "MPA-4.2-4", "MPA-4.2-5", "MPA-4.3-4", "MPA-4.3-1", "MPA-4.4-17" },
      begins = "\0\0\0\0",
      markers = true,
    }
    conn:close()
  end,
}
