-- How a target answers a Hello (draft-pinkerton-iwarp-sdp-01 sections 6.2 and 8.1.1).

local function refused(name, title, requirements, fields, values)
  case {
    id = "sdp/8.1.1-setup/" .. name,
    title = title,
    requirements = requirements,
    capabilities = { "sdp" },
    tags = { "startup" },
    parameters = { value = values },

    run = function(t, p)
      t:good_exchange()
      local hello = {}
      for _, field in ipairs(fields) do
        hello[field] = p.value
      end
      local conn = t:greet { hello = sdp.hello(hello) }
      conn:expect_close { requirement = requirements, or_reject = true, overdue_fails = true }
    end,
  }
end

refused("refused-version", "The target closes on a Hello of another MajV", { "SDP-6.2.1.1-2", "SDP-8.1.1-14" }, { "majv", "minv" }, { 0, 2, 15 })
refused("refused-max-adverts", "The target closes on a Hello with MaxAdverts 0", { "SDP-6.2.1.3-2", "SDP-8.1.1-15" }, { "max_adverts" }, { 0 })
refused("refused-loc-ird", "The target closes on a Hello with LocIRD 0", { "SDP-8.1.1-16" }, { "loc_ird" }, { 0 })
refused("refused-loc-ord", "The target closes on a Hello with LocORD 0", { "SDP-8.1.1-17" }, { "loc_ord" }, { 0 })

local function accepted(name, title, requirements, field, values)
  case {
    id = "sdp/8.1.1-setup/" .. name,
    title = title,
    requirements = requirements,
    capabilities = { "sdp" },
    tags = { "startup" },
    parameters = { value = values },

    run = function(t, p)
      t:good_exchange()
      t:sdp { hello = sdp.hello { [field] = p.value }, requirement = requirements }
    end,
  }
end

accepted("any-minor-version", "The target accepts a Hello of any MinV", { "SDP-6.2.1.2-2", "SDP-8.1.1-19" }, "minv", { 0, 2, 15 })
accepted("any-mseq", "The target ignores MSeq of a Hello", { "SDP-6.2.1-8" }, "mseq", { 1, 0xdeadbeef })
accepted("any-mseq-ack", "The target ignores MSeqAck of a Hello", { "SDP-6.2.1-10" }, "mseq_ack", { 1, 0xdeadbeef })
accepted("any-rsvd", "The target ignores Rsvd of a Hello", { "SDP-6.2.1.8-2" }, "rsvd", { 1, 0x80, 0xff })

case {
  id = "sdp/8.1.1-setup/answered",
  version = 2,
  title = "The target answers a correct Hello with a HelloAck",
  requirements = { "SDP-8.1.1-21", "SDP-6.2-1", "SDP-6.2.2-3", "SDP-6.1.1-3" },
  capabilities = { "sdp" },
  tags = { "startup" },

  run = function(t)
    t:sdp { requirement = { "SDP-8.1.1-21", "SDP-6.2-1", "SDP-6.2.2-3" }, shows = "SDP-6.1.1-3" }
  end,
}

--- Sends `count` Data messages with `octets` bytes of payload, and expects the echo of all bytes.
local function credit_accepted(s, count, octets, requirements)
  local payload = ("c"):rep(octets)
  for _ = 1, count do
    s:send(sdp.data { payload = payload })
  end
  local got = 0
  while got < count * octets do
    local m = s:expect({ "data", "src_avail" }, { requirement = requirements, past = { "ch_rcv_buf", "mode_change" } })
    got = got + #m.payload
    if m.name == "src_avail" then
      got = got + #s:fetch(m)
    end
  end
end

case {
  id = "sdp/8.1.1-setup/full-credit",
  version = 2,
  title = "The target accepts at once all messages that its HelloAck gives credit for",
  requirements = { "SDP-8.1.1-23" },
  capabilities = { "sdp-echo" },
  tags = { "startup", "credit" },

  run = function(t)
    t:good_exchange()
    local s, hello_ack = t:sdp {}
    -- The last two credits are for messages without payload.
    credit_accepted(s, math.min(hello_ack.bufs, 1000) - 3, 4, "SDP-8.1.1-23")
  end,
}

case {
  id = "sdp/8.1.1-setup/full-size",
  title = "The target accepts messages of exactly the advertised buffer size, one for each credit",
  requirements = { "SDP-5-1", "SDP-10-3" },
  capabilities = { "sdp-echo" },
  tags = { "startup", "credit", "sizes" },

  run = function(t)
    t:good_exchange()
    -- The control: the target accepts the same number of short messages.
    local control, of_control = t:sdp {}
    local function count(hello_ack)
      return math.min(hello_ack.bufs - 3, math.max(1, 4000000 // hello_ack.act_rcv_sz))
    end
    credit_accepted(control, count(of_control), 4)
    local s, hello_ack = t:sdp {}
    credit_accepted(s, count(hello_ack), hello_ack.act_rcv_sz - 16, { "SDP-5-1", "SDP-10-3" })
  end,
}

case {
  id = "sdp/8.1.1-setup/data-at-once",
  title = "The target accepts Data as the first message after HelloAck",
  requirements = { "SDP-8.1.1-40" },
  capabilities = { "sdp-echo" },
  tags = { "startup" },

  run = function(t)
    local s = t:sdp {}
    s:send(sdp.data { payload = "hi" })
    s:collect(2, { requirement = "SDP-8.1.1-40", overdue_fails = true })
  end,
}

case {
  id = "sdp/8.1.1-setup/full-credit-held",
  title = "The target keeps all messages that its HelloAck gives credit for while its user does not read",
  requirements = { "SDP-8.1.1-23" },
  capabilities = { "sdp-drive" },
  tags = { "startup", "credit" },

  run = function(t)
    local s, hello_ack = t:sdp {}
    s:command "wait 1000"
    for _ = 1, hello_ack.bufs - 4 do
      s:send(sdp.data { payload = ";" })
    end
    s:expect_quiet { within = 0.2, requirement = "SDP-8.1.1-23", overdue_fails = true }
  end,
}

case {
  id = "sdp/8.1.1-setup/wished-size",
  title = "The target considers DesRemRcvSz when it chooses the size of its Private Buffers",
  requirements = { "SDP-6.2.1.4-1" },
  -- Other sockets may have reasons for a fixed size.
  capabilities = { "sdp-drive" },
  tags = { "startup" },

  run = function(t)
    local _, small = t:sdp { hello = sdp.hello { des_rem_rcv_sz = 1000 } }
    local _, large = t:sdp { hello = sdp.hello { des_rem_rcv_sz = 2500 } }
    t:check(small.act_rcv_sz < large.act_rcv_sz, {
      requirement = "SDP-6.2.1.4-1", expected = "more bytes if the Hello requests more", actual = small.act_rcv_sz .. " and " .. large.act_rcv_sz .. " bytes",
    })
  end,
}
