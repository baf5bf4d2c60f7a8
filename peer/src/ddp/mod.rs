//! Direct Data Placement (RFC 5041): segmentation of outbound messages, and the order of inbound
//! segments.
//!
//! [`Segmenter`] cuts one tagged or untagged message into segments of at most MULPDU (maximum ULPDU
//! size). [`UntaggedQueue`] checks message sequence number (MSN) and message offset (MO) of the
//! inbound segments of one queue number (QN). These types hold no payload. They return offsets and
//! lengths, and the owner of the buffers copies the payload.

mod segmenter;
mod untagged_queue;

pub use segmenter::{Destination, OutSegment, Segmenter};
pub use untagged_queue::{QueueError, UntaggedQueue};
