-- The Lua module `sdp_flow`: a connection whose messages the case chooses, and a stream of bytes on
-- it. The module counts the bytes and the advertisements, so that a case can keep advertisements
-- open while it sends more bytes.

sdp_flow = {}

--- Messages that a target may send at any time.
sdp_flow.COMES = {
  "data", "src_avail", "sink_avail", "mode_change", "src_avail_cancel", "sink_avail_cancel", "ch_rcv_buf", "ch_rcv_buf_ack",
}
--- The same messages, and the end of the data of a target that sends data by itself.
local COMES_OR_ENDS = { "dis_conn", table.unpack(sdp_flow.COMES) }

--- The headers of a Data message have 16 bytes.
local HEADERS = 16
--- Number of payload bytes of a SrcAvail, and its VA.
local PAYLOAD, VA = 40, 0x700000001
--- Maximum number of bytes that the tester offers with one SrcAvail, or writes to one SinkAvail.
local MAX_OFFER = 60000

--- Returns the stream on the connection `s`, on which SDP has started. `size` is the size of the
--- target's Private Buffers in bytes. `is_echo` is true if the target returns the bytes. The stream
--- keeps no bytes of other targets, because they may send without end.
---
--- | field | content |
--- | --- | --- |
--- | `sent`, `got` | the bytes that the tester has sent, and the bytes of the echo |
--- | `open` | the SinkAvails of the target that the tester may use |
--- | `held` | the SrcAvails of the target that the tester has not read |
--- | `size` | the size of the target's Private Buffers in bytes |
--- | `mode` | the Mode of the half-connection to the tester |
--- | `ack` | the last ChRcvBufAck |
--- | `on_sink_avail` | a function that gets each SinkAvail; set by the case |
--- | `fetch` | a function that reads the bytes after the payload of a SrcAvail; set by the case |
--- | `early` | the requirements that payload violates while a SrcAvail is open; set by the case |
function sdp_flow.new(t, s, size, is_echo)
  local self = { sent = "", got = "", open = {}, held = {}, size = size, mode = 1, sink_avails = 0 }
  -- PotentialNonDiscards of section 9.5.1, and its value at the last ModeChange out of Pipelined
  -- Mode.
  local discards, known = 0, 0
  -- Whether the half-connection to the target is in Pipelined Mode.
  local is_pipelined, offers = false, 0

  local function change_discards(by) discards = (discards + by) & 0xffffffff end

  --- Returns the next bytes of the stream, and counts them as sent.
  local function next_bytes(count)
    local bytes = octets.counted(#self.sent + count):sub(#self.sent + 1)
    self.sent = self.sent .. bytes
    return bytes
  end

  --- Keeps bytes of the target.
  local function keep(bytes)
    if is_echo then self.got = self.got .. bytes end
  end

  --- Drops SinkAvails that are stale (section 9.5.1, step 4).
  local function drop_stale()
    while self.open[1] and self.open[1].non_discards ~= discards do
      table.remove(self.open, 1)
      change_discards(-1)
    end
  end

  --- Sends Data with this payload.
  local function send_data(payload)
    s:send(sdp.data { payload = payload })
    change_discards(1)
    drop_stale()
  end

  --- Counts a message of the target.
  function self:note(m)
    t:check(#m.payload == 0 or #self.held == 0, {
      requirement = self.early, expected = "no payload while a SrcAvail is open", actual = ("%d bytes of payload in %s"):format(#m.payload, m.name),
    })
    keep(m.payload)
    if m.name == "src_avail" then
      self.held[#self.held + 1] = m
    elseif m.name == "sink_avail" then
      self.sink_avails = self.sink_avails + 1
      if is_pipelined then
        self.open[#self.open + 1] = m
        drop_stale()
      elseif m.non_discards ~= known then
        -- A SinkAvail that crosses the ModeChange is void, but a stale one still counts.
        known = (known - 1) & 0xffffffff
        change_discards(-1)
      end
      if self.on_sink_avail then self.on_sink_avail(m) end
    elseif m.name == "mode_change" and m.s == 0 then
      self.mode = m.mode
    elseif m.name == "ch_rcv_buf_ack" then
      self.size, self.ack = m.act_sz, m
    end
  end

  --- For a number of seconds, receives messages of the target, which must keep the connection open.
  function self:receive(seconds, requirement)
    local past = is_echo and sdp_flow.COMES or COMES_OR_ENDS
    for _, m in ipairs(s:expect_quiet { within = seconds, past = past, requirement = requirement }) do self:note(m) end
  end

  --- Expects one of the messages `names`, and counts it.
  function self:expect(names, requirement)
    local m = s:expect(names, { requirement = requirement, overdue_fails = true, past = { "src_avail_cancel", "sink_avail_cancel", "ch_rcv_buf" } })
    self:note(m)
    return m
  end

  --- Sends `count` bytes in a Data message, or as many bytes as fit into it.
  function self:send(count) send_data(next_bytes(math.min(count, self.size - HEADERS))) end

  --- Writes `count` bytes into the oldest SinkAvail, or as many bytes as it has. If the tester may
  --- use no SinkAvail, sends Data.
  function self:write(count)
    local m = table.remove(self.open, 1)
    if not m then return self:send(count) end
    local bytes = next_bytes(math.min(count, m.length, MAX_OFFER))
    s:write { stag = m.stag, va = m.va, payload = bytes }
    s:send(sdp.rdma_wr_compl { length = #bytes }, { invalidate = m.stag })
  end

  --- Offers `count` bytes with a SrcAvail in Combined Mode, and answers the target until it has all
  --- bytes. `before` is optional: a function that is called before the answer to the first Read. A
  --- target that does not answer violates the requirement.
  function self:offer(count, requirement, before)
    local bytes = next_bytes(math.min(count, MAX_OFFER))
    offers = offers + 1
    s:send(sdp.src_avail { length = #bytes, payload = bytes:sub(1, PAYLOAD), stag = 0x900 + offers, va = VA })
    change_discards(1)
    local done, is_read = PAYLOAD, false
    while done < #bytes do
      local event, m = s:next { requirement = requirement, overdue_fails = true }
      if event == "read" then
        if before and not is_read then before() end
        is_read = true
        local first = m.src_to - VA
        s:answer_read(m, bytes:sub(first + 1, first + m.length))
      elseif event == "rdma_rd_compl" then
        done = done + m.length
      elseif event == "send_sm" then
        for at = done + 1, #bytes, self.size - HEADERS do
          send_data(bytes:sub(at, at + self.size - HEADERS - 1))
        end
        done = #bytes
      else
        self:note(m)
      end
    end
    return is_read
  end

  --- Reads all SrcAvails that the tester has not read. Returns their number.
  function self:read_held()
    local count = 0
    while #self.held > 0 do
      local m = table.remove(self.held, 1)
      keep(self.fetch and self.fetch(m) or s:fetch(m))
      count = count + 1
    end
    return count
  end

  --- Changes the half-connection to the target to Combined Mode (1) or Pipelined Mode (2).
  function self:change(mode)
    if mode ~= 2 then self.open, known = {}, discards end
    s:send(sdp.mode_change { mode = mode })
    is_pipelined = mode == 2
  end

  --- Receives the rest of an echo, and compares all bytes with the sent ones. Leaves Pipelined Mode
  --- before, because SinkAvails could use up MaxAdverts, so that SrcAvails of the echo would wait.
  function self:finish(requirement)
    if is_pipelined then self:change(1) end
    self:read_held()
    while #self.got < #self.sent do
      self:expect({ "data", "src_avail", "sink_avail" }, requirement)
      self:read_held()
    end
    t:check(self.got == self.sent, {
      requirement = requirement, expected = "an echo of all bytes", actual = octets.difference(self.got, self.sent),
    })
  end

  return self
end
