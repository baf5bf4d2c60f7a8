---@meta
-- The objects and functions of weft's suites, for editors with the Lua language server (LuaLS).
-- `weft suite annotations` has written this file.

---@class weft.fields.case
---@field id string
---@field version? integer
---@field title string
---@field requirements string|(string|string[])[]
---@field roles? string[]
---@field capabilities? string[]
---@field tags? string[]
---@field parameters? table<string, (boolean|integer|string)[]>
---@field tier? string
---@field combine? weft.fields.combine
---@field scales? string[]
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
---@field trailing? string
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
---@field trailing? string
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
---@field trailing? string
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
---@field trailing? string
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
---@field trailing? string
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
---@field trailing? string
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
---@field trailing? string
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
---@field trailing? string
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
---@field trailing? string
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
---@field trailing? string
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
---@field trailing? string
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
---@field trailing? string
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
---@field trailing? string
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
---@field trailing? string
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
---@field trailing? string
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
---@field trailing? string
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
---@field trailing? string
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
---@field trailing? string
---@field order? string

---@class weft.fields.send
---@field cuts? integer[]
---@field every? integer
---@field pause? number
---@field deviates? boolean|weft.Message
---@field queued? boolean

---@class weft.fields.send_segments
---@field cuts? integer[]
---@field deviates? boolean|weft.Message
---@field order? integer[]
---@field pause? number
---@field fragment? integer
---@field last_first? boolean

---@class weft.fields.withhold
---@field cuts? integer[]
---@field deviates? boolean|weft.Message

---@class weft.fields.send_segment
---@field fragment? integer
---@field last_first? boolean

---@class weft.fields.retransmit
---@field back? integer
---@field deviates? boolean|weft.Message

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

---@class weft.fields.expect_terminate
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field code? string|(string|string[])[]
---@field terminate? string|(string|string[])[]
---@field error? string|(string|string[])[]

---@class weft.fields.expect_octets
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field begins string
---@field keep? boolean
---@field markers? boolean

---@class weft.fields.expect_silence
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field open? boolean

---@class weft.fields.expect_close
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field or_reject? boolean
---@field after_terminate? boolean
---@field graceful? boolean

---@class weft.fields.expect_sdp
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number

---@class weft.fields.expect_from
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field ip? string
---@field port? integer

---@class weft.fields.expect_plain
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number

---@class weft.fields.waiting
---@field within? number

---@class weft.fields.carrier
---@field solicited? boolean
---@field invalidate? integer
---@field opcode? integer
---@field msn? integer
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
---@field past? string[]

---@class weft.fields.read
---@field sink_stag? integer
---@field length? integer
---@field stag? integer
---@field va? integer

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

---@class weft.fields.write
---@field stag? integer
---@field va? integer
---@field payload? string

---@class weft.fields.sdp_quiet
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field past? string[]

---@class weft.fields.serve
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field va? integer
---@field from? integer

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

---@class weft.fields.sdp_end
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field past? string[]
---@field graceful? boolean

---@class weft.fields.counters
---@field bufs? integer
---@field updates? boolean

---@class weft.fields.sdp_socket_send
---@field urgent? boolean

---@class weft.fields.sdp_socket_wait
---@field octets? integer
---@field open? boolean
---@field sent? boolean
---@field ended? boolean
---@field within? number

---@class weft.fields.sdp_socket_mode
---@field receiving? boolean

---@class weft.fields.sdp_socket_resume
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number

---@class weft.fields.mapper_send
---@field deviates? boolean

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

---@class weft.fields.port_mapper_service
---@field service? integer

---@class weft.fields.port_mapper_place
---@field other? boolean
---@field refuses? boolean

---@class weft.fields.port_mapper_expect
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

---@class weft.fields.port_mapper_send
---@field aside? boolean
---@field deviates? boolean

---@class weft.fields.port_mapper_repeats
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field most? integer

---@class weft.fields.port_mapper_quiet
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number

---@class weft.fields.port_mapper_connection
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
---@field may_refuse? boolean

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

---@class weft.fields.agent_octets
---@field offset? integer
---@field length? integer
---@field octets? string
---@field seed? integer

---@class weft.fields.expect_limit
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number

---@class weft.fields.good_exchange
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]

---@class weft.fields.opening
---@field requirement? string|(string|string[])[]

---@class weft.fields.check
---@field requirement? string|(string|string[])[]
---@field shows? string|(string|string[])[]
---@field overdue_fails? boolean
---@field within? number
---@field expected string
---@field actual string
---@field missing? boolean

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

---@class weft.fields.sdp_socket
---@field answer? string
---@field source_threshold? integer
---@field sink_threshold? integer
---@field max_src_avail? integer
---@field src_avails? integer
---@field sink_avails? integer
---@field src_avail_payload? integer
---@field max_read? integer
---@field read_batch? integer
---@field transactions? boolean
---@field wants_pipelined? boolean
---@field follows_hints? boolean
---@field data_first? boolean
---@field recv_size? integer
---@field bufs? integer
---@field max_recv_size? integer
---@field des_rem_rcv_sz? integer
---@field max_adverts? integer
---@field ird? integer
---@field crc? boolean
---@field cut_fpdus? boolean
---@field cut? integer
---@field receive? integer
---@field receives? integer
---@field max_received? integer
---@field buffers_at? integer

---@class weft.fields.mapper
---@field v6? boolean

---@class weft.fields.agent_part
---@field offset? integer
---@field length? integer
---@field key? integer
---@field region weft.Region

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

---Returns the message with the bits of `mask` (all by default) inverted in one byte. Bytes are numbered from 0.
---@param octet integer
---@param mask? integer
---@return weft.Message
function Message:flip(octet, mask) end

---Returns a copy of the message in which `octets` replace the bytes from `first` on. Bytes are numbered from 0.
---@param first integer
---@param octets string
---@return weft.Message
function Message:replace(first, octets) end

---Returns the first `len` bytes of the message.
---@param len integer
---@return weft.Message
function Message:cut(len) end

---Returns the bytes as a string.
---@return string
function Message:octets() end

---@class weft.Connection
local Connection = {}

---Sends a message or bytes, in pieces if the options have cuts.
---@param message weft.Message|string
---@param options? weft.fields.send
function Connection:send(message, options) end

---Sends a message in TCP segments that the script chooses. `cuts` has the offsets at which a new segment begins, in the bytes with markers. `order` has the numbers of the segments, from 1, in the order in which they leave. A number that occurs twice is a retransmission. Segments that are not in `order` leave last. With `fragment`, IP fragments of at most this number of bytes carry each segment. With `last_first`, the last fragment of each segment leaves first. Needs the capability `segments`.
---@param message weft.Message|string
---@param options? weft.fields.send_segments
function Connection:send_segments(message, options) end

---Gives a message to the tester's TCP, which does not send it yet. `cuts` has the offsets at which a new segment begins, in the bytes with markers. Then `send_segment` sends a segment, and `send_withheld` sends the rest. Needs the capability `segments`.
---@param message weft.Message|string
---@param options? weft.fields.withhold
function Connection:withhold(message, options) end

---Sends a segment of the withheld message. `segment` is its number, from 1.
---@param segment integer
---@param options? weft.fields.send_segment
function Connection:send_segment(segment, options) end

---Sends the bytes of the withheld message that no segment had.
function Connection:send_withheld() end

---Sends a message as a TCP segment in the place of an earlier message of the same length, as if TCP had retransmitted that message with other content. `back` is the number of messages that were sent after the earlier message (default 0). Needs the capability `segments`.
---@param message weft.Message|string
---@param options? weft.fields.retransmit
function Connection:retransmit(message, options) end

---Expects an MPA Reply with these fields.
---@param options? weft.fields.expect_reply
---@return weft.Reply
function Connection:expect_reply(options) end

---Expects an MPA Request with these fields from a target that is an Initiator.
---@param options? weft.fields.expect_request
---@return weft.Reply
function Connection:expect_request(options) end

---Builds the correct Reply to the received Request.
---@param options? weft.fields.mpa_reply
---@return weft.Message
function Connection:reply(options) end

---Expects an FPDU with these fields.
---@param options? weft.fields.expect_fpdu
---@return weft.Fpdu
function Connection:expect_fpdu(options) end

---Expects that the target refuses the message: it sends a Terminate with one of these errors, or closes the connection. `requirement` names requirements about the refusal, `terminate` names requirements about the Terminate, and `code` names requirements about the error in the Terminate.
---@param options? weft.fields.expect_terminate
---@return weft.Terminate?
function Connection:expect_terminate(options) end

---Expects that the next bytes of the target begin with `begins`.
---@param options? weft.fields.expect_octets
---@return string
function Connection:expect_octets(options) end

---Expects that the target sends no byte.
---@param options? weft.fields.expect_silence
function Connection:expect_silence(options) end

---Expects that the target closes the connection and sends no byte before the close. Returns the seconds until the close.
---@param options? weft.fields.expect_close
---@return number
function Connection:expect_close(options) end

---Expects that the target starts SDP, with a Hello or a start-up frame of MPA.
---@param options? weft.fields.expect_sdp
function Connection:expect_sdp(options) end

---Expects that the connection came from this address and this port, if they are given.
---@param options? weft.fields.expect_from
function Connection:expect_from(options) end

---Expects a connection without SDP: the first bytes are neither a Hello nor a start-up frame of MPA. The target may also send nothing.
---@param options? weft.fields.expect_plain
function Connection:expect_plain(options) end

---Returns the next event, and judges nothing. The event is a start-up frame, an FPDU, other bytes, or the end of the connection. For a start-up frame or an FPDU, also returns its fields. Returns nil if nothing arrives.
---@param options? weft.fields.waiting
---@return "reply"|"request"|"fpdu"|"octets"|"close"|nil, weft.Reply|weft.Fpdu|nil
function Connection:next(options) end

---Reads at most this number of bytes from TCP, and keeps them for the next expectation. Returns whether a byte arrived. If the receive buffer was full, the tester's own TCP opens its window by this number of bytes. TCP of the operating system waits until more bytes are read.
---@param octets integer
---@param options? weft.fields.waiting
---@return boolean
function Connection:read_part(octets, options) end

---Returns the number of bytes that the tester sent after its start-up frame. This number is the position of the tester's next FPDU.
---@return integer
function Connection:position() end

---Returns the position of the next FPDU in the tester's stream or, with `by_target`, in the target's stream. Returns nil if this stream has no markers. The script must have received all FPDUs of the target.
---@param by_target boolean
---@return integer?
function Connection:marked_position(by_target) end

---Closes the tester's direction of the connection with FIN.
function Connection:finish() end

---Sends FIN, and waits a short time for the target's FIN.
function Connection:close() end

---Resets the connection.
function Connection:reset() end

---@class weft.Sdp
local Sdp = {}

---Sends an SDP message in a Send. Fills in the counters that the message does not set.
---@param message weft.Message|string
---@param options? weft.fields.carrier
function Sdp:send(message, options) end

---Sends a line of text commands as Data. Text commands must control the target's socket. If the socket does not execute one of the commands, the case ends as unimplemented.
---@param line string
function Sdp:command(line) end

---Returns the message with its counters filled in, so that it can be changed before it is sent.
---@param message weft.Message|string
---@return weft.Message
function Sdp:fill(message) end

---Expects that the next message of the target has this name. Updates (Data that only update counters) and ModeChanges may arrive before it.
---@param name string|string[]
---@param options? weft.fields.sdp_expect
---@return weft.SdpMessage
function Sdp:expect(name, options) end

---Expects an RDMA Read Request.
---@param options? weft.fields.expect_read
---@return weft.ReadRequest
function Sdp:expect_read(options) end

---Sends the Read Response.
---@param read weft.ReadRequest
---@param octets string
function Sdp:answer_read(read, octets) end

---Expects RDMA Writes of `length` bytes.
---@param options? weft.fields.expect_write
---@return weft.Write
function Sdp:expect_write(options) end

---Sends an RDMA Read Request.
---@param options? weft.fields.read
function Sdp:read(options) end

---Expects the answer to a Read Request.
---@param options? weft.fields.expect_response
---@return string
function Sdp:expect_response(options) end

---Reads the bytes that a SrcAvail advertises but does not carry as payload, and sends the RdmaRdCompl.
---@param src_avail weft.SdpMessage
---@param options? weft.fields.fetch
---@return string
function Sdp:fetch(src_avail, options) end

---Sends an RDMA Write.
---@param options? weft.fields.write
function Sdp:write(options) end

---Expects that the target sends only updates, and keeps the connection open.
---@param options? weft.fields.sdp_quiet
---@return weft.SdpMessage[]
function Sdp:expect_quiet(options) end

---Receives this number of bytes. The target may send the bytes as payload, or advertise them with SrcAvails. The tester gets advertised bytes by RDMA Reads.
---@param octets integer
---@param options? weft.fields.sdp_quiet
---@return string
function Sdp:collect(octets, options) end

---Answers the target's Reads of advertised bytes until all bytes are read.
---@param octets string
---@param options? weft.fields.serve
function Sdp:serve(octets, options) end

---Closes the connection: DisConn in both directions, and the end of TCP.
---@param options? weft.fields.sdp_quiet
function Sdp:close(options) end

---Returns the next event that is not an update, and its fields. The event is the name of a message, or "read" for an RDMA Read Request.
---@param options? weft.fields.next
---@return string, table
function Sdp:next(options) end

---Expects that the connection stays open. Any message except AbortConn may arrive.
---@param options? weft.fields.expect_open
function Sdp:expect_open(options) end

---Expects that the target ends the connection. AbortConn or a Terminate may arrive before the end.
---@param options? weft.fields.sdp_end
---@return weft.SdpMessage[]
function Sdp:expect_end(options) end

---Returns the counters of the next message. `bufs` sets the number of announced buffers. `updates` sets whether updates are sent automatically.
---@param options? weft.fields.counters
---@return { mseq: integer, mseq_ack: integer, bufs: integer }
function Sdp:counters(options) end

---Returns the TCP connection below SDP.
---@return weft.Connection
function Sdp:connection() end

---@class weft.SdpSocket
local SdpSocket = {}

---Queues bytes to send. Returns false if the connection does not accept them any more.
---@param octets string
---@param options? weft.fields.sdp_socket_send
---@return boolean
function SdpSocket:send(octets, options) end

---Queues a line of text commands for a driven socket, like `send`. If the driven socket does not execute one of the commands, the case ends as unimplemented.
---@param line string
---@return boolean
function SdpSocket:command(line) end

---Sends messages that the script builds, one directly after the other. The draft may forbid the messages. weft fills in the counters that a message does not set. The messages have no other effect on the socket. Returns false, and sends nothing, if the send credit does not suffice, or if answers of the socket wait for credit.
---@param messages (weft.Message|string)[]
---@return boolean
function SdpSocket:inject(messages) end

---Returns the number of messages that the socket may send now, according to the send credit.
---@return integer
function SdpSocket:credit() end

---Runs all sockets of the case until a condition is met. The conditions are `octets` (number of received bytes that the script has not taken yet), `open` (HelloAck), `sent` (all sends have ended), and `ended` (the connection has ended). The end of the connection meets every condition. The wait also ends if the connection receives no byte for `within` seconds. Without a condition, waits for `within` seconds. Returns whether the condition is met.
---@param options? weft.fields.sdp_socket_wait
---@return boolean
function SdpSocket:wait(options) end

---Returns the received bytes that the script has not taken yet.
---@return string
function SdpSocket:received() end

---Returns the number of sent bytes for each send that has ended since the last call.
---@return integer[]
function SdpSocket:sent() end

---Requests a Mode: `"combined"`, `"pipelined"` or `"buffered"`. The socket changes to this Mode when the draft allows it. `receiving` selects the half-connection from the target.
---@param mode string
---@param options? weft.fields.sdp_socket_mode
function SdpSocket:mode(mode, options) end

---Requests another size of the target's Private Buffers.
---@param octets integer
function SdpSocket:resize(octets) end

---Returns the maximum length in bytes of a message that the socket may send now. This is the size of the target's Private Buffers.
---@return integer
function SdpSocket:message_limit() end

---Cancels the sends that have not ended.
function SdpSocket:cancel() end

---For this number of seconds, the socket only sends, and leaves the target's bytes unread. So its messages cross messages of the target.
---@param seconds number
function SdpSocket:stop_reading(seconds) end

---For this number of seconds, the socket has no receive: it cancels its receives and posts no others. So data of the target stays in the Private Buffers, and SrcAvails stay open. A later call replaces the time.
---@param seconds number
function SdpSocket:hold(seconds) end

---Changes the field `source_threshold`: if the rest of a send has at most this number of bytes, the socket sends the rest as Data.
---@param octets integer
function SdpSocket:source_threshold(octets) end

---Changes how the socket answers a SrcAvail: `"read"`, `"send-sm"` or `"both"`.
---@param how string
function SdpSocket:answer(how) end

---Closes the sending half-connection after all queued bytes.
function SdpSocket:shut() end

---Sends a FIN without DisConn. Afterwards the socket sends nothing, but still receives.
function SdpSocket:finish() end

---Suspends the connection: after a SuspComm with this TCP port, the target has to answer and to connect to this port of the tester. A suspended connection counts as ended. Returns false if the connection is not open.
---@param port integer
---@return boolean
function SdpSocket:suspend(port) end

---Continues a suspended connection: waits until the target connects to this TCP port of the tester, and returns the socket on the new connection. Sends and receives that have not ended continue. Only a builtin target can connect to another port of the tester.
---@param port integer
---@param options? weft.fields.sdp_socket_resume
---@return weft.SdpSocket
function SdpSocket:resume(port, options) end

---Closes the connection abortively.
function SdpSocket:abort() end

---Resets the TCP connection. The socket cannot be used any more.
function SdpSocket:reset() end

---Returns whether the target has sent DisConn.
---@return boolean
function SdpSocket:has_dis_conn() end

---Returns how the connection ended, or nil if it has not ended. The table has the fields `graceful` and `suspended`. If weft's SDP ended the connection, the table also has the field `reason`.
---@return { graceful: boolean, suspended: boolean, reason: string? }?
function SdpSocket:ended() end

---@class weft.Mapper
local Mapper = {}

---Builds the correct PMReq. `service` may be "mapped", "unmapped" or "made".
---@param options? weft.fields.portmap_message
---@return weft.Message
function Mapper:request(options) end

---Builds the PMAck to a PMAccept.
---@param answer weft.PortMapperMessage
---@param options? weft.fields.portmap_message
---@return weft.Message
function Mapper:ack(answer, options) end

---Sends a datagram.
---@param message weft.Message|string
---@param options? weft.fields.mapper_send
function Mapper:send(message, options) end

---Expects that the next datagram has these fields.
---@param options? weft.fields.mapper_expect
---@return weft.PortMapperMessage
function Mapper:expect(options) end

---Returns the next datagram, and judges nothing. The second value is whether the datagram came from the queried address and port of the port mapper. Returns nil if nothing arrives.
---@param options? weft.fields.waiting
---@return weft.PortMapperMessage?, boolean?
function Mapper:next(options) end

---Expects that no datagram arrives.
---@param options? weft.fields.mapper_quiet
function Mapper:expect_quiet(options) end

---Opens a TCP connection to the address in a PMAccept, from the port in the PMAccept's CpPort.
---@param answer weft.PortMapperMessage
---@param options? weft.fields.mapper_quiet
---@return weft.Connection
function Mapper:connect(answer, options) end

---@class weft.PortMapper
local PortMapper = {}

---Returns the Conventional Address of a service.
---@param options? weft.fields.port_mapper_service
---@return weft.Place
function PortMapper:service(options) end

---Returns a TCP address of the tester.
---@param options? weft.fields.port_mapper_place
---@return weft.Place
function PortMapper:place(options) end

---Lets the target connect to a service, and waits for a datagram or a connection.
---@param options? weft.fields.port_mapper_service
function PortMapper:start(options) end

---Expects that the next datagram has these fields. Connections remain for later expectations.
---@param options? weft.fields.port_mapper_expect
---@return weft.PortMapperMessage
function PortMapper:expect(options) end

---Builds the correct PMAccept to a PMReq. The PMAccept contains the address of the place `at`.
---@param request weft.PortMapperMessage
---@param options? weft.fields.portmap_message
---@return weft.Message
function PortMapper:accept(request, options) end

---Builds the correct PMDeny to a PMReq.
---@param request weft.PortMapperMessage
---@param options? weft.fields.portmap_message
---@return weft.Message
function PortMapper:deny(request, options) end

---Answers a PMReq and its repetitions.
---@param request weft.PortMapperMessage
---@param message weft.Message|string
---@param options? weft.fields.port_mapper_send
function PortMapper:answer(request, message, options) end

---Sends a datagram to the sender of a PMReq.
---@param message weft.Message|string
---@param request weft.PortMapperMessage
---@param options? weft.fields.port_mapper_send
function PortMapper:send(message, request, options) end

---Returns the kind of the event that has already arrived for the next expectation: a connection or a datagram. Returns nil if nothing has arrived.
---@return "connection"|"datagram"|nil
function PortMapper:waiting() end

---Counts datagrams until the target connects, until `most` datagrams have arrived, or until no more datagrams arrive. Also returns the reason for the end of the count.
---@param options? weft.fields.port_mapper_repeats
---@return integer, "connection"|"most"|"quiet"
function PortMapper:count_repeats(options) end

---Expects that no datagram arrives, except repetitions of answered PMReqs.
---@param options? weft.fields.port_mapper_quiet
function PortMapper:expect_quiet(options) end

---Expects that no connection arrives.
---@param options? weft.fields.port_mapper_quiet
function PortMapper:expect_no_connection(options) end

---Expects that the next connection goes to this place.
---@param options? weft.fields.port_mapper_connection
---@return weft.Connection
function PortMapper:expect_connection(options) end

---@class weft.Agent
local Agent = {}

---Returns the properties and the objects of the device. See docs/agent.md.
---@return table
function Agent:device() end

---Creates another Protection Domain.
---@return integer
function Agent:domain() end

---Registers memory of the target. With `may_refuse`, returns nil and the reason of a refusal.
---@param options? weft.fields.agent_region
---@return weft.Region, string?
function Agent:region(options) end

---Creates a memory window that is not bound.
---@param options? weft.fields.agent_window
---@return weft.Window
function Agent:window(options) end

---Creates a shared receive queue.
---@param options? weft.fields.agent_shared
---@return weft.Shared
function Agent:shared(options) end

---Opens a connection in either role, and exchanges the first Send. Then the connection is in Full Operation: both sides may send FPDUs.
---@param options? weft.fields.agent_operate
---@return weft.Connection, weft.Pair, weft.Operated
function Agent:operate(options) end

---Lets an Initiator connect over TCP and send its Request.
---@param options? weft.fields.agent_pair
---@return weft.Connection, weft.Pair
function Agent:connect(options) end

---Expects that the Responder's user is notified of a Request that has these private data. Also returns the notification.
---@param options? weft.fields.agent_request
---@return weft.Pair, table
function Agent:expect_request(options) end

---Returns the bytes that `fill` writes into memory.
---@param seed integer
---@param length integer
---@return string
function Agent:pattern(seed, length) end

---@class weft.Pair
local Pair = {}

---Creates the Queue Pair of a requested connection, so that receives can be posted.
---@param options? weft.fields.agent_pair
function Pair:open(options) end

---Accepts the connection.
---@param options? weft.fields.agent_pair
function Pair:accept(options) end

---Rejects the connection with these private data.
---@param options? weft.fields.agent_pair
function Pair:reject(options) end

---Ends the connection.
function Pair:disconnect() end

---Destroys the connection. The peer notices only the end of TCP.
function Pair:destroy() end

---Posts a receive. Returns its number, or nil and the reason of a refusal.
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

---Posts an Atomic Operation on the eight bytes at `stag` and `to`. The operation is `add` alone, or `compare` together with `swap`.
---@param options? weft.fields.post_atomic
---@return integer?, string?
function Pair:post_atomic(options) end

---Posts an Invalidate Local of an STag of the target.
---@param options? weft.fields.post_invalidate
---@return integer?, string?
function Pair:post_invalidate(options) end

---Posts a Bind of a window to bytes of a region. Also returns the new STag of the window.
---@param options? weft.fields.post_bind
---@return integer?, integer|string|nil
function Pair:post_bind(options) end

---Expects that the user is notified of this completion of a work request.
---@param options? weft.fields.expect_completion
---@return weft.Completion
function Pair:expect_completion(options) end

---Returns the next completion on the connection, and judges nothing. Returns nil if the user is not notified in time.
---@param options? weft.fields.waiting
---@return weft.Completion?
function Pair:next_completion(options) end

---Expects that the user is notified of one of these events of the connection.
---@param options? weft.fields.expect_event
---@return weft.Event
function Pair:expect_event(options) end

---Expects that the user is notified of an error: an event of the Queue Pair, or a completion with an error. A work request that fails only because the connection has ended (a flush) does not count, except if `or_end` is set.
---@param options? weft.fields.expect_error
function Pair:expect_error(options) end

---Expects that the user is not notified of a completion.
---@param options? weft.fields.expect_no_completion
function Pair:expect_no_completion(options) end

---@class weft.Region
local Region = {}

---Returns bytes of the memory.
---@param options? weft.fields.agent_octets
---@return string
function Region:get(options) end

---Writes `octets` to the memory.
---@param options? weft.fields.agent_octets
function Region:put(options) end

---Fills the memory with the pattern that depends on `seed`.
---@param options? weft.fields.agent_octets
function Region:fill(options) end

---Returns the CRC32c of the bytes.
---@param options? weft.fields.agent_octets
---@return integer
function Region:hash(options) end

---Deregisters the memory.
function Region:destroy() end

---@class weft.Shared
local Shared = {}

---Posts a receive. Returns its number, or nil and the reason of a refusal.
---@param options? weft.fields.post_receive
---@return integer?, string?
function Shared:post_receive(options) end

---Requests that the user is notified when fewer than this number of receives remain in the queue. Returns whether the device supports this request. If not, also returns the reason.
---@param receives integer
---@return boolean, string?
function Shared:limit(receives) end

---Expects that the user is notified that fewer receives than the limit remain in the queue.
---@param options? weft.fields.expect_limit
function Shared:expect_limit(options) end

---@class weft.Tester
local Tester = {}

---Uses the target's service on a new connection, to show that the target works. Call this method before the stimulus. If the exchange fails, the case is inconclusive, or the target violates `requirement`.
---@param options? weft.fields.good_exchange
function Tester:good_exchange(options) end

---Does a good exchange after an expectation, to show that the target still works. weft does this at the end of each case. Call this method if more steps follow.
---@param options? weft.fields.good_exchange
function Tester:liveness(options) end

---Opens a TCP connection and sends no MPA frame. If the target is an Initiator, starts it and waits for its connection.
---@return weft.Connection
function Tester:connect() end

---Opens a connection and does MPA start-up, so that the tester may send FPDUs. The second value is the target's Reply. If the target is an Initiator, the second value is its Request. If a Responder does not answer the Request in time, it violates `requirement`.
---@param request? weft.fields.mpa_request
---@param options? weft.fields.opening
---@return weft.Connection, weft.Reply
function Tester:start_up(request, options) end

---Opens a connection and brings it to Full Operation. If the target is a Responder, does the first exchange of the service, so that both sides have sent FPDUs. If the target is an Initiator, waits for its first message. If a Responder does not answer the Request in time, or accepts the connection and the exchange fails, it violates `requirement`.
---@param request? weft.fields.mpa_request
---@param options? weft.fields.opening
---@return weft.Connection, weft.Operation
function Tester:operate(request, options) end

---Returns whether the target is an Initiator, which opens the connections.
---@return boolean
function Tester:is_initiator() end

---Builds a Request that this target accepts.
---@param options? weft.fields.mpa_request
---@return weft.Message
function Tester:request(options) end

---Judges a condition of the script.
---@param holds boolean
---@param options? weft.fields.check
function Tester:check(holds, options) end

---Ends the case as unimplemented, because the case is about an optional feature that the target does not implement.
---@param why string
function Tester:unimplemented(why) end

---Ends the case as inconclusive, for a reason that decides nothing about the target.
---@param why string
function Tester:inconclusive(why) end

---Returns the maximum payload of a DDP segment that fits into one TCP segment to the target.
---@return integer
function Tester:max_segment() end

---Waits for this number of seconds. The target continues meanwhile.
---@param seconds number
function Tester:pause(seconds) end

---Returns the number of seconds since the case began. For a builtin target in this process, the clock is virtual.
---@return number
function Tester:clock() end

---Sets the size in bytes of TCP's receive buffer for the connections that the tester opens after this call. With a small buffer, the target can send only a few bytes before the tester reads. This method has no effect on connections that the target opens.
---@param octets integer
function Tester:receive_buffer(octets) end

---Sets the TCP sequence number of the tester's first byte, for the connections that are opened later. With a number near 2^32, the sequence number wraps to 0 after a few bytes. Needs the capability `segments`.
---@param number integer
function Tester:first_sequence(number) end

---Adds a line to the transcript.
---@param text string
function Tester:note(text) end

---Opens an SDP connection in the target's profile. Also returns the HelloAck.
---@param options? weft.fields.sdp
---@return weft.Sdp, weft.SdpMessage
function Tester:sdp(options) end

---Accepts an SDP connection from the target. Also returns the Hello.
---@param options? weft.fields.accept_sdp
---@return weft.Sdp, weft.SdpMessage
function Tester:accept_sdp(options) end

---Opens a connection and sends a Hello. Does not wait for an answer.
---@param options? weft.fields.sdp
---@return weft.Connection
function Tester:greet(options) end

---Opens an SDP socket of the tester, in the target's profile. The socket is the Connecting Peer. If the target connects, the socket is the Accepting Peer.
---@param options? weft.fields.sdp_socket
---@return weft.SdpSocket
function Tester:sdp_socket(options) end

---Draws the random steps of a session with a service, such as `"echo"`, `"agent"` or `"sdp-echo"`, without faults, and adds the steps to the transcript. Returns a function that plays the steps. The parameter of the function is the session. `number` is the seed of the random steps, and `connections` is the maximum number of connections or clients at a time.
---@param service string
---@param number integer
---@param connections integer
---@return fun(session: table)
function Tester:drawn_session(service, number, connections) end

---Opens a socket for datagrams to the target's port mapper.
---@param options? weft.fields.mapper
---@return weft.Mapper
function Tester:mapper(options) end

---Opens the port mapper to which the target sends requests.
---@param options? weft.fields.mapper
---@return weft.PortMapper
function Tester:port_mapper(options) end

mpa = {}

---An MPA Request (RFC 5044 section 7.1.1, RFC 6581 section 9). By default, it has revision 1, C=1 and M=0.
---@param fields? weft.fields.mpa_request
---@return weft.Message
function mpa.request(fields) end

---An MPA Reply.
---@param fields? weft.fields.mpa_reply
---@return weft.Message
function mpa.reply(fields) end

---An FPDU with a ULPDU (RFC 5044 section 4.1). If `position` is set (`conn:position()`), the FPDU has markers.
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

---A port mapper message (draft-pinkerton-iwarp-sdp-01 section 7.3). By default, it is a PMReq over IPv4.
---@param fields? weft.fields.portmap_message
---@return weft.Message
function portmap.message(fields) end

---Returns the requirements that the monitor judges in the messages of the target, by subject (`sdp.shown { "hello_ack", "data" }`).
---@param about string[]
---@return string[]
function sdp.shown(about) end

---Declares a case.
---@param fields weft.fields.case
function case(fields) end

---Returns the integers from `first` to `last`.
---@param first integer
---@param last integer
---@return integer[]
function range(first, last) end

octets = {}

---Returns `length` bytes in lines of 64 bytes. Each line has a different number.
---@param length integer
---@return string
function octets.counted(length) end

---Describes the difference between the received and the expected bytes, for `actual`.
---@param got string
---@param want string
---@return string
function octets.difference(got, want) end
