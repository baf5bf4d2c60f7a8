//! These tests compare the tables in the code with the figures of draft-hilland-rddp-verbs, cell by
//! cell. The figures are in `data/qp-figures.txt`, which was copied manually from the draft,
//! independently of the code.

use std::collections::BTreeSet;

use weft_core::coverage::{Coverage, CoverageKind};
use weft_peer::verbs::qp::table::{Attribute, ENTRIES, QpAction, TRANSITIONS, find, transition_of};
use weft_peer::verbs::{QpEvent, QpState};

use crate::verbs::peers::shows;

const FIGURES: &str = include_str!("../data/qp-figures.txt");

fn rows(of: fn(&str) -> bool) -> Vec<Vec<&'static str>> {
    let lines = FIGURES.lines().filter(|line| !line.starts_with('#'));
    let rows = lines.map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    rows.filter(|row| of(row[0])).collect()
}

fn state(name: &str) -> QpState {
    QpState::ALL.into_iter().find(|state| state.to_string() == name).unwrap_or_else(|| panic!("{name}"))
}

fn attributes(cell: &str) -> BTreeSet<Attribute> {
    let one = |name| match name {
        "LLP Stream Handle" => Attribute::LlpStreamHandle,
        "Stream message buffer" => Attribute::StreamMessage,
        "ORD" => Attribute::Ord,
        "IRD" => Attribute::Ird,
        "SQ" => Attribute::SqWrs,
        "RQ" => Attribute::RqWrs,
        "RQ Limit" => Attribute::RqLimit,
        other => panic!("{other}"),
    };
    cell.split(',').map(str::trim).filter(|name| !name.is_empty()).map(one).collect()
}

fn event(name: &str) -> QpEvent {
    match name.strip_prefix("modify ") {
        Some(target) => QpEvent::Modify(state(target)),
        None => match name {
            "post" => QpEvent::Post,
            "segment" => QpEvent::Segment,
            "message error" => QpEvent::MessageError,
            "send error" => QpEvent::SendError,
            "WQ error" => QpEvent::WorkError,
            "Terminate received" => QpEvent::TerminateReceived,
            "LLP failure, no transmission" => QpEvent::LlpFailure,
            "LLP failure, transmission" => QpEvent::LlpErrorSpeaking,
            "LLP close, busy" => QpEvent::LlpCloseBusy,
            "LLP close, done" => QpEvent::LlpCloseDone,
            "LLP close complete" => QpEvent::CloseComplete,
            "work left" => QpEvent::WorkLeft,
            other => panic!("{other}"),
        },
    }
}

fn action(name: &str) -> QpAction {
    match name {
        "enqueue" => QpAction::Enqueue,
        "attach" => QpAction::Attach,
        "process" => QpAction::Process,
        "change" => QpAction::ChangeAttributes,
        "close" => QpAction::CloseLlp,
        "reset" => QpAction::ResetLlp,
        "detach" => QpAction::Detach,
        "event" => QpAction::Notify,
        "terminate" => QpAction::SendTerminate,
        "complete" => QpAction::CompleteInError,
        other => panic!("{other}"),
    }
}

#[test]
fn figures_4_and_5_attribute_by_attribute() {
    let rows = rows(|figure| figure == "4/5");
    assert_eq!(rows.len(), TRANSITIONS.len());
    for row in rows {
        let (from, to) = row[1].split_once("->").unwrap();
        let transition = transition_of(state(from), state(to)).unwrap();
        let set = |list: &[Attribute]| list.iter().copied().collect::<BTreeSet<_>>();
        assert_eq!(set(transition.required), attributes(row[2]), "{row:?}");
        assert_eq!(set(transition.supported), attributes(row[3]), "{row:?}");
        let mut optional = attributes(row[4]);
        if row[1] == "RTS->RTS" {
            optional.insert(Attribute::RqLimit);
        }
        assert_eq!(set(transition.optional), optional, "{row:?}");
    }
}

/// Returns the actions that Figures 9 to 11 list as "on entry". A transition from Terminate to
/// Error has no such action, because the work was flushed when the Queue Pair entered Terminate.
fn on_entry(from: QpState, to: QpState) -> &'static [QpAction] {
    match (from, to) {
        (from, to) if from == to => &[],
        (QpState::Terminate, QpState::Error) => &[],
        (_, QpState::Error) => &[QpAction::Flush],
        (_, QpState::Terminate) => &[QpAction::SendTerminate, QpAction::CloseLlp, QpAction::Flush],
        (_, QpState::Closing) => &[QpAction::CloseLlp, QpAction::FlushReceives],
        (_, QpState::Idle | QpState::Rts) => &[],
    }
}

/// Each row of the figures is in the table of the code, with its next state and all of its actions.
/// The table has additional actions only if a state has them on entry, or if the draft's text
/// requires them. Each entry of the table is a row of a figure.
#[test]
fn figures_7_to_11_cell_by_cell() {
    let mut of_text: BTreeSet<_> = rows(|figure| figure == "+").iter().map(|row| (row[1], row[2], row[3])).collect();
    let rows = rows(|figure| !["4/5", "+"].contains(&figure));
    let mut met = 0;
    for row in &rows {
        let (from, to) = (state(row[1]), state(row[4]));
        let cell = find(from, event(row[2]));
        if row[3] == "IE" {
            assert_eq!((cell, from), (None, to), "{row:?}");
            continue;
        }
        let cell = cell.unwrap_or_else(|| panic!("{row:?}"));
        met += 1;
        assert_eq!((cell.figure.to_string(), cell.next), (row[0].to_owned(), to), "{row:?}");
        let wanted = row[3].split(',').map(str::trim).filter(|name| !name.is_empty() && *name != "ignore");
        let wanted: Vec<QpAction> = wanted.map(action).collect();
        assert!(wanted.iter().all(|wanted| cell.actions.contains(wanted)), "{row:?}: {:?}", cell.actions);
        let is_declared = |done: &QpAction| wanted.contains(done) || on_entry(cell.state, cell.next).contains(done);
        for extra in cell.actions.iter().filter(|done| !is_declared(done)) {
            let why =
                of_text.iter().copied().find(|(of, at, name)| (*of, *at, action(name)) == (row[1], row[2], *extra));
            assert!(why.is_some_and(|why| of_text.remove(&why)), "{row:?}: {extra:?} is in no figure");
        }
    }
    assert!(of_text.is_empty(), "actions of the text that no entry has: {of_text:?}");
    assert_eq!(met, ENTRIES.len(), "the table has an entry that no figure has");
    // Modify QP accepts the same requests in both tables.
    for from in QpState::ALL {
        for to in QpState::ALL {
            assert_eq!(transition_of(from, to).is_some(), find(from, QpEvent::Modify(to)).is_some(), "{from} {to}");
        }
    }
}

/// Checks the entry actions of Figures 9 to 11, and the order of the steps (sections 6.2.4, 6.2.5).
#[test]
fn entering_a_state_performs_the_actions_of_its_figure() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let entering = |to: QpState| ENTRIES.iter().filter(move |cell| cell.next == to && cell.state != to);
    let has = |action| move |cell: &weft_peer::verbs::qp::table::TableEntry| cell.actions.contains(&action);
    shows! { proof:
        "VERBS-6.2.4-16" => entering(QpState::Error).filter(|cell| cell.state != QpState::Terminate).all(has(QpAction::Flush))
            && entering(QpState::Terminate).all(has(QpAction::Flush));
        "VERBS-6.2.5-33" => entering(QpState::Closing).all(has(QpAction::FlushReceives))
            && entering(QpState::Closing).all(has(QpAction::CloseLlp));
        "VERBS-6.2.3-21" => entering(QpState::Terminate).all(has(QpAction::CloseLlp))
            && entering(QpState::Terminate).filter(|cell| cell.event != QpEvent::TerminateReceived).all(has(QpAction::SendTerminate));
        "VERBS-6.2.5-18" => entering(QpState::Error).filter(|cell| cell.state == QpState::Closing)
            .all(|cell| cell.actions[..2] == [QpAction::ResetLlp, QpAction::Notify]);
    }
}

/// Figure 6 has exactly the transitions between states that the other figures have.
#[test]
fn figure_6() {
    let mut proof = Coverage::new(CoverageKind::Test);
    use QpState::{Closing, Error, Idle, Rts, Terminate};
    let declared: BTreeSet<_> = TRANSITIONS.iter().map(|transition| (transition.from, transition.to)).collect();
    let consumers = [
        (Idle, Idle),
        (Idle, Rts),
        (Idle, Error),
        (Rts, Rts),
        (Rts, Closing),
        (Rts, Terminate),
        (Rts, Error),
        (Error, Idle),
    ];
    let automatic: BTreeSet<_> = ENTRIES
        .iter()
        .filter(|cell| !matches!(cell.event, QpEvent::Modify(_)) && cell.state != cell.next)
        .map(|cell| (cell.state, cell.next))
        .collect();
    let wanted =
        [(Rts, Closing), (Rts, Terminate), (Rts, Error), (Terminate, Error), (Closing, Idle), (Closing, Error)];
    shows! { proof:
        "VERBS-6.2-4" => declared == BTreeSet::from(consumers);
        "VERBS-6.2-5" => automatic == BTreeSet::from(wanted);
        "VERBS-6.2-1" => QpState::ALL.len() == 5;
    }
}
