-- RFC 5040 sections 5.1 to 5.3: the messages that the target's user posts, by an agent on the target.

local DATA = ("weft octets that differ "):rep(200)
local STAG = 0x77656601

case {
  id = "rdmap/5.1-posted/write",
  version = 1,
  title = "The octets of a Write that is posted go to the STag and the Tagged Offset that the user says",
  requirements = { "RDMAP-5.1-1", "RDMAP-5.1-6", "DDP-4.2-5", "DDP-5.2-6", "RDMAP-4.3-1" },
  roles = { "responder", "initiator" },
  capabilities = { "agent" },
  tags = { "write", "agent" },
  parameters = { size = { 0, 1, 64, 4096 }, to = { 0, 5, -8192 } },

  run = function(t, p, target)
    t:good_exchange()
    local conn, pair = target:operate {}
    local region = target:region { octets = 4096, access = { "local_write" }, put = DATA:sub(1, 4096) }
    local work = pair:post_write { region = region, length = p.size, stag = STAG, to = p.to }
    local written = ""
    repeat
      local fpdu = conn:expect_fpdu { requirement = { "RDMAP-5.1-1", "RDMAP-5.1-6" }, opcode = 0, overdue_fails = true }
      t:check(fpdu.tagged, { requirement = "RDMAP-5.1-1", expected = "a tagged segment", actual = "an untagged one" })
      t:check(fpdu.stag == STAG, {
        requirement = "DDP-4.2-5",
        expected = ("STag %#x"):format(STAG),
        actual = ("STag %#x"):format(fpdu.stag),
      })
      t:check(fpdu.tagged_offset == p.to + #written, {
        requirement = "DDP-5.2-6",
        expected = ("Tagged Offset %#x"):format(p.to + #written),
        actual = ("Tagged Offset %#x"):format(fpdu.tagged_offset),
      })
      written = written .. fpdu.payload
    until fpdu.last or #written >= p.size
    t:check(written == DATA:sub(1, p.size), {
      requirement = "RDMAP-4.3-1",
      expected = ("the %d octets of the user's buffer"):format(p.size),
      actual = ("%d octets"):format(#written),
    })
    pair:expect_completion { work = work, operation = "write" }
    conn:reset()

    t:liveness()
  end,
}
