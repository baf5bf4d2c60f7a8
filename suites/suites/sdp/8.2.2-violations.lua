-- Messages that end a connection: malformed messages, answers without a request, and messages that
-- the Mode does not allow (sections 8.2.2 and 12).

-- Messages that may be in flight when the violation arrives.
local UNDER_WAY = {
  "sink_avail", "sink_avail_cancel", "data", "src_avail", "src_avail_cancel", "ch_rcv_buf", "mode_change", "dis_conn",
}

local function nothing() end

-- An implementation should end the connection on a violation (SDP-8.2.2-8). A target that continues
-- violates only this requirement. If the target ends the connection, it also meets the requirements
-- that define the violation.
local function violation(name, title, shown, capability, prepare, make, parameters)
  case {
    id = "sdp/8.2.2-violations/" .. name,
    version = 3,
    title = title,
    requirements = { "SDP-8.2.2-8", shown },
    capabilities = { capability },
    tags = { "violation" },
    parameters = parameters,

    run = function(t, p)
      t:good_exchange()
      local s = t:sdp {}
      prepare(s, p)
      -- After an advertisement, plain Data gets no answer of its own. So no control (a repetition
      -- of the case with plain Data) is possible then.
      s:send(make(p), { deviates = prepare == nothing })
      s:expect_end { requirement = "SDP-8.2.2-8", shows = shown, overdue_fails = true, past = UNDER_WAY }
    end,
  }
end

violation("reserved-mid", "The target ends the connection on a message of a reserved MID", { "SDP-8.2.2-10" }, "sdp", nothing,
  function(p) return sdp.data { mid = p.mid } end, { mid = { 0x0f, 0x3f, 0x80, 0xfc } })
-- A source may have an outstanding SrcAvail at any time. An echo that has received nothing has no
-- outstanding SrcAvail.
violation("rd-compl-of-nothing", "The target ends the connection on a RdmaRdCompl without SrcAvail", { "SDP-8.2.2-10" }, "sdp-echo", nothing,
  function() return sdp.rdma_rd_compl { length = 100 } end)
violation("wr-compl-of-nothing", "The target ends the connection on a RdmaWrCompl without SinkAvail", { "SDP-8.2.2-10" }, "sdp", nothing,
  function() return sdp.rdma_wr_compl { length = 100 } end)
violation("send-sm-of-nothing", "The target ends the connection on a SendSm without SrcAvail", { "SDP-8.2.2-10" }, "sdp-echo", nothing,
  function() return sdp.send_sm {} end)
violation("ack-of-nothing", "The target ends the connection on a ChRcvBufAck without ChRcvBuf", { "SDP-8.2.2-10" }, "sdp", nothing,
  function() return sdp.ch_rcv_buf_ack {} end)
violation("length", "The target ends the connection on a message with a wrong Len", { "SDP-8.2.2-11" }, "sdp", nothing,
  function(p) return sdp.data { payload = "abcd", len = p.len } end, { len = { 0, 15, 16, 19, 21, 4096 } })
violation("payload", "The target ends the connection on payload in a message that may have none", { "SDP-8.2.2-11" }, "sdp", nothing,
  function(p)
    local make = { dis_conn = sdp.dis_conn, send_sm = sdp.send_sm, mode_change = sdp.mode_change, ch_rcv_buf = sdp.ch_rcv_buf }
    return make[p.message] { payload = "abcd" }
  end, { message = { "dis_conn", "send_sm", "mode_change", "ch_rcv_buf" } })
violation("mode-value", "The target ends the connection on a ModeChange to a reserved Mode", { "SDP-8.2.2-11" }, "sdp", nothing,
  function(p) return sdp.mode_change { mode = p.mode } end, { mode = { 3, 7 } })

local function open_src_avail(s)
  s:command "send 2000"
  s:expect "src_avail"
end

violation("rd-compl-too-long", "The target ends the connection on a RdmaRdCompl of more bytes than were advertised",
  { "SDP-9.2-21", "SDP-8.2.2-10" }, "sdp-drive", open_src_avail,
  function(p) return sdp.rdma_rd_compl { length = p.length } end, { length = { 2001, 0x7fffffff } })

case {
  id = "sdp/8.2.2-violations/invalidates-other",
  version = 2,
  title = "The target ends the connection on a completion that invalidates another STag",
  requirements = { "SDP-8.2.2-8", "SDP-9.2-28", "SDP-9.2-29" },
  capabilities = { "sdp-drive" },
  tags = { "violation" },

  run = function(t)
    local s = t:sdp {}
    s:command "mode out pipelined; send 2000; send 2000"
    s:expect "mode_change"
    local a, b = s:expect "src_avail", s:expect "src_avail"
    s:read { stag = a.stag, va = a.va, length = a.length }
    s:expect_response {}
    s:send(sdp.rdma_rd_compl { length = a.length }, { invalidate = b.stag })
    s:expect_end { requirement = "SDP-8.2.2-8", shows = { "SDP-9.2-28", "SDP-9.2-29" }, overdue_fails = true }
  end,
}

case {
  id = "sdp/8.2.2-violations/wr-compl-invalidates-other",
  version = 2,
  title = "The target ends the connection on a RdmaWrCompl that invalidates another STag",
  requirements = { "SDP-8.2.2-8", "SDP-9.3-11", "SDP-9.3-12" },
  capabilities = { "sdp-echo" },
  tags = { "violation" },

  run = function(t)
    local s = t:sdp {}
    s:send(sdp.mode_change { mode = 2 })
    local a, b = s:expect "sink_avail", s:expect "sink_avail"
    s:write { stag = a.stag, va = a.va, payload = "abc" }
    s:send(sdp.rdma_wr_compl { length = 3 }, { invalidate = b.stag })
    -- The target may advertise more than two.
    s:expect_end { requirement = "SDP-8.2.2-8", shows = { "SDP-9.3-11", "SDP-9.3-12" }, overdue_fails = true, past = UNDER_WAY }
  end,
}

-- The Modes of the target's sending half, then of its receiving half: SDP-11-16 to 11-24 in this
-- order. A target that ends the connection on an allowed message violates the requirement of its
-- two Modes. A target that continues after a message that is not allowed violates only SDP-8.2.2-8,
-- as in the other cases of this file.
local MODES = { "buffered", "combined", "pipelined" }
local NAMES = { buffered = "Buffered", combined = "Combined", pipelined = "Pipelined" }
local STEPS = { buffered = 0, pipelined = 2 }

--- A connection whose two halves are in these Modes.
local function in_modes(t, sends, receives)
  local s = t:sdp {}
  if sends ~= "combined" then
    s:command("mode out " .. sends)
    s:expect "mode_change"
  end
  if STEPS[receives] then
    s:send(sdp.mode_change { mode = STEPS[receives] })
  end
  return s
end

for back, sends in ipairs(MODES) do
  for out, receives in ipairs(MODES) do
    local row = "SDP-11-" .. 12 + 3 * back + out
    local tries = {
      { allowed = receives ~= "buffered", message = function()
        return sdp.src_avail { length = 600, payload = receives == "combined" and "s" or nil }
      end },
      { allowed = sends == "pipelined", message = function() return sdp.sink_avail { length = 2000 } end },
    }
    -- If neither message is allowed, the end of the connection shows that the requirement is met.
    local shown = not (tries[1].allowed or tries[2].allowed) and row or nil
    case {
      id = "sdp/8.2.2-violations/" .. sends .. "-" .. receives,
      version = 2,
      title = "The target ends the connection only on forbidden messages, while it sends in " .. NAMES[sends] .. " and receives in " .. NAMES[receives] .. " Mode",
      requirements = tries[1].allowed and tries[2].allowed and { row } or { row, "SDP-8.2.2-8" },
      capabilities = { "sdp-drive" },
      tags = { "violation", "mode" },

      run = function(t)
        t:good_exchange()
        for _, try in ipairs(tries) do
          local s = in_modes(t, sends, receives)
          s:send(try.message(), { deviates = not try.allowed })
          if try.allowed then
            s:expect_open { requirement = row, within = 0.3 }
          else
            s:expect_end { requirement = "SDP-8.2.2-8", shows = shown, overdue_fails = true, past = { "sink_avail" } }
          end
        end
      end,
    }
  end
end

case {
  id = "sdp/8.2.2-violations/mode-change-out-of-order",
  version = 2,
  title = "The target ends the connection on a ModeChange that the current Mode or the sender's role does not allow",
  requirements = { "SDP-8.2.2-8", "SDP-12-7" },
  capabilities = { "sdp" },
  tags = { "violation", "mode" },
  parameters = { from = { "buffered", "pipelined" } },

  run = function(t, p)
    t:good_exchange()
    local s = t:sdp {}
    s:send(sdp.mode_change { mode = p.from == "buffered" and 0 or 2 })
    s:send(sdp.mode_change { mode = p.from == "buffered" and 2 or 0 }, { deviates = true })
    s:expect_end { requirement = "SDP-8.2.2-8", shows = "SDP-12-7", overdue_fails = true, past = UNDER_WAY }
  end,
}
