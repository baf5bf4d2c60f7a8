-- RFC 5040 sections 3.2, 4.1, 4.6, 4.7 and 5.3: the four kinds of Sends that the target's user
-- posts. The user is an agent: a program on the target that calls the NIC's verbs for the tester.

local DATA = ("weft octets that differ "):rep(200)
local STAG = 0x77656601

--- Declares a case for one kind of Send. `it` has the opcode of the Send, and the options with
--- which the user posts the Send. `form` is the requirement for the kind of message, and
--- `stag_rows` has the requirements for the Invalidate STag. `header` is the requirement that a
--- Send has no RDMAP header.
local function kind(name, title, it, form, stag_rows, header)
  case {
    id = "rdmap/5.3-sends/" .. name,
    version = 2,
    title = "The target sends " .. title .. " with its opcode, its Invalidate STag and the user's data",
    requirements = { "RDMAP-3.2-1", "RDMAP-5.3-12", form, stag_rows, header },
    roles = { "responder", "initiator" },
    capabilities = { "agent" },
    tags = { "send", "invalidate", "agent" },
    parameters = { size = { 0, 1, 3000 } },
    scales = { "size" },

    run = function(t, p, target)
      t:good_exchange()
      local conn, pair = target:operate {}
      local region = target:region { octets = 4096, put = DATA:sub(1, 4096) }
      local work, why = pair:post_send {
        region = region, length = p.size, solicited = it.solicited, invalidate = it.invalidate, may_refuse = true,
      }
      if not work then t:unimplemented("The device rejects such a Send: " .. why) end
      local sent = ""
      repeat
        local fpdu = conn:expect_fpdu { requirement = { "RDMAP-3.2-1", form } }
        t:check(fpdu.opcode == it.opcode, {
          requirement = { "RDMAP-3.2-1", form },
          expected = ("opcode %d"):format(it.opcode),
          actual = ("opcode %s"):format(fpdu.opcode),
        })
        t:check(not fpdu.tagged, { requirement = { "RDMAP-5.3-12", form }, expected = "an untagged segment", actual = "a tagged segment" })
        t:check(fpdu.qn == 0, { requirement = form, expected = "queue 0", actual = ("queue %s"):format(fpdu.qn) })
        local named = string.unpack(">I4", fpdu.ulpdu, 3)
        t:check(named == (it.invalidate or 0), {
          requirement = stag_rows,
          expected = ("Invalidate STag %#x"):format(it.invalidate or 0),
          actual = ("%#x in the field"):format(named),
        })
        sent = sent .. fpdu.payload
      until fpdu.last or #sent > p.size
      t:check(sent == DATA:sub(1, p.size), {
        requirement = header,
        expected = ("the %d bytes of the user's buffer"):format(p.size),
        actual = ("%d bytes that differ"):format(#sent),
      })
      pair:expect_completion { work = work, operation = "send" }
      conn:reset()
    end,
  }
end

kind("plain", "a Send", { opcode = 3 }, "RDMAP-4.1-9", { "RDMAP-4.1-16", "DDP-4.3-2" }, "RDMAP-4.6-1")
kind("invalidates", "a Send with Invalidate", { opcode = 4, invalidate = STAG }, "RDMAP-4.1-10",
  { "RDMAP-4.1-15", "RDMAP-5.3-18" }, "RDMAP-4.7-1")
kind("solicits", "a Send with Solicited Event", { opcode = 5, solicited = true }, "RDMAP-4.1-11",
  { "RDMAP-4.1-16", "DDP-4.3-2" }, "RDMAP-4.6-1")
kind("both", "a Send with Solicited Event and Invalidate", { opcode = 6, solicited = true, invalidate = STAG },
  "RDMAP-4.1-12", { "RDMAP-4.1-15", "RDMAP-5.3-18" }, "RDMAP-4.7-1")
