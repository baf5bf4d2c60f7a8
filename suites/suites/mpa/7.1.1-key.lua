-- RFC 5044 section 7.1.1, Key: the Responder closes the connection if the received key is wrong.

case {
  id = "mpa/7.1.1-key/wrong-octet",
  title = "The responder closes without a Reply if one key byte of the Request is wrong",
  requirements = { "MPA-7.1.1-2" },
  tags = { "startup" },
  parameters = { octet = range(0, 15) },

  run = function(t, p)
    t:good_exchange()

    local conn = t:connect()
    conn:send(t:request():flip(p.octet))
    conn:expect_close { requirement = "MPA-7.1.1-2" }
  end,
}
