//! [`Survey`] collects the index, problems, statistics, diagnoses, operations and storage commands
//! of a capture in one pass.

use super::commands::Commands;
use super::index::Index;
use super::operations::Operations;
use super::pass::{Collector, Pass};
use super::problem_list::ProblemList;
use crate::context::Context;
use crate::diagnosis::Diagnoses;
use crate::exchange::Exchange;
use crate::fact::Fact;
use crate::source::Frame;
use crate::stats::Stats;
use crate::stream_id::StreamId;
use crate::unit::Unit;
use crate::{Finding, Packet, Sink, TcpSegment};

/// Maximum number of stored diagnoses.
const MAX_DIAGNOSES: usize = 2_000;
/// Maximum number of connections that are followed for a diagnosis at the same time.
const MAX_OPEN_DIAGNOSES: usize = 1_024;

/// Creates a sink for diagnoses with limits for interactive readers, which show only some of them
/// at a time.
#[must_use]
pub fn bounded_diagnoses() -> Diagnoses {
    Diagnoses::with_limits(MAX_DIAGNOSES, MAX_OPEN_DIAGNOSES)
}

/// The rows, findings, problems, statistics, diagnoses, operations and storage commands of a
/// capture.
#[derive(Debug)]
#[non_exhaustive]
pub struct Survey {
    /// Rows and findings.
    pub index: Index,
    /// The findings of the index as problems.
    pub problems: ProblemList,
    /// Statistics of each connection.
    pub stats: Stats,
    /// What happened on the first connections, and why they ended.
    pub diagnoses: Diagnoses,
    /// The Reads and atomic operations.
    pub operations: Operations,
    /// The storage commands.
    pub commands: Commands,
    /// If the capture was not read to its end, the reason.
    pub note: Option<String>,
    /// The remarks of the dissector (see [`Dissector::remarks`](crate::Dissector::remarks)).
    pub remarks: Vec<String>,
}

impl Survey {
    /// An empty `Survey`. It will have at most `frames` frames, and statistics of at most
    /// `connections` connections.
    #[must_use]
    pub fn with_room(frames: usize, connections: usize) -> Self {
        Survey {
            index: Index::with_room(frames),
            problems: ProblemList::default(),
            stats: Stats::with_room(connections),
            diagnoses: bounded_diagnoses(),
            operations: Operations::default(),
            commands: Commands::default(),
            note: None,
            remarks: Vec::new(),
        }
    }

    /// Finishes `pass` after the last frame, and returns its `Survey`. If the caller stopped
    /// reading before the end of the capture, `note` is the reason.
    #[must_use]
    pub fn of(mut pass: Pass<Survey>, note: Option<String>) -> Self {
        pass.finish();
        let remarks = pass.remarks();
        let is_full = pass.is_complete();
        let mut survey = pass.into_collector();
        survey.diagnoses.finish();
        let full = || format!("only the first {} frames are shown", survey.index.rows().len());
        survey.note = if is_full { Some(full()) } else { note };
        survey.remarks = remarks;
        survey
    }

    /// Approximate memory in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        let lists = self.index.memory() + self.problems.memory() + self.operations.memory() + self.commands.memory();
        lists + self.stats.memory() + self.diagnoses.memory()
    }
}

impl Collector for Survey {
    fn begin(&mut self, frame: &Frame<'_>) -> bool {
        self.commands.begin(frame);
        self.index.begin(frame)
    }

    fn end(&mut self) {
        self.index.end();
    }

    fn memory(&self) -> usize {
        self.memory()
    }
}

impl Sink for Survey {
    fn unit(&mut self, unit: &Unit<'_>) {
        self.index.unit(unit);
        self.stats.unit(unit);
        self.diagnoses.unit(unit);
        self.commands.unit(unit);
    }

    fn finding(&mut self, finding: &Finding) {
        self.index.finding(finding);
        self.problems.add(finding);
        self.stats.finding(finding);
        self.diagnoses.finding(finding);
        self.commands.finding(finding);
    }

    fn fact(&mut self, stream: StreamId, fact: &Fact) {
        self.stats.fact(stream, fact);
        self.diagnoses.fact(stream, fact);
        self.operations.fact(stream, fact);
    }

    fn exchange(&mut self, exchange: &Exchange, over: bool) {
        self.stats.exchange(exchange, over);
        self.diagnoses.exchange(exchange, over);
    }

    fn ended(&mut self, stream: StreamId, context: &Context) {
        self.stats.ended(stream, context);
        self.diagnoses.ended(stream, context);
        self.commands.ended(stream, context);
    }

    fn segment(&mut self, stream: StreamId, segment: &TcpSegment<'_>) {
        self.diagnoses.segment(stream, segment);
        self.commands.segment(stream, segment);
    }

    fn packet(&mut self, packet: &Packet) {
        self.index.packet(packet);
        self.stats.packet(packet);
    }
}
