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

case {
  id = "mpa/7.1.1-revision/zero",
  version = 1,
  title = "A Request of revision 0 does not lead to Full Operation, or does so as the RDMA Consortium's peers have it: revision 0, markers and CRCs",
  -- siw and cxgb4 only look whether a revision is too great: they take revision 0 for one of their own, and answer it without markers.
  requirements = { "MPA-7.1.1-21", "MPA-7.1.1-22", "MPA-C.2-1" },
  roles = { "responder" },
  tags = { "startup", "refusal" },
  parameters = { markers = { true, false } },

  run = function(t, p)
    local ALL = { "MPA-7.1.1-21", "MPA-7.1.1-22", "MPA-C.2-1" }
    t:good_exchange()

    local conn = t:connect()
    conn:send(mpa.request { revision = 0, markers = p.markers, crc = true })
    local what, reply = conn:next { within = 15 }
    if what == "reply" and not reply.reject then
      if reply.revision == 0 and reply.markers and reply.crc then
        conn:close()
        t:liveness()
        t:unimplemented("The target is permissive: it works with peers of the RDMA Consortium.")
      end
      t:check(reply.revision == 1, {
        requirement = ALL,
        expected = "a close, or a Reply of revision 1 and a close behind it (appendix C.2.1)",
        actual = ("a Reply of revision %d, M=%s, R=0"):format(reply.revision, reply.markers),
      })
      conn:expect_close { requirement = ALL, overdue_fails = true }
    else
      local rejects = what == "reply"
      t:check(rejects or what == "close", { expected = "a close, or a Reply that rejects", actual = what or "nothing, and the connection stays open" })
      t:check(true, { requirement = ALL, expected = "no Full Operation", actual = rejects and "a Reply with R=1" or "a close" })
      conn:close()
    end

    t:liveness()
  end,
}
