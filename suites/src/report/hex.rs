//! Bytes in rows of sixteen, as pages show them for a step. Each byte has the mark of its range.

use crate::model::{MarkKind, Octets};

/// Number of bytes in a row.
pub const ROW: usize = 16;

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HexRow {
    /// Offset of the row's first byte, with at least four hexadecimal digits.
    pub offset: String,
    /// The row's bytes.
    pub cells: Vec<HexCell>,
}

/// One byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HexCell {
    /// Two hexadecimal digits.
    pub hex: String,
    /// The byte as a character, or a dot if it is not printable ASCII.
    pub character: char,
    /// `plain`, `field-0`, `field-1` (fields alternate), `stimulus` or `wrong`.
    pub class: &'static str,
    /// Meaning of the byte, for a tooltip. Empty without a mark.
    pub label: String,
}

/// Adjacent bytes of a row with the same meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HexRun<'a> {
    /// Two hexadecimal digits for each byte, separated by spaces.
    pub(super) hex: String,
    /// See [`HexCell::class`].
    pub(super) class: &'static str,
    /// See [`HexCell::label`].
    pub(super) label: &'a str,
}

impl HexRow {
    /// Returns the row's bytes. Adjacent bytes with the same meaning are joined.
    pub(super) fn runs(&self) -> Vec<HexRun<'_>> {
        let alike = |a: &HexCell, b: &HexCell| (a.class, &a.label) == (b.class, &b.label);
        let run = |cells: &'_ [HexCell]| cells.iter().map(|cell| cell.hex.as_str()).collect::<Vec<_>>().join(" ");
        let runs = self.cells.chunk_by(alike).filter_map(|cells| Some((cells, cells.first()?)));
        runs.map(|(cells, first)| HexRun { hex: run(cells), class: first.class, label: &first.label }).collect()
    }

    /// Returns spaces for the missing bytes of the last row.
    pub(super) fn gap(&self) -> String {
        " ".repeat(3 * ROW.saturating_sub(self.cells.len()))
    }

    /// Returns the row's bytes as characters.
    pub(super) fn text(&self) -> String {
        self.cells.iter().map(|cell| cell.character).collect()
    }
}

/// Returns the first `most` bytes of `octets`, in rows.
#[must_use]
pub fn rows(octets: &Octets, most: usize) -> Vec<HexRow> {
    let cells: Vec<HexCell> =
        octets.shown().take(most).enumerate().map(|(at, octet)| cell(octets, at, octet)).collect();
    let row =
        |(index, cells): (usize, &[HexCell])| HexRow { offset: format!("{:04x}", index * ROW), cells: cells.to_vec() };
    cells.chunks(ROW).enumerate().map(row).collect()
}

fn cell(octets: &Octets, at: usize, octet: u8) -> HexCell {
    let at = at as u64;
    let mut class = "plain";
    let mut labels = Vec::new();
    let mut fields = 0;
    for mark in &octets.marks {
        let is_field = mark.kind == MarkKind::Field;
        if (mark.start..mark.end).contains(&at) {
            labels.push(mark.label.as_str());
            class = match (mark.kind, class) {
                (MarkKind::Wrong, _) | (_, "wrong") => "wrong",
                (MarkKind::Stimulus, _) | (_, "stimulus") => "stimulus",
                (MarkKind::Field, _) => ["field-0", "field-1"][fields % 2],
            };
        }
        fields += usize::from(is_field);
    }
    HexCell {
        hex: format!("{octet:02x}"),
        character: if octet.is_ascii_graphic() || octet == b' ' { char::from(octet) } else { '.' },
        class,
        label: labels.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Mark;

    #[test]
    fn the_loudest_mark_wins() {
        let mut octets = Octets::new(b"MPA ID Req Frame\x40\x01\0\0");
        let mut mark =
            |start, end, label: &str, kind| octets.marks.push(Mark { start, end, label: label.into(), kind });
        mark(0, 16, "Key", MarkKind::Field);
        mark(16, 17, "flags", MarkKind::Field);
        mark(3, 4, "changed", MarkKind::Stimulus);
        mark(17, 18, "not expected", MarkKind::Wrong);
        let rows = rows(&octets, 100);
        assert_eq!((rows.len(), rows[1].offset.as_str(), rows[1].cells.len()), (2, "0010", 4));
        let class = |row: usize, cell: usize| rows[row].cells[cell].class;
        assert_eq!((class(0, 0), class(0, 3), class(1, 0), class(1, 1)), ("field-0", "stimulus", "field-1", "wrong"));
        assert_eq!((class(1, 2), rows[0].cells[3].label.as_str()), ("plain", "Key, changed"));
        assert_eq!((rows[0].cells[0].character, rows[1].cells[1].character), ('M', '.'));
    }

    #[test]
    fn joins_bytes_with_the_same_meaning() {
        let mut octets = Octets::new(b"abcdefghijklmnopqr");
        octets.marks.push(Mark { start: 1, end: 3, label: "two".into(), kind: MarkKind::Field });
        octets.marks.push(Mark { start: 3, end: 4, label: "next".into(), kind: MarkKind::Stimulus });
        let rows = rows(&octets, 100);
        let runs = rows[0].runs();
        let joined: Vec<_> = runs.iter().map(|run| (run.hex.as_str(), run.class, run.label)).collect();
        assert_eq!(
            joined,
            [
                ("61", "plain", ""),
                ("62 63", "field-0", "two"),
                ("64", "stimulus", "next"),
                ("65 66 67 68 69 6a 6b 6c 6d 6e 6f 70", "plain", ""),
            ]
        );
        assert_eq!((rows[0].gap().len(), rows[1].gap().len(), rows[1].text().as_str()), (0, 42, "qr"));
    }

    #[test]
    fn only_so_many_are_shown() {
        assert_eq!(rows(&Octets::new(&[0; 100]), 20).iter().map(|row| row.cells.len()).sum::<usize>(), 20);
        assert_eq!(rows(&Octets::default(), 20), []);
    }
}
