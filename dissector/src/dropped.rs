//! Counts state that the dissector dropped because of its memory limits.

use std::fmt;

use crate::format::counted;

/// State that the dissector dropped because of its memory limits. The counts are above zero only if
/// a capture has very many connections, or very many bytes that wait for missing bytes.
///
/// To free memory, the dissector evicts connections: it delivers their remaining units and drops
/// their state. The dissector keeps the stream number of an evicted connection. If the connection
/// has iWARP or SDP, the dissector also keeps its start-up settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DroppedState {
    /// How often a connection with iWARP or SDP was evicted and then continued. Rules that need the
    /// dropped state were not checked.
    pub interruptions: u64,
    /// Number of incomplete units and gaps that were delivered because their connection was
    /// evicted.
    pub incomplete_units: u64,
    /// How often any other connection was evicted and then continued. Such a connection had bytes,
    /// and weft had found neither iWARP nor SDP in it before the eviction.
    pub other_interruptions: u64,
    /// Number of segments that weft did not read, for this reason: the segment filled a gap, but
    /// its connection (without iWARP or SDP) had already been evicted.
    pub late: u64,
    /// Number of evicted connections with iWARP or SDP whose start-up settings weft dropped, too.
    pub forgotten: u64,
    /// Number of evicted connections that had bytes, but no iWARP or SDP, and whose stream number
    /// weft dropped, too. If such a connection continues, weft treats it as a new connection.
    pub others_forgotten: u64,
}

impl DroppedState {
    /// Returns whether nothing was dropped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == DroppedState::default()
    }
}

/// Formats the counts above zero, for example "weft interrupted its reading 3 times on connections
/// with iWARP or SDP; to free memory, weft delivered 1 unit with missing bytes".
impl fmt::Display for DroppedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (self.interruptions, "time", "weft interrupted its reading ", " on connections with iWARP or SDP"),
            (self.incomplete_units, "unit", "to free memory, weft delivered ", " with missing bytes"),
            (
                self.other_interruptions,
                "time",
                "weft interrupted its reading ",
                " on connections in which it had found no iWARP or SDP, so weft may miss iWARP there",
            ),
            (self.late, "late segment", "weft did not read ", " of connections without iWARP or SDP"),
            (self.forgotten, "connection", "weft dropped the start-up settings of ", " with iWARP or SDP"),
            (
                self.others_forgotten,
                "connection",
                "weft dropped ",
                " without iWARP or SDP; if such a connection continues, it counts as a new one",
            ),
        ];
        let parts = parts.into_iter().filter(|(count, ..)| *count > 0);
        let parts: Vec<_> =
            parts.map(|(count, what, before, after)| format!("{before}{}{after}", counted(count, what))).collect();
        f.write_str(&parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_what_was_given_up_and_nothing_else() {
        assert!(DroppedState::default().is_empty());
        let dropped = DroppedState { interruptions: 3, incomplete_units: 1, ..DroppedState::default() };
        let text = "weft interrupted its reading 3 times on connections with iWARP or SDP; \
                    to free memory, weft delivered 1 unit with missing bytes";
        assert_eq!(dropped.to_string(), text);
        let dropped = DroppedState { other_interruptions: 1, forgotten: 2, ..DroppedState::default() };
        let end = "iWARP there; weft dropped the start-up settings of 2 connections with iWARP or SDP";
        assert!(dropped.to_string().ends_with(end));
        let dropped = DroppedState { late: 2, others_forgotten: 1, ..DroppedState::default() };
        let text = "weft did not read 2 late segments of connections without iWARP or SDP; \
                    weft dropped 1 connection without iWARP or SDP; \
                    if such a connection continues, it counts as a new one";
        assert_eq!(dropped.to_string(), text);
    }
}
