-- RFC 5044 section 7.1.1, Rev: the receiver checks it, and closes on a revision that it cannot work with. RFC 6581 added 2.

case {
  id = "mpa/7.1.1-revision/unknown",
  version = 1,
  title = "A Request of a revision that nobody has defined is answered by a close, and by no Reply",
  requirements = { "MPA-7.1.1-21", "MPA-7.1.1-22", "MPA-7.1.2-4" },
  roles = { "responder" },
  tags = { "startup" },
  parameters = { revision = { 3, 4, 16, 127, 128, 254, 255 } },

  run = function(t, p)
    t:good_exchange()

    local conn = t:connect()
    conn:send(t:request { revision = p.revision })
    conn:expect_close { requirement = { "MPA-7.1.1-21", "MPA-7.1.1-22", "MPA-7.1.2-4" } }

    t:liveness()
  end,
}
