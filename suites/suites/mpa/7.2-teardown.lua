-- RFC 5044 section 7.2: the end of a connection.

case {
  id = "mpa/7.2-teardown/whole",
  version = 1,
  title = "What a target still has to say when its peer closes goes out in whole FPDUs, and its FIN behind them",
  requirements = { "MPA-7.2-1" },
  roles = { "responder" },
  capabilities = { "echo" },
  tags = { "fpdu", "teardown" },
  parameters = { payload = { 1, 4, 1000 } },

  run = function(t, p)
    t:good_exchange()

    local payload = ("w"):rep(p.payload)
    local conn, op = t:operate()
    conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = payload, msn = op.msn } })
    conn:finish()
    conn:expect_fpdu { requirement = "MPA-7.2-1", opcode = 3, payload = payload, crc = true, overdue_fails = true }
    conn:expect_close { requirement = "MPA-7.2-1" }

    t:liveness()
  end,
}
