-- The Lua module `segment_case`: a step of cases in which the tester chooses its TCP segments.

segment_case = {}

--- The number of seconds in which the target would react too early.
local SILENCE = 1

--- Sends a message in two TCP segments, the second segment first. The target violates `requirement`
--- if it reacts before the first segment, which has the first `length` bytes of the message.
--- `missing` describes these bytes.
function segment_case.send_late(t, conn, message, length, requirement, missing)
  conn:withhold(message, { cuts = { length }, deviates = true })
  conn:send_segment(2)
  local event, answer = conn:next { within = SILENCE }
  t:check(event == nil, {
    requirement = requirement,
    expected = ("nothing, because %s is missing"):format(missing),
    actual = session.describe(event, answer, SILENCE),
  })
  conn:send_withheld()
end
