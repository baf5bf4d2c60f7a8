//! Inserts the data that RDMA transferred into a PDU.

use super::octets::Beginning;
use super::placed::PlacedOctets;
use crate::direction::Direction;
use crate::format::counted;
use crate::stream_id::StreamId;
use crate::upper::pdu::{Chunk, Place};

/// Returns the PDU of which `sent` was in Sends, with the data of its chunks. Adds a remark about
/// each chunk with data.
pub(super) fn insert(
    placed: &PlacedOctets,
    owner: (StreamId, Direction),
    sent: Beginning,
    chunks: &[Chunk],
    remarks: &mut Vec<String>,
) -> Beginning {
    if chunks.iter().all(|chunk| chunk.len() == 0) {
        return sent;
    }
    let mut pdu = Beginning::default();
    // Number of octets of `sent` that are in `pdu`.
    let mut copied = 0;
    for (position, chunk) in at_positions(chunks) {
        let before = position.checked_sub(pdu.len()).filter(|before| *before <= sent.len() - copied);
        let Some(before) = before else {
            remarks.push(format!("{}, because their offset {position} is outside the message", not_inserted(chunk)));
            continue;
        };
        pdu.copy(&sent, copied, copied + before);
        copied += before;
        append(placed, owner, chunk, &mut pdu, remarks);
    }
    pdu.copy(&sent, copied, sent.len());
    for chunk in chunks.iter().filter(|chunk| chunk.place == Place::AfterLength && chunk.len() > 0) {
        let Some(at) = end_of_length(&pdu, chunk.len()) else {
            remarks.push(format!("{}, because their place in the message is unknown", not_inserted(chunk)));
            continue;
        };
        let around = std::mem::take(&mut pdu);
        pdu.copy(&around, 0, at);
        append(placed, owner, chunk, &mut pdu, remarks);
        pdu.copy(&around, at, around.len());
    }
    pdu
}

/// The chunks with data that have a position, sorted by their positions.
fn at_positions(chunks: &[Chunk]) -> Vec<(u64, &Chunk)> {
    let position = |chunk: &Chunk| match chunk.place {
        Place::At(position) if chunk.len() > 0 => Some(position),
        Place::At(_) | Place::AfterLength => None,
    };
    let mut found: Vec<_> = chunks.iter().filter_map(|chunk| Some((position(chunk)?, chunk))).collect();
    found.sort_by_key(|(position, _)| *position);
    found
}

/// The beginning of a remark about a chunk that is not inserted.
fn not_inserted(chunk: &Chunk) -> String {
    format!("{} that RDMA transferred are not in this message", counted(chunk.len(), "byte"))
}

/// Appends the data of a chunk, and zeros up to a multiple of four octets, as XDR and iSCSI require
/// after data.
fn append(
    placed: &PlacedOctets,
    owner: (StreamId, Direction),
    chunk: &Chunk,
    pdu: &mut Beginning,
    remarks: &mut Vec<String>,
) {
    let (at, len) = (pdu.len(), chunk.len());
    let mut transferred = 0;
    for segment in &chunk.segments {
        let found = placed.read(owner, *segment, |data, start, end| pdu.copy(data, start, end));
        pdu.push(&[], u64::from(segment.len) - found);
        transferred += found;
    }
    pdu.pad();
    remarks.push(if transferred == len {
        format!("RDMA transferred {} of this message separately, at offset {at}", counted(len, "byte"))
    } else {
        let data = counted(len, "byte");
        format!("RDMA transferred {data} of this message separately, at offset {at}; the capture has {transferred}")
    });
}

/// Returns the offset after the field with the length `len` of a chunk. If several fields have this
/// value, the field must be at the end of the PDU: a server moves the last item of a reply to a
/// Write chunk, such as the data that NFS reads. Otherwise the field is not certain.
fn end_of_length(pdu: &Beginning, len: u64) -> Option<u64> {
    let wanted = u32::try_from(len).ok()?.to_be_bytes();
    let words = pdu.octets().chunks_exact(4).zip(1..);
    let ends: Vec<u64> = words.filter(|(word, _)| **word == wanted).map(|(_, count)| 4 * count).collect();
    match ends[..] {
        [.., last] if last == pdu.len() => Some(last),
        [only] => Some(only),
        _ => None,
    }
}
