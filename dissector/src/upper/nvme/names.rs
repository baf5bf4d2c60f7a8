//! Names of the numbers in NVMe capsules and in the private data of NVMe over RDMA.
//!
//! The names follow the NVM Express Base and NVM Command Set Specifications.

/// The name of a type of Fabrics command.
pub(crate) fn fabrics_type(fabrics_type: u64) -> Option<&'static str> {
    Some(match fabrics_type {
        0x00 => "Property Set",
        0x01 => "Connect",
        0x04 => "Property Get",
        0x05 => "Authentication Send",
        0x06 => "Authentication Receive",
        0x08 => "Disconnect",
        _ => return None,
    })
}

/// The name of a command on an Admin Queue.
pub(crate) fn admin_command(opcode: u8) -> Option<&'static str> {
    Some(match opcode {
        0x00 => "Delete I/O Submission Queue",
        0x01 => "Create I/O Submission Queue",
        0x02 => "Get Log Page",
        0x04 => "Delete I/O Completion Queue",
        0x05 => "Create I/O Completion Queue",
        0x06 => "Identify",
        0x08 => "Abort",
        0x09 => "Set Features",
        0x0a => "Get Features",
        0x0c => "Asynchronous Event Request",
        0x0d => "Namespace Management",
        0x10 => "Firmware Commit",
        0x11 => "Firmware Image Download",
        0x14 => "Device Self-test",
        0x15 => "Namespace Attachment",
        0x18 => "Keep Alive",
        0x19 => "Directive Send",
        0x1a => "Directive Receive",
        0x1c => "Virtualization Management",
        0x1d => "NVMe-MI Send",
        0x1e => "NVMe-MI Receive",
        0x20 => "Capacity Management",
        0x24 => "Lockdown",
        0x7c => "Doorbell Buffer Config",
        0x80 => "Format NVM",
        0x81 => "Security Send",
        0x82 => "Security Receive",
        0x84 => "Sanitize",
        0x86 => "Get LBA Status",
        _ => return None,
    })
}

/// The name of a command on an I/O Queue.
pub(crate) fn io_command(opcode: u8) -> Option<&'static str> {
    Some(match opcode {
        0x00 => "Flush",
        0x01 => "Write",
        0x02 => "Read",
        0x04 => "Write Uncorrectable",
        0x05 => "Compare",
        0x08 => "Write Zeroes",
        0x09 => "Dataset Management",
        0x0c => "Verify",
        0x0d => "Reservation Register",
        0x0e => "Reservation Report",
        0x11 => "Reservation Acquire",
        0x12 => "I/O Management Receive",
        0x15 => "Reservation Release",
        0x18 => "Cancel",
        0x19 => "Copy",
        0x1d => "I/O Management Send",
        0x79 => "Zone Management Send",
        0x7a => "Zone Management Receive",
        0x7d => "Zone Append",
        _ => return None,
    })
}

/// The name of the data structure that an Identify command requests (CNS).
pub(crate) fn cns(cns: u64) -> Option<&'static str> {
    Some(match cns {
        0x00 => "Namespace",
        0x01 => "Controller",
        0x02 => "Active Namespace ID List",
        0x03 => "Namespace Identification Descriptor List",
        0x04 => "NVM Set List",
        0x05 => "I/O Command Set Namespace",
        0x06 => "I/O Command Set Controller",
        0x07 => "I/O Command Set Active Namespace ID List",
        0x08 => "Command Set Independent Namespace",
        0x10 => "Allocated Namespace ID List",
        0x11 => "Allocated Namespace",
        0x12 => "Controllers Attached to Namespace",
        0x13 => "Controllers in Subsystem",
        0x14 => "Primary Controller Capabilities",
        0x15 => "Secondary Controller List",
        0x16 => "Namespace Granularity List",
        0x17 => "UUID List",
        0x18 => "Domain List",
        0x19 => "Endurance Group List",
        0x1a => "I/O Command Set Allocated Namespace ID List",
        0x1b => "I/O Command Set Allocated Namespace",
        0x1c => "I/O Command Set",
        _ => return None,
    })
}

/// The name of a log page.
pub(crate) fn log_page(identifier: u64) -> Option<&'static str> {
    Some(match identifier {
        0x00 => "Supported Log Pages",
        0x01 => "Error Information",
        0x02 => "SMART / Health Information",
        0x03 => "Firmware Slot Information",
        0x04 => "Changed Namespace List",
        0x05 => "Commands Supported and Effects",
        0x06 => "Device Self-test",
        0x07 => "Telemetry Host-Initiated",
        0x08 => "Telemetry Controller-Initiated",
        0x09 => "Endurance Group Information",
        0x0a => "Predictable Latency Per NVM Set",
        0x0b => "Predictable Latency Event Aggregate",
        0x0c => "Asymmetric Namespace Access",
        0x0d => "Persistent Event",
        0x0e => "LBA Status Information",
        0x0f => "Endurance Group Event Aggregate",
        0x10 => "Media Unit Status",
        0x11 => "Supported Capacity Configuration List",
        0x12 => "Feature Identifiers Supported and Effects",
        0x13 => "NVMe-MI Commands Supported and Effects",
        0x14 => "Command and Feature Lockdown",
        0x15 => "Boot Partition",
        0x16 => "Rotational Media Information",
        0x70 => "Discovery",
        0x80 => "Reservation Notification",
        0x81 => "Sanitize Status",
        0xbf => "Changed Zone List",
        _ => return None,
    })
}

/// The name of a feature.
pub(crate) fn feature(identifier: u64) -> Option<&'static str> {
    Some(match identifier {
        0x01 => "Arbitration",
        0x02 => "Power Management",
        0x03 => "LBA Range Type",
        0x04 => "Temperature Threshold",
        0x05 => "Error Recovery",
        0x06 => "Volatile Write Cache",
        0x07 => "Number of Queues",
        0x08 => "Interrupt Coalescing",
        0x09 => "Interrupt Vector Configuration",
        0x0a => "Write Atomicity Normal",
        0x0b => "Asynchronous Event Configuration",
        0x0c => "Autonomous Power State Transition",
        0x0d => "Host Memory Buffer",
        0x0e => "Timestamp",
        0x0f => "Keep Alive Timer",
        0x10 => "Host Controlled Thermal Management",
        0x11 => "Non-Operational Power State Config",
        0x12 => "Read Recovery Level Config",
        0x13 => "Predictable Latency Mode Config",
        0x14 => "Predictable Latency Mode Window",
        0x15 => "LBA Status Information Report Interval",
        0x16 => "Host Behavior Support",
        0x17 => "Sanitize Config",
        0x18 => "Endurance Group Event Configuration",
        0x19 => "I/O Command Set Profile",
        0x1a => "Spinup Control",
        0x7d => "Enhanced Controller Metadata",
        0x7e => "Controller Metadata",
        0x7f => "Namespace Metadata",
        0x80 => "Software Progress Marker",
        0x81 => "Host Identifier",
        0x82 => "Reservation Notification Mask",
        0x83 => "Reservation Persistence",
        0x84 => "Namespace Write Protection Config",
        _ => return None,
    })
}

/// The name of the property at an offset.
pub(crate) fn property(offset: u64) -> Option<&'static str> {
    Some(match offset {
        0x00 => "Controller Capabilities",
        0x08 => "Version",
        0x14 => "Controller Configuration",
        0x1c => "Controller Status",
        0x20 => "NVM Subsystem Reset",
        0x68 => "Controller Ready Timeouts",
        _ => return None,
    })
}

/// The length of a property.
pub(crate) fn property_size(size: u64) -> Option<&'static str> {
    match size {
        0 => Some("4 bytes"),
        1 => Some("8 bytes"),
        _ => None,
    }
}

/// The name of a type of SGL descriptor.
pub(crate) fn sgl_type(kind: u64) -> Option<&'static str> {
    Some(match kind {
        0x0 => "Data Block",
        0x1 => "Bit Bucket",
        0x2 => "Segment",
        0x3 => "Last Segment",
        0x4 => "Keyed Data Block",
        0x5 => "Transport Data Block",
        0xf => "vendor specific",
        _ => return None,
    })
}

/// The name of a subtype of SGL descriptor.
pub(crate) fn sgl_subtype(subtype: u64) -> Option<&'static str> {
    Some(match subtype {
        0x0 => "address",
        0x1 => "offset in the capsule",
        0xa => "transport specific",
        0xf => "address, invalidate the key",
        _ => return None,
    })
}

/// The name of a status in the private data of a rejected connection.
pub(crate) fn reject_status(status: u64) -> Option<&'static str> {
    Some(match status {
        0x01 => "Invalid Private Data Length",
        0x02 => "Invalid RECFMT",
        0x03 => "Invalid QID",
        0x04 => "Invalid HSQSIZE",
        0x05 => "Invalid HRQSIZE",
        0x06 => "No Resources",
        0x07 => "Invalid IRD",
        0x08 => "Invalid ORD",
        0x09 => "Invalid CNTLID",
        _ => return None,
    })
}

/// The name of a Status Code Type (SCT).
pub(crate) fn status_type(kind: u64) -> Option<&'static str> {
    Some(match kind {
        0 => "Generic",
        1 => "Command Specific",
        2 => "Media and Data Integrity",
        3 => "Path Related",
        7 => "vendor specific",
        _ => return None,
    })
}

/// The name of a status. `is_fabrics` is set if the status belongs to a Fabrics command. Some
/// command-specific codes have another meaning for these commands.
pub(crate) fn status(kind: u8, code: u8, is_fabrics: bool) -> Option<&'static str> {
    match kind {
        0 => generic_status(code),
        1 if is_fabrics => fabrics_status(code).or_else(|| command_status(code)),
        1 => command_status(code),
        2 => media_status(code),
        3 => path_status(code),
        _ => None,
    }
}

fn generic_status(code: u8) -> Option<&'static str> {
    Some(match code {
        0x00 => "Successful Completion",
        0x01 => "Invalid Command Opcode",
        0x02 => "Invalid Field in Command",
        0x03 => "Command ID Conflict",
        0x04 => "Data Transfer Error",
        0x05 => "Commands Aborted due to Power Loss Notification",
        0x06 => "Internal Error",
        0x07 => "Command Abort Requested",
        0x08 => "Command Aborted due to SQ Deletion",
        0x09 => "Command Aborted due to Failed Fused Command",
        0x0a => "Command Aborted due to Missing Fused Command",
        0x0b => "Invalid Namespace or Format",
        0x0c => "Command Sequence Error",
        0x0d => "Invalid SGL Segment Descriptor",
        0x0e => "Invalid Number of SGL Descriptors",
        0x0f => "Data SGL Length Invalid",
        0x10 => "Metadata SGL Length Invalid",
        0x11 => "SGL Descriptor Type Invalid",
        0x12 => "Invalid Use of Controller Memory Buffer",
        0x13 => "PRP Offset Invalid",
        0x14 => "Atomic Write Unit Exceeded",
        0x15 => "Operation Denied",
        0x16 => "SGL Offset Invalid",
        0x18 => "Host Identifier Inconsistent Format",
        0x19 => "Keep Alive Timer Expired",
        0x1a => "Keep Alive Timeout Invalid",
        0x1b => "Command Aborted due to Preempt and Abort",
        0x1c => "Sanitize Failed",
        0x1d => "Sanitize In Progress",
        0x1e => "SGL Data Block Granularity Invalid",
        0x1f => "Command Not Supported for Queue in CMB",
        0x20 => "Namespace is Write Protected",
        0x21 => "Command Interrupted",
        0x22 => "Transient Transport Error",
        0x23 => "Command Prohibited by Command and Feature Lockdown",
        0x24 => "Admin Command Media Not Ready",
        0x80 => "LBA Out of Range",
        0x81 => "Capacity Exceeded",
        0x82 => "Namespace Not Ready",
        0x83 => "Reservation Conflict",
        0x84 => "Format In Progress",
        _ => return None,
    })
}

fn command_status(code: u8) -> Option<&'static str> {
    Some(match code {
        0x00 => "Completion Queue Invalid",
        0x01 => "Invalid Queue Identifier",
        0x02 => "Invalid Queue Size",
        0x03 => "Abort Command Limit Exceeded",
        0x05 => "Asynchronous Event Request Limit Exceeded",
        0x06 => "Invalid Firmware Slot",
        0x07 => "Invalid Firmware Image",
        0x08 => "Invalid Interrupt Vector",
        0x09 => "Invalid Log Page",
        0x0a => "Invalid Format",
        0x0b => "Firmware Activation Requires Conventional Reset",
        0x0c => "Invalid Queue Deletion",
        0x0d => "Feature Identifier Not Saveable",
        0x0e => "Feature Not Changeable",
        0x0f => "Feature Not Namespace Specific",
        0x10 => "Firmware Activation Requires NVM Subsystem Reset",
        0x11 => "Firmware Activation Requires Controller Level Reset",
        0x12 => "Firmware Activation Requires Maximum Time Violation",
        0x13 => "Firmware Activation Prohibited",
        0x14 => "Overlapping Range",
        0x15 => "Namespace Insufficient Capacity",
        0x16 => "Namespace Identifier Unavailable",
        0x18 => "Namespace Already Attached",
        0x19 => "Namespace Is Private",
        0x1a => "Namespace Not Attached",
        0x1b => "Thin Provisioning Not Supported",
        0x1c => "Controller List Invalid",
        0x1d => "Device Self-test In Progress",
        0x1e => "Boot Partition Write Prohibited",
        0x1f => "Invalid Controller Identifier",
        0x20 => "Invalid Secondary Controller State",
        0x21 => "Invalid Number of Controller Resources",
        0x22 => "Invalid Resource Identifier",
        0x24 => "ANA Group Identifier Invalid",
        0x25 => "ANA Attach Failed",
        0x80 => "Conflicting Attributes",
        0x81 => "Invalid Protection Information",
        0x82 => "Attempted Write to Read Only Range",
        0x83 => "Command Size Limit Exceeded",
        0x90 => "Discover Restart",
        0x91 => "Authentication Required",
        0xb8 => "Zoned Boundary Error",
        0xb9 => "Zone Is Full",
        0xba => "Zone Is Read Only",
        0xbb => "Zone Is Offline",
        0xbc => "Zone Invalid Write",
        0xbd => "Too Many Active Zones",
        0xbe => "Too Many Open Zones",
        0xbf => "Invalid Zone State Transition",
        _ => return None,
    })
}

fn fabrics_status(code: u8) -> Option<&'static str> {
    Some(match code {
        0x80 => "Connect Incompatible Format",
        0x81 => "Connect Controller Busy",
        0x82 => "Connect Invalid Parameters",
        0x83 => "Connect Restart Discovery",
        0x84 => "Connect Invalid Host",
        0x85 => "Invalid Queue Type",
        _ => return None,
    })
}

fn media_status(code: u8) -> Option<&'static str> {
    Some(match code {
        0x80 => "Write Fault",
        0x81 => "Unrecovered Read Error",
        0x82 => "End-to-end Guard Check Error",
        0x83 => "End-to-end Application Tag Check Error",
        0x84 => "End-to-end Reference Tag Check Error",
        0x85 => "Compare Failure",
        0x86 => "Access Denied",
        0x87 => "Deallocated or Unwritten Logical Block",
        _ => return None,
    })
}

fn path_status(code: u8) -> Option<&'static str> {
    Some(match code {
        0x00 => "Internal Path Error",
        0x01 => "Asymmetric Access Persistent Loss",
        0x02 => "Asymmetric Access Inaccessible",
        0x03 => "Asymmetric Access Transition",
        0x60 => "Controller Pathing Error",
        0x70 => "Host Pathing Error",
        0x71 => "Command Aborted By Host",
        _ => return None,
    })
}
