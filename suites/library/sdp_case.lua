-- The Lua module `sdp_case`: declares cases for a driven socket, which is an SDP socket that
-- executes commands (docs/sdp-driver.md). It also has a step that several of these cases take.

sdp_case = {}

--- Returns a case with the id `topic/name`, for the function `case`. `run` gets the connection, on
--- which SDP has started, the tester and the HelloAck. `declared` has the other fields of the case.
--- Its field `hello` has the fields of the Hello.
function sdp_case.driven(topic, name, title, requirements, declared, run)
  local hello = declared.hello
  declared.hello = nil
  declared.id, declared.title, declared.requirements = topic .. "/" .. name, title, requirements
  declared.capabilities = { "sdp-drive" }
  declared.run = function(t)
    local s, hello_ack = t:sdp { hello = hello and sdp.hello(hello) }
    run(s, t, hello_ack)
  end
  return declared
end

--- Like `driven`, but adds the requirements that the monitor judges in the messages `shown`. `run`
--- gets the connection, these requirements, the tester and the HelloAck.
function sdp_case.observed(topic, name, title, requirements, shown, declared, run)
  shown = sdp.shown(shown)
  return sdp_case.driven(topic, name, title, { requirements, shown }, declared, function(s, t, hello_ack)
    run(s, shown, t, hello_ack)
  end)
end

--- Opcodes of RDMAP (RFC 5040 section 4.1).
local READ_RESPONSE, TERMINATE = 2, 7

--- Waits for the answer to a Read. Returns the read bytes, and the first two bytes of a Terminate
--- (layer, error type and error code). If there is no answer, these bytes are "".
function sdp_case.read_answer(s)
  local octets = ""
  while true do
    local event, fpdu = s:connection():next {}
    if event ~= "fpdu" then return octets, "" end
    if fpdu.opcode == TERMINATE then return octets, fpdu.payload:sub(1, 2) end
    if fpdu.opcode == READ_RESPONSE then
      octets = octets .. fpdu.payload
      if fpdu.last then return octets end
    end
  end
end
