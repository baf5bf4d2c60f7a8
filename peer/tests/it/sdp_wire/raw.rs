//! Plays an SDP peer on a TCP socket. The test controls this peer. The peer builds FPDUs of RFC
//! 5044 without markers, segments of RFC 5041 and messages of RFC 5040, as the figures of these
//! RFCs show them. The peer does not check or follow other rules by itself.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use weft_core::crc;

/// RDMAP's opcodes (RFC 5040, figure 3).
pub(crate) const WRITE: u8 = 0;
pub(crate) const READ_REQUEST: u8 = 1;
pub(crate) const READ_RESPONSE: u8 = 2;
pub(crate) const SEND_SE: u8 = 5;
pub(crate) const TERMINATE: u8 = 7;

/// Longest time that an operation is allowed to take.
const PATIENCE: Duration = Duration::from_secs(20);

/// One segment, with the fields of its headers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Segment {
    pub(crate) opcode: u8,
    /// DDP's L flag.
    pub(crate) last: bool,
    pub(crate) payload: Vec<u8>,
}

/// A message with its BSDH parsed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReceivedMessage {
    pub(crate) mid: u8,
    pub(crate) rest: Vec<u8>,
}

impl ReceivedMessage {
    pub(crate) fn word(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.rest[at..at + 4].try_into().unwrap())
    }

    pub(crate) fn va(&self) -> u64 {
        u64::from(self.word(8)) << 32 | u64::from(self.word(12))
    }
}

pub(crate) struct Raw {
    pub(crate) tcp: TcpStream,
    sends: u32,
    reads: u32,
    /// MSeq of the last SDP message that this peer sent.
    pub(crate) mseq: u32,
    pub(crate) received: u32,
    pub(crate) bufs: u16,
    /// MSeqAck + Bufs of the last received message.
    pub(crate) edge: u32,
}

impl Raw {
    pub(crate) fn new(tcp: TcpStream) -> Self {
        Raw { tcp, sends: 0, reads: 0, mseq: 0, received: 0, bufs: 16, edge: 0 }
    }

    pub(crate) async fn octets(&mut self, len: usize) -> Vec<u8> {
        let mut octets = vec![0; len];
        timeout(PATIENCE, self.tcp.read_exact(&mut octets)).await.expect("octets in time").unwrap();
        octets
    }

    pub(crate) async fn write(&mut self, octets: &[u8]) {
        self.tcp.write_all(octets).await.unwrap();
    }

    /// The next segment.
    pub(crate) async fn segment(&mut self) -> Segment {
        let length = self.octets(2).await;
        let len = usize::from(u16::from_be_bytes([length[0], length[1]]));
        let ulpdu = self.octets(len).await;
        let pad = self.octets((len + 2).next_multiple_of(4) - (len + 2)).await;
        let crc = self.octets(4).await;
        assert_eq!(crc, crc::to_octets(crc::crc32c(&[&length[..], &ulpdu, &pad].concat())), "an FPDU without CRC");
        assert_eq!((ulpdu[0] & 3, ulpdu[1] >> 6), (1, 1), "versions of DDP and RDMAP");
        let tagged = ulpdu[0] & 0x80 != 0;
        let header = if tagged { 14 } else { 18 };
        Segment { opcode: ulpdu[1] & 0xf, last: ulpdu[0] & 0x40 != 0, payload: ulpdu[header..].to_vec() }
    }

    /// Returns the next SDP message. Panics if an RDMA operation arrives before this message.
    pub(crate) async fn message(&mut self) -> ReceivedMessage {
        let mut octets = Vec::new();
        loop {
            let segment = self.segment().await;
            assert!((3..=6).contains(&segment.opcode), "{segment:?} in place of a message");
            octets.extend(segment.payload);
            if segment.last {
                break;
            }
        }
        let word = |at: usize| u32::from_be_bytes(octets[at..at + 4].try_into().unwrap());
        self.received = word(8);
        self.edge = word(12) + u32::from(u16::from_be_bytes([octets[0], octets[1]]));
        ReceivedMessage { mid: octets[3], rest: octets[16..].to_vec() }
    }

    /// Builds an FPDU with a message in an untagged segment of queue 0.
    pub(crate) fn send(&mut self, octets: &[u8]) -> Vec<u8> {
        self.sends += 1;
        untagged(SEND_SE, 0, self.sends, octets)
    }

    /// Builds the next SDP message of this peer.
    pub(crate) fn build(&mut self, mid: u8, rest: &[u8]) -> Vec<u8> {
        self.mseq += 1;
        let mut octets = self.bufs.to_be_bytes().to_vec();
        octets.extend([0, mid]);
        for word in [16 + rest.len() as u32, self.mseq, self.received] {
            octets.extend(word.to_be_bytes());
        }
        octets.extend(rest);
        self.send(&octets)
    }

    /// Builds an FPDU with a Read Request for `len` octets, in queue 1.
    pub(crate) fn read(&mut self, len: u32, stag: u32, at: u64) -> Vec<u8> {
        self.reads += 1;
        let mut octets = self.reads.to_be_bytes().to_vec();
        octets.extend(0u64.to_be_bytes());
        octets.extend(len.to_be_bytes());
        octets.extend(stag.to_be_bytes());
        octets.extend(at.to_be_bytes());
        untagged(READ_REQUEST, 1, self.reads, &octets)
    }
}

fn untagged(opcode: u8, queue: u32, msn: u32, payload: &[u8]) -> Vec<u8> {
    let mut ulpdu = vec![0x41, 0x40 | opcode];
    for word in [0, queue, msn, 0] {
        ulpdu.extend(word.to_be_bytes());
    }
    ulpdu.extend(payload);
    fpdu(&ulpdu)
}

/// A Terminate for a local catastrophic error of RDMAP (RFC 5040, Figure 9). It contains no copied
/// headers.
pub(crate) fn terminate() -> Vec<u8> {
    untagged(TERMINATE, 2, 1, &[0; 4])
}

/// An RDMA Write.
pub(crate) fn written(stag: u32, at: u64, payload: &[u8]) -> Vec<u8> {
    let mut ulpdu = vec![0xc1, 0x40 | WRITE];
    ulpdu.extend(stag.to_be_bytes());
    ulpdu.extend(at.to_be_bytes());
    ulpdu.extend(payload);
    fpdu(&ulpdu)
}

fn fpdu(ulpdu: &[u8]) -> Vec<u8> {
    let mut out = (ulpdu.len() as u16).to_be_bytes().to_vec();
    out.extend(ulpdu);
    out.resize(out.len().next_multiple_of(4), 0);
    let crc = crc::crc32c(&out);
    out.extend(crc::to_octets(crc));
    out
}
