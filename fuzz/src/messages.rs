//! Tests parsers of the peer crate: of private data and Sends that a workload receives, and of
//! messages between the preload library and its agent.

use weft_peer::shim::{Answer, MAX_LINE_LEN, Request};
use weft_peer::workload::{bench, cat, ping, probe};

/// The workloads `ping`, `probe`, `bench` and `cat` receive private data and messages from a peer.
/// This function parses `data` as private data and as a message. If a parsed advertisement is
/// written again, the bytes or the value must be the same.
pub fn workload(data: &[u8]) {
    let advertised = ping::Advertisement::parse(data);
    assert_eq!(advertised.map(|it| it.emit()).as_ref().map(|octets| &octets[..]), data.get(..16));

    let (advertised, text) = probe::Advertisement::parse(data);
    if let Some(advertised) = advertised {
        let again = [&advertised.emit(), text].concat();
        assert_eq!(probe::Advertisement::parse(&again), (Some(advertised), text));
    } else {
        assert_eq!(text, data);
    }

    if let Some((plan, _)) = bench::Plan::parse(data) {
        assert!(plan.size <= bench::MAX_SIZE && (1..=bench::MAX_DEPTH).contains(&plan.depth), "{plan:?}");
        assert!((1..=plan.depth).contains(&plan.answered()), "{plan:?}");
        assert!(plan.memory() <= 2 * u64::from(bench::MAX_SIZE), "{plan:?}");
    }
    let _ = cat::TransferRequest::parse(data);
}

/// Parses `data` as a request and as an answer. If a parsed request or answer is written and parsed
/// again, the result must be the same.
pub fn shim(data: &[u8]) {
    let Ok(line) = std::str::from_utf8(data) else { return };
    if let Ok(request) = line.parse::<Request>() {
        let written = request.to_string();
        assert_eq!(written.parse::<Request>(), Ok(request), "{written}");
    }
    if let Ok(answer) = line.parse::<Answer>() {
        let written = answer.to_string();
        // There must also be space for the line feed at the end.
        assert!(written.len() < MAX_LINE_LEN && !written.contains(['\n', '\r']), "{written:?}");
        match (&answer, written.parse::<Answer>()) {
            // Long explanations are truncated.
            (Answer::Failed(failure, _), Ok(Answer::Failed(again, _))) => assert_eq!(*failure, again),
            (_, again) => assert_eq!(again, Ok(answer)),
        }
    }
}
