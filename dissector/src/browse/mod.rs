//! This module has tools for interactive readers of a capture. The tools collect an index of all
//! frames, details of a few frames, the frames that pass a filter, problems, statistics, diagnoses,
//! operations and storage commands.
//!
//! ```text
//! Tail -> Capture -> read -> Pass: Dissector -> Collector: Index, Details, Survey, Operations, ...
//!                      |                                   Entries -> (another thread) PackedIndex
//!                      +---> FilteredFrames -> FrameList
//! ```
//!
//! Each tool reads a capture from its start, because the meaning of a frame depends on earlier
//! frames. The memory of each tool is limited. If a tool omits data because of its limit, it
//! reports this. After each frame, [`read`] reports the frame number to the caller, and the caller
//! may cancel. If the file still grows, the caller can use [`Tail`] to limit how far the file is
//! read. The caller manages files, threads and the user interface.

mod codec;
mod commands;
pub mod detail;
pub mod filtered_frames;
mod frame_list;
mod growing_file;
pub mod index;
mod operations;
pub mod packed;
mod pages;
mod pass;
mod problem_list;
mod row;
mod survey;

pub use commands::{Commands, MAX_COMMANDS};
pub use detail::Details;
pub use filtered_frames::FilteredFrames;
pub use frame_list::FrameList;
pub use growing_file::{Control, Tail};
pub use index::Index;
pub use operations::{MAX_OPERATIONS, Operations};
pub use packed::PackedIndex;
pub use pass::{Collector, Pass, Reader, Stop, read};
pub use problem_list::{ProblemEntry, ProblemList};
pub use row::OwnedRow;
pub use survey::{Survey, bounded_diagnoses};
