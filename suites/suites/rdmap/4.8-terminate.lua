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
  -- Errors of DDP and of operations in a Read Request: its header goes back only where its source is refused. irdma, i40iw and nes give it back always.
  ["read-number"] = {
    error = { "12 03", "12 02" }, parts = true,
    make = function(op)
      return rdmap.read_request { sink_stag = 0x01020304, rdmardsz = 4, src_stag = op.stag, src_to = op.to, msn = 100000 }
    end,
  },
  ["read-version"] = {
    error = "02 05", parts = true,
    make = function(op)
      return rdmap.read_request { sink_stag = 0x01020304, rdmardsz = 4, src_stag = op.stag, src_to = op.to, rdmap_version = 2 }
    end,
  },
  ["crc"] = {
    error = "20 02",
    make = function(op) return rdmap.send { payload = "weft!", msn = op.msn } end,
  },
}

local END = { "RDMAP-5.4-12", "DDP-7.1-19" }

local function hexadecimal(octets)
  return (("%02x "):rep(#octets)):format(octets:byte(1, -1))
end

--- Makes an error of this kind. Gives the connection, the Terminate, the octets of the segment in error, and what holds expectations.
local function provoke(t, name, expectation)
  local kind = KINDS[name]
  local conn, op = t:operate { crc = true }
  local ulpdu = kind.make(op)
  local fpdu = mpa.fpdu { ulpdu = ulpdu }
  conn:send(name == "crc" and fpdu:flip(#fpdu - 1) or fpdu, { deviates = true })
  expectation.error = expectation.code and kind.error
  local told = conn:expect_terminate(expectation) ---@cast told weft.Terminate
  local function holds(ok, requirement, expected, actual)
    t:check(ok, { requirement = requirement, expected = expected, actual = actual })
  end
  return conn, told, ulpdu:octets(), holds
end

--- The DDP header that a segment begins with.
local function header_of(octets)
  return octets:sub(1, octets:byte(1) & 0x80 ~= 0 and 14 or 18)
end

local function bits_of(told)
  return ("M=%s D=%s R=%s"):format(told.m, told.d, told.r)
end

case {
  id = "rdmap/4.8-terminate/layout",
  version = 3,
  title = "A Terminate is the first message of queue 2, has the layout of Figures 7 and 8, and is the last message",
  requirements = {
    "RDMAP-6.2.1-1", "RDMAP-7.1-2", "RDMAP-4.8-2", "RDMAP-4.8-3", "RDMAP-4.8-4", "RDMAP-4.8-5", "RDMAP-4.8-6", "RDMAP-4.8-37",
    "RDMAP-4.8-38", "RDMAP-4.8-39", "RDMAP-4.8-40", "RDMAP-4.8-41", "RDMAP-4.8-13", "RDMAP-4.1-13", "RDMAP-5.4-1", "RDMAP-5.4-2",
    "RDMAP-5.4-7", "RDMAP-5.4-8", "RDMAP-4.2-5", "RDMAP-5.4-12", "DDP-7.1-19",
  },
  roles = { "responder", "initiator" },
  capabilities = { "rping", "crc" },
  tags = { "terminate", "refusal" },
  parameters = { kind = { "untagged", "tagged", "operation", "read", "read-number", "read-version", "crc" } },

  run = function(t, p)
    t:good_exchange()

    local conn, told, octets, holds = provoke(t, p.kind, {
      told = { "RDMAP-6.2.1-1", "RDMAP-7.1-2" },
      code = { "RDMAP-4.8-2", "RDMAP-4.8-3", "RDMAP-4.8-4", "RDMAP-4.8-37", "RDMAP-4.8-38" },
    })
    local kind = KINDS[p.kind]
    holds(not told.tagged and told.qn == 2, { "RDMAP-4.1-13", "RDMAP-5.4-1", "RDMAP-5.4-7", "RDMAP-5.4-8" },
      "T=0, QN 2", ("T=%d, QN %s"):format(told.tagged and 1 or 0, told.qn))
    holds(told.msn == 1 and told.mo == 0 and told.last, "RDMAP-5.4-2",
      "MSN 1, MO 0, L=true", ("MSN %s, MO %s, L=%s"):format(told.msn, told.mo, told.last))
    holds(told.reserved == 0, "RDMAP-4.8-6", "reserved bits of zero", ("%#x"):format(told.reserved))

    local parts, request = kind.parts or false, kind.request or false
    holds(told.m == parts and told.d == parts and told.r == request,
      { "RDMAP-4.8-5", "RDMAP-4.8-13", "RDMAP-4.8-39", "RDMAP-4.8-40", "RDMAP-4.8-41" },
      ("M=%s D=%s R=%s"):format(parts, parts, request), bits_of(told))
    local length = parts and 2 + #header_of(octets) + (request and 28 or 0) or 0
    holds(#told.rest == length, "RDMAP-4.2-5", ("%d octets behind the control"):format(length), ("%d"):format(#told.rest))

    conn:expect_close { requirement = END }

    t:liveness()
  end,
}

case {
  id = "rdmap/4.8-terminate/segment",
  version = 2,
  title = "A Terminate for a segment in error gives back its length and its DDP header",
  requirements = { "RDMAP-4.8-8", "RDMAP-4.8-9", "RDMAP-4.8-10", "RDMAP-4.8-39", "RDMAP-4.8-40" },
  roles = { "responder", "initiator" },
  capabilities = { "rping", "crc" },
  tags = { "terminate", "refusal" },
  parameters = { kind = { "untagged", "tagged", "operation", "read" } },

  run = function(t, p)
    t:good_exchange()

    local _, told, octets, holds = provoke(t, p.kind, {})
    local header = header_of(octets)
    holds(#told.rest >= 2 + #header, { "RDMAP-4.8-9", "RDMAP-4.8-39", "RDMAP-4.8-40" },
      ("a length and %d octets of header"):format(#header), ("%d octets"):format(#told.rest))
    local copied = told.rest:sub(3, 2 + #header)
    holds(copied == header, "RDMAP-4.8-10", "the header " .. hexadecimal(header), hexadecimal(copied))
    local length = string.unpack(">I2", told.rest)
    holds(length == #octets, "RDMAP-4.8-8", ("the length of the segment, %d"):format(#octets), ("%d"):format(length))

    t:liveness()
  end,
}

case {
  id = "rdmap/4.8-terminate/ddp-error",
  version = 2,
  title = "An error of DDP is told with the numbers of RFC 5041, with length and DDP header, and no other",
  requirements = { "DDP-7.2-1", "DDP-7.2-14", "RDMAP-4.8-31", "DDP-7.1-17", "RDMAP-4.8-16", "RDMAP-3.1-7", "RDMAP-7.1-4" },
  roles = { "responder", "initiator" },
  capabilities = { "rping", "crc" },
  tags = { "terminate", "refusal" },
  parameters = { kind = { "untagged", "tagged" } },

  run = function(t, p)
    t:good_exchange()

    local _, told, _, holds = provoke(t, p.kind, { code = { "DDP-7.2-1", "DDP-7.2-14", "RDMAP-4.8-31" } })
    holds(told.m and told.d and not told.r, { "DDP-7.1-17", "RDMAP-4.8-16", "RDMAP-3.1-7", "RDMAP-7.1-4" },
      "M=true D=true R=false", bits_of(told))

    t:liveness()
  end,
}

case {
  id = "rdmap/4.8-terminate/operation-error",
  version = 2,
  title = "A Remote Operation error is told with length and DDP header, and no other",
  requirements = { "RDMAP-4.8-15" },
  roles = { "responder", "initiator" },
  capabilities = { "rping", "crc" },
  tags = { "terminate", "refusal" },

  run = function(t)
    t:good_exchange()

    local _, told, _, holds = provoke(t, "operation", {})
    holds(told.m and told.d and not told.r, "RDMAP-4.8-15", "M=true D=true R=false", bits_of(told))

    t:liveness()
  end,
}

case {
  id = "rdmap/4.8-terminate/read-error",
  version = 2,
  title = "A Read Request whose source is refused is given back whole",
  requirements = { "RDMAP-4.8-12", "RDMAP-4.8-41", "RDMAP-4.8-42", "RDMAP-7.1-5" },
  roles = { "responder", "initiator" },
  capabilities = { "rping", "crc" },
  tags = { "terminate", "refusal", "read" },

  run = function(t)
    t:good_exchange()

    local _, told, octets, holds = provoke(t, "read", {})
    local request = octets:sub(19)
    local copied = told.rest:sub(3 + 18)
    holds(copied == request, { "RDMAP-4.8-12", "RDMAP-4.8-42" }, "the request " .. hexadecimal(request), hexadecimal(copied))
    holds(told.r, { "RDMAP-4.8-41", "RDMAP-7.1-5" }, "M=true D=true R=true", bits_of(told))

    t:liveness()
  end,
}

case {
  id = "rdmap/4.8-terminate/llp-error",
  version = 2,
  title = "A wrong CRC is told as an error of MPA, without headers, whose octets are not to be trusted",
  requirements = { "RDMAP-4.8-11", "RDMAP-4.8-33", "MPA-8-5", "MPA-8-2", "MPA-4.4-20" },
  roles = { "responder", "initiator" },
  capabilities = { "operation", "crc" },
  tags = { "terminate", "refusal", "crc" },

  run = function(t)
    t:good_exchange()

    local conn, told, _, holds = provoke(t, "crc", { requirement = { "MPA-8-2", "MPA-4.4-20" }, told = "MPA-8-5", code = { "MPA-8-5", "RDMAP-4.8-33" } })
    holds(#told.rest == 0 and not told.d, "RDMAP-4.8-11", "D=false, and no octet behind the control",
      ("D=%s, %d octets"):format(told.d, #told.rest))
    conn:expect_close()

    t:liveness()
  end,
}

case {
  id = "rdmap/4.8-terminate/first-error",
  version = 2,
  title = "Of several errors the Terminate tells the first",
  requirements = { "RDMAP-7.1-6", "RDMAP-5.4-12", "DDP-7.1-18", "DDP-3-13", "RDMAP-7-2" },
  roles = { "responder", "initiator" },
  capabilities = { "rping" },
  tags = { "terminate", "refusal" },

  run = function(t)
    t:good_exchange()

    local conn, op = t:operate()
    local first = rdmap.send { payload = "first", qn = 77, msn = op.msn }
    local second = rdmap.send { payload = "second", qn = 78, msn = op.msn }
    conn:send(mpa.fpdu { ulpdu = first } .. mpa.fpdu { ulpdu = second }, { deviates = true })
    local told = conn:expect_terminate { told = "RDMAP-7.1-6" }
    local header = told.rest:sub(3, 20)
    t:check(header == first:octets():sub(1, 18), {
      requirement = "RDMAP-7.1-6",
      expected = "the header of the first segment in error, " .. hexadecimal(first:octets():sub(1, 18)),
      actual = hexadecimal(header),
    })
    conn:expect_close { requirement = { "RDMAP-5.4-12", "DDP-7.1-18", "DDP-3-13", "RDMAP-7-2" } }

    t:liveness()
  end,
}

case {
  id = "rdmap/4.8-terminate/nothing-behind",
  version = 2,
  title = "What comes behind an error has no effect",
  requirements = { "DDP-7.1-18", "DDP-3-13", "RDMAP-7-2", "RDMAP-7-4" },
  roles = { "responder", "initiator" },
  capabilities = { "rping" },
  tags = { "terminate", "refusal" },

  run = function(t)
    t:good_exchange()

    local conn, op = t:operate()
    local bad = mpa.fpdu { ulpdu = rdmap.send { payload = "bad", qn = 77, msn = op.msn } }
    local good = mpa.fpdu {
      ulpdu = rdmap.read_request { sink_stag = 0x7766, rdmardsz = 4, src_stag = op.stag, src_to = op.to },
    }
    conn:send(bad .. good, { deviates = true })
    conn:expect_close { requirement = { "DDP-7.1-18", "DDP-3-13", "RDMAP-7-2", "RDMAP-7-4" }, after_terminate = true, overdue_fails = true }

    t:liveness()
  end,
}

case {
  id = "rdmap/4.8-terminate/then-closes",
  version = 2,
  title = "Behind its Terminate a target closes TCP, by FIN, and not before it",
  requirements = { "RDMAP-7-3", "DDP-3-11", "RDMAP-6.2.1-8", "DDP-6.2.1-8", "DDP-6.2-1", "DDP-6.2.2-3", "DDP-6.2.2-4" },
  roles = { "responder", "initiator" },
  capabilities = { "operation" },
  tags = { "terminate", "refusal" },

  run = function(t)
    t:good_exchange()

    local conn, op = t:operate()
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft", qn = 77, msn = op.msn } }, { deviates = true })
    conn:expect_terminate { told = { "DDP-6.2-1", "DDP-6.2.2-3", "DDP-6.2.2-4" } }
    -- A reset may take the Terminate away from whoever has not read it yet.
    conn:expect_close { requirement = { "RDMAP-6.2.1-8", "DDP-6.2.1-8" }, shows = { "RDMAP-7-3", "DDP-3-11" }, graceful = true }

    t:liveness()
  end,
}

case {
  id = "rdmap/4.8-terminate/ends-the-connection",
  version = 2,
  title = "Behind its Terminate a target does not keep the connection",
  requirements = { "RDMAP-7-3", "DDP-3-11" },
  roles = { "responder", "initiator" },
  capabilities = { "operation" },
  tags = { "terminate", "refusal", "slow" },

  run = function(t)
    t:good_exchange()

    local conn, op = t:operate()
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "weft", qn = 77, msn = op.msn } }, { deviates = true })
    conn:expect_terminate()
    conn:expect_close { requirement = { "RDMAP-7-3", "DDP-3-11" }, within = 60, overdue_fails = true }

    t:liveness()
  end,
}
