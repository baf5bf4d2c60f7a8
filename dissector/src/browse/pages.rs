//! Stores the rows of an index in pages. Pages in use are unpacked. All other pages are packed:
//! `codec` encodes the rows, and then zstd compresses the result.
//!
//! An unpacked row takes about 250 bytes, mostly text. A packed row takes about 25 bytes. Unpacking
//! a page takes less than a millisecond. An index therefore needs little memory, and no file on a
//! disk.

use std::cell::RefCell;
use std::collections::VecDeque;

use super::codec;
use super::row::OwnedRow;
use crate::frame_number::FrameNumber;

/// Number of rows in a page.
const PAGE: usize = 1024;
/// Maximum number of open (unpacked) pages. The most recently used pages are open. These are the
/// newest page, the pages on the screen, and older pages with a changed row. A row changes if the
/// dissector delivers a unit or finding of the row's frame late.
const OPEN: usize = 12;
/// The compression level of zstd. Higher levels are slower and hardly reduce the size.
const LEVEL: i32 = 1;
/// Maximum length of an encoded page in bytes. A row is always shorter than 4096 bytes, because the
/// length of its summary is limited.
const MAX_PAGE: usize = PAGE * 4096;

/// All rows of an index.
#[derive(Debug, Default)]
pub(super) struct Pages {
    len: usize,
    /// Number of the first frame of each page.
    firsts: Vec<FrameNumber>,
    last: Option<FrameNumber>,
    inner: RefCell<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    packed: Vec<Box<[u8]>>,
    /// The most recently used page is in front.
    open: VecDeque<Page>,
}

#[derive(Debug)]
struct Page {
    at: usize,
    rows: Vec<OwnedRow>,
    changed: bool,
}

impl Pages {
    /// The number of rows.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The number of the last frame.
    pub(super) fn last(&self) -> Option<FrameNumber> {
        self.last
    }

    /// Appends a row. Frames must be added in the order of their numbers.
    pub(super) fn push(&mut self, row: OwnedRow) {
        let at = self.len / PAGE;
        self.last = Some(row.number);
        if self.len.is_multiple_of(PAGE) {
            self.firsts.push(row.number);
            let inner = self.inner.get_mut();
            inner.packed.push(Box::default());
            inner.enter(Page { at, rows: vec![row], changed: true });
        } else if let Some(page) = self.inner.get_mut().page(at) {
            page.rows.push(row);
            page.changed = true;
        }
        self.len += 1;
    }

    /// The row at index `position`.
    pub(super) fn get(&self, position: usize) -> Option<OwnedRow> {
        if position >= self.len {
            return None;
        }
        self.inner.borrow_mut().page(position / PAGE)?.rows.get(position % PAGE).cloned()
    }

    /// Changes the row at index `position`.
    pub(super) fn change(&mut self, position: usize, change: impl FnOnce(&mut OwnedRow)) {
        if let Some(page) = self.inner.get_mut().page(position / PAGE)
            && let Some(row) = page.rows.get_mut(position % PAGE)
        {
            change(row);
            page.changed = true;
        }
    }

    /// The index of the row of frame `number`.
    pub(super) fn find(&self, number: FrameNumber) -> Option<usize> {
        let at = self.firsts.partition_point(|first| *first <= number).checked_sub(1)?;
        let mut inner = self.inner.borrow_mut();
        let within = inner.page(at)?.rows.binary_search_by_key(&number, |row| row.number).ok()?;
        Some(at * PAGE + within)
    }

    /// The memory of the packed pages in bytes. The few open pages do not count.
    #[cfg(test)]
    pub(super) fn packed(&self) -> usize {
        let pages = self.inner.borrow().packed.iter().map(|page| page.len() + size_of::<Box<[u8]>>()).sum::<usize>();
        pages + self.firsts.len() * size_of::<FrameNumber>()
    }
}

impl Inner {
    /// Returns page `at`, and unpacks it if necessary.
    fn page(&mut self, at: usize) -> Option<&mut Page> {
        match self.open.iter().position(|page| page.at == at) {
            Some(0) => {}
            Some(position) => {
                let page = self.open.remove(position)?;
                self.open.push_front(page);
            }
            None => {
                let rows = unpack(self.packed.get(at)?)?;
                self.enter(Page { at, rows, changed: false });
            }
        }
        self.open.front_mut()
    }

    fn enter(&mut self, page: Page) {
        self.open.push_front(page);
        if self.open.len() > OPEN
            && let Some(oldest) = self.open.pop_back().filter(|page| page.changed)
            && let Some(packed) = self.packed.get_mut(oldest.at)
            && let Some(octets) = pack(&oldest.rows)
        {
            *packed = octets;
        }
    }
}

fn pack(rows: &[OwnedRow]) -> Option<Box<[u8]>> {
    zstd::bulk::compress(&codec::encode(rows), LEVEL).ok().map(Vec::into_boxed_slice)
}

fn unpack(octets: &[u8]) -> Option<Vec<OwnedRow>> {
    codec::decode(&zstd::bulk::decompress(octets, MAX_PAGE).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TransportKind;
    use crate::browse::row::{AT_END, Row};

    fn row(number: u64) -> OwnedRow {
        // Frame numbers have gaps, and some rows have an earlier time than the row before.
        let mut row = OwnedRow::from(Row::new((3 * number).into()));
        row.time = 1_769_860_800_000_000_000 + number * 1000 - number % 7 * 5000;
        row.summary = format!("DDP segment {number} of something");
        if number.is_multiple_of(5) {
            row.known_at = AT_END;
        }
        row
    }

    #[test]
    fn pages_return_their_rows() {
        let mut pages = Pages::default();
        let len = 40 * PAGE + 7;
        (0..len as u64).for_each(|number| pages.push(row(number)));
        for position in (0..len).step_by(97).chain([0, PAGE - 1, PAGE, len - 1]) {
            assert_eq!(pages.get(position), Some(row(position as u64)));
            let number = FrameNumber::from(3 * position as u64);
            assert_eq!((pages.find(number), pages.find(number.later(1))), (Some(position), None));
        }
        assert_eq!((pages.len(), pages.last(), pages.get(len)), (len, Some((3 * (len as u64 - 1)).into()), None));
        assert!(pages.inner.borrow().open.len() <= OPEN);
    }

    #[test]
    fn a_row_takes_little_memory() {
        // The rows are like the rows of a bulk transfer: each row differs from the previous row.
        let mut pages = Pages::default();
        let len = 100 * PAGE as u64;
        let mut random = 1_u64;
        for number in 1..=len {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let mut row = OwnedRow::from(Row::new(number.into()));
            row.time = 1_769_860_800_000_000_000 + number * 2000 + random % 2000;
            (row.captured, row.wire_len) = (1514, 1514);
            row.ends = Some((([10, 1, 0, 2], 38499).into(), ([10, 1, 0, 1], 7174).into()));
            let seq = u32::try_from(number * 1448 % (1 << 32)).unwrap();
            row.transport =
                Some(TransportKind::Tcp { stream: 0.into(), seq, syn: false, fin: false, rst: false, ack: true });
            row.summary = format!("RDMA Write  STag 0x{:08x} TO 0x{:016x}  len 1408", 0x1234, number * 1408);
            row.units = 1;
            pages.push(row);
        }
        let each = pages.packed() as u64 / (len - (OPEN * PAGE) as u64);
        assert!(each < 30, "{each} bytes per row");
    }

    #[test]
    fn a_packed_row_can_change() {
        let mut pages = Pages::default();
        (0..40 * PAGE as u64).for_each(|number| pages.push(row(number)));
        for position in [3, 5 * PAGE, 30 * PAGE] {
            pages.change(position, |row| row.units = 7);
        }
        (0..30).for_each(|at| drop(pages.get(at * PAGE + 1)));
        assert!([3, 5 * PAGE, 30 * PAGE].map(|position| pages.get(position).unwrap().units) == [7; 3]);
        pages.change(1 << 40, |_| panic!("there is no such row"));
    }
}
