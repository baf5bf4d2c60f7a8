//! The operations of a probe, in siwprobe's text format: one word for each operation.

use core::fmt;

use crate::workload::bench::Carrier;

/// An operation. Some operations have a field `wrong`. The STag of such an operation is the peer's
/// STag XOR `wrong`. If `wrong` is 0, the operation uses the region that the peer advertised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Reset the connection.
    Abort,
    /// `count` messages of `octets` bytes each. At most 64 of these messages are outstanding at the
    /// same time.
    Burst {
        /// The operation that transfers the messages.
        carrier: Carrier,
        /// Size of each message in bytes.
        octets: u32,
        /// Number of messages.
        count: u32,
    },
    /// Close gracefully.
    Disconnect,
    /// Wait until the peer ends the connection.
    End,
    /// FetchAdd (RFC 7306) that adds 1 to the eight bytes at `offset`.
    FetchAdd {
        /// Offset from the region's first byte.
        offset: u64,
        /// XORed with the STag, see [`Op`].
        wrong: u32,
    },
    /// Immediate Data (RFC 7306).
    Immediate,
    /// RDMA Read.
    Read {
        /// Number of bytes.
        octets: u32,
        /// Address in the peer's memory.
        position: RemotePosition,
    },
    /// Wait for one Send of the peer.
    Receive,
    /// A Send, with or without Solicited Event and Invalidate.
    Send {
        /// Number of bytes.
        octets: u32,
        /// Send with Solicited Event.
        solicited: bool,
        /// The STag for Send with Invalidate. `None` for a Send without Invalidate.
        invalidate: Option<Target>,
    },
    /// RDMA Write.
    Write {
        /// Number of bytes.
        octets: u32,
        /// Address in the peer's memory.
        position: RemotePosition,
    },
}

/// An address in the peer's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemotePosition {
    /// `offset` bytes after the region's first byte. The address can be outside the region.
    Offset {
        /// Added to the region's Tagged Offset, modulo 2^64.
        offset: u64,
        /// XORed with the STag, see [`Op`].
        wrong: u32,
    },
    /// The first half of the message is inside the region. The second half is after the end of the
    /// region.
    AcrossTheEnd,
    /// The second half of the message is after Tagged Offset 2^64 - 1.
    AcrossTheWrap,
}

/// An STag of the peer, for Send with Invalidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The region's STag, XORed with this value.
    Region(u32),
    /// STag 0, which identifies no region.
    Zero,
}

/// Changes the peer's STag to a value that the peer (siwprobe or weft) has not registered.
const BAD_KEY: u32 = 0x00ab_cd00;

impl Op {
    /// Parses an operation. Its text is a name, followed by numbers with a colon before each
    /// number. Numbers are decimal, or hexadecimal with the prefix `0x`.
    ///
    /// # Errors
    /// A text that describes the mistake.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let burst = if name == "burst" { parts.next() } else { None };
        let numbers = parts.map(number).collect::<Option<Vec<u64>>>();
        let numbers = numbers.ok_or_else(|| format!("{text}: a value after the name is not a number"))?;
        let most = most(name).ok_or_else(|| format!("{text}: unknown operation {name}"))?;
        if numbers.len() > most {
            return Err(format!("{text}: {name} takes at most {most} numbers"));
        }
        let small = |at: usize| match numbers.get(at).copied().map(u32::try_from) {
            None => Ok(0),
            Some(Ok(number)) => Ok(number),
            Some(Err(_)) => Err(format!("{text}: a number has more than 32 bits")),
        };
        let octets = small(0)?;
        let position = || {
            Ok::<_, String>(RemotePosition::Offset { offset: numbers.get(1).copied().unwrap_or(0), wrong: small(2)? })
        };
        let bad = RemotePosition::Offset { offset: 0, wrong: BAD_KEY };
        let invalidate = || Ok::<_, String>(Some(Target::Region(small(2)?)));
        Ok(match name {
            "abort" => Op::Abort,
            "burst" => {
                let carrier = Carrier::ALL.into_iter().find(|carrier| burst == Some(carrier.name()));
                let carrier = carrier.ok_or_else(|| format!("{text}: use burst:send, burst:write or burst:read"))?;
                Op::Burst { carrier, octets, count: small(1)? }
            }
            "disc" => Op::Disconnect,
            "end" => Op::End,
            "fetchadd" => Op::FetchAdd { offset: numbers.first().copied().unwrap_or(0), wrong: small(1)? },
            "immediate" => Op::Immediate,
            "read" => Op::Read { octets, position: position()? },
            "readbadkey" => Op::Read { octets, position: bad },
            "readoob" => Op::Read { octets, position: RemotePosition::AcrossTheEnd },
            "readwrap" => Op::Read { octets, position: RemotePosition::AcrossTheWrap },
            "recv" => Op::Receive,
            "send" => Op::Send { octets, solicited: false, invalidate: None },
            "sendse" => Op::Send { octets, solicited: true, invalidate: None },
            "sendinv" => Op::Send { octets, solicited: false, invalidate: invalidate()? },
            "sendseinv" => Op::Send { octets, solicited: true, invalidate: invalidate()? },
            "sendinvz" => Op::Send { octets, solicited: false, invalidate: Some(Target::Zero) },
            "write" => Op::Write { octets, position: position()? },
            "writebadkey" => Op::Write { octets, position: bad },
            "writewrap" => Op::Write { octets, position: RemotePosition::AcrossTheWrap },
            // `writeoob`. The function `most` has rejected all other names.
            _ => Op::Write { octets, position: RemotePosition::AcrossTheEnd },
        })
    }
}

/// The text that [`Op::parse`] accepts.
impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, octets, position) = match *self {
            Op::Abort => return f.write_str("abort"),
            Op::Burst { carrier, octets, count } => return write!(f, "burst:{}:{octets}:{count}", carrier.name()),
            Op::Disconnect => return f.write_str("disc"),
            Op::End => return f.write_str("end"),
            Op::FetchAdd { offset, wrong } => return write!(f, "fetchadd:{offset}:{wrong:#x}"),
            Op::Immediate => return f.write_str("immediate"),
            Op::Receive => return f.write_str("recv"),
            Op::Send { octets, solicited, invalidate } => {
                let event = if solicited { "se" } else { "" };
                return match invalidate {
                    None => write!(f, "send{event}:{octets}"),
                    Some(Target::Region(0)) => write!(f, "send{event}inv:{octets}"),
                    Some(Target::Region(wrong)) => write!(f, "send{event}inv:{octets}:0:{wrong:#x}"),
                    Some(Target::Zero) => write!(f, "send{event}invz:{octets}"),
                };
            }
            Op::Read { octets, position } => ("read", octets, position),
            Op::Write { octets, position } => ("write", octets, position),
        };
        match position {
            RemotePosition::AcrossTheEnd => write!(f, "{name}oob:{octets}"),
            RemotePosition::AcrossTheWrap => write!(f, "{name}wrap:{octets}"),
            RemotePosition::Offset { offset: 0, wrong: 0 } => write!(f, "{name}:{octets}"),
            RemotePosition::Offset { offset, wrong: 0 } => write!(f, "{name}:{octets}:{offset}"),
            RemotePosition::Offset { offset: 0, wrong: BAD_KEY } => write!(f, "{name}badkey:{octets}"),
            RemotePosition::Offset { offset, wrong } => write!(f, "{name}:{octets}:{offset}:{wrong:#x}"),
        }
    }
}

/// Returns how many numbers can follow an operation's name. Returns `None` if the name is unknown.
fn most(name: &str) -> Option<usize> {
    Some(match name {
        "abort" | "disc" | "end" | "immediate" | "recv" => 0,
        "readbadkey" | "readoob" | "readwrap" | "send" | "sendse" | "sendinvz" => 1,
        "writebadkey" | "writeoob" | "writewrap" => 1,
        "burst" | "fetchadd" => 2,
        "read" | "sendinv" | "sendseinv" | "write" => 3,
        _ => return None,
    })
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_operations() {
        let at = |offset, wrong| RemotePosition::Offset { offset, wrong };
        for (text, op) in [
            ("send:0", Op::Send { octets: 0, solicited: false, invalidate: None }),
            ("sendse:5", Op::Send { octets: 5, solicited: true, invalidate: None }),
            ("sendinv:9", Op::Send { octets: 9, solicited: false, invalidate: Some(Target::Region(0)) }),
            ("sendseinv:9:0:1", Op::Send { octets: 9, solicited: true, invalidate: Some(Target::Region(1)) }),
            ("sendinvz:9", Op::Send { octets: 9, solicited: false, invalidate: Some(Target::Zero) }),
            ("write:100", Op::Write { octets: 100, position: at(0, 0) }),
            ("write:100:64:0xff00", Op::Write { octets: 100, position: at(64, 0xff00) }),
            ("read:1:18446744073709551615", Op::Read { octets: 1, position: at(u64::MAX, 0) }),
            ("readbadkey:64", Op::Read { octets: 64, position: at(0, 0x00ab_cd00) }),
            ("writeoob:64", Op::Write { octets: 64, position: RemotePosition::AcrossTheEnd }),
            ("readwrap:64", Op::Read { octets: 64, position: RemotePosition::AcrossTheWrap }),
            ("burst:read:500:40", Op::Burst { carrier: Carrier::Read, octets: 500, count: 40 }),
            ("fetchadd:8", Op::FetchAdd { offset: 8, wrong: 0 }),
            ("recv", Op::Receive),
        ] {
            assert_eq!(Op::parse(text), Ok(op), "{text}");
            assert_eq!(Op::parse(&op.to_string()), Ok(op), "{op}");
        }
        for wrong in
            ["", "sends:1", "send:x", "send:1:2", "burst:fetch:1:1", "burst", "write:4294967296", "end:1", "read:0x"]
        {
            assert!(Op::parse(wrong).is_err(), "{wrong}");
        }
    }
}
