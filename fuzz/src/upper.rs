//! Reads connections of the protocols above RDMAP, with Sends from the fuzzer.
//!
//! A connection starts with Sends that prove its protocol. The bytes of the fuzzer select the next
//! messages: Sends with any bytes, Sends of the protocol with some changed bytes, Writes, Read
//! Requests and Read Responses. All outputs are written, see `capture::consume`.

use etherparse::PacketBuilder;
use weft_core::wire::mpa::{Framing, fpdu};
use weft_dissector::link_type::RAW_IP;
use weft_dissector::source::Frame;

use crate::capture;
use crate::stream::Choices;

/// Maximum number of frames of a connection.
const MAX_FRAMES: usize = 300;
const PORTS: [u16; 2] = [49152, 4420];

/// A Send: its direction, and its bytes. Direction 0 is from the initiator.
type Message = (usize, Vec<u8>);

/// Reads a connection of NVMe over RDMA.
pub fn nvme(data: &[u8]) {
    connection(data, ["0000 0000 2000 1f00", "0000 2000"].map(|text| padded(hex(text), 32)), &nvme_sends());
}

/// Reads a connection of iSER.
pub fn iser(data: &[u8]) {
    connection(data, [hex("40000000"), hex("40000000")], &iser_sends());
}

/// Reads a connection of RPC-over-RDMA.
pub fn rpcrdma(data: &[u8]) {
    connection(data, [hex("f6ab0e18 01010303"), hex("f6ab0e18 01000307")], &rpcrdma_sends());
}

/// Reads a connection of SMB Direct with SMB 2 and 3.
pub fn smb(data: &[u8]) {
    connection(data, [hex("20000000 01000000"), hex("00000001 00000008")], &smb_sends());
}

/// The frames of a connection. Each frame has one TCP segment.
struct Connection {
    frames: Vec<Vec<u8>>,
    /// The next sequence number of each direction.
    next: [u32; 2],
    /// The last MSN of each direction on queue 0 and on queue 1.
    msn: [[u32; 2]; 2],
}

impl Connection {
    /// A connection after its start-up frames of revision 1, with CRC and with this private data.
    fn opened(private: &[Vec<u8>; 2]) -> Self {
        let mut connection = Connection { frames: Vec::new(), next: [1000, 5000], msn: [[0; 2]; 2] };
        for from in 0..2 {
            connection.segment(from, true, &[]);
        }
        for (from, private) in private.iter().enumerate() {
            let key: &[u8] = if from == 0 { b"MPA ID Req Frame" } else { b"MPA ID Rep Frame" };
            let len = u8::try_from(private.len()).expect("the private data is short");
            connection.segment(from, false, &[key, &[0x40, 1, 0, len], private].concat());
        }
        connection
    }

    fn segment(&mut self, from: usize, is_syn: bool, octets: &[u8]) {
        let addresses = [[10, 0, 0, 1], [10, 0, 0, 2]];
        let (to, seq) = (1 - from, self.next[from]);
        let builder = PacketBuilder::ipv4(addresses[from], addresses[to], 64).tcp(PORTS[from], PORTS[to], seq, 60_000);
        let builder = if is_syn { builder.syn() } else { builder };
        let builder = if is_syn && from == 0 { builder } else { builder.ack(self.next[to]) };
        let mut frame = Vec::new();
        builder.write(&mut frame, octets).expect("writing to a vector cannot fail");
        self.frames.push(frame);
        let len = u32::try_from(octets.len()).expect("segments here are short");
        self.next[from] = seq.wrapping_add(len).wrapping_add(u32::from(is_syn));
    }

    /// Sends an FPDU with this header and payload.
    fn fpdu(&mut self, from: usize, head: &[u8], payload: &[u8]) {
        let mut out = Vec::new();
        fpdu::emit(0, &[head, payload], Framing { markers: false, crc: true }, &mut out)
            .expect("messages here are shorter than an FPDU");
        self.segment(from, false, &out);
    }

    fn untagged(&mut self, from: usize, control: [u8; 2], queue: u32, [msn, mo]: [u32; 2], payload: &[u8]) {
        let words = [0, queue, msn, mo].map(u32::to_be_bytes);
        self.fpdu(from, &[&control[..], words.as_flattened()].concat(), payload);
    }

    /// Sends a message on queue 0, in one segment or in two.
    fn send(&mut self, (from, content): &Message, is_split: bool) {
        self.msn[*from][0] += 1;
        let msn = self.msn[*from][0];
        let (first, second) = content.split_at(if is_split { content.len() / 2 } else { 0 });
        if !first.is_empty() {
            self.untagged(*from, [0x01, 0x43], 0, [msn, 0], first);
        }
        let mo = u32::try_from(first.len()).expect("messages here are short");
        self.untagged(*from, [0x41, 0x43], 0, [msn, mo], second);
    }

    fn read_request(&mut self, from: usize, request: &[u8]) {
        self.msn[from][1] += 1;
        let msn = self.msn[from][1];
        self.untagged(from, [0x41, 0x41], 1, [msn, 0], request);
    }

    /// Sends a Write or a Read Response with this RDMAP control octet.
    fn tagged(&mut self, from: usize, control: u8, choices: &mut Choices<'_>) {
        let place = [choices.u32(), choices.u32(), choices.u32()].map(u32::to_be_bytes);
        let len = usize::from(choices.octet()) * 4;
        self.fpdu(from, &[&[0xc1, control][..], place.as_flattened()].concat(), choices.octets(len));
    }

    /// Calls `read` with each frame.
    fn each(&self, read: &mut dyn FnMut(&Frame<'_>)) {
        for (number, octets) in (1_u64..).zip(&self.frames) {
            let wire_len = u32::try_from(octets.len()).expect("frames here are short");
            let time = number * 1_000_000;
            read(&Frame { number: number.into(), time, interface: 0, link_type: RAW_IP, octets, wire_len });
        }
    }
}

/// Reads a connection with messages that `data` selects. `sends` are Sends of the protocol.
fn connection(data: &[u8], private: [Vec<u8>; 2], sends: &[Message]) {
    let mut choices = Choices(data);
    let options = choices.octet();
    let private = if options & 1 == 0 { private } else { [Vec::new(), Vec::new()] };
    let mut connection = Connection::opened(&private);
    if options & 2 == 0 {
        sends.iter().for_each(|send| connection.send(send, false));
    }
    while !choices.0.is_empty() && connection.frames.len() < MAX_FRAMES {
        let kind = choices.octet();
        let (from, is_split) = (usize::from(kind & 1), kind & 0x80 != 0);
        match kind >> 1 & 7 {
            0 => {
                let len = usize::from(choices.octet()) * 4;
                connection.send(&(from, choices.octets(len).to_vec()), is_split);
            }
            1 => connection.tagged(from, 0x40, &mut choices),
            2 => connection.read_request(from, choices.octets(28)),
            3 => connection.tagged(from, 0x42, &mut choices),
            _ => {
                let chosen = &sends[usize::from(kind >> 4 & 7) % sends.len()];
                connection.send(&changed(chosen, from, &mut choices), is_split);
            }
        }
    }
    capture::consume(|read| connection.each(read));
}

/// A Send with some changed bytes, and possibly without its last bytes. If `flips` is 1, its
/// direction changes, too.
fn changed((from, content): &Message, flips: usize, choices: &mut Choices<'_>) -> Message {
    let mut content = content.clone();
    let count = choices.octet();
    for _ in 0..count % 8 {
        let at = usize::from(u16::from_be_bytes([choices.octet(), choices.octet()])) % content.len();
        content[at] = choices.octet();
    }
    if count & 0x80 != 0 {
        let len = content.len() - usize::from(choices.octet()).min(content.len() - 1);
        content.truncate(len);
    }
    (from ^ flips, content)
}

/// The bytes of a hexadecimal text. White space is ignored.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let digit = |octet: u8| char::from(octet).to_digit(16).and_then(|digit| u8::try_from(digit).ok()).unwrap_or(0);
    digits.chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

fn padded(mut octets: Vec<u8>, len: usize) -> Vec<u8> {
    octets.resize(len, 0);
    octets
}

/// A submission queue entry. `sgl` and `dwords` are the bytes from offset 24 and 40 on.
fn entry(head: &str, sgl: &str, dwords: &str) -> Vec<u8> {
    let entry = [padded(hex(head), 24), padded(hex(sgl), 16), padded(hex(dwords), 24)];
    entry.concat()
}

/// Sends of NVMe over RDMA: Connect, Property Get, Write and Read, with their responses.
fn nvme_sends() -> Vec<Message> {
    let no_data = "0000000000000000 000000 00000000 40";
    let name: &[u8] = b"nqn.2014-08.org.nvmexpress.discovery";
    let names = [padded(name.to_vec(), 256), padded(name.to_vec(), 512)].concat();
    let data = [padded(hex("5f"), 16), padded(hex("ffff"), 240), names];
    let connect = entry("7f40 0000 01", "0000000000000000 00040000 000000 01", "0000 0100 1f00 00");
    let write = entry("0140 0c00 01000000", "0000000000000000 00020000 000000 01", "1000000000000000 00000000");
    let read = entry("0240 0900 01000000", "0060160980 88ffff 000200 0966a36b 4f", "8000000000000000 00000000");
    vec![
        (0, [connect, data.concat()].concat()),
        (1, hex("0100000000000000 0100 0000 0000 0000")),
        (0, entry("7f40 0100 04", no_data, "01000000 00000000")),
        (1, hex("7f00000f20080000 0200 0000 0100 0000")),
        (0, padded(write, 64 + 512)),
        (1, hex("0000000000000000 0600 0100 0c00 0cc0")),
        (0, read),
        (1, hex("0000000000000000 0600 0100 0900 0000")),
    ]
}

/// Sends of iSER: a Login, an INQUIRY and a WRITE(10), with their responses, a Text Request, and a
/// Hello.
fn iser_sends() -> Vec<Message> {
    let none = "10000000 00000000 0000000000000000 00000000 0000000000000000";
    let reads = "14000000 00000000 0000000000000000 df379007 ffff88800a570000";
    let writes = "18000000 df37902b ffff88800a152000 00000000 0000000000000000";
    let zero = "00000000 00000000";
    let send = |header: &str, bhs: &str, data: &[u8]| {
        let octets = [hex(header), hex(bhs), data.to_vec()].concat();
        let len = octets.len().next_multiple_of(4);
        padded(octets, len)
    };
    let keys = b"InitiatorName=iqn.2026-11.example\0SessionType=Normal\0";
    let login = format!("43870000 {:08x} 00023d00 00010000 {zero} 00000001 00000000 {zero} {zero}", keys.len());
    let accepted = format!("23870000 00000011 00023d00 00010001 {zero} ecc6c67c 00000001 00000001 00000000 {zero}");
    let inquiry = format!("01c10000 00000000 {zero} 07000000 00000024 00000006 02ff1fc5 12010000 24000000 {zero}");
    let good = format!("21820000 00000000 {zero} 07000000 00000000 02ff1fc5 00000007 00000046 {zero} 00000018");
    let write =
        format!("01a10000 00000010 {zero} 11000000 00010000 0000002f 02ff1fee 2a000000 00800000 80000000 00000000");
    let failed = format!("21800002 00000014 {zero} 11000000 00000000 02ff1fda 0000001c 0000005b 00000000 {zero}");
    let text = format!("04800000 00000010 {zero} 12000000 ffffffff 00000030 02ff1fef {zero} {zero}");
    vec![
        (0, send(none, &login, keys)),
        (1, send(none, &accepted, b"HeaderDigest=None")),
        (0, send(reads, &inquiry, &[])),
        (1, send(none, &good, &[])),
        (0, send(writes, &write, &[0x34; 16])),
        (1, send(none, &failed, &hex("0012 700005000000000a00000000200000000000"))),
        (0, send(none, &text, b"SendTargets=All\0")),
        (0, hex("20aa0010 00000000 0000000000000000 00000000 0000000000000000")),
    ]
}

/// Sends of RPC-over-RDMA: calls and replies of NFS versions 3 and 4, and messages with chunks.
fn rpcrdma_sends() -> Vec<Message> {
    let head = "12345678 00000001 00000020 00000000 00000000 00000000 00000000 12345678";
    let no_auth = "00000000 00000000 00000000 00000000";
    let handle = "00000008 0102030405060708";
    let credentials = "00000001 0000001c 00000007 00000006 686f7374 31310000 00000000 00000000 00000000 \
        00000000 00000000";
    let segment = "00000100 00001000 0000000000002000";
    let lists = format!("00000001 00000018 {segment} 00000000 00000001 00000001 {segment} 00000000 00000000");
    let reply = "00000001 00000000 00000000 00000000 00000000";
    // An empty COMPOUND, a LOOKUP, and a WRITE whose data is a Read chunk.
    let compound = format!("{head} 00000000 00000002 000186a3 00000004 00000001 {no_auth} 00000000 00000001 00000000");
    let lookup =
        format!("{head} 00000000 00000002 000186a3 00000003 00000003 {credentials} {handle} 00000004 66696c65");
    let write = format!(
        "12345679 00000001 00000020 00000000 {lists} 12345679 00000000 00000002 000186a3 00000003 00000007 \
         {credentials} {handle} 0000000000000000 00001000 00000002 00001000"
    );
    vec![
        (0, hex(&compound)),
        (1, hex(&format!("{head} {reply} 00000000 00000000 00000000"))),
        (0, hex(&lookup)),
        (1, hex(&format!("{head} {reply} 00000000 {handle} 00000000 00000000"))),
        (0, hex(&write)),
        (1, hex(&format!("12345679 00000001 00000020 00000001 {lists}"))),
        (1, hex("12345679 00000001 00000020 00000004 00000002")),
        (0, hex("12345679 00000001 00000020 00000003")),
    ]
}

/// Sends of SMB Direct: the negotiation, and a READ, a WRITE and a CREATE of SMB, with responses.
fn smb_sends() -> Vec<Message> {
    let file = "1b00000000000000 0800000000000000";
    let descriptor = "0010000000560000 44332211 00100000";
    // A message of SMB with its command, flags and MessageId, in one Data Transfer.
    let data = |from: usize, [command, flags, id]: [u8; 3], body: &str| {
        let header = format!(
            "fe534d42 40000100 00000000 {command:02x}00 0a00 {flags:02x}000000 00000000 {id:02x}00000000000000 \
             9b010000 02000000 0100000000000000 00000000000000000000000000000000"
        );
        let message = hex(&(header + body));
        let len = u32::try_from(message.len()).expect("messages here are short").to_le_bytes();
        let start = hex("ff00 1000 0000 0000 00000000 18000000");
        (from, [start, len.to_vec(), vec![0; 4], message].concat())
    };
    let read = format!("3100 50 00 00100000 0000010000000000 {file} 00000000 02000000 00000000 7000 1000 {descriptor}");
    let write = format!("3100 0000 00000000 0000010000000000 {file} 01000000 00100000 7000 1000 00000000 {descriptor}");
    let create = "3900 00 09 02000000 0000000000000000 0000000000000000 800000c0 00000000 07000000 03000000
        40000000 7800 0800 88000000 00000000 6e00650077003300";
    vec![
        (0, hex("0001 0001 0000 ff00 54050000 00200000 00001000")),
        (1, hex("0001 0001 0001 0000 1000 ff00 00000000 00001000 54050000 00200000 00001000")),
        data(0, [8, 0, 7], &read),
        data(1, [8, 1, 7], "1100 50 00 00000000 00100000 00000000"),
        data(0, [9, 0, 8], &write),
        data(1, [9, 1, 8], "1100 0000 00100000 00000000 0000 0000"),
        data(0, [5, 0, 9], create),
        data(1, [5, 1, 9], "0900 00 00 00000000 00"),
    ]
}
