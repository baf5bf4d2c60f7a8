-- RFC 5044 section 4.4: a wrong CRC in each kind of FPDU. MPA checks the CRC before it passes the
-- ULPDU on, so no other layer may react to the ULPDU.

--- Declares a case that sends one FPDU with a wrong CRC after correct FPDUs.
local function wrong(service, kinds)
  local requirements = session.requirements(session[service:upper()], kinds[1])
  case {
    id = "mpa/4.4-kinds/" .. service,
    version = 3,
    title = "The target rejects a wrong CRC in each kind of FPDU, and no layer above MPA reacts to the FPDU",
    requirements = requirements,
    capabilities = { "crc", service },
    tags = { "fpdu", "crc" },
    parameters = { kind = kinds },

    run = function(t, p)
      if p.kind == "wrong-crc-large" and t:max_segment() < 20000 then
        t:unimplemented("Such a long FPDU does not fit into a TCP segment to the target.")
      end
      local s = session[service](t)
      s:open(1, { crc = true })
      s:fault(1, p.kind)
      s:finish()
    end,
  }
end

wrong("echo", {
  "wrong-crc", "wrong-crc-empty", "wrong-crc-long", "wrong-crc-large", "wrong-crc-header", "wrong-crc-second", "wrong-crc-middle",
  "wrong-crc-late", "wrong-crc-pieces",
})
wrong("rping", { "wrong-crc-write", "wrong-crc-read", "wrong-crc-empty" })
