//! [`OutstandingSeries`]: the number of outstanding commands over time, in constant memory.

use serde::Serialize;

/// Maximum number of columns.
const MAX_COLUMNS: usize = 64;
/// The width of a column at the start, in nanoseconds.
const SMALLEST_WIDTH: u64 = 1000;

/// The number of outstanding commands over time. A column has the maximum in its interval. If there
/// are too many columns, two of them become one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OutstandingSeries {
    /// The time at which the first column begins, in nanoseconds since 1970.
    pub start: u64,
    /// The width of a column in nanoseconds.
    pub column_ns: u64,
    /// The maximum of all columns.
    pub most: u64,
    /// At most 64 columns.
    pub columns: Vec<u64>,
    #[serde(skip)]
    current: u64,
    #[serde(skip)]
    latest: u64,
}

impl Default for OutstandingSeries {
    fn default() -> Self {
        OutstandingSeries { start: 0, column_ns: SMALLEST_WIDTH, most: 0, columns: Vec::new(), current: 0, latest: 0 }
    }
}

impl OutstandingSeries {
    /// Records that `count` commands are outstanding from `time` on. `time` is in nanoseconds since
    /// 1970. A time before the latest time counts as the latest time.
    pub(super) fn record(&mut self, time: u64, count: u64) {
        if self.columns.is_empty() {
            if count == 0 {
                return;
            }
            (self.start, self.latest) = (time, time);
        }
        self.latest = self.latest.max(time);
        self.extend();
        if let Some(column) = self.columns.last_mut() {
            *column = (*column).max(count);
        }
        self.current = count;
        self.most = self.most.max(count);
    }

    /// Adds columns up to the latest time, with the current number of commands.
    fn extend(&mut self) {
        while (self.latest - self.start) / self.column_ns >= MAX_COLUMNS as u64 {
            self.columns = self.columns.chunks(2).map(|pair| pair.iter().copied().max().unwrap_or(0)).collect();
            self.column_ns = self.column_ns.saturating_mul(2);
        }
        let columns = ((self.latest - self.start) / self.column_ns) as usize + 1;
        if self.columns.len() < columns {
            self.columns.resize(columns, self.current);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_the_maximum_of_its_interval() {
        let mut series = OutstandingSeries::default();
        series.record(5, 0);
        for (time, count) in [(10_000, 1), (10_100, 3), (10_900, 2), (13_000, 1), (14_000, 0)] {
            series.record(time, count);
        }
        assert_eq!((series.start, series.column_ns, series.most), (10_000, 1000, 3));
        assert_eq!(series.columns, [3, 2, 2, 2, 1]);
    }

    #[test]
    fn many_columns_are_merged() {
        let mut series = OutstandingSeries::default();
        for column in 0..1000 {
            series.record(column * 1000, column % 10);
        }
        assert_eq!((series.column_ns, series.most), (16_000, 9));
        assert!((MAX_COLUMNS / 2..=MAX_COLUMNS).contains(&series.columns.len()), "{series:?}");
        series.record(u64::MAX, 1);
        assert!(series.columns.len() <= MAX_COLUMNS);
        // The clock of another interface is late.
        series.record(0, 12);
        assert_eq!((series.columns.last(), series.most), (Some(&12), 12));
    }
}
