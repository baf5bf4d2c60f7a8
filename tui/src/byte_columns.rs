//! Finds the byte at the position of the mouse, in the panel that shows the bytes of a frame.

/// Returns the index, in its row, of the byte at column `x` of the panel. A row has `columns`
/// bytes, first as numbers and then as characters. Returns `None` if there is no byte at `x`.
pub(crate) fn octet_at(x: usize, columns: usize) -> Option<usize> {
    // A row begins with the offset and two blanks. Each byte takes three columns. Rows of 16 bytes
    // have one more blank in the middle.
    const LEFT: usize = 7;
    let middle = usize::from(columns == 16);
    let characters = LEFT + 3 * columns + middle + 1;
    let at = match x {
        x if x >= characters => x - characters,
        x => {
            let x = x.checked_sub(LEFT)?;
            if x > 24 { (x - middle) / 3 } else { x / 3 }
        }
    };
    (at < columns).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::octet_at;

    #[test]
    fn maps_columns_to_bytes() {
        // "·0000··xx·xx·xx·xx·xx·xx·xx·xx··xx": the ninth byte is one column further right.
        assert_eq!([7, 8, 10, 28, 32, 33].map(|x| octet_at(x, 16)), [0, 0, 1, 7, 8, 8].map(Some));
        assert_eq!([57, 72, 73, 3].map(|x| octet_at(x, 16)), [Some(0), Some(15), None, None]);
        assert_eq!([7, 28, 32, 39, 40].map(|x| octet_at(x, 8)), [Some(0), Some(7), Some(0), Some(7), None]);
    }
}
