//! Counts state that the dissector dropped because of its memory limits.

use std::fmt;

use crate::digits::counted;

/// State that the dissector dropped because of its memory limits. The counts are above zero only if
/// a capture has very many connections, or very many bytes that wait for missing bytes.
///
/// To free memory, the dissector puts connections aside: it delivers their remaining units and
/// drops their state. It keeps the number of such a connection and, for iWARP or SDP, its start-up
/// settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dropped {
    /// How often a connection with iWARP or SDP was put aside and then continued. Rules that need
    /// the dropped state were not checked.
    pub interruptions: u64,
    /// Number of incomplete units and gaps that were delivered because their connection was put
    /// aside.
    pub units: u64,
    /// How often a connection with bytes, but until then without iWARP or SDP, was put aside and
    /// then continued.
    pub others: u64,
    /// Number of segments that filled a gap of such a connection after it was put aside. These
    /// segments were not read.
    pub late: u64,
    /// Number of connections with iWARP or SDP whose start-up settings were dropped, too.
    pub forgotten: u64,
    /// Number of other connections with bytes that were put aside and whose number was dropped. If
    /// such a connection continues, it counts as a new connection.
    pub others_forgotten: u64,
}

impl Dropped {
    /// Returns whether nothing was dropped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Dropped::default()
    }
}

/// For example "reading of connections with iWARP or SDP was interrupted 3 times; incomplete or
/// missing because of that: 1 unit".
impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if self.interruptions > 0 {
            let times = counted(self.interruptions, "time");
            parts.push(format!("reading of connections with iWARP or SDP was interrupted {times}"));
        }
        if self.units > 0 {
            parts.push(format!("incomplete or missing because of that: {}", counted(self.units, "unit")));
        }
        if self.others > 0 {
            let times = counted(self.others, "time");
            parts.push(format!("reading of other connections was interrupted {times}: iWARP may be missed there"));
        }
        if self.late > 0 {
            parts.push(format!("not read of other connections: {}", counted(self.late, "late segment")));
        }
        if self.forgotten > 0 {
            parts.push(format!("{} with iWARP or SDP forgotten", counted(self.forgotten, "connection")));
        }
        if self.others_forgotten > 0 {
            let others = counted(self.others_forgotten, "other connection");
            parts.push(format!("{others} forgotten, which count as new ones if they continue"));
        }
        f.write_str(&parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_what_was_given_up_and_nothing_else() {
        assert!(Dropped::default().is_empty());
        let dropped = Dropped { interruptions: 3, units: 1, ..Dropped::default() };
        let text = "reading of connections with iWARP or SDP was interrupted 3 times; \
                    incomplete or missing because of that: 1 unit";
        assert_eq!(dropped.to_string(), text);
        let dropped = Dropped { others: 1, forgotten: 2, ..Dropped::default() };
        assert!(dropped.to_string().ends_with("missed there; 2 connections with iWARP or SDP forgotten"));
        let dropped = Dropped { late: 2, others_forgotten: 1, ..Dropped::default() };
        let text = "not read of other connections: 2 late segments; \
                    1 other connection forgotten, which count as new ones if they continue";
        assert_eq!(dropped.to_string(), text);
    }
}
