//! What messages of known ULPs announce: the buffer of a command of NVMe over RDMA or of iSCSI
//! (iSER), and the longest message that an endpoint of SMB Direct accepts.
//!
//! A command determines the direction of its data. So it also determines whether the peer reads or
//! writes the buffer.

use super::buffers::{Advert, Allowed, Buffer};
use crate::frame_number::FrameNumber;
use crate::upper::{UlpMessage, smb_direct};

/// Length in octets of an NVMe submission queue entry.
const NVME_LEN: usize = 64;
/// Length in octets of the iSER header (RFC 7145 section 9.2).
const ISER_LEN: usize = 28;
/// Length in octets of the basic header segment of iSCSI.
const BHS_LEN: usize = 48;

fn word(octets: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*octets.get(at..)?.first_chunk()?))
}

fn long(octets: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(*octets.get(at..)?.first_chunk()?))
}

/// The length in octets of the longest Send that the sender of `message` accepts, if the message
/// announces it: MaxReceiveSize of SMB Direct (MS-SMBD section 2.2).
pub(super) fn max_receive(message: &UlpMessage) -> Option<u32> {
    let UlpMessage::SmbDirect(message) = message else { return None };
    match message {
        smb_direct::Message::NegotiateRequest { sizes, .. }
        | smb_direct::Message::NegotiateResponse { status: 0, sizes, .. } => Some(sizes.max_receive),
        smb_direct::Message::NegotiateResponse { .. } | smb_direct::Message::Data { .. } => None,
    }
}

/// The buffer that the Send with the first octets `octets` advertises, if the Send is a command.
pub(super) fn read(octets: &[u8], frame: FrameNumber) -> Option<Buffer> {
    nvme(octets, frame).or_else(|| iser(octets, frame))
}

/// Reads the keyed SGL data block of an NVMe command (NVMe over Fabrics).
fn nvme(octets: &[u8], frame: FrameNumber) -> Option<Buffer> {
    let command: &[u8; NVME_LEN] = octets.first_chunk()?;
    // PSDT 01 (the command uses SGLs), no fused operation, reserved bits zero.
    let uses_sgl = command[1] == 0x40;
    // A keyed data block: address, or address with invalidation of the key.
    let is_keyed = matches!(command[39], 0x40 | 0x4f);
    let allowed = match command[0] & 0b11 {
        0b01 => Allowed::Reads,
        0b10 => Allowed::Writes,
        _ => return None,
    };
    let to = u64::from_le_bytes(*command[24..].first_chunk()?);
    let len = u64::from(u32::from_le_bytes([command[32], command[33], command[34], 0]));
    let stag = u32::from_le_bytes(*command[35..].first_chunk()?);
    let is_command = uses_sgl && is_keyed && stag != 0 && len > 0;
    is_command.then_some(Buffer { stag, to, len, frame, advert: Advert::Nvme, allowed })
}

/// Reads the iSER header of a SCSI Command. A command with data in both directions is not read.
fn iser(octets: &[u8], frame: FrameNumber) -> Option<Buffer> {
    let header = octets.get(..ISER_LEN + BHS_LEN)?;
    // A control-type PDU with an STag for one direction, reserved octets zero.
    let (stag, to, allowed) = match *header.first_chunk()? {
        [0x14, 0, 0, 0] => (16, 20, Allowed::Writes),
        [0x18, 0, 0, 0] => (4, 8, Allowed::Reads),
        _ => return None,
    };
    let (opcode, flags) = (header[ISER_LEN] & 0x3f, header[ISER_LEN + 1] & 0x60);
    let is_command = opcode == 0x01 && flags == if allowed == Allowed::Writes { 0x40 } else { 0x20 };
    let (stag, to) = (word(header, stag)?, long(header, to)?);
    // Expected Data Transfer Length.
    let len = u64::from(word(header, ISER_LEN + 20)?);
    (is_command && stag != 0 && len > 0).then_some(Buffer { stag, to, len, frame, advert: Advert::Iser, allowed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    #[test]
    fn an_nvme_command_has_a_direction() {
        let descriptor = "0010000000560000 004000 44332211 40";
        for (opcode, allowed) in [("01", Allowed::Reads), ("02", Allowed::Writes)] {
            let command = format!("{opcode} 40 0700 01000000 {} {descriptor} {}", "00".repeat(16), "00".repeat(24));
            let found = read(&hex(&command), 5.into()).unwrap();
            assert_eq!((found.stag, found.to, found.len), (0x1122_3344, 0x5600_0000_1000, 0x4000));
            assert_eq!((found.advert, found.allowed), (Advert::Nvme, allowed));
        }
        // A Connect command has no keyed data block.
        let connect = format!("7f 40 0700 01000000 {} {descriptor} {}", "00".repeat(16), "00".repeat(24));
        assert_eq!(read(&hex(&connect), 5.into()), None);
    }

    #[test]
    fn a_scsi_command_advertises_its_expected_length() {
        let bhs = format!("01 c1 0000 00000000 {} 00000002 00001000 {}", "00".repeat(8), "00".repeat(24));
        let read_command = format!("14000000 00000000 0000000000000000 11223344 0000560000001000 {bhs}");
        let found = read(&hex(&read_command), 5.into()).unwrap();
        assert_eq!((found.stag, found.to, found.len), (0x1122_3344, 0x5600_0000_1000, 0x1000));
        assert_eq!(found.allowed, Allowed::Writes);
        let neither = format!("10000000 00000000 0000000000000000 00000000 0000000000000000 {bhs}");
        assert_eq!(read(&hex(&neither), 5.into()), None);
    }
}
