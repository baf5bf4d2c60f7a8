-- The Lua module `learn`: plays a sequence of inputs with a target, and describes the outputs of the
-- target after each input. `weft learn` infers the target's state machine from these outputs, and
-- `weft learn --diff` writes cases that call `learn.compare`.
--
-- An input is a name of `learn.inputs`. An output is a text, for example
-- "Reply Rev 1 C, Send of 4 bytes".
-- No requirement is judged, because a state machine only describes a target.

learn = { inputs = {} }

--- The output of an input after the end of the connection. Such an input sends nothing.
local ENDED = "ended"
--- Maximum number of messages after one input. A target that is never silent cannot be learned.
local MAX_MESSAGES = 50
--- Number of times that the rest of a message may be late.
local MAX_INCOMPLETE = 5
--- The output if the target sends nothing.
local SILENT = "-"

local TERMINATE = 7
local OPCODES = {
  [0] = "Write", "Read Request", "Read Response", "Send", "Send with Invalidate", "Send with SE", "Send with SE and Invalidate",
  "Terminate", "Immediate Data", "Immediate Data with SE", "Atomic Request", "Atomic Response",
}

local function hex(octets)
  local digits = {}
  for at = 1, #octets do
    digits[at] = ("%02x"):format(octets:byte(at))
  end
  return table.concat(digits)
end

local FLAGS = { { 0x80, "M" }, { 0x40, "C" }, { 0x20, "R" }, { 0x10, "S" } }

--- Describes a start-up frame with the flags that are set.
local function describe_frame(name, frame)
  local words = { name, "Rev", frame.revision }
  for _, flag in ipairs(FLAGS) do
    if frame.flags & flag[1] ~= 0 then
      words[#words + 1] = flag[2]
    end
  end
  if frame.flags & 0x0f ~= 0 then
    words[#words + 1] = ("reserved bits %x"):format(frame.flags & 0x0f)
  end
  local pd_length = string.unpack(">I2", frame.octets, 19)
  if pd_length > 0 then
    words[#words + 1] = "PD_Length " .. pd_length
  end
  -- IRD and ORD are shown, but not the private data, which may be random.
  if frame.flags & 0x10 ~= 0 then
    words[#words + 1] = hex(frame.octets:sub(21, 24))
  end
  return table.concat(words, " ")
end

local function describe_fpdu(s, fpdu)
  local words = { OPCODES[fpdu.opcode or -1] or "FPDU" }
  if fpdu.opcode == TERMINATE and fpdu.payload and #fpdu.payload >= 4 then
    words[#words + 1] = hex(fpdu.payload:sub(1, 2)) .. " " .. hex(fpdu.payload:sub(3, 4))
    words[#words + 1] = ("(%d bytes)"):format(#fpdu.payload)
  elseif fpdu.payload then
    words[#words + 1] = ("of %d bytes"):format(#fpdu.payload)
  end
  -- Only an unexpected MSN is shown. A number that always rises would need a state for each value.
  if fpdu.msn and fpdu.qn == 0 then
    if fpdu.msn ~= s.expected_msn then
      words[#words + 1] = ("MSN %d instead of %d"):format(fpdu.msn, s.expected_msn)
    end
    s.expected_msn = (fpdu.msn + (fpdu.last and 1 or 0)) & 0xffffffff
  end
  if not fpdu.last then
    words[#words + 1] = "L=0"
  end
  if s.has_crc and not fpdu.crc_is_right then
    words[#words + 1] = "wrong CRC"
  end
  return table.concat(words, " ")
end

--- Waits until the target is silent for `within` seconds, and describes what it sent.
local function outputs(s, within)
  local found, incomplete = {}, 0
  while not s.ended do
    if #found == MAX_MESSAGES then
      found[#found + 1] = "more messages without end"
      s.ended = true
      break
    end
    local event, fields = s.conn:next { within = within }
    if event == nil then
      break
    elseif event == "close" then
      found[#found + 1] = "close"
      s.ended = true
    elseif event == "octets" then
      -- The rest of a slow message may follow.
      incomplete = incomplete + 1
      if incomplete > MAX_INCOMPLETE then
        found[#found + 1] = "other bytes"
        s.ended = true
      end
    elseif event == "fpdu" then
      ---@cast fields weft.Fpdu
      found[#found + 1] = describe_fpdu(s, fields)
    else
      ---@cast fields weft.Reply
      s.has_crc = s.sent_crc or fields.crc
      found[#found + 1] = describe_frame(event == "reply" and "Reply" or "Request", fields)
    end
  end
  return #found > 0 and table.concat(found, ", ") or SILENT
end

--- Sends a start-up frame. The tester recognises a start-up frame that is sent at once, and changes
--- its settings for markers and CRCs. So only the first frame of a connection is sent at once.
local function send_frame(s, frame, options)
  options = options or {}
  options.deviates = true
  if s.is_started then
    local octets = frame:octets()
    s.conn:send(octets:sub(1, 1), options)
    s.conn:send(octets:sub(2), options)
  else
    s.conn:send(frame, options)
    s.sent_crc = frame:octets():byte(17) & 0x40 ~= 0
  end
  s.is_started = true
end

local function request(options)
  return function(s)
    send_frame(s, s.t:request(options))
  end
end

local function raw_request(fields)
  return function(s)
    send_frame(s, mpa.request(fields))
  end
end

local function reply(fields)
  return function(s)
    send_frame(s, s.conn:reply(fields))
  end
end

local function send(s, change)
  local fpdu = mpa.fpdu { ulpdu = rdmap.send { msn = s.msn, payload = "weft" } }
  s.msn = s.msn + 1
  s.conn:send(change and change(fpdu) or fpdu, { deviates = true })
end

local inputs = learn.inputs

-- Start-up frames of an initiator.
inputs["request"] = request {}
inputs["request-without-crc"] = request { crc = false }
inputs["request-markers"] = request { markers = true }
inputs["request-private-data"] = raw_request { private_data = "weft-learn" }
inputs["request-private-data-512"] = raw_request { private_data = ("x"):rep(512) }
inputs["request-private-data-513"] = raw_request { private_data = ("x"):rep(513) }
inputs["request-surplus"] = raw_request { pd_length = 4, private_data = "12345678" }
inputs["request-enhanced"] = raw_request { enhanced = true, revision = 2, ird = 3, ord = 5 }
inputs["request-enhanced-0"] = raw_request { enhanced = true, revision = 2, ird = 0, ord = 0 }
inputs["request-enhanced-open"] = raw_request { enhanced = true, revision = 2, ird = 0x3fff, ord = 0x3fff }
inputs["request-peer-to-peer"] = raw_request {
  enhanced = true, revision = 2, ird = 3, ord = 5, peer_to_peer = true, rtr_send = true, rtr_write = true, rtr_read = true,
}
inputs["request-peer-to-peer-send"] = raw_request {
  enhanced = true, revision = 2, ird = 3, ord = 5, peer_to_peer = true, rtr_send = true,
}
inputs["request-peer-to-peer-write"] = raw_request {
  enhanced = true, revision = 2, ird = 3, ord = 5, peer_to_peer = true, rtr_write = true,
}
inputs["request-peer-to-peer-none"] = raw_request { enhanced = true, revision = 2, ird = 3, ord = 5, peer_to_peer = true }
inputs["request-short-words"] = raw_request { flags = 0x50, revision = 2, private_data = "ab" }
inputs["request-s-of-revision-1"] = raw_request { flags = 0x50, revision = 1, private_data = "\0\3\0\5" }
inputs["request-revision-0"] = raw_request { revision = 0 }
inputs["request-revision-2"] = raw_request { revision = 2 }
inputs["request-revision-3"] = raw_request { revision = 3 }
inputs["request-rejecting"] = raw_request { reject = true }
inputs["request-reserved-bits"] = raw_request { flags = 0x4f }
inputs["request-wrong-key"] = raw_request { key = "MPA ID Req Frome" }
inputs["request-in-pieces"] = function(s)
  send_frame(s, s.t:request {}, { every = 1 })
end
inputs["half-request"] = function(s)
  s.is_partial = true
  s.conn:send(s.t:request {}:octets():sub(1, 10), { deviates = true })
end

-- Start-up frames of a responder. An initiator sends its Request without an input.
inputs["reply"] = reply {}
inputs["reply-without-crc"] = reply { crc = false }
inputs["reply-markers"] = reply { markers = true }
inputs["reply-rejecting"] = reply { reject = true }
inputs["reply-private-data"] = reply { private_data = "weft-learn" }
inputs["reply-wrong-key"] = reply { key = "MPA ID Rep Frome" }
inputs["reply-revision-0"] = reply { revision = 0 }
inputs["reply-revision-3"] = reply { revision = 3 }
inputs["reply-reserved-bits"] = reply { flags = 0x4f }
inputs["reply-private-data-513"] = reply { private_data = ("x"):rep(513) }
inputs["reply-many-reads"] = reply { ord = 0x3ffe }
inputs["reply-no-reads"] = reply { ird = 0, ord = 0 }
inputs["reply-open-depths"] = reply { ird = 0x3fff, ord = 0x3fff }
inputs["reply-send"] = reply { rtr_send = true, rtr_write = false, rtr_read = false }
inputs["reply-write"] = reply { rtr_send = false, rtr_write = true, rtr_read = false }
inputs["reply-read"] = reply { rtr_send = false, rtr_write = false, rtr_read = true }
inputs["reply-read-open"] = reply { rtr_send = false, rtr_write = false, rtr_read = true, ird = 0x3fff, ord = 0x3fff }
inputs["reply-no-kind"] = reply { rtr_send = false, rtr_write = false, rtr_read = false }
inputs["reply-unenhanced"] = reply { enhanced = false, revision = 1 }
inputs["half-reply"] = function(s)
  s.is_partial = true
  s.conn:send(s.conn:reply {}:octets():sub(1, 10), { deviates = true })
end

-- FPDUs.
inputs["send"] = send
inputs["send-wrong-crc"] = function(s)
  send(s, function(fpdu)
    return fpdu:flip(#fpdu - 1)
  end)
end
inputs["send-in-pieces"] = function(s)
  local fpdu = mpa.fpdu { ulpdu = rdmap.send { msn = s.msn, payload = "weft" } }
  s.msn = s.msn + 1
  s.conn:send(fpdu, { every = 1, deviates = true })
end
inputs["half-send"] = function(s)
  s.is_partial = true
  s.conn:send(mpa.fpdu { ulpdu = rdmap.send { msn = s.msn, payload = "weft" } }:octets():sub(1, 9), { deviates = true })
end
inputs["empty-fpdu"] = function(s)
  s.conn:send(mpa.fpdu { ulpdu = "" }, { deviates = true })
end
inputs["write-of-0-bytes"] = function(s)
  s.conn:send(mpa.fpdu { ulpdu = rdmap.write {} }, { deviates = true })
end
inputs["read-of-0-bytes"] = function(s)
  s.conn:send(mpa.fpdu { ulpdu = rdmap.read_request { sink_stag = 0x7766, src_stag = 0x99, msn = s.read_msn } }, { deviates = true })
  s.read_msn = s.read_msn + 1
end
inputs["send-of-0-bytes"] = function(s)
  s.conn:send(mpa.fpdu { ulpdu = rdmap.send { msn = s.msn } }, { deviates = true })
  s.msn = s.msn + 1
end
inputs["terminate"] = function(s)
  s.conn:send(mpa.fpdu { ulpdu = rdmap.send { opcode = TERMINATE, qn = 2, payload = "\0\0\0\0" } }, { deviates = true })
end

-- The end, and time.
inputs["fin"] = function(s)
  s.conn:finish()
  s.finished = true
end
inputs["wait"] = function(s)
  s.waits = true
end

--- Opens a connection, plays the inputs, and returns the output of each input. The first output is
--- that of the connection itself.
function learn.play(t, names, within)
  local s = { t = t, conn = t:connect(), msn = 1, read_msn = 1, expected_msn = 1, has_crc = true }
  local found = { outputs(s, within) }
  for _, name in ipairs(names) do
    if s.ended then
      found[#found + 1] = ENDED
    elseif (s.finished or s.is_partial) and name ~= "wait" and (s.finished or name ~= "fin") then
      -- After FIN, the tester cannot send. After a part of a message, other bytes would complete the
      -- message at some place, and each place would need a state.
      found[#found + 1] = SILENT
    else
      s.waits = false
      inputs[name](s)
      found[#found + 1] = outputs(s, s.waits and 100 or within)
    end
  end
  s.conn:reset()
  return found
end

--- Plays the inputs, and ends the case with the outputs, one in each line.
function learn.observe(t, names, within)
  t:unimplemented(table.concat(learn.play(t, names, within), "\n"))
end

--- Plays the inputs. The case passes if the target's last output is that of `wanted`. Otherwise the
--- case is inconclusive, because no rule decides which output is correct.
function learn.compare(t, names, within, wanted, other)
  t:good_exchange()
  local found = learn.play(t, names, within)
  local last = found[#found]
  if last ~= wanted.output then
    local like = last == other.output and "like " .. other.name or "like neither"
    t:inconclusive(("The target behaves %s. Its last output is: %s"):format(like, last))
  end
  -- A case needs a requirement. No target can violate this one, because it is a permission.
  t:check(true, { requirement = "MPA-7.1-3", expected = ("the output of %s: %s"):format(wanted.name, last), actual = last })
end
