---@meta
-- The surface of weft's suites, for editors with LuaLS. Written by `weft suite annotations`.

---@class weft.fields.case
---@field id string
---@field version integer
---@field title string
---@field requirements string|(string|string[])[]
---@field roles? string[]
---@field capabilities? string[]
---@field tags? string[]
---@field parameters? table<string, (boolean|integer|string)[]>
---@field tier? string
---@field combine? weft.fields.combine
---@field run fun(t: weft.Tester, p: table<string, boolean|integer|string>, target: weft.Agent)

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
---@field position? integer
---@field fpduptr? integer
---@field reserved? integer

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

---@class weft.fields.portmap_message
---@field type? string
---@field cp_ip? string
---@field ap_ip? string
---@field version? integer
---@field ipv? integer
---@field pm_time? integer
---@field reserved? integer
---@field ap_port? integer
---@field cp_port? integer
---@field handle? integer

---@class weft.fields.sdp_hello
---@field mid? integer
---@field oob_pres? boolean
---@field oob_pend? boolean
---@field req_pipe? boolean
---@field flags? integer
---@field bufs? integer
---@field len? integer
---@field mseq? integer
---@field mseq_ack? integer
---@field max_adverts? integer
---@field rsvd? integer
---@field minv? integer
---@field majv? integer
---@field des_rem_rcv_sz? integer
---@field local_rcv_sz? integer
---@field loc_ird? integer
---@field loc_ord? integer
---@field payload? string
---@field behind? string
---@field order? string

---@class weft.fields.sdp_hello_ack
---@field mid? integer
---@field oob_pres? boolean
---@field oob_pend? boolean
---@field req_pipe? boolean
---@field flags? integer
---@field bufs? integer
---@field len? integer
---@field mseq? integer
---@field mseq_ack? integer
---@field max_adverts? integer
---@field rsvd? integer
---@field minv? integer
---@field majv? integer
---@field act_rcv_sz? integer
---@field loc_ird? integer
---@field loc_ord? integer
---@field payload? string
---@field behind? string
---@field order? string

---@class weft.fields.sdp_dis_conn
---@field mid? integer
---@field oob_pres? boolean
---@field oob_pend? boolean
---@field req_pipe? boolean
---@field flags? integer
---@field bufs? integer
---@field len? integer
---@field mseq? integer
---@field mseq_ack? integer
---@field payload? string
---@field behind? string
---@field order? string

---@class weft.fields.sdp_abort_conn
---@field mid? integer
---@field oob_pres? boolean
---@field oob_pend? boolean
---@field req_pipe? boolean
---@field flags? integer
---@field bufs? integer
---@field len? integer
---@field mseq? integer
---@field mseq_ack? integer
---@field payload? string
---@field behind? string
---@field order? string

---@class weft.fields.sdp_send_sm
---@field mid? integer
---@field oob_pres? boolean
---@field oob_pend? boolean
---@field req_pipe? boolean
---@field flags? integer
---@field bufs? integer
---@field len? integer
---@field mseq? integer
---@field mseq_ack? integer
---@field payload? string
---@field behind? string
---@field order? string

---@class weft.fields.sdp_rdma_wr_compl
---@field mid? integer
---@field oob_pres? boolean
---@field oob_pend? boolean
---@field req_pipe? boolean
---@field flags? integer
---@field bufs? integer
---@field len? integer
---@field mseq? integer
---@field mseq_ack? integer
---@field length? integer
---@field payload? string
---@field behind? string
---@field order? string

---@class weft.fields.sdp_rdma_rd_compl
---@field mid? integer
---@field oob_pres? boolean
---@field oob_pend? boolean
---@field req_pipe? boolean
---@field flags? integer
---@field bufs? integer
---@field len? integer
---@field mseq? integer
---@field mseq_ack? integer
---@field length? integer
---@field payload? string
---@field behind? string
---@field order? string

---@class weft.fields.sdp_mode_change
---@field mid? integer
---@field oob_pres? boolean
---@field oob_pend? boolean
---@field req_pipe? boolean
---@field flags? integer
---@field bufs? integer
---@field len? integer
---@field mseq? integer
---@field mseq_ack? integer
---@field rsvd? integer
---@field mode? integer
---@field s? integer
---@field payload? string
---@field behind? string
---@field order? string

---@class weft.fields.sdp_src_avail_cancel
---@field mid? integer
---@field oob_pres? boolean
---@field oob_pend? boolean
---@field req_pipe? boolean
---@field flags? integer
---@field bufs? integer
---@field len? integer
---@field mseq? integer
---@field mseq_ack? integer
---@field payload? string
---@field behind? string
---@field order? string

---@class weft.fields.sdp_sink_avail_cancel
---@field mid? integer
---@field oob_pres? boolean
---@field oob_pend? boolean
---@field req_pipe? boolean
---@field flags? integer
---@field bufs? integer
---@field len? integer
---@field mseq? integer
---@field mseq_ack? integer
---@field payload? string
---@field behind? string
---@field order? string

---@class weft.fields.sdp_sink_cancel_ack
---@field mid? integer
---@field oob_pres? boolean
---@field oob_pend? boolean
---@field req_pipe? boolean
---@field flags? integer
---@field bufs? integer
---@field len? integer
---@field mseq? integer
---@field mseq_ack? integer
---@field payload? string
---@field behind? string
---@field order? string

---@class weft.fields.sdp_ch_rcv_buf
---@field mid? integer
---@field oob_pres? boolean
---@field oob_pend? boolean
---@field req_pipe? boolean
---@field flags? integer
---@field bufs? integer
---@field len? integer
---@field mseq? integer
---@field mseq_ack? integer
---@field des_sz? integer
---@field payload? string
---@field behind? string
---@field order? string

---@class weft.fields.sdp_ch_rcv_buf_ack
---@field mid? integer
---@field oob_pres? boolean
---@field oob_pend? boolean
---@field req_pipe? boolean
---@field flags? integer
---@field bufs? integer
---@field len? integer
---@field mseq? integer
---@field mseq_ack? integer
---@field act_sz? integer
---@field payload? string
---@field behind? string
---@field order? string

---@class weft.fields.sdp_susp_comm
---@field mid? integer
---@field oob_pres? boolean
---@field oob_pend? boolean
---@field req_pipe? boolean
---@field flags? integer
---@field bufs? integer
---@field len? integer
---@field mseq? integer
---@field mseq_ack? integer
---@field constant1? integer
---@field port? integer
---@field constant2? integer
---@field payload? string
---@field behind? string
---@field order? string

---@class weft.fields.sdp_susp_comm_ack
---@field mid? integer
---@field oob_pres? boolean
---@field oob_pend? boolean
---@field req_pipe? boolean
---@field flags? integer
---@field bufs? integer
---@field len? integer
---@field mseq? integer
---@field mseq_ack? integer
---@field payload? string
---@field behind? string
---@field order? string

---@class weft.fields.sdp_sink_avail
---@field mid? integer
---@field oob_pres? boolean
---@field oob_pend? boolean
---@field req_pipe? boolean
---@field flags? integer
---@field bufs? integer
---@field len? integer
---@field mseq? integer
---@field mseq_ack? integer
---@field length? integer
---@field stag? integer
---@field va? integer
---@field non_discards? integer
---@field payload? string
---@field behind? string
---@field order? string

---@class weft.fields.sdp_src_avail
---@field mid? integer
---@field oob_pres? boolean
---@field oob_pend? boolean
---@field req_pipe? boolean
---@field flags? integer
---@field bufs? integer
---@field len? integer
---@field mseq? integer
---@field mseq_ack? integer
---@field length? integer
---@field stag? integer
---@field va? integer
---@field payload? string
---@field behind? string
---@field order? string

---@class weft.fields.sdp_data
---@field mid? integer
---@field oob_pres? boolean
---@field oob_pend? boolean
---@field req_pipe? boolean
---@field flags? integer
---@field bufs? integer
---@field len? integer
---@field mseq? integer
---@field mseq_ack? integer
---@field payload? string
---@field behind? string
---@field order? string

---@class weft.fields.good_exchange
---@field shows? string|(string|string[])[]

---@class weft.fields.check
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field expected string
---@field actual string

---@class weft.fields.send
---@field cuts? integer[]
---@field every? integer
---@field pause? number
---@field deviates? boolean|weft.Message

---@class weft.fields.expect_request
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field reject? boolean
---@field revision? integer
---@field crc? boolean
---@field markers? boolean
---@field enhanced? boolean

---@class weft.fields.expect_reply
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field reject? boolean
---@field revision? integer
---@field crc? boolean
---@field markers? boolean
---@field enhanced? boolean

---@class weft.fields.expect_fpdu
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
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
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field begins string
---@field keep? boolean

---@class weft.fields.expect_terminate
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field code? string|(string|string[])[]
---@field told? string|(string|string[])[]
---@field error? string|(string|string[])[]

---@class weft.fields.expect_silence
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field open? boolean

---@class weft.fields.waiting
---@field within? number

---@class weft.fields.expect_close
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field or_reject? boolean
---@field after_terminate? boolean
---@field graceful? boolean

---@class weft.fields.sdp
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field hello? weft.Message
---@field profile? string

---@class weft.fields.accept_sdp
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field hello_ack? weft.Message
---@field hold? number
---@field port? integer

---@class weft.fields.carrier
---@field solicited? boolean
---@field invalidate? integer
---@field opcode? integer
---@field msn? integer
---@field deviates? boolean

---@class weft.fields.mapper_send
---@field deviates? boolean

---@class weft.fields.sdp_expect
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field past? string[]
---@field updates? boolean
---@field fields? table

---@class weft.fields.expect_read
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number

---@class weft.fields.expect_write
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field length? integer

---@class weft.fields.expect_response
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number

---@class weft.fields.fetch
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number

---@class weft.fields.next
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number

---@class weft.fields.expect_open
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number

---@class weft.fields.read
---@field sink_stag? integer
---@field length? integer
---@field stag? integer
---@field va? integer

---@class weft.fields.write
---@field stag? integer
---@field va? integer
---@field payload? string

---@class weft.fields.serve
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field va? integer
---@field from? integer

---@class weft.fields.sdp_quiet
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field past? string[]

---@class weft.fields.sdp_end
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field past? string[]
---@field graceful? boolean

---@class weft.fields.books
---@field bufs? integer
---@field updates? boolean

---@class weft.fields.mapper
---@field v6? boolean

---@class weft.fields.mapper_expect
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field type? string
---@field pm_time? integer
---@field ap_port? integer
---@field cp_port? integer
---@field handle? integer
---@field from_there? boolean

---@class weft.fields.mapper_quiet
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field or_deny? boolean

---@class weft.fields.asked_service
---@field service? integer

---@class weft.fields.asked_place
---@field other? boolean
---@field refuses? boolean

---@class weft.fields.asked_send
---@field aside? boolean
---@field deviates? boolean

---@class weft.fields.asked_expect
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field type? string
---@field pm_time? integer
---@field ap_port? integer
---@field cp_port? integer
---@field handle? integer
---@field aside? boolean
---@field no_connection? boolean
---@field past? string

---@class weft.fields.asked_repeats
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field most? integer

---@class weft.fields.expect_from
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field ip? string
---@field port? integer

---@class weft.fields.asked_quiet
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number

---@class weft.fields.expect_sdp
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number

---@class weft.fields.expect_plain
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number

---@class weft.fields.asked_connection
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field at table

---@class weft.fields.agent_region
---@field access? string[]
---@field octets? integer
---@field domain? integer
---@field fill? integer
---@field put? string

---@class weft.fields.agent_window
---@field posted? boolean
---@field domain? integer

---@class weft.fields.agent_shared
---@field depth? integer
---@field parts? integer
---@field domain? integer

---@class weft.fields.agent_operate
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field private_data? string
---@field ird? integer
---@field ord? integer
---@field domain? integer
---@field shared? weft.Shared
---@field depth? integer
---@field parts? integer
---@field inline? integer
---@field solicited? boolean

---@class weft.fields.agent_pair
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field private_data? string
---@field ird? integer
---@field ord? integer
---@field domain? integer
---@field shared? weft.Shared
---@field depth? integer
---@field parts? integer
---@field inline? integer
---@field solicited? boolean

---@class weft.fields.agent_request
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field private_data? string

---@class weft.fields.agent_octets
---@field offset? integer
---@field length? integer
---@field octets? string
---@field seed? integer

---@class weft.fields.post_receive
---@field parts? weft.fields.agent_part[]
---@field region? weft.Region
---@field offset? integer
---@field length? integer
---@field key? integer
---@field work? integer
---@field signaled? boolean
---@field fence? boolean
---@field inline? boolean
---@field may_refuse? boolean

---@class weft.fields.post_send
---@field parts? weft.fields.agent_part[]
---@field region? weft.Region
---@field offset? integer
---@field length? integer
---@field key? integer
---@field work? integer
---@field signaled? boolean
---@field fence? boolean
---@field inline? boolean
---@field may_refuse? boolean
---@field solicited? boolean
---@field invalidate? integer

---@class weft.fields.post_write
---@field parts? weft.fields.agent_part[]
---@field region? weft.Region
---@field offset? integer
---@field length? integer
---@field key? integer
---@field work? integer
---@field signaled? boolean
---@field fence? boolean
---@field inline? boolean
---@field may_refuse? boolean
---@field stag? integer
---@field to? integer

---@class weft.fields.post_read
---@field parts? weft.fields.agent_part[]
---@field region? weft.Region
---@field offset? integer
---@field length? integer
---@field key? integer
---@field work? integer
---@field signaled? boolean
---@field fence? boolean
---@field inline? boolean
---@field may_refuse? boolean
---@field stag? integer
---@field to? integer

---@class weft.fields.post_atomic
---@field parts? weft.fields.agent_part[]
---@field region? weft.Region
---@field offset? integer
---@field length? integer
---@field key? integer
---@field work? integer
---@field signaled? boolean
---@field fence? boolean
---@field inline? boolean
---@field may_refuse? boolean
---@field stag? integer
---@field to? integer
---@field add? integer
---@field compare? integer
---@field swap? integer

---@class weft.fields.expect_limit
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number

---@class weft.fields.post_invalidate
---@field parts? weft.fields.agent_part[]
---@field region? weft.Region
---@field offset? integer
---@field length? integer
---@field key? integer
---@field work? integer
---@field signaled? boolean
---@field fence? boolean
---@field inline? boolean
---@field may_refuse? boolean
---@field stag integer

---@class weft.fields.post_bind
---@field parts? weft.fields.agent_part[]
---@field region? weft.Region
---@field offset? integer
---@field length? integer
---@field key? integer
---@field work? integer
---@field signaled? boolean
---@field fence? boolean
---@field inline? boolean
---@field may_refuse? boolean
---@field at? integer
---@field octets? integer
---@field access? string[]
---@field window? weft.Window
---@field to_region? weft.Region

---@class weft.fields.agent_part
---@field offset? integer
---@field length? integer
---@field key? integer
---@field region weft.Region

---@class weft.fields.expect_completion
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field status? string|(string|string[])[]
---@field work? integer
---@field operation? string
---@field octets? integer
---@field invalidated? integer

---@class weft.fields.expect_event
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field event string|(string|string[])[]
---@field private_data? string

---@class weft.fields.expect_error
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field or_end? boolean

---@class weft.fields.expect_no_completion
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number

---@class weft.Reply
---@field octets string
---@field kind string?
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

---@class weft.SdpMessage
---@field name string
---@field mid integer
---@field bufs integer
---@field flags integer
---@field oob_pres boolean
---@field oob_pend boolean
---@field req_pipe boolean
---@field len integer
---@field mseq integer
---@field mseq_ack integer
---@field opcode integer
---@field invalidates integer
---@field payload string
---@field octets string
---@field max_adverts integer?
---@field majv integer?
---@field minv integer?
---@field des_rem_rcv_sz integer?
---@field local_rcv_sz integer?
---@field act_rcv_sz integer?
---@field loc_ird integer?
---@field loc_ord integer?
---@field length integer?
---@field stag integer?
---@field va integer?
---@field non_discards integer?
---@field mode integer?
---@field act_sz integer?
---@field des_sz integer?

---@class weft.ReadRequest
---@field sink_stag integer
---@field sink_to integer
---@field length integer
---@field src_stag integer
---@field src_to integer

---@class weft.Write
---@field stag integer
---@field va integer
---@field payload string

---@class weft.PortMapperMessage
---@field octets string
---@field length integer
---@field from string
---@field type string?
---@field version integer?
---@field ipv integer?
---@field pm_time integer?
---@field reserved integer?
---@field ap_port integer?
---@field cp_port integer?
---@field handle integer?
---@field cp_ip string?
---@field ap_ip string?

---@class weft.Place
---@field ip string
---@field octets string
---@field port integer

---@class weft.Operated
---@field msn integer
---@field target_msn integer

---@class weft.Completion
---@field connection integer
---@field work integer
---@field status string
---@field operation string
---@field octets integer
---@field invalidated integer?
---@field immediate integer?
---@field found integer?

---@class weft.Event
---@field event string
---@field private_data string?
---@field ird integer?
---@field ord integer?
---@field status integer?
---@field kind string?

---@class weft.Window
---@field stag integer

---@class weft.Region
---@field stag integer
---@field address integer
---@field local_key integer
---@field octets integer

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

---The target, an initiator, sends an MPA Request of these fields.
---@param options? weft.fields.expect_request
---@return weft.Reply
function Connection:expect_request(options) end

---The right Reply to the Request that came.
---@param options? weft.fields.mpa_reply
---@return weft.Message
function Connection:reply(options) end

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

---The target begins SDP: a Hello comes first.
---@param options? weft.fields.expect_sdp
function Connection:expect_sdp(options) end

---The connection came from this address, or port.
---@param options? weft.fields.expect_from
function Connection:expect_from(options) end

---What comes first is no Hello, and no start-up frame of MPA; nothing may come.
---@param options? weft.fields.expect_plain
function Connection:expect_plain(options) end

---What comes next, and decides nothing: a start-up frame or an FPDU with its fields, octets that are neither, the connection's end, or nil where nothing comes.
---@param options? weft.fields.waiting
---@return "reply"|"request"|"fpdu"|"octets"|"close"|nil, weft.Reply|weft.Fpdu|nil
function Connection:next(options) end

---Octets sent behind the tester's start-up frame: where its next FPDU begins.
---@return integer
function Connection:position() end

---Closes the tester's half: FIN.
function Connection:finish() end

---FIN, and waits a while for the target's.
function Connection:close() end

---Resets the connection.
function Connection:reset() end

---@class weft.Sdp
local Sdp = {}

---Sends an SDP message in a Send; its counters are filled in where it leaves them open.
---@param message weft.Message|string
---@param options? weft.fields.carrier
function Sdp:send(message, options) end

---Sends Data with a line of text: what a driven socket shall do.
---@param line string
function Sdp:tell(line) end

---The message with its counters filled in, to be changed before it is sent.
---@param message weft.Message|string
---@return weft.Message
function Sdp:fill(message) end

---The target's next message is of this kind; updates may come before.
---@param name string|string[]
---@param options? weft.fields.sdp_expect
---@return weft.SdpMessage
function Sdp:expect(name, options) end

---The target sends an RDMA Read Request.
---@param options? weft.fields.expect_read
---@return weft.ReadRequest
function Sdp:expect_read(options) end

---Sends the Read Response.
---@param read weft.ReadRequest
---@param octets string
function Sdp:answer_read(read, octets) end

---The target sends RDMA Writes of so many octets.
---@param options? weft.fields.expect_write
---@return weft.Write
function Sdp:expect_write(options) end

---Sends an RDMA Read Request.
---@param options? weft.fields.read
function Sdp:read(options) end

---The target answers a Read Request.
---@param options? weft.fields.expect_response
---@return string
function Sdp:expect_response(options) end

---Reads what a SrcAvail has beside its payload, and sends the RdmaRdCompl.
---@param src_avail weft.SdpMessage
---@param options? weft.fields.fetch
---@return string
function Sdp:fetch(src_avail, options) end

---Sends an RDMA Write.
---@param options? weft.fields.write
function Sdp:write(options) end

---The target sends nothing but updates and keeps the connection.
---@param options? weft.fields.sdp_quiet
---@return weft.SdpMessage[]
function Sdp:expect_quiet(options) end

---Takes so many octets as the target offers them: payload, and what SrcAvails name by RDMA Read.
---@param octets integer
---@param options? weft.fields.sdp_quiet
---@return string
function Sdp:collect(octets, options) end

---Answers the target's Reads of octets that were advertised, until all are read.
---@param octets string
---@param options? weft.fields.serve
function Sdp:serve(octets, options) end

---DisConn from both sides, and the end of TCP.
---@param options? weft.fields.sdp_quiet
function Sdp:close(options) end

---What comes next but updates: the name of a message, or "read" for an RDMA Read Request; and its fields.
---@param options? weft.fields.next
---@return string, table
function Sdp:next(options) end

---The connection does not end, whatever comes.
---@param options? weft.fields.expect_open
function Sdp:expect_open(options) end

---The target ends the connection; AbortConn or a Terminate may come before.
---@param options? weft.fields.sdp_end
---@return weft.SdpMessage[]
function Sdp:expect_end(options) end

---What the next message has for counters; `bufs` is told from now on, `updates` go out by themselves.
---@param options? weft.fields.books
---@return { mseq: integer, mseq_ack: integer, bufs: integer }
function Sdp:books(options) end

---The TCP connection below.
---@return weft.Connection
function Sdp:connection() end

---@class weft.Mapper
local Mapper = {}

---The PMReq that is right; `service` may be "mapped", "unmapped" or "made".
---@param options? weft.fields.portmap_message
---@return weft.Message
function Mapper:request(options) end

---The PMAck to a PMAccept.
---@param answer weft.PortMapperMessage
---@param options? weft.fields.portmap_message
---@return weft.Message
function Mapper:ack(answer, options) end

---Sends a datagram.
---@param message weft.Message|string
---@param options? weft.fields.mapper_send
function Mapper:send(message, options) end

---A message of these fields comes next.
---@param options? weft.fields.mapper_expect
---@return weft.PortMapperMessage
function Mapper:expect(options) end

---No datagram comes.
---@param options? weft.fields.mapper_quiet
function Mapper:expect_quiet(options) end

---A TCP connection to the address that a PMAccept gave.
---@param answer weft.PortMapperMessage
---@param options? weft.fields.mapper_quiet
---@return weft.Connection
function Mapper:connect(answer, options) end

---@class weft.PortMapper
local PortMapper = {}

---The Conventional Address of a service.
---@param options? weft.fields.asked_service
---@return weft.Place
function PortMapper:service(options) end

---A TCP address of the tester's of its own.
---@param options? weft.fields.asked_place
---@return weft.Place
function PortMapper:place(options) end

---Has the target connect to a service, and waits until something comes of it.
---@param options? weft.fields.asked_service
function PortMapper:start(options) end

---A datagram of these fields comes next; connections are kept.
---@param options? weft.fields.asked_expect
---@return weft.PortMapperMessage
function PortMapper:expect(options) end

---The right PMAccept to a PMReq, with the address of a place, `at`, for SDP Address.
---@param request weft.PortMapperMessage
---@param options? weft.fields.portmap_message
---@return weft.Message
function PortMapper:accept(request, options) end

---The right PMDeny to a PMReq.
---@param request weft.PortMapperMessage
---@param options? weft.fields.portmap_message
---@return weft.Message
function PortMapper:deny(request, options) end

---Answers a PMReq, and its repetitions.
---@param request weft.PortMapperMessage
---@param message weft.Message|string
---@param options? weft.fields.asked_send
function PortMapper:answer(request, message, options) end

---Sends a datagram to where a PMReq came from.
---@param message weft.Message|string
---@param request weft.PortMapperMessage
---@param options? weft.fields.asked_send
function PortMapper:send(message, request, options) end

---What the next expectation will see, as far as it is here.
---@return "connection"|"datagram"|nil
function PortMapper:waiting() end

---Counts datagrams until the target connects, there are enough, or none comes.
---@param options? weft.fields.asked_repeats
---@return integer, "connection"|"most"|"quiet"
function PortMapper:count_repeats(options) end

---No datagram comes but PMReqs that were answered.
---@param options? weft.fields.asked_quiet
function PortMapper:expect_quiet(options) end

---No connection comes.
---@param options? weft.fields.asked_quiet
function PortMapper:expect_no_connection(options) end

---The next connection goes to this place.
---@param options? weft.fields.asked_connection
---@return weft.Connection
function PortMapper:expect_connection(options) end

---@class weft.Agent
local Agent = {}

---What the device is and holds, as docs/agent.md has it.
---@return table
function Agent:device() end

---A Protection Domain beside the usual one.
---@return integer
function Agent:domain() end

---Registered memory of the target.
---@param options? weft.fields.agent_region
---@return weft.Region
function Agent:region(options) end

---A memory window, bound to nothing.
---@param options? weft.fields.agent_window
---@return weft.Window
function Agent:window(options) end

---A shared receive queue.
---@param options? weft.fields.agent_shared
---@return weft.Shared
function Agent:shared(options) end

---A connection in Full Operation, in either role: the opening Send is done, and FPDUs may go both ways.
---@param options? weft.fields.agent_operate
---@return weft.Connection, weft.Pair, weft.Operated
function Agent:operate(options) end

---An initiator connects: TCP is there, and its Request is on the way.
---@param options? weft.fields.agent_pair
---@return weft.Connection, weft.Pair
function Agent:connect(options) end

---The responder's user is told of the Request that was sent, with these private data; and what it is told.
---@param options? weft.fields.agent_request
---@return weft.Pair, table
function Agent:expect_request(options) end

---The octets that `fill` puts into memory.
---@param seed integer
---@param length integer
---@return string
function Agent:pattern(seed, length) end

---@class weft.Pair
local Pair = {}

---Makes the Queue Pair of a connection that asks; receives can be posted then.
---@param options? weft.fields.agent_pair
function Pair:open(options) end

---Accepts it.
---@param options? weft.fields.agent_pair
function Pair:accept(options) end

---Rejects it, with these private data.
---@param options? weft.fields.agent_pair
function Pair:reject(options) end

---The user ends the connection.
function Pair:disconnect() end

---The user gives the connection back, without a word to the peer but TCP's.
function Pair:destroy() end

---Posts a receive; gives its number, or why it was refused.
---@param options? weft.fields.post_receive
---@return integer?, string?
function Pair:post_receive(options) end

---Posts a Send.
---@param options? weft.fields.post_send
---@return integer?, string?
function Pair:post_send(options) end

---Posts an RDMA Write to `stag` and `to`.
---@param options? weft.fields.post_write
---@return integer?, string?
function Pair:post_write(options) end

---Posts an RDMA Read from `stag` and `to`.
---@param options? weft.fields.post_read
---@return integer?, string?
function Pair:post_read(options) end

---Posts an Atomic Operation on eight octets at `stag` and `to`: `add`, or `compare` and `swap`.
---@param options? weft.fields.post_atomic
---@return integer?, string?
function Pair:post_atomic(options) end

---Posts an Invalidate Local of an STag of the target.
---@param options? weft.fields.post_invalidate
---@return integer?, string?
function Pair:post_invalidate(options) end

---Posts a Bind of a window to octets of a region; gives the STag that it has then.
---@param options? weft.fields.post_bind
---@return integer?, integer|string|nil
function Pair:post_bind(options) end

---The user is told that a work request has completed so.
---@param options? weft.fields.expect_completion
---@return weft.Completion
function Pair:expect_completion(options) end

---The user is told of one of these events of the connection.
---@param options? weft.fields.expect_event
---@return weft.Event
function Pair:expect_event(options) end

---The user is told that something went wrong: an event of its Queue Pair, or a completion in error that is no flush.
---@param options? weft.fields.expect_error
function Pair:expect_error(options) end

---The user is told of no completion.
---@param options? weft.fields.expect_no_completion
function Pair:expect_no_completion(options) end

---@class weft.Region
local Region = {}

---Octets of the memory.
---@param options? weft.fields.agent_octets
---@return string
function Region:get(options) end

---Puts `octets` there.
---@param options? weft.fields.agent_octets
function Region:put(options) end

---Fills it with the pattern of `seed`.
---@param options? weft.fields.agent_octets
function Region:fill(options) end

---CRC32c of its octets.
---@param options? weft.fields.agent_octets
---@return integer
function Region:hash(options) end

---Deregisters it.
function Region:destroy() end

---@class weft.Shared
local Shared = {}

---Posts a receive.
---@param options? weft.fields.post_receive
---@return integer?, string?
function Shared:post_receive(options) end

---The user is to be told when less than so many receives are left; whether the device does that, or why not.
---@param receives integer
---@return boolean, string?
function Shared:limit(receives) end

---The user is told that less are left than the limit.
---@param options? weft.fields.expect_limit
function Shared:expect_limit(options) end

---@class weft.Tester
local Tester = {}

---The target does its work on a connection of its own; call it before the stimulus.
---@param options? weft.fields.good_exchange
function Tester:good_exchange(options) end

---A good exchange behind the last expectation: the target still works.
---@param options? weft.fields.good_exchange
function Tester:liveness(options) end

---A TCP connection; no MPA frame is sent. An initiator is started for it, and waited for.
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

---An SDP connection, started in the target's profile, and its HelloAck.
---@param options? weft.fields.sdp
---@return weft.Sdp, weft.SdpMessage
function Tester:sdp(options) end

---An SDP connection that the target opened, and its Hello.
---@param options? weft.fields.accept_sdp
---@return weft.Sdp, weft.SdpMessage
function Tester:accept_sdp(options) end

---A connection on which a Hello was sent, and nothing was waited for.
---@param options? weft.fields.sdp
---@return weft.Connection
function Tester:greet(options) end

---A socket for datagrams to the target's port mapper.
---@param options? weft.fields.mapper
---@return weft.Mapper
function Tester:mapper(options) end

---The port mapper that a target asks, and where it is sent.
---@param options? weft.fields.mapper
---@return weft.PortMapper
function Tester:port_mapper(options) end

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

---An FPDU around a ULPDU (RFC 5044 section 4.1); with `position`, its place in the stream, it has markers.
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

sdp = {}

---The SDP message hello (draft-pinkerton-iwarp-sdp-01 section 6).
---@param fields? weft.fields.sdp_hello
---@return weft.Message
function sdp.hello(fields) end

---The SDP message hello_ack (draft-pinkerton-iwarp-sdp-01 section 6).
---@param fields? weft.fields.sdp_hello_ack
---@return weft.Message
function sdp.hello_ack(fields) end

---The SDP message dis_conn (draft-pinkerton-iwarp-sdp-01 section 6).
---@param fields? weft.fields.sdp_dis_conn
---@return weft.Message
function sdp.dis_conn(fields) end

---The SDP message abort_conn (draft-pinkerton-iwarp-sdp-01 section 6).
---@param fields? weft.fields.sdp_abort_conn
---@return weft.Message
function sdp.abort_conn(fields) end

---The SDP message send_sm (draft-pinkerton-iwarp-sdp-01 section 6).
---@param fields? weft.fields.sdp_send_sm
---@return weft.Message
function sdp.send_sm(fields) end

---The SDP message rdma_wr_compl (draft-pinkerton-iwarp-sdp-01 section 6).
---@param fields? weft.fields.sdp_rdma_wr_compl
---@return weft.Message
function sdp.rdma_wr_compl(fields) end

---The SDP message rdma_rd_compl (draft-pinkerton-iwarp-sdp-01 section 6).
---@param fields? weft.fields.sdp_rdma_rd_compl
---@return weft.Message
function sdp.rdma_rd_compl(fields) end

---The SDP message mode_change (draft-pinkerton-iwarp-sdp-01 section 6).
---@param fields? weft.fields.sdp_mode_change
---@return weft.Message
function sdp.mode_change(fields) end

---The SDP message src_avail_cancel (draft-pinkerton-iwarp-sdp-01 section 6).
---@param fields? weft.fields.sdp_src_avail_cancel
---@return weft.Message
function sdp.src_avail_cancel(fields) end

---The SDP message sink_avail_cancel (draft-pinkerton-iwarp-sdp-01 section 6).
---@param fields? weft.fields.sdp_sink_avail_cancel
---@return weft.Message
function sdp.sink_avail_cancel(fields) end

---The SDP message sink_cancel_ack (draft-pinkerton-iwarp-sdp-01 section 6).
---@param fields? weft.fields.sdp_sink_cancel_ack
---@return weft.Message
function sdp.sink_cancel_ack(fields) end

---The SDP message ch_rcv_buf (draft-pinkerton-iwarp-sdp-01 section 6).
---@param fields? weft.fields.sdp_ch_rcv_buf
---@return weft.Message
function sdp.ch_rcv_buf(fields) end

---The SDP message ch_rcv_buf_ack (draft-pinkerton-iwarp-sdp-01 section 6).
---@param fields? weft.fields.sdp_ch_rcv_buf_ack
---@return weft.Message
function sdp.ch_rcv_buf_ack(fields) end

---The SDP message susp_comm (draft-pinkerton-iwarp-sdp-01 section 6).
---@param fields? weft.fields.sdp_susp_comm
---@return weft.Message
function sdp.susp_comm(fields) end

---The SDP message susp_comm_ack (draft-pinkerton-iwarp-sdp-01 section 6).
---@param fields? weft.fields.sdp_susp_comm_ack
---@return weft.Message
function sdp.susp_comm_ack(fields) end

---The SDP message sink_avail (draft-pinkerton-iwarp-sdp-01 section 6).
---@param fields? weft.fields.sdp_sink_avail
---@return weft.Message
function sdp.sink_avail(fields) end

---The SDP message src_avail (draft-pinkerton-iwarp-sdp-01 section 6).
---@param fields? weft.fields.sdp_src_avail
---@return weft.Message
function sdp.src_avail(fields) end

---The SDP message data (draft-pinkerton-iwarp-sdp-01 section 6).
---@param fields? weft.fields.sdp_data
---@return weft.Message
function sdp.data(fields) end

portmap = {}

---A port mapper message (draft-pinkerton-iwarp-sdp-01 section 7.3): a PMReq over IPv4.
---@param fields? weft.fields.portmap_message
---@return weft.Message
function portmap.message(fields) end

---The rows that the monitor judges in what the target sends, by what they are about (`sdp.shown { "hello_ack", "data" }`).
---@param about string[]
---@return string[]
function sdp.shown(about) end

---Declares a case.
---@param fields weft.fields.case
function case(fields) end

---The whole numbers from `first` to `last`.
---@param first integer
---@param last integer
---@return integer[]
function range(first, last) end

octets = {}

---Numbered lines of 64 octets, no two alike: `length` octets of them.
---@param length integer
---@return string
function octets.counted(length) end

---What is wrong with octets that were to be `want`, for `actual`.
---@param got string
---@param want string
---@return string
function octets.difference(got, want) end
