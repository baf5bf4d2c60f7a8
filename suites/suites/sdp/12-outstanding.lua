-- A change of the Mode while advertisements are open and data is in flight
-- (draft-pinkerton-iwarp-sdp-01 sections 11.3, 12.3 and 12.4).

--- The requirements of a Data Sink after a ModeChange out of Pipelined Mode.
local dropped = { "SDP-12.4-14", "SDP-12.5-10", "SDP-12.5-11", "SDP-12.5-24" }

case {
  id = "sdp/12-outstanding/back-and-forth",
  title = "After each ModeChange out of Pipelined Mode, the target drops its SinkAvails, serves a SrcAvail, and loses no data",
  requirements = { dropped, "SDP-8.2-1" },
  capabilities = { "sdp-echo" },

  run = function(t)
    local s, hello_ack = t:sdp { hello = sdp.hello { max_adverts = 8 } }
    local c = sdp_flow.new(t, s, hello_ack.act_rcv_sz, true)
    for _ = 1, 2 do
      local before = c.sink_avails
      c:change(2)
      c:receive(0.1, dropped)
      if c.sink_avails == before then
        t:unimplemented("The target sends no SinkAvail in Pipelined Mode.")
      end
      -- For the target, the ModeChange and the SrcAvail cross its SinkAvails and its echo.
      c:write(300)
      c:send(7)
      c:change(1)
      c:offer(2000, dropped)
      c:send(5)
      c:receive(0.1, dropped)
      c:read_held()
    end
    c:finish("SDP-8.2-1")
    s:close { past = sdp_flow.COMES }
  end,
}

for _, service in ipairs { "echo", "sink" } do
  case {
    id = "sdp/12-outstanding/pipelined-while-read-" .. service,
    title = "The target reads the rest of a SrcAvail after a ModeChange to Pipelined Mode, and then uses Pipelined Mode",
    requirements = { "SDP-12.3-2", service == "echo" and { "SDP-8.2-1" } or {} },
    capabilities = { "sdp-" .. service },

    run = function(t)
      local s, hello_ack = t:sdp { hello = sdp.hello { max_adverts = 8 } }
      local c = sdp_flow.new(t, s, hello_ack.act_rcv_sz, service == "echo")
      local is_read = c:offer(12000, "SDP-12.3-2", function()
        -- The monitor reports a SinkAvail before all bytes are read.
        c:change(2)
        t:pause(0.05)
      end)
      if not is_read then
        t:unimplemented("The target rejects the SrcAvail with SendSm.")
      end
      for _ = 1, 3 do
        c:receive(0.1, "SDP-12.3-2")
        c:read_held()
        c:write(500)
      end
      if service == "echo" then
        c:finish("SDP-8.2-1")
      else
        s:expect_open { within = 0.1, requirement = "SDP-12.3-2" }
      end
      s:close { past = sdp_flow.COMES }
    end,
  }
end
