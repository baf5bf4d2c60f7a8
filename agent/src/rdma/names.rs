//! Names of the libraries' numeric constants. The names come from the C enumerations. They are in
//! lower case, without the prefix.

use core::ffi::c_int;

/// Returns the name of `value`. `names` has the names of the values 0, 1, 2 and so on, in order.
fn name(names: &str, value: c_int) -> String {
    let named = usize::try_from(value).ok().and_then(|value| names.split_ascii_whitespace().nth(value));
    named.map_or_else(|| value.to_string(), str::to_owned)
}

/// `enum ibv_wc_status`.
pub(super) fn status(value: c_int) -> String {
    name(
        "success loc_len_err loc_qp_op_err loc_eec_op_err loc_prot_err wr_flush_err mw_bind_err bad_resp_err \
         loc_access_err rem_inv_req_err rem_access_err rem_op_err retry_exc_err rnr_retry_exc_err loc_rdd_viol_err \
         rem_inv_rd_req_err rem_abort_err inv_eecn_err inv_eec_state_err fatal_err resp_timeout_err general_err \
         tm_err tm_rndv_incomplete",
        value,
    )
}

/// `enum ibv_wc_opcode`, with the names of this crate's protocol.
pub(super) fn operation(value: c_int) -> String {
    match value {
        128 => "receive".to_owned(),
        _ => name("send write read compare_swap fetch_add bind invalidate", value),
    }
}

/// `enum rdma_cm_event_type`.
pub(super) fn cm_event(value: c_int) -> String {
    name(
        "addr_resolved addr_error route_resolved route_error connect_request connect_response connect_error \
         unreachable rejected established disconnected device_removal multicast_join multicast_error addr_change \
         timewait_exit",
        value,
    )
}

/// `enum ibv_event_type`.
pub(super) fn asynchronous(value: c_int) -> String {
    name(
        "cq_err qp_fatal qp_req_err qp_access_err comm_est sq_drained path_mig path_mig_err device_fatal port_active \
         port_err lid_change pkey_change sm_change srq_err srq_limit_reached qp_last_wqe_reached client_reregister \
         gid_change wq_fatal",
        value,
    )
}

/// `enum ibv_port_state`.
pub(super) fn port(value: c_int) -> String {
    name("nop down init armed active active_defer", value)
}
