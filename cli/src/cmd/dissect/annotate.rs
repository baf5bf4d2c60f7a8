//! Writes the frames of a live capture as pcapng, with the findings as packet comments.
//!
//! The kernel delivers frames in batches. A frame waits for the end of its batch, and gets the
//! findings that are known by then. The next frame gets the later findings about earlier frames.

use std::io::{self, Write};

use weft_core::requirement::Severity;
use weft_dissector::source::Frame;
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Finding, FrameNumber, Sink};

use crate::input::{Input, Next};

use super::excerpt::comment;
use super::frame_writer::FrameWriter;

/// The comment in the header of the pcapng.
const COMMENT: &str = "Captured by weft; findings are packet comments.";
/// Maximum numbers of frames and of their bytes that wait for the end of a batch.
const MAX_FRAMES: usize = 4096;
const MAX_OCTETS: usize = 16 << 20;

/// Captures until the end of `input`, and writes its frames to `out`. The comments have the
/// findings with at least the severity `least`.
pub(in crate::cmd) fn annotate(mut input: Input, least: Severity, out: impl Write) -> anyhow::Result<()> {
    let mut annotator =
        Annotator { writer: FrameWriter::new(out, COMMENT)?, batch: Vec::new(), octets: 0, late: Vec::new(), least };
    // The reader of a pipe waits for the header before it shows that the capture runs.
    annotator.writer.flush()?;
    let mut dissector = Dissector::default();
    loop {
        match input.next() {
            Next::Frame(frame) => {
                annotator.frame(&frame)?;
                dissector.frame(&frame, &mut annotator);
            }
            Next::Idle => {
                annotator.write_batch()?;
                input.idle();
            }
            Next::End => break,
        }
    }
    dissector.finish(&mut annotator);
    annotator.write_batch()?;
    annotator.writer.finish()?;
    input.close()
}

/// A frame that is not written yet.
struct WaitingFrame {
    number: FrameNumber,
    time: u64,
    interface: u32,
    link_type: u16,
    octets: Vec<u8>,
    wire_len: u32,
    comments: Vec<String>,
}

/// Receives findings from the dissector, and adds them to the waiting frames.
struct Annotator<W> {
    writer: FrameWriter<W>,
    batch: Vec<WaitingFrame>,
    /// Number of bytes of the frames in `batch`.
    octets: usize,
    /// Findings about frames that are already written.
    late: Vec<String>,
    least: Severity,
}

impl<W: Write> Annotator<W> {
    /// Adds a frame to the batch.
    fn frame(&mut self, frame: &Frame<'_>) -> io::Result<()> {
        if self.batch.len() >= MAX_FRAMES || self.octets >= MAX_OCTETS {
            self.write_batch()?;
        }
        let Frame { number, time, interface, link_type, octets, wire_len } = *frame;
        let (octets, comments) = (octets.to_vec(), std::mem::take(&mut self.late));
        self.octets += octets.len();
        self.batch.push(WaitingFrame { number, time, interface, link_type, octets, wire_len, comments });
        Ok(())
    }

    /// Writes the frames of the batch.
    fn write_batch(&mut self) -> io::Result<()> {
        self.octets = 0;
        for waiting in self.batch.drain(..) {
            let WaitingFrame { number, time, interface, link_type, octets, wire_len, comments } = waiting;
            let frame = Frame { number, time, interface, link_type, octets: &octets, wire_len };
            self.writer.frame(&frame, &comments)?;
        }
        self.writer.flush()
    }
}

impl<W: Write> Sink for Annotator<W> {
    fn unit(&mut self, _: &Unit<'_>) {}

    fn finding(&mut self, finding: &Finding) {
        if finding.severity < self.least {
            return;
        }
        let text = comment(finding);
        // The frames are in the order of their numbers.
        match self.batch.binary_search_by_key(&finding.frame, |waiting| waiting.number) {
            Ok(at) => self.batch[at].comments.push(text),
            Err(_) => self.late.push(format!("frame {}: {text}", finding.frame)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use weft_dissector::source::Capture;

    use super::*;

    /// Writes the frames of a capture in batches of `batch` frames. Returns the comments of each
    /// frame, and the findings that no frame has as a comment.
    fn annotated(batch: usize) -> (Vec<Vec<String>>, Vec<String>) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw/rping-size-mismatch-terminate.pcap");
        let mut capture = Capture::open(&path).unwrap();
        let mut out = Vec::new();
        let writer = FrameWriter::new(&mut out, COMMENT).unwrap();
        let mut annotator =
            Annotator { writer, batch: Vec::new(), octets: 0, late: Vec::new(), least: Severity::Warning };
        let mut dissector = Dissector::default();
        let mut count = 0;
        while let Some(frame) = capture.next_frame() {
            annotator.frame(&frame).unwrap();
            dissector.frame(&frame, &mut annotator);
            count += 1;
            if count % batch == 0 {
                annotator.write_batch().unwrap();
            }
        }
        dissector.finish(&mut annotator);
        annotator.write_batch().unwrap();
        let late = annotator.late;
        annotator.writer.finish().unwrap();
        let mut written = Capture::from_reader(Box::new(io::Cursor::new(out))).unwrap();
        let comments = written.comments();
        let mut found = Vec::new();
        while let Some(frame) = written.next_frame() {
            found.push(comments.of(frame.number));
        }
        assert_eq!(found.len(), count);
        (found, late)
    }

    /// The number of a frame and the text of a finding, for each warning and error.
    fn findings() -> Vec<(u64, String)> {
        #[derive(Default)]
        struct Collect(Vec<(u64, String)>);
        impl Sink for Collect {
            fn unit(&mut self, _: &Unit<'_>) {}
            fn finding(&mut self, finding: &Finding) {
                if finding.severity >= Severity::Warning {
                    self.0.push((finding.frame.into(), comment(finding)));
                }
            }
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw/rping-size-mismatch-terminate.pcap");
        let (mut capture, mut dissector) = (Capture::open(&path).unwrap(), Dissector::default());
        let mut found = Collect::default();
        while let Some(frame) = capture.next_frame() {
            dissector.frame(&frame, &mut found);
        }
        dissector.finish(&mut found);
        found.0
    }

    #[test]
    fn findings_are_comments_of_their_frames() {
        let (comments, late) = annotated(1000);
        assert_eq!(late, [""; 0]);
        let mut found: Vec<(u64, String)> =
            (1..).zip(comments).flat_map(|(number, texts)| texts.into_iter().map(move |text| (number, text))).collect();
        let mut expected = findings();
        found.sort();
        expected.sort();
        assert!(!found.is_empty());
        assert_eq!(found, expected);
    }

    #[test]
    fn late_findings_are_comments_of_the_next_frame() {
        let (comments, late) = annotated(1);
        let count = comments.iter().flatten().count();
        assert_eq!(count + late.len(), findings().len());
        let own: Vec<String> = findings().into_iter().map(|(_, text)| text).collect();
        let is_late = |text: &&String| !own.contains(text);
        assert!(comments.iter().flatten().filter(is_late).chain(&late).all(|text| text.starts_with("frame ")));
    }
}
