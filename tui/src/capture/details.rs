//! The bytes and fields of frames. When the user selects a frame, a thread dissects the capture
//! again.
//!
//! The thread reads the capture from its start until the details of the frame are complete.
//! Sometimes the thread has to read some later frames, for example if TCP segments arrived out of
//! order. The thread also keeps the details of neighbouring frames, because the user will probably
//! select one of these frames next. A newer request replaces an older request.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use weft_dissector::FrameNumber;
use weft_dissector::browse::detail::Detail;
use weft_dissector::browse::{self, Pass};

use super::recording::Recording;

/// The thread also keeps the details of this many frames on each side of the requested frame.
pub(crate) const NEIGHBOURS: u64 = 250;
/// The thread checks for a newer request once in this number of frames.
const FRAMES_PER_CHECK: u64 = 256;

/// A request for the details of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    /// The selected frame.
    pub(crate) frame: FrameNumber,
    /// Number of the last frame to read. After this frame, the details of `frame` and its
    /// neighbours are complete. If the capture has no frame with this number, the thread also
    /// collects the results that are certain only at the end of the capture.
    pub(crate) until: FrameNumber,
}

/// The answer to a request.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// The details of the kept frames, in the order of their numbers.
    pub(crate) frames: Vec<Detail>,
    /// Why the file could not be read.
    pub(crate) error: Option<String>,
}

/// The screen's ends of the channels to and from the thread.
pub(crate) struct Details {
    requests: Sender<Request>,
    pub(crate) answers: Receiver<Answer>,
}

impl Details {
    /// Starts the thread.
    pub(crate) fn start(recording: &Recording) -> Self {
        let (requests, wanted) = channel();
        let (answer, answers) = channel();
        let recording = recording.clone();
        thread::spawn(move || work(&recording, &wanted, &answer));
        Details { requests, answers }
    }

    /// Requests the details of a frame. Cancels an earlier request that has no answer yet.
    pub(crate) fn request(&self, request: Request) {
        // Sending fails only if the thread has panicked. The screen then reports this error.
        let _ = self.requests.send(request);
    }
}

fn work(recording: &Recording, wanted: &Receiver<Request>, answer: &Sender<Answer>) {
    let mut next = wanted.recv().ok();
    while let Some(mut request) = next.take() {
        while let Ok(newer) = wanted.try_recv() {
            request = newer;
        }
        let newer = || wanted.try_recv().ok();
        match read(recording, request, newer) {
            Read::Done(found) => {
                if answer.send(found).is_err() {
                    return;
                }
                next = wanted.recv().ok();
            }
            Read::Newer(request) => next = Some(request),
        }
    }
}

enum Read {
    Done(Answer),
    Newer(Request),
}

fn read(recording: &Recording, request: Request, mut newer: impl FnMut() -> Option<Request>) -> Read {
    let mut pass = Pass::new(browse::Details::new(request.frame, NEIGHBOURS).until(request.until));
    let mut instead = None;
    let read = recording.read(
        false,
        || false,
        &mut pass,
        |_, number, _| {
            if u64::from(number).is_multiple_of(FRAMES_PER_CHECK) {
                instead = newer();
            }
            instead.is_none()
        },
    );
    if let Some(instead) = instead {
        return Read::Newer(instead);
    }
    let error = read.as_ref().err().map(ToString::to_string);
    if read.is_ok_and(|end| end.is_complete) {
        pass.finish();
    }
    Read::Done(Answer { frames: pass.into_collector().into_frames(), error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::capture_path;

    fn details(name: &str, frame: FrameNumber, until: FrameNumber) -> Answer {
        match read(&Recording::file(&capture_path(name)), Request { frame, until }, || None) {
            Read::Done(answer) => answer,
            Read::Newer(_) => panic!("there is no newer request"),
        }
    }

    #[test]
    fn keeps_only_the_window() {
        let answer = details("host-matrix.pcap", 300.into(), FrameNumber::MAX);
        let numbers: Vec<u64> = answer.frames.iter().map(|detail| detail.number.into()).collect();
        assert_eq!(numbers, (300 - NEIGHBOURS..=300 + NEIGHBOURS).collect::<Vec<_>>());
    }

    #[test]
    fn a_newer_request_replaces_an_older_one() {
        let newer = Request { frame: FrameNumber::FIRST, until: FrameNumber::FIRST };
        let recording = Recording::file(&capture_path("host-matrix.pcap"));
        let read = read(&recording, Request { frame: 600.into(), until: 627.into() }, || Some(newer));
        assert!(matches!(read, Read::Newer(request) if request == newer));
    }

    #[test]
    fn reports_a_missing_file() {
        assert!(details("no-such-file.pcap", FrameNumber::FIRST, FrameNumber::FIRST).error.is_some());
    }
}
