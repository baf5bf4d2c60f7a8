//! [`Decoder`]: reads the arguments and results of operations. A [`Layout`] describes each
//! operation.

use super::super::auth::PeerText;
use super::super::header::ReadSegment;
use super::super::xdr::{Stop, Xdr};
use super::operation::{
    Body, MAX_OPERATIONS, MAX_PARAMETER_BYTES, MAX_PARAMETERS, Operation, Parameter, ParameterKind, ParameterValue,
};

/// Maximum length of a COMPOUND tag, a name or another text in bytes. File systems have shorter
/// names. The limit detects a damaged length.
const MAX_TEXT: u32 = 1 << 16;
/// Maximum length of an opaque item in bytes.
const MAX_OPAQUE: u32 = 1 << 24;
/// Maximum number of words of a bit map. The specifications assign fewer than 128 bits.
const MAX_BITMAP_WORDS: u32 = 8;

/// A function that reads an item with a variable layout.
pub(super) type Read = fn(&mut Decoder<'_>) -> Result<(), Stop>;

/// An item of the arguments or results.
#[derive(Clone, Copy)]
pub(super) enum Item {
    /// A number of 32 bits.
    U32(ParameterKind),
    /// A number of 64 bits.
    U64(ParameterKind),
    /// Bytes with a fixed length, a multiple of 4.
    Fixed(ParameterKind, u32),
    /// A name.
    Text(ParameterKind),
    /// Items of a fixed total length in bytes that are not stored.
    Skip(u32),
    /// Opaque bytes that are not stored.
    SkipOpaque,
    /// Bulk data that a chunk can carry. The parameter is the length of the data.
    Data(ParameterKind),
    /// Text that a chunk can carry.
    DataText(ParameterKind),
    /// A state id of NFS version 4.
    StateId,
    /// A bit map that is not stored.
    SkipBitmap,
    /// A bit map of attributes.
    Attributes,
    /// An item with a variable layout.
    Custom(Read),
    /// An item whose layout weft does not know.
    Unknown,
}

/// The layout of an operation.
pub(super) struct Layout {
    /// The number of the operation.
    pub(super) code: u32,
    /// The name of the operation.
    pub(super) name: &'static str,
    /// The arguments.
    pub(super) call: &'static [Item],
    /// The results after the status if the operation succeeded.
    pub(super) success: &'static [Item],
    /// The results after the status if the operation failed.
    pub(super) failure: &'static [Item],
}

/// A function that returns the layout of an operation by its number.
type LayoutOf = fn(u32) -> Option<&'static Layout>;

/// Finds the layout of the operation `code` in a table.
pub(super) fn find(table: &'static [Layout], code: u32) -> Option<&'static Layout> {
    table.iter().find(|layout| layout.code == code)
}

/// The chunks that carry bulk data of a message.
#[derive(Debug, Clone)]
pub(in crate::upper::rpcrdma) enum Reduction<'a> {
    /// A call: the read list. The position of a segment determines which data it carries.
    Call(&'a [ReadSegment]),
    /// A reply: the lengths of the Write chunks in bytes. Each Write chunk that is not empty
    /// carries the next bulk data (RFC 8166 section 4.3.2.1).
    Reply(Vec<u64>),
}

/// The state of reading one message.
pub(super) struct Decoder<'a> {
    xdr: Xdr<'a>,
    reduction: Reduction<'a>,
    /// Number of bytes before the next byte that chunks carry, with padding.
    removed: u64,
    /// Number of Write chunks that carry data before the next byte.
    used_chunks: usize,
    body: Body,
    current: Operation,
    parameters: usize,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(xdr: Xdr<'a>, reduction: Reduction<'a>) -> Self {
        Decoder {
            xdr,
            reduction,
            removed: 0,
            used_chunks: 0,
            body: Body::default(),
            current: Operation::default(),
            parameters: 0,
        }
    }

    /// The position in the message, for items with a variable layout.
    pub(super) fn xdr(&mut self) -> &mut Xdr<'a> {
        &mut self.xdr
    }

    /// The status of the current operation; 0 in a call.
    pub(super) fn status(&self) -> u32 {
        self.current.status.unwrap_or(0)
    }

    /// Returns the decoded part. `result` is the result of the functions of this type.
    pub(super) fn finish(mut self, result: Result<(), Stop>) -> (Body, Option<Stop>) {
        // After an error, the current operation is incomplete.
        if self.current.status.is_some() || !self.current.parameters.is_empty() {
            self.end_operation();
        }
        (self.body, result.err())
    }

    /// Reads the arguments of a procedure.
    pub(super) fn call(&mut self, layout: Option<&'static Layout>) -> Result<(), Stop> {
        let layout = layout.ok_or(Stop::Unknown)?;
        self.begin_operation(layout.code, self.xdr.at());
        self.items(layout.call)?;
        self.end_operation();
        Ok(())
    }

    /// Reads the results of a procedure.
    pub(super) fn reply(&mut self, layout: Option<&'static Layout>) -> Result<(), Stop> {
        let layout = layout.ok_or(Stop::Unknown)?;
        self.begin_operation(layout.code, self.xdr.at());
        if layout.code != 0 {
            self.results(layout)?;
        }
        self.end_operation();
        Ok(())
    }

    /// Reads the arguments of a COMPOUND or `CB_COMPOUND`.
    pub(super) fn compound_call(&mut self, layout: LayoutOf, is_callback: bool) -> Result<(), Stop> {
        self.tag()?;
        let at = self.xdr.at();
        self.body.minor_version = Some((self.xdr.u32()?, at));
        if is_callback {
            // callback_ident (RFC 8881 section 20.2.1).
            self.xdr.take(4)?;
        }
        for _ in 0..self.count()? {
            let at = self.xdr.at();
            let code = self.xdr.u32()?;
            self.begin_operation(code, at);
            let found = layout(code).ok_or(Stop::Unknown);
            let result = found.and_then(|layout| self.items(layout.call));
            self.end_operation();
            result?;
        }
        Ok(())
    }

    /// Reads the results of a COMPOUND or `CB_COMPOUND`.
    pub(super) fn compound_reply(&mut self, layout: LayoutOf) -> Result<(), Stop> {
        let at = self.xdr.at();
        self.body.status = Some((self.xdr.u32()?, at));
        self.tag()?;
        for _ in 0..self.count()? {
            let at = self.xdr.at();
            let code = self.xdr.u32()?;
            self.begin_operation(code, at);
            let result = match layout(code) {
                Some(layout) => self.results(layout),
                None => self.xdr.u32().and_then(|status| {
                    self.current.status = Some(status);
                    // An operation that failed has no results, with few exceptions.
                    if status == 0 { Err(Stop::Unknown) } else { Ok(()) }
                }),
            };
            self.end_operation();
            result?;
        }
        Ok(())
    }

    fn tag(&mut self) -> Result<(), Stop> {
        let at = self.xdr.at() + 4;
        let tag = self.xdr.opaque(MAX_TEXT)?;
        let value = ParameterValue::Text(PeerText::new(stored(tag)));
        self.body.tag = Some(Parameter { kind: ParameterKind::Name, value, at, len: tag.len() as u32 });
        Ok(())
    }

    fn count(&mut self) -> Result<u32, Stop> {
        let at = self.xdr.at();
        let count = self.xdr.u32()?;
        self.body.count = Some((count, at));
        Ok(count)
    }

    fn begin_operation(&mut self, opcode: u32, at: u32) {
        self.current = Operation { opcode, at, ..Operation::default() };
    }

    fn end_operation(&mut self) {
        let operation = std::mem::take(&mut self.current);
        if self.body.operations.len() < MAX_OPERATIONS {
            self.body.operations.push(operation);
        }
    }

    fn results(&mut self, layout: &'static Layout) -> Result<(), Stop> {
        let status = self.xdr.u32()?;
        self.current.status = Some(status);
        self.items(if status == 0 { layout.success } else { layout.failure })
    }

    pub(super) fn items(&mut self, items: &'static [Item]) -> Result<(), Stop> {
        items.iter().try_for_each(|item| self.item(item))
    }

    fn item(&mut self, item: &Item) -> Result<(), Stop> {
        match *item {
            Item::U32(kind) => self.u32(kind).map(|_| ()),
            Item::U64(kind) => self.u64(kind),
            Item::Fixed(kind, len) => {
                let at = self.xdr.at();
                let bytes = self.xdr.padded(len)?;
                self.add(kind, ParameterValue::Bytes(stored(bytes).into()), at, len);
                Ok(())
            }
            Item::Text(kind) => self.text(kind),
            Item::Skip(len) => self.skip(len),
            Item::SkipOpaque => self.skip_opaque(),
            Item::Data(kind) => self.data_length(kind),
            Item::DataText(kind) => self.data_text(kind),
            Item::StateId => self.state_id(),
            Item::SkipBitmap => self.skip_bitmap(),
            Item::Attributes => self.bitmap(true),
            Item::Custom(read) => read(self),
            Item::Unknown => Err(Stop::Unknown),
        }
    }

    /// Reads and stores a number of 32 bits.
    pub(super) fn u32(&mut self, kind: ParameterKind) -> Result<u32, Stop> {
        let at = self.xdr.at();
        let value = self.xdr.u32()?;
        self.add(kind, ParameterValue::Number(value.into()), at, 4);
        Ok(value)
    }

    /// Reads and stores a number of 64 bits.
    pub(super) fn u64(&mut self, kind: ParameterKind) -> Result<(), Stop> {
        let at = self.xdr.at();
        let value = self.xdr.u64()?;
        self.add(kind, ParameterValue::Number(value), at, 8);
        Ok(())
    }

    /// Reads and stores opaque bytes, at most `most`.
    pub(super) fn bytes(&mut self, kind: ParameterKind, most: u32) -> Result<(), Stop> {
        let at = self.xdr.at().saturating_add(4);
        let bytes = self.xdr.opaque(most)?;
        self.add(kind, ParameterValue::Bytes(stored(bytes).into()), at, bytes.len() as u32);
        Ok(())
    }

    /// Reads and stores a text.
    pub(super) fn text(&mut self, kind: ParameterKind) -> Result<(), Stop> {
        let at = self.xdr.at().saturating_add(4);
        let bytes = self.xdr.opaque(MAX_TEXT)?;
        self.add(kind, ParameterValue::Text(PeerText::new(stored(bytes))), at, bytes.len() as u32);
        Ok(())
    }

    /// Skips `len` bytes and their padding.
    pub(super) fn skip(&mut self, len: u32) -> Result<(), Stop> {
        self.xdr.padded(len).map(|_| ())
    }

    /// Reads a flag, and then an item if the flag is set.
    pub(super) fn optional(&mut self, read: impl FnOnce(&mut Self) -> Result<(), Stop>) -> Result<(), Stop> {
        if self.xdr.flag()? { read(self) } else { Ok(()) }
    }

    /// Reads a counted array. `read` reads one element, which has at least 4 bytes.
    pub(super) fn array(&mut self, read: impl Fn(&mut Self) -> Result<(), Stop>) -> Result<(), Stop> {
        for _ in 0..self.xdr.u32()? {
            read(self)?;
        }
        Ok(())
    }

    /// Reads and stores a state id.
    pub(super) fn state_id(&mut self) -> Result<(), Stop> {
        self.u32(ParameterKind::StateSequence)?;
        self.item(&Item::Fixed(ParameterKind::StateOther, 12))
    }

    /// Reads bulk data, and stores its length.
    pub(super) fn data_length(&mut self, kind: ParameterKind) -> Result<(), Stop> {
        self.data(Some(kind), None)
    }

    /// Reads bulk data that is text, and stores the text, unless a chunk carries it.
    pub(super) fn data_text(&mut self, kind: ParameterKind) -> Result<(), Stop> {
        self.data(None, Some(kind))
    }

    /// Skips opaque bytes.
    pub(super) fn skip_opaque(&mut self) -> Result<(), Stop> {
        self.xdr.opaque(MAX_OPAQUE).map(|_| ())
    }

    /// Adds a number that the decoder counted. It has no bytes.
    pub(super) fn counted(&mut self, kind: ParameterKind, count: u64) {
        self.add(kind, ParameterValue::Number(count), self.xdr.at(), 0);
    }

    /// Reads bulk data. Stores its length with the kind `length`, and its text with the kind
    /// `text`, unless a chunk carries the data.
    fn data(&mut self, length: Option<ParameterKind>, text: Option<ParameterKind>) -> Result<(), Stop> {
        let at = self.xdr.at();
        let len = self.xdr.u32()?;
        if let Some(kind) = length {
            self.add(kind, ParameterValue::Number(len.into()), at, 4);
        }
        if self.is_in_chunk() {
            self.current.is_reduced = true;
            return Ok(());
        }
        if text.is_some() && len > MAX_TEXT {
            return Err(Stop::Malformed);
        }
        let bytes = self.xdr.padded(len)?;
        if let Some(kind) = text {
            let value = ParameterValue::Text(PeerText::new(stored(bytes)));
            self.add(kind, value, at.saturating_add(4), len);
        }
        Ok(())
    }

    /// Returns whether a chunk carries the data that starts at the next byte. If so, records that
    /// the chunk is used.
    fn is_in_chunk(&mut self) -> bool {
        match &self.reduction {
            Reduction::Call(reads) => {
                let position = u64::from(self.xdr.at()) + self.removed;
                let here = reads.iter().filter(|read| read.position != 0 && u64::from(read.position) == position);
                let chunk: Vec<u64> = here.map(|read| u64::from(read.segment.length)).collect();
                self.removed += chunk.iter().sum::<u64>().next_multiple_of(4);
                !chunk.is_empty()
            }
            Reduction::Reply(lengths) => {
                let left = lengths.get(self.used_chunks..).unwrap_or_default();
                let Some(next) = left.iter().position(|len| *len > 0) else { return false };
                self.used_chunks += next + 1;
                true
            }
        }
    }

    /// Skips a bit map.
    pub(super) fn skip_bitmap(&mut self) -> Result<(), Stop> {
        self.bitmap(false)
    }

    fn bitmap(&mut self, is_stored: bool) -> Result<(), Stop> {
        let words = self.xdr.u32()?;
        if words > MAX_BITMAP_WORDS {
            return Err(Stop::Malformed);
        }
        for word in 0..words {
            let at = self.xdr.at();
            let bits = self.xdr.u32()?;
            for bit in (0..32_u32).filter(|bit| is_stored && (bits >> *bit) & 1 != 0) {
                self.add(ParameterKind::Attribute, ParameterValue::Number(u64::from(32 * word + bit)), at, 4);
            }
        }
        Ok(())
    }

    fn add(&mut self, kind: ParameterKind, value: ParameterValue, at: u32, len: u32) {
        let is_dropped = self.body.operations.len() >= MAX_OPERATIONS || self.parameters >= MAX_PARAMETERS;
        if !is_dropped {
            self.parameters += 1;
            self.current.parameters.push(Parameter { kind, value, at, len });
        }
    }
}

/// The bytes that are stored of a parameter.
fn stored(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(MAX_PARAMETER_BYTES)]
}
