//! Tests a capture of NVMe over RDMA: the host of Linux requests the discovery log of the target of
//! Linux. `captures/README.md` describes the capture. An independent program counted its messages,
//! and the kernels recorded the commands.

use serde_json::Value;

use crate::common::storage_units;

fn units() -> Vec<Value> {
    storage_units("nvme-discover.pcap")
}

/// The values of a key in the units that the host or the controller sent.
fn values(units: &[Value], from_controller: bool, key: &str) -> Vec<Value> {
    let is_sent = |unit: &&Value| unit["src"].as_str().is_some_and(|src| src.ends_with(":4420") == from_controller);
    units.iter().filter(is_sent).map(|unit| unit[key].clone()).filter(|value| !value.is_null()).collect()
}

/// The commands, in the order in which the host sent them. After the Connect command, the host
/// sends its data.
const COMMANDS: [&str; 17] = [
    "Connect",
    "Connect data",
    "Property Get",
    "Property Set",
    "Property Get",
    "Property Get",
    "Property Set",
    "Property Get",
    "Property Get",
    "Identify",
    "Set Features",
    "Asynchronous Event Request",
    "Identify",
    "Get Log Page",
    "Get Log Page",
    "Property Set",
    "Property Get",
];

#[test]
fn commands_have_names() {
    let units = units();
    assert_eq!(values(&units, false, "weft.ulp.message"), COMMANDS);
    assert!(values(&units, false, "weft.ulp").iter().all(|ulp| ulp == "nvme_rdma"));
    assert_eq!(values(&units, false, "nvme.cmd.identify.dword10.cns"), [1, 1]);
    // Asynchronous Event Configuration, and the Discovery log.
    assert_eq!(values(&units, false, "nvme.cmd.set_features.dword10.fid"), [0x0b]);
    assert_eq!(values(&units, false, "nvme.cmd.get_logpage.dword10.id"), [0x70, 0x70]);
    assert_eq!(values(&units, false, "nvme.cmd.get_logpage.numd"), [256, 768]);
    assert_eq!(values(&units, false, "nvme-rdma.cmd.qid"), [0; 16]);
}

/// The host never gets a response to its Asynchronous Event Request.
#[test]
fn each_response_names_its_command() {
    let units = units();
    let mut answered = COMMANDS.to_vec();
    answered.retain(|name| !matches!(*name, "Connect data" | "Asynchronous Event Request"));
    assert_eq!(values(&units, true, "weft.nvme.command"), answered);
    assert_eq!(values(&units, true, "weft.nvme.status"), ["Successful Completion"; 15]);
    let frames = [8, 12, 14, 16, 18, 20, 22, 24, 26, 39, 42, 51, 56, 63, 65];
    assert_eq!(values(&units, true, "nvme.cmd_pkt"), frames);
    // The controller has ID 1.
    assert_eq!(values(&units, true, "nvme.fabrics.cqe.connect.cntrlid"), [1]);
}

#[test]
fn the_start_up_names_the_queue_and_the_names() {
    let units = units();
    for (key, value) in [("qid", 0), ("hrqsize", 32), ("hsqsize", 31), ("cntlid", 0), ("recfmt", 0)] {
        assert_eq!(values(&units, false, &format!("nvme-rdma.cm.req.{key}")), [value], "{key}");
    }
    assert_eq!(values(&units, true, "nvme-rdma.cm.rsp.crqsize"), [32]);
    let name = |key: &str| values(&units, false, &format!("nvme.fabrics.cmd.connect.data.{key}"));
    assert_eq!(name("subnqn"), ["nqn.2014-08.org.nvmexpress.discovery"]);
    assert_eq!(name("hostnqn").len(), 1);
    assert!(name("hostnqn")[0].as_str().unwrap().starts_with("nqn.2014-08.org.nvmexpress:uuid:"));
}

/// Each Write of the controller is in the buffer of a command. The controller invalidates the key
/// with its response.
#[test]
fn writes_are_in_the_buffers_of_commands() {
    let units = units();
    let number = |unit: &Value, key: &str| unit[key].as_u64();
    let buffers: Vec<(u64, u64, u64)> = units
        .iter()
        .filter_map(|unit| {
            let sgl = |key: &str| number(unit, &format!("nvme.cmd.sgl1.{key}"));
            Some((sgl("key")?, sgl("addr")?, sgl("len")?))
        })
        .filter(|(.., len)| *len > 0)
        .collect();
    assert_eq!(buffers.len(), 5, "one Connect, two Identify, two Get Log Page");
    let writes = units.iter().filter(|unit| unit["iwarp_rdma.opcode"] == 0);
    let is_inside = |unit: &Value| {
        let [stag, offset, len] =
            ["iwarp_ddp.stag", "iwarp_ddp.tagged_offset", "payload_len"].map(|key| number(unit, key).unwrap());
        let end = offset + len;
        buffers.iter().any(|(key, address, len)| *key == stag && offset >= *address && end <= address + len)
    };
    assert_eq!(writes.clone().count(), 10);
    assert!(writes.clone().all(is_inside));
    let invalidated = values(&units, true, "iwarp_rdma.inval_stag");
    assert_eq!(invalidated, buffers.iter().map(|(key, ..)| *key).collect::<Vec<_>>());
}
