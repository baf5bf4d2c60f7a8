//! Removes the values of TCP options that do not describe the transport.

/// The options End of Option List and No-Operation have no length field.
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
/// Options whose values stay: MSS, window scale, SACK permitted, SACK, and time stamps.
const KEPT: [u8; 5] = [2, 3, 4, 5, 8];

/// Sets the values of all other options to zero. Such values can contain addresses (Multipath TCP),
/// cookies or digests. Also sets all octets after the last option to zero.
pub(super) fn clear(options: &mut [u8]) {
    let mut at = 0;
    while let Some(&kind) = options.get(at) {
        if kind == END {
            break;
        }
        if kind == NO_OPERATION {
            at += 1;
            continue;
        }
        let len = options.get(at + 1).map_or(0, |len| usize::from(*len));
        let Some(option) = options.get_mut(at..at.saturating_add(len)).filter(|option| option.len() >= 2) else {
            break;
        };
        if !KEPT.contains(&kind) {
            option[2..].fill(0);
        }
        at += len;
    }
    if let Some(rest) = options.get_mut(at..) {
        // An option that the snap length or a wrong length cuts keeps its kind and its length.
        let kept = if rest.first().is_some_and(|kind| *kind != END) { 2.min(rest.len()) } else { 0 };
        rest[kept..].fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_mss_but_no_address() {
        // MSS 1460, and ADD_ADDR of Multipath TCP (RFC 8684 section 3.4.1) with 10.0.0.1.
        let mut options = [2, 4, 5, 0xb4, 1, 30, 8, 0x30, 1, 10, 0, 0, 1, 0, 7];
        clear(&mut options);
        assert_eq!(options, [2, 4, 5, 0xb4, 1, 30, 8, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn an_option_that_is_cut_has_no_value() {
        let mut options = [8, 10, 1, 2, 3];
        clear(&mut options);
        assert_eq!(options, [8, 10, 0, 0, 0]);
        let mut options = [3, 0, 9];
        clear(&mut options);
        assert_eq!(options, [3, 0, 0]);
    }
}
