-- RFC 6581 section 9.1: how many Reads each side may have under way.

local OPEN = 0x3fff

local function enhanced(t, ird, ord)
  local conn = t:connect()
  conn:send(t:request { enhanced = true, revision = 2, ird = ird, ord = ord })
  return conn
end

local function words(reply)
  return ("IRD %s, ORD %s"):format(reply.ird, reply.ord)
end

case {
  id = "mpa-p2p/9.1-depths/ord",
  version = 1,
  title = "ORD of the Reply is at most IRD of the Request",
  requirements = { "P2P-9.1-20", "P2P-9.1-6", "P2P-9.1-5" },
  roles = { "responder" },
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
      actual = words(reply),
    })
    conn:close()

    t:liveness()
  end,
}

case {
  id = "mpa-p2p/9.1-depths/ird",
  version = 1,
  title = "A Request for one Read at a time gets an IRD of at least one",
  requirements = { "P2P-9.1-7", "P2P-9.1-3" },
  roles = { "responder" },
  capabilities = { "revision-2", "rping" },
  tags = { "startup", "enhanced" },
  parameters = { ird = { 1, 16 } },

  run = function(t, p)
    t:good_exchange()

    local conn = enhanced(t, p.ird, 1)
    local reply = conn:expect_reply { requirement = "P2P-9.1-3", reject = false, enhanced = true }
    t:check(reply.ird >= 1, { requirement = { "P2P-9.1-7", "P2P-9.1-3" }, expected = "IRD of at least 1", actual = words(reply) })
    conn:close()

    t:liveness()
  end,
}

case {
  id = "mpa-p2p/9.1-depths/open",
  version = 1,
  title = "0x3FFF as ORD is answered by 0x3FFF as IRD, and as IRD by 0x3FFF as ORD; the other one is settled as always",
  requirements = { "P2P-9.1-12", "P2P-9.1-13", "P2P-9.1-14", "P2P-9.1-17", "P2P-9-1", "P2P-9-2", "P2P-9-7" },
  roles = { "responder" },
  capabilities = { "revision-2" },
  tags = { "startup", "enhanced" },
  parameters = { ird = { 3, 0x3fff }, ord = { 3, 0x3fff } },

  run = function(t, p)
    t:good_exchange()

    local conn = enhanced(t, p.ird, p.ord)
    local reply = conn:expect_reply { reject = false, enhanced = true }
    -- 3F FF in the wrong order.
    local swapped = reply.octets:sub(21, 22) == "\xff\x3f" or reply.octets:sub(23, 24) == "\xff\x3f"
    t:check(not swapped, {
      requirement = { "P2P-9-1", "P2P-9-2", "P2P-9-7" },
      expected = "words with their most significant octet first",
      actual = ("%02x %02x %02x %02x"):format(reply.octets:byte(21, 24)),
    })
    local ird, ord = p.ord ~= OPEN or reply.ird == OPEN, p.ird == OPEN and reply.ord == OPEN or reply.ord <= p.ird and p.ird ~= OPEN
    local actual = words(reply)
    t:check(ird, { requirement = { "P2P-9.1-13", "P2P-9.1-12", "P2P-9.1-17" }, expected = ("the IRD for ORD %#x"):format(p.ord), actual = actual })
    t:check(ord, { requirement = { "P2P-9.1-14", "P2P-9.1-12", "P2P-9.1-17" }, expected = ("the ORD for IRD %#x"):format(p.ird), actual = actual })
    conn:close()

    t:liveness()
  end,
}

case {
  id = "mpa-p2p/9.1-depths/no-reads",
  version = 1,
  title = "With an ORD of 0 no Read Request is sent, even where the service is about to",
  requirements = { "P2P-9.1-18", "RDMAP-6.1-7" },
  roles = { "responder" },
  capabilities = { "revision-2", "rping" },
  tags = { "startup", "enhanced", "read" },

  run = function(t)
    t:good_exchange()

    local conn, reply = t:start_up { enhanced = true, revision = 2, ird = 0, ord = 16 }
    t:check(reply.ord == 0, { expected = "ORD 0", actual = words(reply) })
    -- rping's server reads what its client tells it of. What it does instead is its own affair.
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = string.pack(">i8I4I4", 0x1000, 0x77656601, 64) } })
    local what, fpdu = conn:next { within = 2 }
    local reads = what == "fpdu" and fpdu.opcode == 1
    t:check(not reads, {
      requirement = { "P2P-9.1-18", "RDMAP-6.1-7" },
      expected = "no Read Request",
      actual = reads and "a Read Request" or what or "nothing",
    })

    t:liveness()
  end,
}

--- A message of Reads on a connection on which neither side holds one: both of the Request's words are zero. It names an STag that nobody has, so that it is
--- refused whatever IRD the Reply has. (A queue of no entries: siw took the remainder of a division by its size.)
local function nothing_held(name, title, requirements, made)
  case {
    id = "mpa-p2p/9.1-depths/nothing-held-" .. name,
    version = 1,
    title = title .. ", where start-up left no Reads to either side, is refused",
    requirements = requirements,
    roles = { "responder" },
    capabilities = { "revision-2", "rping" },
    tags = { "startup", "enhanced", "read", "refusal", "robust" },
    parameters = { first = { true, false } },

    run = function(t, p)
      t:good_exchange()

      local conn, reply = t:start_up { enhanced = true, revision = 2, ird = 0, ord = 0 }
      t:check(reply.ord == 0, { expected = "ORD 0", actual = words(reply) })
      if not p.first then
        -- It does what a ready-to-receive message is for.
        conn:send(mpa.fpdu { ulpdu = rdmap.write() })
      end
      conn:send(mpa.fpdu { ulpdu = made() })
      conn:expect_terminate { requirement = requirements }
      conn:expect_close()

      t:liveness()
    end,
  }
end

nothing_held("request", "A Read Request of an STag that is not valid", { "RDMAP-7.2-4", "RDMAP-5.2.1-20" }, function()
  return rdmap.read_request { sink_stag = 0x7766, rdmardsz = 4, src_stag = 0x77656677 }
end)
nothing_held("response", "A Read Response to an STag that is not valid", { "RDMAP-5.2.2-6", "DDP-7.1-10" }, function()
  return rdmap.write { opcode = 2, stag = 0x77656677, payload = "weft" }
end)
