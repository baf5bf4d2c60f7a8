//! The illegal steps of sessions.

/// An illegal FPDU, by its name in the Lua module. The target has to end the connection. After a
/// `gap`, it may also wait for the missing bytes. With a port mapper: an illegal datagram.
pub(crate) type Fault = &'static str;

/// Faults of an FPDU with a wrong CRC, for connections with CRCs.
pub(crate) const CRC_FAULTS: [Fault; 2] = ["wrong-crc", "wrong-crc-empty"];
/// Faults with a wrong CRC that need the service echo.
pub(crate) const ECHO_CRC_FAULTS: [Fault; 6] = [
    "wrong-crc-long",
    "wrong-crc-header",
    "wrong-crc-second",
    "wrong-crc-middle",
    "wrong-crc-late",
    "wrong-crc-pieces",
];
/// A fault with a wrong CRC in a Send of [`LARGE`] bytes in one segment, which needs the service
/// echo.
pub(crate) const LARGE_CRC_FAULT: Fault = "wrong-crc-large";
/// Payload in bytes of [`LARGE_CRC_FAULT`].
pub(crate) const LARGE: u32 = 20_000;
/// Faults with a wrong CRC that need the service rping.
pub(crate) const RPING_CRC_FAULTS: [Fault; 2] = ["wrong-crc-write", "wrong-crc-read"];
/// Other faults.
pub(crate) const FAULTS: [Fault; 4] = ["wrong-queue", "used-msn", "unknown-stag", "reserved-opcode"];
/// Other faults that need the service echo.
pub(crate) const ECHO_FAULTS: [Fault; 2] = ["gap", "used-msn-pieces"];
/// Other faults that need the service rping.
pub(crate) const RPING_FAULTS: [Fault; 7] =
    ["write-beyond", "write-far", "read-beyond", "closed-stag", "invalidated", "invalidated-read", "other-key"];
