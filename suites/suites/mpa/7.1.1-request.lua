-- RFC 5044 section 7.1.1: the Request that an Initiator sends.

case {
  id = "mpa/7.1.1-request/fields",
  version = 2,
  title = "The initiator sends a Request with correct fields, and nothing after it before a Reply",
  requirements = {
    "MPA-7.1.1-1", "MPA-7.1.2-1", "MPA-7.1.1-20", "MPA-7.1.1-28", "MPA-7.1.1-29", "MPA-7.1.1-24", "MPA-7.1.1-25", "MPA-7.1.1-15",
    "MPA-7.1.1-18", "MPA-7.1-5", "MPA-7.1-1", "MPA-7.1.2-11", "MPA-7.1.2-13",
  },
  roles = { "initiator" },
  tags = { "startup" },

  run = function(t)
    local conn = t:connect()
    conn:expect_octets { requirement = { "MPA-7.1.1-1", "MPA-7.1.2-1" }, begins = "MPA ID Req Frame", keep = true }
    local request = conn:expect_request {
      requirement = "MPA-7.1.2-1",
      -- The monitor judges these requirements in the frame.
      shows = { "MPA-7.1.1-20", "MPA-7.1.1-24", "MPA-7.1.1-25", "MPA-7.1.1-28", "MPA-7.1.1-29" },
    }
    local flags = ("byte 16 is %02x"):format(request.flags)
    t:check(request.flags & 0x20 == 0, { requirement = "MPA-7.1.1-15", expected = "R=0 in a Request", actual = flags })
    -- In revision 2, the bit after R is the bit S of RFC 6581, so it is not reserved.
    local reserved = request.revision == 1 and 0x1f or 0x0f
    t:check(request.flags & reserved == 0, { requirement = "MPA-7.1.1-18", expected = "reserved bits of zero", actual = flags })
    local event = conn:next { within = 2 }
    local expected, actual = "the target sends no byte, and keeps the connection open", event or "nothing"
    t:check(event ~= "close", { requirement = "MPA-7.1.2-13", expected = expected, actual = actual })
    t:check(event ~= "fpdu", { requirement = { "MPA-7.1.2-11", "MPA-7.1.2-13" }, expected = expected, actual = "an FPDU" })
    t:check(event == nil, { requirement = { "MPA-7.1-5", "MPA-7.1-1", "MPA-7.1.1-24" }, expected = expected, actual = actual })
    conn:close()
  end,
}

case {
  id = "mpa/7.1.1-request/asks-for-crc",
  title = "The initiator requests CRCs by default",
  requirements = { "MPA-4.4-5", "MPA-4.4-4", "MPA-1.2-3" },
  roles = { "initiator" },
  tags = { "startup", "crc" },

  run = function(t)
    local conn = t:connect()
    conn:expect_request { requirement = { "MPA-4.4-5", "MPA-4.4-4", "MPA-1.2-3" }, crc = true }
    conn:close()
  end,
}
