//! `-z`: statistics of the frames, as in tshark. weft prints them after the frames.
//!
//! As in tshark, the filter of -Y does not change a statistic. A statistic can have its own filter.

mod conversations;
mod io_stat;

use std::io::{self, Write};

use weft_dissector::filter::{Filter, WantedFields};
use weft_dissector::output::frames::Record;
use weft_dissector::source::Names;

use self::conversations::{Conversations, Grouping};
use self::io_stat::IoStat;
use super::parse;
use crate::exit::{BadInput, reject};

/// The statistics of one command line.
#[derive(Default)]
pub(super) struct Statistics(Vec<Statistic>);

enum Statistic {
    Conversations(Conversations),
    IoStat(IoStat),
}

impl Statistics {
    /// Reads the values of -z. The fields of their filters are added to `wanted`. If there is a
    /// filter of -R, only frames that pass it count.
    pub(super) fn parse(
        texts: &[String],
        read_filter: Option<&str>,
        wanted: &mut WantedFields,
    ) -> Result<Self, BadInput> {
        texts.iter().map(|text| Statistic::parse(text, read_filter, wanted)).collect::<Result<_, _>>().map(Statistics)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Counts a frame. Fails if a statistic has too many cells.
    pub(super) fn record(&mut self, record: &Record) -> Result<(), BadInput> {
        // The second record of a frame, for a late unit or finding, is not another frame.
        if record.facts.len.is_none() {
            return Ok(());
        }
        for statistic in &mut self.0 {
            match statistic {
                Statistic::Conversations(conversations) => conversations.record(record),
                Statistic::IoStat(io_stat) => io_stat.record(record)?,
            }
        }
        Ok(())
    }

    /// Prints all statistics.
    pub(super) fn print(&self, names: Option<&Names>, out: &mut dyn Write) -> io::Result<()> {
        self.0.iter().try_for_each(|statistic| match statistic {
            Statistic::Conversations(conversations) => conversations.print(names, out),
            Statistic::IoStat(io_stat) => io_stat.print(out),
        })
    }
}

impl Statistic {
    fn parse(text: &str, read_filter: Option<&str>, wanted: &mut WantedFields) -> Result<Self, BadInput> {
        if let Some(rest) = text.strip_prefix("conv,") {
            let (kind, filter) = rest.split_once(',').unwrap_or((rest, ""));
            let Some(grouping) = Grouping::named(kind) else {
                reject!("-z conv,{kind}: weft knows conv,tcp, conv,udp, conv,ip and conv,ipv6");
            };
            let filter = OwnFilter::parse(filter, read_filter, wanted)?;
            return Ok(Statistic::Conversations(Conversations::new(grouping, filter)));
        }
        if let Some(rest) = text.strip_prefix("io,stat,") {
            return IoStat::parse(rest, read_filter, wanted).map(Statistic::IoStat);
        }
        let instead = match text.split(',').next().unwrap_or_default() {
            "follow" => "`weft follow FILE` shows the messages of a connection",
            "expert" => "`weft lint FILE` lists the violated requirements",
            "flow" => "`weft ladder FILE` draws a diagram",
            _ => "`weft stats FILE` shows counts, sizes and latencies of iWARP",
        };
        reject!("-z {text}: weft knows conv,tcp, conv,udp, conv,ip, conv,ipv6 and io,stat,INTERVAL; {instead}");
    }
}

/// The filter of one statistic.
struct OwnFilter {
    /// The text on the command line; empty if there is none.
    text: String,
    /// The filter, together with the filter of -R.
    filter: Option<Filter>,
}

impl OwnFilter {
    fn parse(text: &str, read_filter: Option<&str>, wanted: &mut WantedFields) -> Result<Self, BadInput> {
        let named = |BadInput(error)| BadInput(format!("-z: {error}"));
        let filter = match (text.is_empty(), read_filter) {
            (true, None) => None,
            (true, Some(read)) => Some(parse(read, wanted)?),
            (false, None) => Some(parse(text, wanted).map_err(named)?),
            (false, Some(read)) => {
                // Parsed alone, an error has the right column.
                parse(text, &mut WantedFields::default()).map_err(named)?;
                Some(parse(&format!("({read}) && ({text})"), wanted)?)
            }
        };
        Ok(OwnFilter { text: text.to_owned(), filter })
    }

    fn matches(&self, record: &Record) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.matches(&record.values))
    }
}
