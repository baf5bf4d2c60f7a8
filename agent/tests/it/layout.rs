//! The structures of `rdma::abi` have the sizes and offsets of rdma-core's headers.
//!
//! The test needs the headers (`libibverbs-dev`, `librdmacm-dev`) and a C compiler. If the headers
//! are missing, the test usually does nothing. But if the headers are missing and
//! `WEFT_RDMA_HEADERS` is set, the test fails. CI sets this variable.

use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::Command;

use weft_agent::rdma::abi::{
    AsyncEvent, BindMw, CmEvent, CmId, CompChannel, ConnParam, Context, Cq, Device, DeviceAttr, EventChannel, Mr, Mw,
    MwBind, MwBindInfo, Ops, Pd, PortAttr, Qp, QpInitAttr, RecvWr, SendWr, Sge, Srq, SrqAttr, SrqInitAttr, Wc,
};

/// Returns C expressions, each with its expected value.
fn expected() -> Vec<(&'static str, usize)> {
    macro_rules! sizes {
        ($($c:literal = $rust:ty),* $(,)?) => { vec![$((concat!("sizeof(struct ", $c, ")"), size_of::<$rust>())),*] };
    }
    macro_rules! offsets {
        ($($c:literal = $rust:ty, $member:ident;)*) => {
            vec![$((concat!("offsetof(struct ", $c, ")"), offset_of!($rust, $member))),*]
        };
    }
    let mut all = sizes! {
        "ibv_context_ops" = Ops, "ibv_mr" = Mr, "ibv_mw_bind_info" = MwBindInfo, "ibv_mw_bind" = MwBind,
        "ibv_qp_init_attr" = QpInitAttr, "ibv_srq_init_attr" = SrqInitAttr, "ibv_srq_attr" = SrqAttr, "ibv_sge" = Sge, "ibv_recv_wr" = RecvWr,
        "ibv_send_wr" = SendWr, "ibv_wc" = Wc, "ibv_async_event" = AsyncEvent, "ibv_device_attr" = DeviceAttr,
        "ibv_comp_channel" = CompChannel, "rdma_event_channel" = EventChannel, "rdma_conn_param" = ConnParam,
    };
    all.extend(offsets! {
        "ibv_context, ops" = Context, ops;
        "ibv_context, cmd_fd" = Context, cmd_fd;
        "ibv_context, async_fd" = Context, async_fd;
        "ibv_device, transport_type" = Device, transport_type;
        "ibv_device, name" = Device, name;
        "ibv_context_ops, alloc_mw" = Ops, alloc_mw;
        "ibv_context_ops, dealloc_mw" = Ops, dealloc_mw;
        "ibv_context_ops, poll_cq" = Ops, poll_cq;
        "ibv_context_ops, req_notify_cq" = Ops, req_notify_cq;
        "ibv_context_ops, post_srq_recv" = Ops, post_srq_recv;
        "ibv_context_ops, post_send" = Ops, post_send;
        "ibv_context_ops, post_recv" = Ops, post_recv;
        "ibv_pd, handle" = Pd, handle;
        "ibv_mr, addr" = Mr, addr;
        "ibv_mr, lkey" = Mr, lkey;
        "ibv_mr, rkey" = Mr, rkey;
        "ibv_mw, rkey" = Mw, rkey;
        "ibv_mw, type" = Mw, kind;
        "ibv_cq, cq_context" = Cq, cq_context;
        "ibv_srq, context" = Srq, context;
        "ibv_qp, qp_context" = Qp, qp_context;
        "ibv_qp, qp_num" = Qp, qp_num;
        "ibv_qp_init_attr, cap" = QpInitAttr, cap;
        "ibv_qp_init_attr, qp_type" = QpInitAttr, qp_type;
        "ibv_send_wr, opcode" = SendWr, opcode;
        "ibv_send_wr, invalidate_rkey" = SendWr, invalidate_rkey;
        "ibv_send_wr, wr.rdma.remote_addr" = SendWr, wr;
        "ibv_send_wr, wr.atomic.remote_addr" = SendWr, wr;
        "ibv_send_wr, bind_mw" = SendWr, bind_mw;
        "ibv_wc, byte_len" = Wc, byte_len;
        "ibv_wc, invalidated_rkey" = Wc, invalidated_rkey;
        "ibv_wc, wc_flags" = Wc, wc_flags;
        "ibv_device_attr, max_qp" = DeviceAttr, max_qp;
        "ibv_device_attr, device_cap_flags" = DeviceAttr, device_cap_flags;
        "ibv_device_attr, max_qp_rd_atom" = DeviceAttr, max_qp_rd_atom;
        "ibv_device_attr, max_qp_init_rd_atom" = DeviceAttr, max_qp_init_rd_atom;
        "ibv_device_attr, max_mw" = DeviceAttr, max_mw;
        "ibv_device_attr, max_srq" = DeviceAttr, max_srq;
        "ibv_device_attr, phys_port_cnt" = DeviceAttr, phys_port_cnt;
        "ibv_port_attr, state" = PortAttr, state;
        "rdma_cm_id, verbs" = CmId, verbs;
        "rdma_cm_id, context" = CmId, context;
        "rdma_cm_id, qp" = CmId, qp;
        "rdma_conn_param, private_data_len" = ConnParam, private_data_len;
        "rdma_conn_param, responder_resources" = ConnParam, responder_resources;
        "rdma_conn_param, qp_num" = ConnParam, qp_num;
        "rdma_cm_event, listen_id" = CmEvent, listen_id;
        "rdma_cm_event, status" = CmEvent, status;
        "rdma_cm_event, param.conn" = CmEvent, conn;
    });
    all.push((
        "offsetof(struct ibv_send_wr, bind_mw.bind_info) - offsetof(struct ibv_send_wr, bind_mw)",
        offset_of!(BindMw, bind_info),
    ));
    all
}

#[test]
fn structures_match_the_headers() {
    if !Path::new("/usr/include/rdma/rdma_cma.h").exists() {
        assert!(
            std::env::var_os("WEFT_RDMA_HEADERS").is_none(),
            "WEFT_RDMA_HEADERS is set, but rdma-core's headers are missing"
        );
        println!("skipped: the headers of rdma-core are missing (`apt install libibverbs-dev librdmacm-dev`)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("layout.c"), folder.path().join("layout"));
    let expected = expected();
    let printed: String = expected.iter().map(|(c, _)| format!("printf(\"%zu\\n\", (size_t)({c}));\n")).collect();
    let text = format!(
        "#include <stdio.h>\n#include <stddef.h>\n#include <rdma/rdma_cma.h>\nint main(void) {{\n{printed}\
        printf(\"%zu\\n\", sizeof(struct ibv_port_attr));\nreturn 0; }}\n"
    );
    std::fs::write(&source, text).unwrap();
    assert!(Command::new("cc").args([&source, Path::new("-o"), &program]).status().unwrap().success());
    let output = String::from_utf8(Command::new(&program).output().unwrap().stdout).unwrap();
    let mut found = output.lines().map(|line| line.parse::<usize>().unwrap());
    for (c, size) in expected {
        assert_eq!(found.next(), Some(size), "{c}");
    }
    assert!(found.next().unwrap() <= size_of::<PortAttr>(), "room for what the library writes");
}
