-- RFC 5044 sections 4.3 and 7.1.1, M: every sender can insert markers, and does so for a peer that
-- requests them.

case {
  id = "mpa/4.3-markers/requested",
  title = "The responder accepts a Request with M=1",
  requirements = { "MPA-4.3-3", "MPA-7.1.1-6" },
  tags = { "startup", "markers" },

  run = function(t)
    t:good_exchange()

    local conn = t:connect()
    conn:send(t:request { markers = true })
    conn:expect_reply { requirement = { "MPA-4.3-3", "MPA-7.1.1-6" }, reject = false }
    conn:close()
  end,
}

case {
  id = "mpa/4.3-markers/first",
  title = "The responder begins with a marker of zero after M=1, and inserts later markers at the right positions",
  requirements = {
    "MPA-7.1.1-9", "MPA-4.3-10", "MPA-4.3-11", "MPA-7.1.2-21", "MPA-4.2-1", "MPA-4.2-2", "MPA-4.2-4", "MPA-4.2-5", "MPA-4.3-4",
    "MPA-4.3-1", "MPA-4.4-17",
  },
  capabilities = { "markers", "echo", "crc" },
  tags = { "fpdu", "markers" },
  parameters = { payload = { 4, 480, 600, 1200 } },

  run = function(t, p)
    t:good_exchange()

    local conn = t:connect()
    conn:send(t:request { markers = true })
    conn:expect_reply { reject = false }
    t:pause(0.2)
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = ("w"):rep(p.payload) } })
    conn:expect_octets {
      requirement = { "MPA-7.1.1-9", "MPA-4.3-10", "MPA-4.3-11", "MPA-7.1.2-21" },
      shows = { "MPA-4.2-1", "MPA-4.2-2", "MPA-4.2-4", "MPA-4.2-5", "MPA-4.3-4", "MPA-4.3-1", "MPA-4.4-17" },
      begins = "\0\0\0\0",
      markers = true,
    }
    conn:close()
  end,
}

-- In the data without markers, a marker comes after each 508 bytes. Markers are at multiples of
-- four bytes, so a marker has 127 possible positions. 127 is a prime number, so in 127 FPDUs of one
-- length the marker is at every position: in front of the FPDU, in each header, in the payload, and
-- between PAD and CRC.
local POSITIONS = 127

--- Declares a case in which a marker is at each position of the FPDUs that the target sends. If the
--- target requests markers, a marker is also at each position of the FPDUs that the target
--- receives.
local function sweep(service, what, parameters, rows, run)
  local shown = { "MPA-4.2-1", "MPA-4.2-2", "MPA-4.2-4", "MPA-4.2-5", "MPA-4.3-4", "MPA-4.3-1", "MPA-4.4-17" }
  case {
    id = "mpa/4.3-markers/sweep-" .. service,
    title = "The target inserts correct markers at all positions of " .. what,
    requirements = { session[service:upper()], shown, rows },
    capabilities = { "markers", "crc", service },
    tags = { "fpdu", "markers" },
    parameters = parameters,

    run = function(t, p)
      local s = session[service](t)
      s:open(1, { markers = true })
      run(s, p)
      s:finish(shown)
    end,
  }
end

-- An FPDU with 1100 bytes of payload contains two or three markers. Together the FPDUs have more
-- than 128 KiB.
sweep("echo", "its Sends", { size = { 4, 5, 1100 } }, {}, function(s, p) s:burst(1, POSITIONS, p.size) end)

sweep("rping", "its Read Responses, Read Requests and Writes", {}, session.ROUNDS, function(s)
  for _ = 1, POSITIONS do s:read(1, { at = 0, size = 40 }) end
  s:rounds(1, POSITIONS, { size = 31 })
end)
