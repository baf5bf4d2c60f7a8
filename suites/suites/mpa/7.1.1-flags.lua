-- RFC 5044 section 7.1.1: M, C, R and the reserved bits of byte 16 in a Request.

case {
  id = "mpa/7.1.1-flags/reserved",
  title = "The responder ignores reserved bits of a Request, and clears them in the Reply",
  requirements = { "MPA-7.1.1-19", "MPA-7.1.1-18" },
  capabilities = { "revision-1" },
  tags = { "startup" },
  parameters = { bits = { 0x01, 0x02, 0x04, 0x08, 0x10, 0x1f } },

  run = function(t, p)
    t:good_exchange()

    local conn = t:connect()
    -- The flags are C=1, M=0 and the reserved bits. In revision 1, the bit S of RFC 6581 is
    -- reserved, too.
    conn:send(mpa.request { flags = 0x40 | p.bits, revision = 1 }, { deviates = mpa.request { flags = 0x40, revision = 1 } })
    local reply = conn:expect_reply { requirement = "MPA-7.1.1-19", reject = false }
    t:check(reply.flags & 0x1f == 0, {
      requirement = "MPA-7.1.1-18",
      expected = "reserved bits of zero in the Reply",
      actual = ("byte 16 is %02x"):format(reply.flags),
    })
    conn:close()
  end,
}

case {
  id = "mpa/7.1.1-flags/r-in-request",
  title = "The responder ignores R=1 in a Request",
  requirements = { "MPA-7.1.1-16" },
  tags = { "startup" },

  run = function(t)
    t:good_exchange()

    local conn = t:connect()
    conn:send(t:request { reject = true })
    conn:expect_reply { requirement = "MPA-7.1.1-16", reject = false }
    conn:close()
  end,
}

case {
  id = "mpa/7.1.1-flags/accepts",
  version = 2,
  title = "The responder answers a correct Request with a Reply with R=0 and correct fields",
  requirements = {
    "MPA-7.1.2-8", "MPA-7.1.1-3", "MPA-7.1.1-17", "MPA-7.1.1-20", "MPA-7.1.1-24", "MPA-7.1.1-25", "MPA-7.1.1-28",
    "MPA-7.1-5",
  },
  tags = { "startup" },

  run = function(t)
    local conn = t:connect()
    conn:send(t:request())
    conn:expect_octets { requirement = "MPA-7.1.1-3", begins = "MPA ID Rep Frame", keep = true }
    local reply = conn:expect_reply {
      -- The monitor judges these requirements in the frame.
      shows = { "MPA-7.1.1-20", "MPA-7.1.1-24", "MPA-7.1.1-25", "MPA-7.1.1-28", "MPA-7.1-5" },
    }
    t:check(not reply.reject, { requirement = { "MPA-7.1.2-8", "MPA-7.1.1-17" }, expected = "R=0", actual = "R=1" })
    conn:expect_silence { within = 1 }
    conn:close()
  end,
}

case {
  id = "mpa/7.1.1-flags/asks-for-crc",
  version = 2,
  title = "The responder requests CRCs by default, even if the Request has C=0",
  requirements = { "MPA-4.4-5", "MPA-4.4-4", "MPA-1.2-3" },
  tags = { "startup", "crc" },

  run = function(t)
    t:good_exchange()

    local conn = t:connect()
    conn:send(t:request { crc = false })
    conn:expect_reply { requirement = { "MPA-4.4-5", "MPA-4.4-4", "MPA-1.2-3" }, crc = true }
    conn:close()
  end,
}
