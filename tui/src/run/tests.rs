//! Tests of the run screen with a synthetic run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use weft_core::requirement;
use weft_suites::model::{
    CaseInfo, CaseKey, CaseResult, Direction, DroppedTraffic, Evidence, EvidenceFile, EvidenceKind, Mark, MarkKind,
    Octets, ParameterValue, RequirementVerdict, Role, RunInfo, SourceLocation, Step, StepKind, Summary, TargetInfo,
};

use super::*;
use crate::terminal::Screen as _;
use crate::testing::{drawn, text};

const CASE: &str = "mpa/7.1.1-key/wrong-octet";

fn key(octet: i64) -> CaseKey {
    let parameters = BTreeMap::from([("octet".to_owned(), ParameterValue::Integer(octet))]);
    CaseKey { case: CASE.to_owned(), parameters }
}

fn step(at_ns: u64, direction: Direction, kind: StepKind, text: &str) -> Step {
    Step { at_ns, connection: 1, direction, kind, text: text.to_owned(), octets: None }
}

fn steps() -> Vec<Step> {
    let mut request = step(1_000_000, Direction::Sent, StepKind::Octets, "MPA Request, byte 3 of the key changed");
    let mut octets = Octets::new(b"MPA\0ID Req Frame\x40\x01\0\0");
    octets.marks.push(Mark { start: 3, end: 4, label: "key byte 3".into(), kind: MarkKind::Stimulus });
    request.octets = Some(octets);
    vec![
        step(0, Direction::Sent, StepKind::Connected, "connected"),
        request,
        step(2_000_000, Direction::Received, StepKind::Octets, "MPA Reply"),
        step(2_000_000, Direction::Observed, StepKind::Unmet, "the connection is closed without a Reply"),
    ]
}

fn result(octet: i64, verdict: Verdict) -> CaseResult {
    let key = key(octet);
    let folder = format!("cases/{}", key.path());
    CaseResult {
        version: 1,
        title: "A wrong key is answered by a close".into(),
        verdict,
        requirements: vec![RequirementVerdict {
            requirement: requirement!("MPA-7.1.1-2"),
            verdict,
            also_observed: false,
        }],
        expected: Some("the connection is closed, no Reply byte".into()),
        actual: Some(if verdict == Verdict::Fail { "a Reply of 20 bytes" } else { "closed after 1 ms" }.into()),
        explanation: "The answer to the changed key decides.".into(),
        decided_at: Some(SourceLocation { file: "mpa/7.1.1-key.lua".into(), line: 17 }),
        decided_packet: None,
        decided_sequence: None,
        steps: steps(),
        findings: Vec::new(),
        program_ends: Vec::new(),
        evidence: Evidence {
            source: weft_suites::model::EvidenceSource::default(),
            without_wire: None,
            dropped: Vec::new(),
            files: vec![EvidenceFile { kind: EvidenceKind::Pcapng, path: format!("{folder}/evidence.pcapng") }],
            folder,
        },
        seed: 42,
        duration_us: 2_000,
        key,
    }
}

/// The events of a run of 16 cases. Cases 3 and 7 fail.
pub(crate) fn events() -> Vec<Event> {
    let run = RunInfo {
        id: "20260131T120000.123Z-1f3a".into(),
        target: TargetInfo {
            name: "builtin".into(),
            file: None,
            reached_by: "builtin".into(),
            role: Role::Responder,
            service: "echo".into(),
            capabilities: Vec::new(),
            deviations: vec!["mpa.accepts-wrong-key".into()],
            identity: BTreeMap::new(),
            device: BTreeMap::new(),
            probed: None,
            probed_facts: None,
            lost_capabilities: Vec::new(),
        },
        seed: 1,
        started_unix_ms: 1_769_860_800_123,
        weft_version: "0.1.0".into(),
        is_selection: true,
        rerun_of: None,
        suites: None,
        labels: BTreeMap::new(),
    };
    let case = CaseInfo {
        id: CASE.into(),
        version: 1,
        title: "A wrong key is answered by a close".into(),
        requirements: vec![requirement!("MPA-7.1.1-2")],
        roles: vec![Role::Responder],
        capabilities: Vec::new(),
        tags: Vec::new(),
        parameters: BTreeMap::new(),
        source: SourceLocation { file: "mpa/7.1.1-key.lua".into(), line: 1 },
    };
    let planned: Vec<CaseKey> = (0..16).map(key).collect();
    let mut events = vec![Event::RunStarted { run, cases: vec![case], planned: planned.clone() }];
    let mut results = Vec::new();
    for (index, key) in planned.into_iter().enumerate() {
        events.push(Event::CaseStarted { key: key.clone(), index: index as u64 });
        events.extend(steps().into_iter().map(|step| Event::CaseStep { key: key.clone(), step }));
        let octet = i64::try_from(index).unwrap();
        let result = result(octet, if [3, 7].contains(&octet) { Verdict::Fail } else { Verdict::Pass });
        results.push(result.clone());
        events.push(Event::CaseFinished { result: Box::new(result) });
    }
    let summary = Summary::of(weft_suites::model::RunStatus::Done, 16, &results, 1_234_567);
    events.push(Event::RunFinished { summary });
    events
}

/// A screen after the first `count` events, and the sink of the run.
fn live_screen(count: usize) -> (Screen, LiveSink) {
    let (sink, source) = live(None);
    let mut screen = Screen::open(source).unwrap();
    screen.theme = Theme::Dark;
    screen.opened = None;
    for event in events().iter().take(count) {
        weft_suites::model::EventSink::event(&sink, event);
    }
    screen.poll();
    (screen, sink)
}

/// A screen after the first `count` events and the end of the event stream.
fn screen(count: usize) -> Screen {
    let (mut screen, sink) = live_screen(count);
    drop(sink);
    screen.poll();
    screen
}

#[test]
fn nothing_yet() {
    insta::assert_snapshot!(text(&drawn(&mut live_screen(0).0, 80, 24)));
}

#[test]
fn in_the_middle_of_a_case() {
    // These are the start of the run, six complete cases with six events each, and the start and
    // two steps of the next case.
    insta::assert_snapshot!(text(&drawn(&mut live_screen(1 + 6 * 6 + 3).0, 80, 24)));
}

#[test]
fn finished_with_the_first_failure() {
    let mut screen = screen(usize::MAX);
    screen.command(Command::NextMarked);
    insta::assert_snapshot!(text(&drawn(&mut screen, 80, 24)));
    insta::assert_snapshot!(text(&drawn(&mut screen, 120, 40)));
}

#[test]
fn waiting_for_the_target() {
    let (mut screen, _sink) = live_screen(1);
    screen.take(Event::TargetWaiting { what: "run `rping -s -a 192.0.2.1 -p 7174`".into(), seconds: 60 });
    let shown = text(&drawn(&mut screen, 80, 24));
    assert!(shown.contains("waiting-for-target  0/16"), "{shown}");
    assert!(shown.contains("Waiting for the target, 60 s left"), "{shown}");
    assert!(shown.contains("run `rping -s -a 192.0.2.1 -p 7174`"), "{shown}");
}

#[test]
fn reports_a_run_that_ends_early() {
    // `screen` drops its sink, which ends the stream.
    let mut broken = screen(8);
    let shown = text(&drawn(&mut broken, 80, 24));
    assert!(shown.contains("The run ended early"), "{shown}");
    let shown = text(&drawn(&mut screen(usize::MAX), 80, 24));
    assert!(!shown.contains("ended early"), "{shown}");
}

#[test]
fn jumps_between_failures_wrap_around() {
    let mut screen = screen(usize::MAX);
    let mut visited = Vec::new();
    for command in [Command::NextMarked, Command::NextMarked, Command::NextMarked, Command::PreviousMarked] {
        screen.command(command);
        visited.push(screen.planned().unwrap().key.clone());
    }
    assert_eq!(visited, [3, 7, 3, 7].map(key));
}

#[test]
fn failures_come_before_passes_when_the_run_is_over() {
    let order = |screen: &Screen| screen.progress.planned.iter().map(|planned| planned.key.clone()).collect::<Vec<_>>();
    let before: Vec<CaseKey> = (0..16).map(key).collect();
    assert_eq!(order(&screen(1 + 16 * 6)), before);
    let screen = screen(usize::MAX);
    assert_eq!(order(&screen)[..4], [3, 7, 0, 1].map(key));
    // The selected case stays selected.
    assert_eq!(screen.planned().unwrap().key, key(15));
}

#[test]
fn a_target_that_is_down_is_the_headline() {
    let (mut screen, _sink) = live_screen(1);
    let headline = "target is down: 192.0.2.7:7174 refused the connection";
    screen.take(Event::TargetDown { headline: headline.into() });
    let shown = text(&drawn(&mut screen, 80, 24));
    assert_eq!(shown.lines().nth(2), Some(format!(" {headline}").as_str()), "{shown}");
}

#[test]
fn follows_the_running_case_until_the_user_moves() {
    let mut screen = screen(1 + 6 + 1);
    assert_eq!(screen.planned().unwrap().key, key(1));
    screen.command(Command::Move(Motion::Up));
    screen.take(Event::CaseStarted { key: key(5), index: 5 });
    assert_eq!(screen.planned().unwrap().key, key(0));
}

#[test]
fn a_finished_run_opens_at_its_first_failure() {
    let all = events();
    let Some(Event::RunStarted { run, cases, .. }) = all.first().cloned() else { panic!("the first event starts") };
    let Some(Event::RunFinished { summary }) = all.last().cloned() else { panic!("the last event ends") };
    let results = all.into_iter().filter_map(|event| match event {
        Event::CaseFinished { result } => Some(*result),
        _ => None,
    });
    let report = weft_suites::model::RunReport { run, cases, results: results.collect(), summary };
    let screen = Screen::open(RunSource::Finished(Box::new(report))).unwrap();
    assert_eq!(screen.planned().unwrap().key, key(3));
    assert_eq!(screen.progress.counts.fail, 2);
}

#[test]
fn every_size_is_drawn() {
    for (width, height) in [(1, 1), (2, 5), (20, 4), (79, 23), (200, 50)] {
        let mut screen = screen(usize::MAX);
        drawn(&mut screen, width, height);
        screen.command(Command::NextPanel);
        screen.command(Command::Move(Motion::Last));
        screen.command(Command::Help);
        drawn(&mut screen, width, height);
    }
}

#[test]
fn a_long_case_scrolls_to_its_end_and_not_beyond() {
    let mut screen = screen(usize::MAX);
    screen.command(Command::NextMarked);
    screen.command(Command::NextPanel);
    drawn(&mut screen, 80, 24);
    screen.command(Command::Move(Motion::Last));
    let shown = text(&drawn(&mut screen, 80, 24));
    assert!(shown.contains("seed 42"), "{shown}");
    screen.command(Command::Move(Motion::PageUp));
    assert_ne!(text(&drawn(&mut screen, 80, 24)), shown);
}

#[test]
fn a_case_shows_what_its_capture_lacks() {
    let (mut screen, _sink) = live_screen(0);
    for mut event in events() {
        if let Event::CaseFinished { result } = &mut event {
            (result.decided_packet, result.decided_sequence) = (Some(12), Some([1, 20]));
            result.evidence.dropped.push(DroppedTraffic {
                connection: 1,
                direction: Direction::Received,
                events: 3,
                octets: 3072,
                crc32c: "0a1b2c3d".into(),
                first_ns: 0,
                last_ns: 1_000_000,
            });
        }
        screen.take(event);
    }
    screen.command(Command::NextMarked);
    screen.command(Command::NextPanel);
    drawn(&mut screen, 120, 40);
    screen.command(Command::Move(Motion::Last));
    let shown = text(&drawn(&mut screen, 120, 40));
    assert!(shown.contains("the capture lacks 3072 bytes") && shown.contains("decided at packet 12"), "{shown}");
}

#[test]
fn searches_cases_by_name() {
    use ratatui::crossterm::event::KeyCode;
    let (mut screen, _sink) = live_screen(usize::MAX);
    let mut search = |text: &str| {
        screen.command(Command::Type(Purpose::Search));
        for code in text.chars().map(KeyCode::Char).chain([KeyCode::Enter]) {
            assert!(screen.key(KeyEvent::from(code)));
        }
        (screen.planned().unwrap().key.clone(), screen.notice.take())
    };
    assert_eq!(search("OCTET=1"), (key(1), None));
    assert_eq!([search("").0, search("").0], [key(10), key(11)]);
    assert_eq!(search("no such case"), (key(11), Some("no case has \"no such case\" in its name".to_owned())));
}

/// A screen that can rerun cases, and its requests.
fn restartable() -> (Screen, LiveSink, Arc<Mutex<Vec<RunnerRequest>>>) {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let received = Arc::clone(&requests);
    let start = Box::new(move |request| received.lock().unwrap().push(request));
    let (sink, source) = live(Some(RerunStarter { folder: "again".to_owned(), start }));
    let mut screen = Screen::open(source).unwrap();
    (screen.theme, screen.opened) = (Theme::Dark, None);
    (screen, sink, requests)
}

/// The events of a run of one case.
fn alone(octet: i64, verdict: Verdict) -> Vec<Event> {
    let Some(Event::RunStarted { run, cases, .. }) = events().first().cloned() else {
        panic!("the first event starts")
    };
    let result = result(octet, verdict);
    let summary = Summary::of(weft_suites::model::RunStatus::Done, 1, std::slice::from_ref(&result), 1_000);
    vec![
        Event::RunStarted { run, cases, planned: vec![key(octet)] },
        Event::CaseStarted { key: key(octet), index: 0 },
        Event::CaseFinished { result: Box::new(result) },
        Event::RunFinished { summary },
    ]
}

#[test]
fn reruns_a_case_and_keeps_the_others() {
    let (mut screen, _sink, requests) = restartable();
    let all = events();
    all.iter().take(10).for_each(|event| screen.take(event.clone()));
    screen.command(Command::Again);
    assert!(screen.notice.as_deref().unwrap().contains("s stops them"), "{:?}", screen.notice);
    screen.command(Command::Stop);
    all.into_iter().skip(10).for_each(|event| screen.take(event));
    screen.command(Command::NextMarked);
    screen.command(Command::Again);
    assert_eq!(*requests.lock().unwrap(), [RunnerRequest::Stop, RunnerRequest::Rerun(vec![key(3)])]);
    alone(3, Verdict::Pass).into_iter().for_each(|event| screen.take(event));
    assert_eq!((screen.progress.counts.pass, screen.progress.counts.fail, screen.rounds), (15, 1, None));
    insta::assert_snapshot!(text(&drawn(&mut screen, 120, 40)));
    requests.lock().unwrap().clear();
    screen.command(Command::AgainFailed);
    assert_eq!(*requests.lock().unwrap(), [RunnerRequest::Rerun(vec![key(7)])]);
}

#[test]
fn reruns_a_case_until_it_fails() {
    let (mut screen, _sink, requests) = restartable();
    events().into_iter().for_each(|event| screen.take(event));
    screen.search("octet=5");
    screen.command(Command::UntilFailure);
    assert_eq!(*requests.lock().unwrap(), [RunnerRequest::UntilFailure(vec![key(5)])]);
    for _ in 0..3 {
        alone(5, Verdict::Pass).into_iter().for_each(|event| screen.take(event));
    }
    let shown = text(&drawn(&mut screen, 120, 40));
    assert!(shown.contains("round 3") && shown.contains("4 runs: pass 4"), "{shown}");
    alone(5, Verdict::Fail).into_iter().for_each(|event| screen.take(event));
    let shown = text(&drawn(&mut screen, 120, 40));
    assert!(shown.contains("ended after round 4") && shown.contains("5 runs: pass 4, fail 1"), "{shown}");
}

#[test]
fn the_process_can_close_the_screen() {
    use crate::terminal::Screen as _;
    let (mut screen, sink, _) = restartable();
    screen.poll();
    assert!(!screen.is_closed());
    sink.close();
    screen.poll();
    assert!(screen.is_closed());
}

#[test]
fn reports_why_a_rerun_failed() {
    let (mut screen, sink, _) = restartable();
    events().into_iter().for_each(|event| screen.take(event));
    screen.command(Command::Again);
    sink.report_failed_rerun("the target cannot be reached".to_owned());
    screen.poll();
    assert!(screen.rounds.is_none() && text(&drawn(&mut screen, 80, 24)).contains("cannot be reached"));
    // A stored run cannot rerun cases: the screen shows the command.
    let (mut screen, _) = live_screen(usize::MAX);
    screen.command(Command::NextMarked);
    screen.command(Command::Again);
    let words =
        "to rerun this case: weft test builtin --deviate mpa.accepts-wrong-key 'mpa/7.1.1-key/wrong-octet[octet=3]'";
    assert_eq!(screen.notice.as_deref(), Some(words));
}

#[test]
fn shows_the_remaining_time() {
    let (mut screen, _sink) = live_screen(1);
    for (second, event) in [(2, 1), (6, 5), (6, 6), (10, 10)] {
        screen.now = Duration::from_secs(second);
        screen.take(events()[event].clone());
    }
    screen.now = Duration::from_secs(66);
    let shown = text(&drawn(&mut screen, 120, 24));
    assert!(shown.contains("1:04 min so far, about "), "{shown}");
}
