//! The bytes and fields of frames, which are dissected again when the user selects a frame.
//!
//! A thread reads the capture from its start up to the frame with which the details are complete (a
//! unit may be complete only some frames later). It also keeps the neighbours, because the user
//! will probably select them next. A newer request replaces an older one.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use weft_dissector::browse::detail::Detail;
use weft_dissector::browse::{self, Pass};

use super::recording::Recording;

/// Frames before and after the requested one that are also kept.
pub(crate) const NEIGHBOURS: u64 = 250;
/// The thread looks for a newer request once in this many frames.
const LOOK: u64 = 256;

/// A request for frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    /// The selected frame.
    pub(crate) frame: u64,
    /// The last frame to read: the details of the frame and its neighbours are then complete. If
    /// this is past the end, the thread also finishes the capture.
    pub(crate) until: u64,
}

/// The answer.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// The frames that were kept, by number.
    pub(crate) frames: Vec<Detail>,
    /// Why the file could not be read.
    pub(crate) error: Option<String>,
}

/// The thread's interface for the screen.
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

    /// Requests frames; this cancels an earlier request that is not answered yet.
    pub(crate) fn request(&self, request: Request) {
        // The thread lives as long as this sender.
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
            if number.is_multiple_of(LOOK) {
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

    fn details(name: &str, frame: u64, until: u64) -> Answer {
        match read(&Recording::file(&capture_path(name)), Request { frame, until }, || None) {
            Read::Done(answer) => answer,
            Read::Newer(_) => panic!("there is no newer request"),
        }
    }

    #[test]
    fn keeps_only_the_window() {
        let answer = details("host-matrix.pcap", 300, u64::MAX);
        let numbers: Vec<u64> = answer.frames.iter().map(|detail| detail.number).collect();
        assert_eq!(numbers, (300 - NEIGHBOURS..=300 + NEIGHBOURS).collect::<Vec<_>>());
    }

    #[test]
    fn a_newer_request_replaces_an_older_one() {
        let newer = Request { frame: 1, until: 1 };
        let recording = Recording::file(&capture_path("host-matrix.pcap"));
        let read = read(&recording, Request { frame: 600, until: 627 }, || Some(newer));
        assert!(matches!(read, Read::Newer(request) if request == newer));
    }

    #[test]
    fn reports_a_missing_file() {
        assert!(details("no-such-file.pcap", 1, 1).error.is_some());
    }
}
