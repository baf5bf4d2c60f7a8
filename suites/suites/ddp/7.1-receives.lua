-- RFC 5041 sections 1.2, 7.1 and 7.2, RFC 5040 section 5.3: Sends for which the target's user has
-- posted no receive, too few receives, or only a receive that is too short. The cases use an agent:
-- a program on the target that calls the NIC's verbs for the tester.

case {
  id = "ddp/7.1-receives/none",
  title = "The target rejects a Send for which no receive is posted, or lets the Send wait for a receive",
  requirements = { "DDP-7.1-2", "DDP-1.2-2", "DDP-7.2-9", "DDP-7.1-20" },
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "send", "refusal", "agent" },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair, op = target:operate {}
    local region = target:region { octets = 16, access = { "local_write" } }
    conn:send(mpa.fpdu { ulpdu = rdmap.send { msn = op.msn, payload = "early" } })
    -- The target may reject the Send or let it wait (RFC 5041 section 7.1). The tester cannot
    -- observe that a Send waits.
    local event, fpdu = conn:next { within = 3 }
    if event == nil then
      local work = pair:post_receive { region = region }
      pair:expect_completion { work = work, octets = 5, requirement = { "DDP-7.1-2", "DDP-1.2-2" }, overdue_fails = true }
      t:unimplemented("The device lets a Send wait for its receive, so there is no error to report.")
    else
      t:check(event == "close" or event == "fpdu" and fpdu.opcode == 7, {
        requirement = { "DDP-7.1-2", "DDP-1.2-2" },
        expected = "a rejection, or nothing",
        actual = event == "fpdu" and ("opcode %d"):format(fpdu.opcode) or event,
      })
      -- A close without a Terminate reports no error.
      t:check(event == "fpdu", { expected = "a Terminate", actual = event })
      local layer, code = fpdu.payload:byte(1, 2)
      t:check(layer == 0x12 and code == 2, {
        requirement = "DDP-7.2-9",
        expected = "Terminate 12 02",
        actual = ("Terminate %02x %02x"):format(layer or 0, code or 0),
      })
      conn:expect_close()
      pair:expect_error { or_end = true, requirement = "DDP-7.1-20", overdue_fails = true }
    end
  end,
}

case {
  id = "ddp/7.1-receives/too-long",
  title = "The target rejects and reports a Send longer than its receive, and writes nothing after the buffer",
  requirements = { "DDP-7.1-8", "RDMAP-5.3-4", "DDP-7.2-12", "DDP-7.1-20" },
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "send", "refusal", "agent" },
  -- The buffer is in the middle of a region. With size 17, the only segment is too long. With size
  -- 1400, the second segment is too long.
  parameters = { size = { 17, 1400 } },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair, op = target:operate {}
    local region = target:region { octets = 3072, access = { "local_write" }, fill = 5 }
    local length = p.size == 17 and 16 or 1200
    pair:post_receive { region = region, offset = 1024, length = length }
    for at = 0, p.size - 1, 1024 do
      local piece = ("w"):rep(math.min(1024, p.size - at))
      conn:send(mpa.fpdu { ulpdu = rdmap.send { msn = op.msn, mo = at, payload = piece, last = at + #piece == p.size } })
    end
    local ALL = { "DDP-7.1-8", "RDMAP-5.3-4" }
    conn:expect_terminate { requirement = ALL, code = "DDP-7.2-12", error = "12 05" }
    conn:expect_close()
    pair:expect_error { or_end = true, requirement = "DDP-7.1-20", overdue_fails = true }
    local was, got = target:pattern(5, 3072), region:get {}
    t:check(got:sub(1, 1024) == was:sub(1, 1024) and got:sub(1025 + length) == was:sub(1025 + length), {
      requirement = "DDP-7.1-8",
      expected = "unchanged bytes before and after the buffer",
      actual = "changed bytes",
    })
  end,
}

case {
  id = "ddp/7.1-receives/dry",
  title = "If there are more Sends than receives, the target delivers a Send to each receive, and rejects the others or lets them wait",
  requirements = { "RDMAP-5.3-5", "DDP-7.1-2" },
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "send", "receives", "agent" },
  -- The Sends have one segment each, or the receives run out in the middle of a Send.
  parameters = { segments = { 1, 2 } },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair, op = target:operate {}
    local region = target:region { octets = 64, access = { "local_write" } }
    local works, sends = {}, nil
    for nth = 1, 2 do works[nth] = pair:post_receive { region = region, offset = 16 * (nth - 1), length = 16 } end
    for nth = 1, 4 do
      for segment = 1, p.segments do
        local payload = ("%d"):format(nth):rep(16 // p.segments)
        local ulpdu = rdmap.send {
          msn = op.msn + nth - 1, mo = (segment - 1) * #payload, payload = payload, last = segment == p.segments,
        }
        sends = sends and sends .. mpa.fpdu { ulpdu = ulpdu } or mpa.fpdu { ulpdu = ulpdu }
      end
    end
    conn:send(sends)
    local function expect(nth)
      pair:expect_completion { work = works[nth], octets = 16, requirement = "RDMAP-5.3-5", overdue_fails = true }
    end
    for nth = 1, 2 do expect(nth) end
    local event, fpdu = conn:next { within = 3 }
    local is_rejected = event == "close" or event == "fpdu" and fpdu.opcode == 7
    if event == nil then
      for nth = 3, 4 do works[nth] = pair:post_receive { region = region, offset = 16 * (nth - 1), length = 16 } end
      for nth = 3, 4 do expect(nth) end
    end
    t:check(is_rejected or event == nil, {
      requirement = "DDP-7.1-2",
      expected = "a rejection, or the delivery of the waiting Sends",
      actual = event == "fpdu" and ("an FPDU with opcode %d"):format(fpdu.opcode) or event,
    })
    local got, want = region:get {}, ("1"):rep(16) .. ("2"):rep(16)
    t:check(got:sub(1, #want) == want, {
      requirement = "RDMAP-5.3-5",
      expected = "the bytes of the first two Sends in their receives",
      actual = octets.difference(got:sub(1, #want), want),
    })
    conn:reset()
  end,
}
