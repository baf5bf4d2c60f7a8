-- How connections end (draft-pinkerton-iwarp-sdp-01 sections 6.2 and 8.2).

case {
  id = "sdp/8.2.1-close/by-tester",
  version = 2,
  title = "The target answers DisConn with DisConn, and ends TCP",
  requirements = { "SDP-8.2.1-21" },
  -- A source first has to send its data (section 8.2.1). The case sdp/9-transfer/source receives
  -- this data, and then closes the connection.
  capabilities = { "sdp-echo" },

  run = function(t)
    local s = t:sdp {}
    s:send(sdp.dis_conn {})
    s:expect("dis_conn", { requirement = "SDP-8.2.1-21", overdue_fails = true })
    s:expect_end { graceful = true, requirement = "SDP-8.2.1-21", overdue_fails = true }
  end,
}

-- Declares a case with a driven socket, which is weft's own SDP socket that executes commands.
-- `run` gets the connection, on which SDP has started, and the requirements that the monitor judges
-- in the messages `shown`. `declared` has the other fields of the case.
local function observed(name, title, requirements, shown, declared, run)
  shown = sdp.shown(shown)
  declared.id, declared.title = "sdp/8.2.1-close/" .. name, title
  declared.requirements = { requirements, shown }
  declared.capabilities = { "sdp-drive" }
  declared.run = function(t)
    run((t:sdp {}), shown)
  end
  return declared
end

case(observed("by-target", "The target accepts the tester's messages after it has sent DisConn",
  { "SDP-8.2.1-3", "SDP-8.2.1-10", "SDP-8.2.1-11" }, { "hello_ack", "dis_conn", "data" }, { version = 2 }, function(s, shown)
  s:command "send 300; shut"
  s:collect(300)
  s:expect "dis_conn"
  for _ = 1, 20 do
    s:send(sdp.data { payload = ("p"):rep(300) })
  end
  s:expect_quiet { within = 0.2, requirement = { "SDP-8.2.1-3", "SDP-8.2.1-10", "SDP-8.2.1-11" }, overdue_fails = true }
  s:send(sdp.dis_conn {})
  s:connection():finish()
  s:expect_end { shows = shown }
end))

case(observed("half-closed", "The target sends DisConn after all data that its user posted", {},
  { "hello_ack", "dis_conn", "data", "src_avail", "combined" }, { version = 2 }, function(s, shown)
  s:command "wait 30; send 300; send 2000; shut"
  s:expect_quiet { within = 0.01 }
  s:collect(2300)
  s:expect "dis_conn"
  s:send(sdp.dis_conn {})
  s:connection():finish()
  s:expect_end { shows = shown }
end))

case(observed("aborted-after", "The target sends AbortConn after DisConn", {},
  { "hello_ack", "dis_conn", "abort_conn", "data", "SDP-6.2.4-2" }, { version = 2 }, function(s, shown)
  s:command "send 10; shut; wait 10; abort"
  s:collect(10)
  s:expect "dis_conn"
  s:expect_end { shows = shown }
end))

case(observed("aborted", "The target closes abortively without DisConn", {},
  { "hello_ack", "data", "SDP-6.2.4-2" }, { version = 2 }, function(s, shown)
  s:command "send 10; wait 10; abort"
  s:expect "data"
  s:expect_end { past = { "data" }, shows = shown }
end))
