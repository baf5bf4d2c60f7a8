//! The page with the statistics of a capture, in the format of `weft stats`.

use std::fmt::Write as _;

use askama::Template;
use weft_dissector::browse::Survey;
use weft_dissector::output::text::exchange_line;

use super::common::Head;

/// The maximum number of connections, and of port mapper exchanges, on the page.
const MAX_LISTED: usize = 100;

#[derive(Template)]
#[template(path = "capture_statistics.html")]
struct Page {
    head: Head,
    text: String,
    more: usize,
    /// Number of connections that are in the totals only.
    further: u64,
    more_exchanges: usize,
}

/// Renders the page.
pub(crate) fn statistics(head: Head, survey: &Survey) -> Result<String, askama::Error> {
    let stats = &survey.stats;
    let mut text = String::new();
    for connection in stats.connections().take(MAX_LISTED) {
        let _ = writeln!(text, "{connection}");
    }
    for exchange in stats.exchanges().take(MAX_LISTED) {
        let _ = writeln!(text, "{}", exchange_line(exchange));
    }
    let totals = stats.totals();
    if !totals.is_empty() {
        let _ = writeln!(text, "{totals}");
    }
    if totals.connections == 0 {
        let _ = writeln!(text, "no iWARP or SDP connections; other TCP connections: {}", totals.other_connections);
    }
    Page {
        head,
        text,
        further: stats.unstored_connections(),
        more: stats.connections().count().saturating_sub(MAX_LISTED),
        more_exchanges: stats.exchanges().count().saturating_sub(MAX_LISTED),
    }
    .render()
}
