-- RFC 5044 section 7.1.1, Key: the Responder checks the received key and, if it is wrong, closes the connection.

case {
  id = "mpa/7.1.1-key/wrong-octet",
  version = 1,
  title = "A Request with one wrong key octet is answered by a close, and by no Reply",
  requirements = { "MPA-7.1.1-2" },
  roles = { "responder" },
  tags = { "startup" },
  parameters = { octet = range(0, 15) },

  run = function(t, p)
    t:good_exchange()

    local conn = t:connect()
    conn:send(t:request():flip(p.octet))
    conn:expect_close { requirement = "MPA-7.1.1-2" }

    t:liveness()
  end,
}
