//! Direct Data Placement (RFC 5041): segmentation of what goes out, and whose turn it is of what
//! comes in.
//!
//! [`Segmenter`] cuts one message, tagged or untagged, to MULPDU; [`UntaggedQueue`] is the Data
//! Sink's place in one queue number. Payload is never held here: it stays with its owner, who
//! fetches or places it by the numbers that these give.

mod segmenter;
mod untagged_queue;

pub use segmenter::{Destination, OutSegment, Segmenter};
pub use untagged_queue::{QueueError, UntaggedQueue};
