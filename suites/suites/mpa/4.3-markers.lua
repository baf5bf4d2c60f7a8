-- RFC 5044 sections 4.3 and 7.1.1, M: every sender can put markers into what it sends, and does towards a peer that asks.

case {
  id = "mpa/4.3-markers/asked",
  version = 1,
  title = "A Request with M=1 is accepted",
  requirements = { "MPA-4.3-3", "MPA-7.1.1-6" },
  roles = { "responder" },
  tags = { "startup", "markers" },

  run = function(t)
    t:good_exchange()

    local conn = t:connect()
    conn:send(t:request { markers = true })
    conn:expect_reply { requirement = { "MPA-4.3-3", "MPA-7.1.1-6" }, reject = false }
    conn:close()

    t:liveness()
  end,
}

case {
  id = "mpa/4.3-markers/first",
  version = 1,
  title = "Towards a peer with M=1 the first octets are a marker of zero, and further ones are where they belong",
  requirements = {
    "MPA-7.1.1-9", "MPA-4.3-10", "MPA-4.3-11", "MPA-7.1.2-21", "MPA-4.2-1", "MPA-4.2-2", "MPA-4.2-4", "MPA-4.2-5", "MPA-4.3-4",
    "MPA-4.3-1", "MPA-4.4-17",
  },
  roles = { "responder" },
  capabilities = { "markers", "echo", "crc" },
  tags = { "fpdu", "markers" },
  parameters = { payload = { 4, 480, 600, 1200 } },

  run = function(t, p)
    t:good_exchange()

    local conn = t:connect()
    conn:send(t:request { markers = true })
    conn:expect_reply { reject = false, markers = false }
    t:pause(0.2)
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = ("w"):rep(p.payload) } })
    conn:expect_octets {
      requirement = { "MPA-7.1.1-9", "MPA-4.3-10", "MPA-4.3-11", "MPA-7.1.2-21" },
      shows = { "MPA-4.2-1", "MPA-4.2-2", "MPA-4.2-4", "MPA-4.2-5", "MPA-4.3-4", "MPA-4.3-1", "MPA-4.4-17" },
      begins = "\0\0\0\0",
    }
    conn:close()

    t:liveness()
  end,
}
