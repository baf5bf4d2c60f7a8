-- RFC 5044 section 7.1.1: the receiver of a start-up frame checks the field Rev. It closes the
-- connection if it does not support this revision. RFC 6581 added revision 2.

case {
  id = "mpa/7.1.1-revision/unknown",
  version = 2,
  title = "The responder closes without a Reply on a Request of an undefined revision",
  requirements = { "MPA-7.1.1-21", "MPA-7.1.1-22", "MPA-7.1.2-4" },
  tags = { "startup" },
  parameters = { revision = { 3, 4, 16, 127, 128, 254, 255 } },

  run = function(t, p)
    t:good_exchange()

    local ALL = { "MPA-7.1.1-21", "MPA-7.1.1-22", "MPA-7.1.2-4" }
    local conn = t:connect()
    conn:send(t:request { revision = p.revision })
    local event = conn:next { within = 15 }
    t:check(event, { expected = "a close", actual = "nothing within 15 s, and the connection stays open" })
    -- A target that closes directly after a Reply has checked the revision.
    local closes = event == "reply" and conn:next { within = 3 } == "close"
    t:check(event == "close", {
      requirement = closes and "MPA-7.1.2-4" or ALL,
      expected = "the target closes the connection and sends no byte before the close",
      actual = closes and "a Reply and then a close" or event,
    })
    t:check(true, { requirement = ALL, expected = "a close", actual = event })
  end,
}

case {
  id = "mpa/7.1.1-revision/zero",
  version = 2,
  title = "The responder rejects revision 0, or answers it like an RDMA Consortium peer: with revision 0, markers and CRCs",
  -- siw and cxgb4 only check whether a revision is too great. They treat revision 0 as a supported
  -- revision, and answer it without markers.
  requirements = { "MPA-7.1.1-21", "MPA-7.1.1-22", "MPA-C.2-1" },
  tags = { "startup", "refusal" },
  parameters = { markers = { true, false } },

  run = function(t, p)
    local ALL = { "MPA-7.1.1-21", "MPA-7.1.1-22", "MPA-C.2-1" }
    t:good_exchange()

    local conn = t:connect()
    conn:send(mpa.request { revision = 0, markers = p.markers, crc = true })
    local event, reply = conn:next { within = 15 }
    if event == "reply" and not reply.reject then
      if reply.revision == 0 and reply.markers and reply.crc then
        conn:close()
        t:liveness()
        t:unimplemented("The target is permissive: it works with peers of the RDMA Consortium.")
      end
      t:check(reply.revision == 1, {
        requirement = ALL,
        expected = "a close, or a Reply of revision 1 and then a close (RFC 5044 appendix C.2.1)",
        actual = ("a Reply of revision %d, M=%s, R=0"):format(reply.revision, reply.markers),
      })
      conn:expect_close { requirement = ALL, overdue_fails = true }
    else
      local rejects = event == "reply"
      t:check(rejects or event == "close", { expected = "a close, or a Reply that rejects", actual = event or "nothing, and the connection stays open" })
      t:check(true, { requirement = ALL, expected = "no Full Operation", actual = rejects and "a Reply with R=1" or "a close" })
      conn:close()
    end
  end,
}
