-- RFC 5044 section 7.1.3: the Responder closes the connection at once if the first bytes are not a
-- Request.

local OTHERS = {
  http = "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
  tls = "\x16\x03\x01\x00\xc4\x01\x00\x00\xc0\x03\x03" .. ("\x5a"):rep(64),
  sdp = ("\x00"):rep(64),
  mpa_lower_case = "mpa id req frame\x40\x01\x00\x00",
}

case {
  id = "mpa/7.1.3-other-protocol/at-once",
  title = "The responder closes at once if the first bytes belong to another protocol",
  requirements = { "MPA-7.1.3-1", "MPA-7.1.2-4" },
  tags = { "startup" },
  parameters = { protocol = { "http", "tls", "sdp", "mpa_lower_case" } },

  run = function(t, p)
    t:good_exchange()

    local conn = t:connect()
    conn:send(OTHERS[p.protocol])
    local seconds = conn:expect_close { requirement = "MPA-7.1.2-4" }
    t:check(seconds < 3, {
      requirement = "MPA-7.1.3-1",
      expected = "a close at once, within 3 s",
      actual = ("a close after %.1f s"):format(seconds),
    })
  end,
}
