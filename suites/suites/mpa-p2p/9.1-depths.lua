-- RFC 6581 section 9.1: how many Reads each side may have outstanding.

local OPEN = 0x3fff

local function enhanced(t, ird, ord)
  local conn = t:connect()
  conn:send(t:request { enhanced = true, revision = 2, ird = ird, ord = ord })
  return conn
end

local function depths(reply)
  return ("IRD %s, ORD %s"):format(reply.ird, reply.ord)
end

case {
  id = "mpa-p2p/9.1-depths/ord",
  title = "The responder sends an ORD of at most the Request's IRD",
  requirements = { "P2P-9.1-20", "P2P-9.1-6", "P2P-9.1-5" },
  capabilities = { "revision-2" },
  tags = { "startup", "enhanced" },
  parameters = { ird = { 0, 1, 2, 3, 7, 128, 0x3ffe }, ord = { 0, 1, 16 } },

  run = function(t, p)
    t:good_exchange()

    local conn = enhanced(t, p.ird, p.ord)
    local reply = conn:expect_reply { reject = false, enhanced = true }
    t:check(reply.ord <= p.ird, {
      requirement = { "P2P-9.1-20", "P2P-9.1-6", "P2P-9.1-5" },
      expected = ("ORD of at most %d"):format(p.ird),
      actual = depths(reply),
    })
    conn:close()
  end,
}

case {
  id = "mpa-p2p/9.1-depths/ird",
  version = 2,
  title = "The responder answers a Request for one Read at a time with an IRD of at least 1",
  requirements = { "P2P-9.1-7", "P2P-9.1-3" },
  capabilities = { "revision-2", "rping" },
  tags = { "startup", "enhanced" },
  parameters = { ird = { 1, 16 } },

  run = function(t, p)
    t:good_exchange()

    local conn = enhanced(t, p.ird, 1)
    local reply = conn:expect_reply { requirement = "P2P-9.1-3", reject = false, enhanced = true }
    t:check(reply.ird >= 1, { requirement = "P2P-9.1-7", expected = "IRD of at least 1", actual = depths(reply) })
    conn:close()
  end,
}

case {
  id = "mpa-p2p/9.1-depths/open",
  title = "The responder answers ORD 0x3FFF with IRD 0x3FFF, IRD 0x3FFF with ORD 0x3FFF, and other depths as usual",
  requirements = { "P2P-9.1-12", "P2P-9.1-13", "P2P-9.1-14", "P2P-9.1-17", "P2P-9-1", "P2P-9-2", "P2P-9-7" },
  capabilities = { "revision-2" },
  tags = { "startup", "enhanced" },
  parameters = { ird = { 3, 0x3fff }, ord = { 3, 0x3fff } },

  run = function(t, p)
    t:good_exchange()

    local conn = enhanced(t, p.ird, p.ord)
    local reply = conn:expect_reply { reject = false, enhanced = true }
    -- FF 3F is 3F FF with its bytes in the wrong order. An ORD of more than the Request's IRD is also
    -- in the wrong order, if it is at most this IRD in the other order.
    local other = string.unpack("<I2", reply.octets, 23) & 0x3fff
    local swapped = reply.octets:sub(21, 22) == "\xff\x3f" or reply.octets:sub(23, 24) == "\xff\x3f"
      or p.ird ~= OPEN and reply.ord > p.ird and other > 0 and other <= p.ird
    t:check(not swapped, {
      requirement = { "P2P-9-1", "P2P-9-2", "P2P-9-7" },
      expected = "IRD and ORD with the most significant byte first",
      actual = ("%02x %02x %02x %02x"):format(reply.octets:byte(21, 24)),
    })
    local ird, ord = p.ord ~= OPEN or reply.ird == OPEN, p.ird == OPEN and reply.ord == OPEN or reply.ord <= p.ird and p.ird ~= OPEN
    local actual = depths(reply)
    t:check(ird, { requirement = { "P2P-9.1-13", "P2P-9.1-12", "P2P-9.1-17" }, expected = ("the IRD for ORD %#x"):format(p.ord), actual = actual })
    t:check(ord, { requirement = { "P2P-9.1-14", "P2P-9.1-12", "P2P-9.1-17" }, expected = ("the ORD for IRD %#x"):format(p.ird), actual = actual })
    conn:close()
  end,
}

case {
  id = "mpa-p2p/9.1-depths/no-reads",
  title = "The responder sends no Read Request with ORD 0, even if its service needs one",
  requirements = { "P2P-9.1-18", "RDMAP-6.1-7" },
  capabilities = { "revision-2", "rping" },
  tags = { "startup", "enhanced", "read" },

  run = function(t)
    t:good_exchange()

    local conn, reply = t:start_up { enhanced = true, revision = 2, ird = 0, ord = 16 }
    t:check(reply.ord == 0, { expected = "ORD 0", actual = depths(reply) })
    -- rping's server would read the buffer that its client names. Any other reaction is allowed.
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = string.pack(">i8I4I4", 0x1000, 0x77656601, 64) } })
    local event, fpdu = conn:next { within = 2 }
    local reads = event == "fpdu" and fpdu.opcode == 1
    t:check(not reads, {
      requirement = { "P2P-9.1-18", "RDMAP-6.1-7" },
      expected = "no Read Request",
      actual = reads and "a Read Request" or event or "nothing",
    })
  end,
}

--- Declares a case with a Read Request or a Read Response on a connection that allows no
--- outstanding Reads, because IRD and ORD of the Request are zero. The message names an invalid
--- STag. So the target has to reject the message, whatever IRD the Reply has. (An old version of
--- siw divided by the size of its queue, which was zero.)
local function zero_depths(name, title, requirements, made)
  case {
    id = "mpa-p2p/9.1-depths/nothing-held-" .. name,
    title = "The responder rejects " .. title .. " if IRD and ORD are zero",
    requirements = requirements,
    capabilities = { "revision-2", "rping" },
    tags = { "startup", "enhanced", "read", "refusal", "robust" },
    parameters = { first = { true, false } },

    run = function(t, p)
      t:good_exchange()

      local conn, reply = t:start_up { enhanced = true, revision = 2, ird = 0, ord = 0 }
      t:check(reply.ord == 0, { expected = "ORD 0", actual = depths(reply) })
      if not p.first then
        -- This Write serves as the ready-to-receive message.
        conn:send(mpa.fpdu { ulpdu = rdmap.write() })
      end
      conn:send(mpa.fpdu { ulpdu = made() })
      conn:expect_terminate { requirement = requirements }
      conn:expect_close()
    end,
  }
end

zero_depths("request", "a Read Request of an invalid STag", { "RDMAP-7.2-4", "RDMAP-5.2.1-20" }, function()
  return rdmap.read_request { sink_stag = 0x7766, rdmardsz = 4, src_stag = 0x77656677 }
end)
zero_depths("response", "a Read Response to an invalid STag", { "RDMAP-5.2.2-6", "DDP-7.1-10" }, function()
  return rdmap.write { opcode = 2, stag = 0x77656677, payload = "weft" }
end)
