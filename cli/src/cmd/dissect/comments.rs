//! Prints the packet comments of a frame, for -V.

use weft_core::text::visible_in_line;
use weft_dissector::FrameNumber;
use weft_dissector::source::Comments;

/// Returns one indented line for each comment of frame `number`.
pub(super) fn comment_lines(comments: &Comments, number: FrameNumber) -> String {
    let line = |comment: &String| format!("        Packet comment: {}\n", visible_in_line(comment));
    comments.of(number).iter().map(line).collect()
}
