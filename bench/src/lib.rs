//! Makes captures for benchmarks. A capture is a pcap file with iWARP connections. The generator
//! also returns the numbers of frames and FPDUs in the file.
//!
//! Each connection has a TCP handshake and an MPA start-up with CRC and without markers. Then it
//! carries RDMA Writes, Sends, Reads and Read Responses, with one FPDU in each TCP segment. The
//! same arguments always give the same capture.

use std::io::{self, Write};

use weft_core::wire::ddp::{Msn, Tagged, Untagged, UntaggedUlp};
use weft_core::wire::mpa::{Framing, fpdu};
use weft_core::wire::rdmap::{Control, Opcode, ReadRequest};

/// The content of a generated capture.
#[derive(Debug, Clone, Copy)]
pub struct CaptureContents {
    /// Number of frames.
    pub frames: u64,
    /// Number of FPDUs.
    pub fpdus: u64,
    /// Number of FPDUs with a wrong CRC.
    pub bad: u64,
}

/// Writes a pcap file of at least `octets` bytes with `connections` connections to `out`. Every
/// `bad_every`th FPDU has a wrong CRC. If `bad_every` is 0, all CRCs are correct.
///
/// # Errors
/// Returns an error if writing to `out` fails, or if there are more connections than ports.
pub fn generate(out: impl Write, octets: u64, connections: usize, bad_every: u64) -> io::Result<CaptureContents> {
    let mut capture = Capture { out, octets: 24, frames: 0, fpdus: 0, bad: 0, bad_every };
    capture.out.write_all(PCAP_HEADER)?;
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let pool: Vec<u8> = (0..1 << 16).map(|_| random.below(256) as u8).collect();
    let mut open = (0..connections).map(|index| capture.open(index)).collect::<io::Result<Vec<_>>>()?;
    while capture.octets < octets {
        let index = random.below(connections);
        capture.operation(&mut open[index], &mut random, &pool)?;
    }
    for connection in &mut open {
        capture.segment(connection, 0, FIN_ACK, &[])?;
        capture.segment(connection, 1, FIN_ACK, &[])?;
    }
    capture.out.flush()?;
    Ok(CaptureContents { frames: capture.frames, fpdus: capture.fpdus, bad: capture.bad })
}

/// Writes a pcap file with `commands` commands READ of NVMe over RDMA to `out`. `connections`
/// connections, each with a queue, share the commands equally. Each command reads a block of 512
/// bytes: the host sends the command, the controller writes the data with an RDMA Write and sends
/// the response. The times of the frames are 5 us apart.
///
/// # Errors
/// Returns an error if writing to `out` fails, or if there are more connections than ports.
pub fn generate_commands(out: impl Write, commands: u64, connections: usize) -> io::Result<CaptureContents> {
    let mut capture = Capture { out, octets: 24, frames: 0, fpdus: 0, bad: 0, bad_every: 0 };
    capture.out.write_all(PCAP_HEADER)?;
    // RECFMT 0, QID 1, HRQSIZE 128 and HSQSIZE 127; CRQSIZE 128 in the reply.
    let (mut request, mut accept) = ([0_u8; 32], [0_u8; 32]);
    (request[2], request[4], request[6], accept[2]) = (1, 128, 127, 128);
    let mut open = Vec::new();
    for index in 0..connections.max(1) {
        open.push(capture.open_with(index, &request, &accept)?);
    }
    let count = open.len();
    for number in 0..commands {
        let connection = &mut open[(number % count as u64) as usize];
        capture.read_command(connection, number / count as u64)?;
    }
    for connection in &mut open {
        capture.segment(connection, 0, FIN_ACK, &[])?;
        capture.segment(connection, 1, FIN_ACK, &[])?;
    }
    capture.out.flush()?;
    Ok(CaptureContents { frames: capture.frames, fpdus: capture.fpdus, bad: 0 })
}

/// The header of a pcap file with microseconds and Ethernet.
const PCAP_HEADER: &[u8] = b"\xd4\xc3\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0\0\0\x04\0\x01\0\0\0";
/// Number of different command identifiers of a queue.
const COMMAND_IDS: u64 = 128;
/// Length of the data of a READ in bytes, and its address in the host's memory.
const BLOCK: u32 = 512;
const ADDRESS: u64 = 0x10_0000;
const FRAMING: Framing = Framing { markers: false, crc: true };
const PAYLOADS: [usize; 4] = [64, 512, 1024, 1400];
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
const PUSH_ACK: u8 = 0x18;
const FIN_ACK: u8 = 0x11;
/// TCP port of the responder.
const PORT: u16 = 4210;

/// A pseudo-random generator (xorshift) that gives the same numbers in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % bound
    }
}

/// One connection. In all arrays, index 0 is the MPA initiator and index 1 is the responder.
struct Connection {
    ports: [u16; 2],
    seq: [u32; 2],
    /// Position of the next FPDU in the byte stream of each endpoint.
    position: [u64; 2],
    /// For each endpoint: MSN of the next Send, and MSN of the next Read Request.
    msn: [[u32; 2]; 2],
}

struct Capture<W> {
    out: W,
    octets: u64,
    frames: u64,
    fpdus: u64,
    bad: u64,
    bad_every: u64,
}

impl<W: Write> Capture<W> {
    fn segment(&mut self, connection: &mut Connection, from: usize, flags: u8, payload: &[u8]) -> io::Result<()> {
        let length = u16::try_from(40 + payload.len()).map_err(io::Error::other)?;
        let mut head = Vec::with_capacity(70);
        let (seconds, micros) = (1_700_000_000 + self.frames / 200_000, self.frames % 200_000 * 5);
        for field in [seconds as u32, micros as u32, u32::from(length) + 14, u32::from(length) + 14] {
            head.extend_from_slice(&field.to_le_bytes());
        }
        head.extend_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0]);
        head.extend_from_slice(&length.to_be_bytes());
        // These bytes are the identification, Don't Fragment, the time to live, the protocol TCP,
        // and a checksum. The checksum is 0, as in a capture of a host that offloads checksums.
        head.extend_from_slice(&[0, 0, 0x40, 0, 64, 6, 0, 0]);
        let addresses = [[10, 0, 1, 1], [10, 0, 2, 1]];
        head.extend_from_slice(&addresses[from]);
        head.extend_from_slice(&addresses[1 - from]);
        head.extend_from_slice(&connection.ports[from].to_be_bytes());
        head.extend_from_slice(&connection.ports[1 - from].to_be_bytes());
        head.extend_from_slice(&connection.seq[from].to_be_bytes());
        head.extend_from_slice(&if flags == SYN { 0 } else { connection.seq[1 - from] }.to_be_bytes());
        head.extend_from_slice(&[0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        self.out.write_all(&head)?;
        self.out.write_all(payload)?;
        let phantom = u32::from(flags & 3 != 0);
        let octets = u32::try_from(payload.len()).map_err(io::Error::other)?;
        connection.seq[from] = connection.seq[from].wrapping_add(octets + phantom);
        self.octets += (head.len() + payload.len()) as u64;
        self.frames += 1;
        Ok(())
    }

    fn fpdu(&mut self, connection: &mut Connection, from: usize, header: &[u8], payload: &[u8]) -> io::Result<()> {
        let mut octets = Vec::with_capacity(header.len() + payload.len() + 16);
        let layout = fpdu::emit(connection.position[from], &[header, payload], FRAMING, &mut octets);
        connection.position[from] = layout.map_err(io::Error::other)?.end;
        self.fpdus += 1;
        if self.bad_every > 0 && self.fpdus.is_multiple_of(self.bad_every) {
            self.bad += 1;
            if let Some(last) = octets.last_mut() {
                *last ^= 1;
            }
        }
        self.segment(connection, from, PUSH_ACK, &octets)
    }

    fn open(&mut self, index: usize) -> io::Result<Connection> {
        self.open_with(index, &[], &[])
    }

    /// Opens a connection with private data in the start-up frames.
    fn open_with(&mut self, index: usize, request: &[u8], reply: &[u8]) -> io::Result<Connection> {
        let port = u16::try_from(40_000 + index).map_err(io::Error::other)?;
        let seq =
            [0x1234_5678u32.wrapping_mul(2 * index as u32 + 1), 0x9abc_def1u32.wrapping_mul(2 * index as u32 + 3)];
        let mut connection = Connection { ports: [port, PORT], seq, position: [0; 2], msn: [[1; 2]; 2] };
        self.segment(&mut connection, 0, SYN, &[])?;
        self.segment(&mut connection, 1, SYN | ACK, &[])?;
        self.segment(&mut connection, 0, ACK, &[])?;
        for (from, key, private) in [(0, b"MPA ID Req Frame\x40\x01", request), (1, b"MPA ID Rep Frame\x40\x01", reply)]
        {
            let length = u16::try_from(private.len()).map_err(io::Error::other)?;
            self.segment(&mut connection, from, PUSH_ACK, &[&key[..], &length.to_be_bytes(), private].concat())?;
        }
        Ok(connection)
    }

    /// Writes the READ number `number` of a connection, with its data and its response.
    fn read_command(&mut self, connection: &mut Connection, number: u64) -> io::Result<()> {
        let (id, stag) = ((number % COMMAND_IDS) as u16, 0x100 + (number % COMMAND_IDS) as u32);
        // Opcode READ, a keyed SGL descriptor, namespace 1, and one block (the number is 0-based).
        let mut command = [0; 64];
        (command[0], command[1], command[4]) = (0x02, 0x40, 1);
        command[2..4].copy_from_slice(&id.to_le_bytes());
        command[24..32].copy_from_slice(&ADDRESS.to_le_bytes());
        command[32..35].copy_from_slice(&BLOCK.to_le_bytes()[..3]);
        command[35..39].copy_from_slice(&stag.to_le_bytes());
        command[39] = 0x40;
        command[40..48].copy_from_slice(&(number % (1 << 20)).to_le_bytes());
        self.nvme_send(connection, 0, &command)?;
        let mut header = Vec::with_capacity(16);
        let write = Tagged { last: true, stag, tagged_offset: ADDRESS };
        write.emit(1, Control::new(Opcode::WRITE, 1), &mut header);
        self.fpdu(connection, 1, &header, &[0x5a; BLOCK as usize])?;
        let mut response = [0; 16];
        response[8..10].copy_from_slice(&id.to_le_bytes());
        response[10] = 1;
        response[12..14].copy_from_slice(&id.to_le_bytes());
        self.nvme_send(connection, 1, &response)
    }

    /// Writes a capsule in a Send.
    fn nvme_send(&mut self, connection: &mut Connection, from: usize, capsule: &[u8]) -> io::Result<()> {
        let msn = connection.msn[from][0];
        connection.msn[from][0] = msn.wrapping_add(1);
        let mut header = Vec::with_capacity(18);
        let ulp = UntaggedUlp { control: Control::new(Opcode::SEND, 1), word: 0 };
        Untagged { last: true, qn: 0, msn: Msn::new(msn), mo: 0 }.emit(1, ulp, &mut header);
        self.fpdu(connection, from, &header, capsule)
    }

    /// Writes one random operation: a Write (60 %), a Send (20 %), or a Read with its Response
    /// (20 %).
    fn operation(&mut self, connection: &mut Connection, random: &mut Random, pool: &[u8]) -> io::Result<()> {
        let from = random.below(2);
        let length = PAYLOADS[random.below(4)];
        let at = random.below(pool.len() - length);
        let payload = &pool[at..at + length];
        let mut header = Vec::with_capacity(48);
        let untagged = |opcode| UntaggedUlp { control: Control::new(opcode, 1), word: 0 };
        let tagged = Tagged { last: true, stag: 0x12300, tagged_offset: connection.position[from] };
        match random.below(100) {
            0..60 => {
                tagged.emit(1, Control::new(Opcode::WRITE, 1), &mut header);
                self.fpdu(connection, from, &header, payload)
            }
            60..80 => {
                let msn = connection.msn[from][0];
                connection.msn[from][0] += 1;
                Untagged { last: true, qn: 0, msn: Msn::new(msn), mo: 0 }.emit(1, untagged(Opcode::SEND), &mut header);
                self.fpdu(connection, from, &header, payload)
            }
            _ => {
                let msn = connection.msn[from][1];
                connection.msn[from][1] += 1;
                Untagged { last: true, qn: 1, msn: Msn::new(msn), mo: 0 }.emit(
                    1,
                    untagged(Opcode::READ_REQUEST),
                    &mut header,
                );
                let (sink_stag, src_stag) = (0x12301, 0x12302);
                let rdmardsz = u32::try_from(length).map_err(io::Error::other)?;
                let (sink_to, src_to) = (tagged.tagged_offset, 0);
                ReadRequest { sink_stag, sink_to, rdmardsz, src_stag, src_to }.emit(&mut header);
                self.fpdu(connection, from, &header, &[])?;
                header.clear();
                Tagged { stag: sink_stag, ..tagged }.emit(1, Control::new(Opcode::READ_RESPONSE, 1), &mut header);
                self.fpdu(connection, 1 - from, &header, payload)
            }
        }
    }
}
