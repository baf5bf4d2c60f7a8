//! The octets and fields of frames, dissected again when they are looked at.
//!
//! A thread of its own reads the capture from the start up to the frame where all is known of the wanted one (a unit can become
//! certain frames later), and keeps the neighbours too, since the next question is mostly about them. A newer request ends
//! the work on an older one.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use weft_dissector::Dissector;
use weft_dissector::browse;
use weft_dissector::browse::detail::Detail;

use super::recording::Recording;

/// Frames on each side of the wanted one that are kept too.
pub(crate) const NEIGHBOURS: u64 = 250;
/// A newer request is looked for this often, in frames.
const LOOK: u64 = 256;

/// Which frames are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    /// The one that is looked at.
    pub(crate) frame: u64,
    /// The last one that must be read to know all about it and its neighbours; past the end: all of them, and the end.
    pub(crate) until: u64,
}

/// The answer.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// The frames that were kept, by number.
    pub(crate) frames: Vec<Detail>,
    /// Why the file could not be read, if so.
    pub(crate) error: Option<String>,
}

/// The thread, as the screen sees it.
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

    /// Asks for frames; an earlier question that is not answered yet is forgotten.
    pub(crate) fn ask(&self, request: Request) {
        // The thread outlives every question.
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
    let mut dissector = Dissector::default();
    let mut keep = browse::Details::new(request.frame, NEIGHBOURS);
    let mut instead = None;
    let mut past = false;
    let ended = recording.read(
        false,
        || false,
        |frame, _| {
            if frame.number % LOOK == 0 {
                instead = newer();
            }
            past = frame.number > request.until;
            if past || instead.is_some() {
                return false;
            }
            keep.frame(frame);
            dissector.frame(frame, &mut keep);
            true
        },
    );
    if let Some(instead) = instead {
        return Read::Newer(instead);
    }
    let error = ended.as_ref().err().map(ToString::to_string);
    if !past && ended.is_ok_and(|ended| ended.is_whole) {
        dissector.finish(&mut keep);
    }
    Read::Done(Answer { frames: keep.into_frames(), error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::capture_path;

    fn details(name: &str, frame: u64, until: u64) -> Answer {
        match read(&Recording::file(&capture_path(name)), Request { frame, until }, || None) {
            Read::Done(answer) => answer,
            Read::Newer(_) => panic!("there is no newer request"),
        }
    }

    #[test]
    fn only_the_window_is_kept() {
        let answer = details("host-matrix.pcap", 300, u64::MAX);
        let numbers: Vec<u64> = answer.frames.iter().map(|detail| detail.number).collect();
        assert_eq!(numbers, (300 - NEIGHBOURS..=300 + NEIGHBOURS).collect::<Vec<_>>());
    }

    #[test]
    fn a_newer_request_ends_the_work() {
        let newer = Request { frame: 1, until: 1 };
        let recording = Recording::file(&capture_path("host-matrix.pcap"));
        let read = read(&recording, Request { frame: 600, until: 627 }, || Some(newer));
        assert!(matches!(read, Read::Newer(request) if request == newer));
    }

    #[test]
    fn a_file_that_is_gone_is_told() {
        assert!(details("no-such-file.pcap", 1, 1).error.is_some());
    }
}
