---@meta
-- The surface of weft's suites, for editors with LuaLS. Written by `weft test --lua-annotations`.

---@class weft.fields.case
---@field id string
---@field version integer
---@field title string
---@field requirements string[]
---@field roles? string[]
---@field capabilities? string[]
---@field tags? string[]
---@field parameters? table<string, (boolean|integer|string)[]>
---@field tier? string
---@field combine? weft.fields.combine
---@field run fun(t: weft.Tester, p: table<string, boolean|integer|string>)

---@class weft.fields.combine
---@field smoke? any
---@field default? any
---@field full? any

---@class weft.fields.mpa_request
---@field key? string
---@field markers? boolean
---@field crc? boolean
---@field reject? boolean
---@field enhanced? boolean
---@field peer_to_peer? boolean
---@field ird? integer
---@field ord? integer
---@field rtr_send? boolean
---@field rtr_write? boolean
---@field rtr_read? boolean
---@field flags? integer
---@field revision? integer
---@field private_data? string
---@field pd_length? integer

---@class weft.fields.mpa_reply
---@field key? string
---@field markers? boolean
---@field crc? boolean
---@field reject? boolean
---@field enhanced? boolean
---@field peer_to_peer? boolean
---@field ird? integer
---@field ord? integer
---@field rtr_send? boolean
---@field rtr_write? boolean
---@field rtr_read? boolean
---@field flags? integer
---@field revision? integer
---@field private_data? string
---@field pd_length? integer

---@class weft.fields.mpa_fpdu
---@field ulpdu any
---@field ulpdu_length? integer
---@field pad? string
---@field crc? any

---@class weft.fields.rdmap_send
---@field payload? string
---@field opcode? integer
---@field last? boolean
---@field ddp_version? integer
---@field rdmap_version? integer
---@field invalidate_stag? integer
---@field qn? integer
---@field msn? integer
---@field mo? integer

---@class weft.fields.rdmap_write
---@field payload? string
---@field opcode? integer
---@field last? boolean
---@field ddp_version? integer
---@field rdmap_version? integer
---@field stag? integer
---@field tagged_offset? integer

---@class weft.fields.rdmap_read_request
---@field sink_stag? integer
---@field sink_to? integer
---@field rdmardsz? integer
---@field src_stag? integer
---@field src_to? integer
---@field opcode? integer
---@field last? boolean
---@field ddp_version? integer
---@field rdmap_version? integer
---@field invalidate_stag? integer
---@field qn? integer
---@field msn? integer
---@field mo? integer

---@class weft.fields.good_exchange
---@field shows? string|string[]

---@class weft.fields.check
---@field requirement? string|string[]
---@field shows? string|string[]
---@field overdue_fails? boolean
---@field within? number
---@field expected string
---@field actual string

---@class weft.fields.send
---@field cuts? integer[]
---@field every? integer
---@field pause? number

---@class weft.fields.expect_reply
---@field requirement? string|string[]
---@field shows? string|string[]
---@field overdue_fails? boolean
---@field within? number
---@field reject? boolean
---@field revision? integer
---@field crc? boolean
---@field markers? boolean
---@field enhanced? boolean

---@class weft.fields.expect_fpdu
---@field requirement? string|string[]
---@field shows? string|string[]
---@field overdue_fails? boolean
---@field within? number
---@field opcode? integer
---@field payload? string
---@field last? boolean
---@field stag? integer
---@field tagged_offset? integer
---@field qn? integer
---@field msn? integer
---@field mo? integer
---@field crc? boolean

---@class weft.fields.expect_octets
---@field requirement? string|string[]
---@field shows? string|string[]
---@field overdue_fails? boolean
---@field within? number
---@field begins string
---@field keep? boolean

---@class weft.fields.expect_terminate
---@field requirement? string|string[]
---@field shows? string|string[]
---@field overdue_fails? boolean
---@field within? number
---@field code? string|string[]
---@field told? string|string[]
---@field error? string|string[]

---@class weft.fields.expect_silence
---@field requirement? string|string[]
---@field shows? string|string[]
---@field overdue_fails? boolean
---@field within? number
---@field open? boolean

---@class weft.fields.expect_close
---@field requirement? string|string[]
---@field shows? string|string[]
---@field overdue_fails? boolean
---@field within? number
---@field or_reject? boolean
---@field after_terminate? boolean
---@field graceful? boolean

---@class weft.Reply
---@field octets string
---@field flags integer
---@field markers boolean
---@field crc boolean
---@field reject boolean
---@field revision integer
---@field private_data string
---@field peer_to_peer boolean?
---@field ird integer?
---@field ord integer?
---@field rtr_send boolean?
---@field rtr_write boolean?
---@field rtr_read boolean?

---@class weft.Fpdu
---@field octets string
---@field ulpdu string
---@field crc_is_right boolean
---@field tagged boolean?
---@field last boolean?
---@field opcode integer?
---@field payload string?
---@field stag integer?
---@field tagged_offset integer?
---@field qn integer?
---@field msn integer?
---@field mo integer?

---@class weft.Terminate: weft.Fpdu
---@field layer integer
---@field error_type integer
---@field code integer
---@field m boolean
---@field d boolean
---@field r boolean
---@field reserved integer
---@field rest string

---@class weft.Operation
---@field msn integer
---@field ird integer?
---@field stag integer?
---@field to integer?
---@field length integer?

---@class weft.Message
---@operator concat(weft.Message|string): weft.Message
---@operator len: integer
local Message = {}

---The message with bits of one octet, counted from 0, changed.
---@param octet integer
---@param mask? integer
---@return weft.Message
function Message:flip(octet, mask) end

---The message with other octets from `first`, counted from 0.
---@param first integer
---@param octets string
---@return weft.Message
function Message:replace(first, octets) end

---The first octets alone.
---@param len integer
---@return weft.Message
function Message:cut(len) end

---The octets as a string.
---@return string
function Message:octets() end

---@class weft.Connection
local Connection = {}

---Sends a message or octets, in pieces where cuts are given.
---@param message weft.Message|string
---@param options? weft.fields.send
function Connection:send(message, options) end

---The target answers with an MPA Reply of these fields.
---@param options? weft.fields.expect_reply
---@return weft.Reply
function Connection:expect_reply(options) end

---The target sends an FPDU of these fields.
---@param options? weft.fields.expect_fpdu
---@return weft.Fpdu
function Connection:expect_fpdu(options) end

---The target refuses what it was sent: a Terminate with one of these errors, or a close. `requirement` is about the refusal, `told` about the Terminate, `code` about its error.
---@param options? weft.fields.expect_terminate
---@return weft.Terminate?
function Connection:expect_terminate(options) end

---The target's next octets begin so.
---@param options? weft.fields.expect_octets
---@return string
function Connection:expect_octets(options) end

---The target sends no octet.
---@param options? weft.fields.expect_silence
function Connection:expect_silence(options) end

---The target closes and sends no octet before; gives the seconds it took.
---@param options? weft.fields.expect_close
---@return number
function Connection:expect_close(options) end

---Closes the tester's half: FIN.
function Connection:finish() end

---FIN, and waits a while for the target's.
function Connection:close() end

---Resets the connection.
function Connection:reset() end

---@class weft.Tester
local Tester = {}

---The target does its work on a connection of its own; call it before the stimulus.
---@param options? weft.fields.good_exchange
function Tester:good_exchange(options) end

---A good exchange behind the last expectation: the target still works.
---@param options? weft.fields.good_exchange
function Tester:liveness(options) end

---A TCP connection; no MPA frame is sent.
---@return weft.Connection
function Tester:connect() end

---A connection on which the target accepted the Request; the next is the first FPDU.
---@param options? weft.fields.mpa_request
---@return weft.Connection, weft.Reply
function Tester:start_up(options) end

---A connection in Full Operation: the service's first exchange is done, and FPDUs went both ways.
---@param options? weft.fields.mpa_request
---@return weft.Connection, weft.Operation
function Tester:operate(options) end

---The Request that this target accepts.
---@param options? weft.fields.mpa_request
---@return weft.Message
function Tester:request(options) end

---An expectation that the script made out itself.
---@param holds boolean
---@param options? weft.fields.check
function Tester:check(holds, options) end

---The target does not do what the case is about, and may: the case ends.
---@param why string
function Tester:unimplemented(why) end

---Time passes; the target goes on.
---@param seconds number
function Tester:pause(seconds) end

---A line for the transcript.
---@param text string
function Tester:note(text) end

mpa = {}

---An MPA Request (RFC 5044 section 7.1.1, RFC 6581 section 9): revision 1, CRC, no markers.
---@param fields? weft.fields.mpa_request
---@return weft.Message
function mpa.request(fields) end

---An MPA Reply.
---@param fields? weft.fields.mpa_reply
---@return weft.Message
function mpa.reply(fields) end

---An FPDU without markers around a ULPDU (RFC 5044 section 4.1).
---@param fields? weft.fields.mpa_fpdu
---@return weft.Message
function mpa.fpdu(fields) end

rdmap = {}

---The ULPDU of a Send in one segment (RFC 5040 section 4.3).
---@param fields? weft.fields.rdmap_send
---@return weft.Message
function rdmap.send(fields) end

---The ULPDU of an RDMA Write in one segment (RFC 5040 section 4.3).
---@param fields? weft.fields.rdmap_write
---@return weft.Message
function rdmap.write(fields) end

---The ULPDU of an RDMA Read Request (RFC 5040 section 4.4).
---@param fields? weft.fields.rdmap_read_request
---@return weft.Message
function rdmap.read_request(fields) end

---Declares a case.
---@param fields weft.fields.case
function case(fields) end

---The whole numbers from `first` to `last`.
---@param first integer
---@param last integer
---@return integer[]
function range(first, last) end
