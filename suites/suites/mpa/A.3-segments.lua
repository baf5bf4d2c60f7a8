-- RFC 5044 appendix A.3: a TCP segment that repeats bytes which the target has already processed
-- has no effect on these bytes.

local KEPT = "MPA-A.3-1"

case {
  id = "mpa/A.3-segments/overwrite",
  title = "The target keeps the data of a Write if a retransmission of the Write has other data",
  requirements = { KEPT },
  roles = { "responder", "initiator" },
  capabilities = { "rping", "segments" },
  tags = { "write", "segments" },
  parameters = { size = { 8, 64 } },

  run = function(t, p)
    t:good_exchange()

    local conn, op = t:operate()
    local first, other = ("first..."):rep(p.size // 8), ("another "):rep(p.size // 8)
    local function write(payload)
      return mpa.fpdu { ulpdu = rdmap.write { stag = op.stag, tagged_offset = op.to, payload = payload } }
    end
    local function read(msn)
      return mpa.fpdu {
        ulpdu = rdmap.read_request { sink_stag = 0x7766, rdmardsz = p.size, src_stag = op.stag, src_to = op.to, msn = msn },
      }
    end
    -- The Read shows that the target has processed the Write, so the retransmission comes later. A
    -- target may use either copy of a segment that it has not yet processed.
    conn:send(write(first))
    conn:send(read(1))
    conn:expect_fpdu { opcode = 2, payload = first }

    conn:retransmit(write(other), { back = 1, deviates = true })
    t:pause(0.2)
    conn:send(read(2))
    conn:expect_fpdu { requirement = KEPT, opcode = 2, payload = first, overdue_fails = true }
    conn:close()
  end,
}
