//! Checks the settings in private data (RFC 8797 section 4).

use weft_core::requirement;

use crate::follow::ConnectionState;
use crate::parse::{Kind, Unit};
use crate::rules::rule::{Check, Findings, Rule};
use crate::upper::private_data;
use crate::upper::rpcrdma::private_data::PrivateData;

pub(super) static RESERVED: Rule = Check::Startup(reserved).covers(requirements!["RPCRDMA-8797.4-1"]);

/// The bits before R.
const RESERVED_BITS: u8 = 0xfe;
/// Offset of the reserved bits in the settings.
const FLAGS_AT: usize = 5;

fn reserved(_: &ConnectionState, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    let Kind::Startup(_, part) = unit.kind else { return };
    let Some((private, at)) = private_data(part) else { return };
    let Some(settings) = PrivateData::find(private).filter(PrivateData::is_known) else { return };
    if settings.flags & RESERVED_BITS != 0 {
        let at = at + settings.at + FLAGS_AT;
        let expected = "seven reserved bits of zero before R";
        findings.report(
            requirement!("RPCRDMA-8797.4-1"),
            unit,
            at..at + 1,
            expected,
            format!("{:#04x}", settings.flags),
        );
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use super::super::testing::{is_clean, with_settings};
    use crate::testing::proves;

    #[test]
    fn reserved_bits_are_zero() {
        let good = with_settings(["01010303", "01000307"], &[]);
        is_clean(&good);
        proves(requirement!("RPCRDMA-8797.4-1"), &with_settings(["01030303", "01000307"], &[]), &good);
        proves(requirement!("RPCRDMA-8797.4-1"), &with_settings(["01010303", "01800307"], &[]), &good);
        // A receiver ignores settings of an unknown version.
        is_clean(&with_settings(["02030303", "01000307"], &[]));
    }
}
