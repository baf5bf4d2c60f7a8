-- RFC 5040 sections 4.8, 5.4 and 7.1: the Terminate with which a target answers each kind of error.

-- What Figure 10 asks for: M and D with errors of DDP and of operations, R too where a Read Request's source is refused, none where
-- the LLP's octets are not to be trusted.
local KINDS = {
  ["untagged"] = {
    error = "12 01", parts = true,
    make = function(op) return rdmap.send { payload = "weft!", qn = 77, msn = op.msn } end,
  },
  ["tagged"] = {
    error = "11 00", parts = true,
    make = function(op) return rdmap.write { payload = "weft!", stag = op.stag ~ 0xffffffff, tagged_offset = 0x1122334455667788 } end,
  },
  ["operation"] = {
    error = "02 06", parts = true,
    make = function(op) return rdmap.send { payload = "weft!", opcode = 13, msn = op.msn } end,
  },
  ["read"] = {
    error = "01 00", parts = true, request = true,
    make = function(op)
      return rdmap.read_request {
        sink_stag = 0x01020304, sink_to = 0x1122334455667788, rdmardsz = 77, src_stag = op.stag ~ 0xffffffff, src_to = 0x99,
      }
    end,
  },
  ["crc"] = {
    error = "20 02",
    make = function(op) return rdmap.send { payload = "weft!", msn = op.msn } end,
  },
}

local FIGURES = {
  "RDMAP-4.8-2", "RDMAP-4.8-3", "RDMAP-4.8-4", "RDMAP-4.8-6", "RDMAP-4.8-37", "RDMAP-4.8-38", "RDMAP-4.1-13", "RDMAP-5.4-1",
  "RDMAP-5.4-2", "RDMAP-5.4-7", "RDMAP-5.4-8",
}
local PARTS = {
  "RDMAP-4.8-5", "RDMAP-4.8-8", "RDMAP-4.8-9", "RDMAP-4.8-10", "RDMAP-4.8-11", "RDMAP-4.8-12", "RDMAP-4.8-13", "RDMAP-4.8-15",
  "RDMAP-4.8-16", "RDMAP-4.8-39", "RDMAP-4.8-40", "RDMAP-4.8-41", "RDMAP-4.8-42", "RDMAP-4.2-5", "RDMAP-7.1-4", "RDMAP-7.1-5",
  "DDP-7.1-17", "RDMAP-3.1-7",
}
local END = { "RDMAP-5.4-12", "DDP-7.1-19" }

local function hexadecimal(octets)
  return (("%02x "):rep(#octets)):format(octets:byte(1, -1))
end

case {
  id = "rdmap/4.8-terminate/headers",
  version = 1,
  title = "A Terminate has the layout of Figure 7, gives back what Figure 10 asks for, and is the last message",
  requirements = {
    "RDMAP-6.2.1-1", "RDMAP-7.1-2", "DDP-7.2-1", "DDP-7.2-14", "RDMAP-4.8-31",
    "RDMAP-4.8-2", "RDMAP-4.8-3", "RDMAP-4.8-4", "RDMAP-4.8-6", "RDMAP-4.8-37", "RDMAP-4.8-38", "RDMAP-4.1-13", "RDMAP-5.4-1",
    "RDMAP-5.4-2", "RDMAP-5.4-7", "RDMAP-5.4-8",
    "RDMAP-4.8-5", "RDMAP-4.8-8", "RDMAP-4.8-9", "RDMAP-4.8-10", "RDMAP-4.8-11", "RDMAP-4.8-12", "RDMAP-4.8-13", "RDMAP-4.8-15",
    "RDMAP-4.8-16", "RDMAP-4.8-39", "RDMAP-4.8-40", "RDMAP-4.8-41", "RDMAP-4.8-42", "RDMAP-4.2-5", "RDMAP-7.1-4", "RDMAP-7.1-5",
    "DDP-7.1-17", "RDMAP-3.1-7", "RDMAP-5.4-12", "DDP-7.1-19",
  },
  roles = { "responder" },
  capabilities = { "rping", "crc" },
  tags = { "terminate", "refusal" },
  parameters = { kind = { "untagged", "tagged", "operation", "read", "crc" } },

  run = function(t, p)
    t:good_exchange()

    local kind = KINDS[p.kind]
    local conn, op = t:operate { crc = true }
    local ulpdu = kind.make(op)
    local fpdu = mpa.fpdu { ulpdu = ulpdu }
    conn:send(p.kind == "crc" and fpdu:flip(#fpdu - 1) or fpdu)
    local terminate = conn:expect_terminate {
      told = { "RDMAP-6.2.1-1", "RDMAP-7.1-2" },
      code = { "RDMAP-4.8-2", "RDMAP-4.8-3", "RDMAP-4.8-4", "RDMAP-4.8-37", "RDMAP-4.8-38", "DDP-7.2-1", "DDP-7.2-14", "RDMAP-4.8-31" },
      error = kind.error,
    }
    local told = terminate ---@cast told weft.Terminate
    local function holds(ok, requirement, expected, actual)
      t:check(ok, { requirement = requirement, expected = expected, actual = actual })
    end

    local header = ("T=%d QN %s MSN %s MO %s L=%s"):format(told.tagged and 1 or 0, told.qn, told.msn, told.mo, told.last)
    local right = not told.tagged and told.qn == 2 and told.msn == 1 and told.mo == 0 and told.last
    holds(right, { "RDMAP-4.1-13", "RDMAP-5.4-1", "RDMAP-5.4-2", "RDMAP-5.4-7", "RDMAP-5.4-8" }, "T=0 QN 2 MSN 1 MO 0 L=true", header)
    holds(told.reserved == 0, "RDMAP-4.8-6", "reserved bits of zero", ("%#x"):format(told.reserved))

    local bits = ("M=%s D=%s R=%s"):format(told.m, told.d, told.r)
    local parts, request = kind.parts or false, kind.request or false
    local wanted = ("M=%s D=%s R=%s"):format(parts, parts, request)
    holds(told.m == parts and told.d == parts and told.r == request, {
      "RDMAP-4.8-5", "RDMAP-4.8-9", "RDMAP-4.8-11", "RDMAP-4.8-13", "RDMAP-4.8-15", "RDMAP-4.8-16", "RDMAP-4.8-39", "RDMAP-4.8-40",
      "RDMAP-4.8-41", "RDMAP-7.1-4", "RDMAP-7.1-5", "DDP-7.1-17", "RDMAP-3.1-7",
    }, wanted, bits)

    local octets = ulpdu:octets()
    local copied = octets:sub(1, octets:byte(1) & 0x80 ~= 0 and 14 or 18)
    local rest = parts and string.pack(">I2", #octets) .. copied or ""
    -- The data of a Read Request is its header.
    rest = request and rest .. octets:sub(19) or rest
    holds(told.rest:sub(1, 2) == rest:sub(1, 2), "RDMAP-4.8-8", "length " .. hexadecimal(rest:sub(1, 2)), hexadecimal(told.rest:sub(1, 2)))
    holds(told.rest:sub(3, 2 + #copied) == rest:sub(3, 2 + #copied), "RDMAP-4.8-10", "header " .. hexadecimal(rest:sub(3, 2 + #copied)), hexadecimal(told.rest:sub(3, 2 + #copied)))
    holds(told.rest:sub(3 + #copied) == rest:sub(3 + #copied), { "RDMAP-4.8-12", "RDMAP-4.8-42", "RDMAP-4.2-5" },
      "behind it " .. hexadecimal(rest:sub(3 + #copied)), hexadecimal(told.rest:sub(3 + #copied)))

    conn:expect_close { requirement = END }

    t:liveness()
  end,
}

case {
  id = "rdmap/4.8-terminate/first-error",
  version = 1,
  title = "Of several errors the Terminate tells the first",
  requirements = { "RDMAP-7.1-6", "RDMAP-5.4-12", "DDP-7.1-18", "DDP-3-13", "RDMAP-7-2" },
  roles = { "responder" },
  capabilities = { "operation" },
  tags = { "terminate", "refusal" },

  run = function(t)
    t:good_exchange()

    local conn, op = t:operate()
    local first = mpa.fpdu { ulpdu = rdmap.send { payload = "first", qn = 77, msn = op.msn } }
    local second = mpa.fpdu { ulpdu = rdmap.send { payload = "second", msn = op.msn, ddp_version = 2 } }
    conn:send(first .. second)
    conn:expect_terminate { requirement = "RDMAP-7.1-6", code = "RDMAP-7.1-6", error = "12 01" }
    conn:expect_close { requirement = { "RDMAP-5.4-12", "DDP-7.1-18", "DDP-3-13", "RDMAP-7-2" } }

    t:liveness()
  end,
}

case {
  id = "rdmap/4.8-terminate/nothing-behind",
  version = 1,
  title = "What comes behind an error has no effect",
  requirements = { "DDP-7.1-18", "DDP-3-13", "RDMAP-7-2" },
  roles = { "responder" },
  capabilities = { "rping" },
  tags = { "terminate", "refusal" },

  run = function(t)
    t:good_exchange()

    local conn, op = t:operate()
    local bad = mpa.fpdu { ulpdu = rdmap.send { payload = "bad", qn = 77, msn = op.msn } }
    local good = mpa.fpdu { ulpdu = rdmap.read_request { sink_stag = 0x7766, rdmardsz = 4, src_stag = op.stag, src_to = op.to } }
    conn:send(bad .. good)
    conn:expect_close { requirement = { "DDP-7.1-18", "DDP-3-13", "RDMAP-7-2" }, after_terminate = true, overdue_fails = true }

    t:liveness()
  end,
}

case {
  id = "rdmap/4.8-terminate/then-closes",
  version = 1,
  title = "Behind its Terminate a target closes TCP, by FIN, and not before it",
  requirements = { "RDMAP-7-3", "DDP-3-11", "RDMAP-6.2.1-8", "DDP-6.2.1-8", "DDP-6.2-1", "DDP-6.2.2-3", "DDP-6.2.2-4" },
  roles = { "responder" },
  capabilities = { "operation" },
  tags = { "terminate", "refusal" },

  run = function(t)
    t:good_exchange()

    local conn, op = t:operate()
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft", qn = 77, msn = op.msn } })
    conn:expect_terminate { told = { "DDP-6.2-1", "DDP-6.2.2-3", "DDP-6.2.2-4" } }
    -- A reset may take the Terminate away from whoever has not read it yet.
    conn:expect_close { requirement = { "RDMAP-6.2.1-8", "DDP-6.2.1-8" }, shows = { "RDMAP-7-3", "DDP-3-11" }, graceful = true }

    t:liveness()
  end,
}

case {
  id = "rdmap/4.8-terminate/ends-the-connection",
  version = 1,
  title = "Behind its Terminate a target does not keep the connection",
  requirements = { "RDMAP-7-3", "DDP-3-11" },
  roles = { "responder" },
  capabilities = { "operation" },
  tags = { "terminate", "refusal", "slow" },

  run = function(t)
    t:good_exchange()

    local conn, op = t:operate()
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft", qn = 77, msn = op.msn } })
    conn:expect_terminate()
    conn:expect_close { requirement = { "RDMAP-7-3", "DDP-3-11" }, within = 60, overdue_fails = true }

    t:liveness()
  end,
}
