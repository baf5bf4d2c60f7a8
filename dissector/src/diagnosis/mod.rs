//! Explains what happened on each connection: what was negotiated, what it carried, how it ended,
//! the chain of events that led to the end, and the endpoint at fault.
//!
//! [`Diagnoses`] is a [`Sink`](crate::Sink). It reads the results of the dissector and adds no
//! rules. It names a party only if the capture proves its fault. Otherwise the result is
//! [`Culprit::NotInCapture`], and [`Diagnosis::unknown`] describes what is missing.
//!
//! ```text
//! segments, units, facts, findings -> Track -> Ending -> Verdict -> Diagnosis -> text, JSON
//! ```
//!
//! | file | purpose |
//! | --- | --- |
//! | `collector` | the sink, with one `Track` for each open connection |
//! | `track` | the bounded state of one connection; its parts have files of their own |
//! | `problems`, `problem_kind` | group findings by their root |
//! | `groups` | groups the findings of a capture, without diagnoses |
//! | `ending` | how the connection ended |
//! | `cause`, `by_*` | why it ended, with one file for each kind of end |
//! | `report`, `text` | the result, and its paragraph |
//!
//! **Limits.** A cause is searched only before the first Terminate, RST or FIN. Several causes that
//! lead to one end are not distinguished: the first one counts. The contents of private data and of
//! messages of unknown protocols are not read, except advertisements of buffers. Only TCP segments
//! of the connection and exchanges with port mappers count as evidence, so ARP and ICMP do not.

mod accesses;
mod buffers;
mod by_access;
mod by_close;
mod by_opening;
mod by_silence;
mod by_terminate;
mod carried;
mod cause;
mod collector;
mod damage;
mod ending;
mod exchanges;
#[cfg(test)]
mod failure_tests;
mod groups;
mod names;
mod problem_kind;
mod problems;
mod reads;
mod recent;
mod report;
mod stall;
mod startup;
mod terminate;
#[cfg(test)]
mod tests;
mod text;
mod track;
mod transport;
mod ulp_adverts;
mod verdict;

pub use carried::{Carried, MessageCount};
pub use collector::{Diagnoses, MAX_CONNECTIONS, MAX_EXCHANGES};
pub use ending::{EndKind, Ending};
pub use exchanges::ExchangeReport;
pub use groups::{NumberedProblem, ProblemGroups};
pub use problem_kind::ProblemKind;
pub use problems::Problem;
pub use report::{Diagnosis, SdpReport, TcpShare};
pub use startup::StartupReport;
pub use verdict::{Cause, Culprit, Link};
