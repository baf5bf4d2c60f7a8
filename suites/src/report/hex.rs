//! Octets in rows of sixteen, each with its mark: what a page shows beside a step.

use crate::model::{MarkKind, Octets};

/// Octets in a row.
pub const ROW: usize = 16;

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HexRow {
    /// Offset of its first octet, four hexadecimal digits or more.
    pub offset: String,
    /// Its octets.
    pub cells: Vec<HexCell>,
}

/// One octet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HexCell {
    /// Two hexadecimal digits.
    pub hex: String,
    /// The octet as a character; a dot where it is no printable one of ASCII.
    pub character: char,
    /// `plain`, `field-0`, `field-1` (fields take turns), `stimulus` or `wrong`.
    pub class: &'static str,
    /// What it is, for a tooltip; empty where nothing marks it.
    pub label: String,
}

/// The rows of at most `most` octets.
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
    fn only_so_many_are_shown() {
        assert_eq!(rows(&Octets::new(&[0; 100]), 20).iter().map(|row| row.cells.len()).sum::<usize>(), 20);
        assert_eq!(rows(&Octets::default(), 20), []);
    }
}
