//! The keys and their commands. The keys are the same on every screen: letters as in vi, and the
//! arrow keys.
//!
//! The help texts are also here. A test checks that the help has every key.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::capture::lines::Kind;
use crate::input_line::Purpose;
use crate::motion::Motion;

/// A command of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    /// Leave weft, the help or a list.
    Quit,
    /// Leave the help or a list, or remove a filter. This command never leaves weft. A user who
    /// presses Escape too often therefore does not lose a live capture.
    Back,
    /// Show or hide the help.
    Help,
    /// Move the focus to the next panel.
    NextPanel,
    /// Move the focus to the previous panel.
    PreviousPanel,
    /// Move the selection up or down in the panel.
    Move(Motion),
    /// In a tree: close or leave a branch. In the bytes: go to the previous byte.
    Left,
    /// In a tree: open a branch. In the bytes: go to the next byte.
    Right,
    /// Open or close a branch.
    Toggle,
    /// In a capture: go to the next frame with a finding. In a run: go to the next case that did
    /// not pass.
    NextMarked,
    /// Go to the previous frame with a finding, or to the previous case that did not pass.
    PreviousMarked,
    /// Show a list over the panels.
    Open(Kind),
    /// Pause or resume the list of a live capture.
    Pause,
    /// Show absolute or relative sequence numbers and times.
    Absolute,
    /// Change the colours.
    Theme,
    /// Rerun the selected case or branch.
    Again,
    /// Rerun the failed cases.
    AgainFailed,
    /// Rerun the selected case or branch until a case fails.
    UntilFailure,
    /// Stop the run.
    Stop,
    /// Open an input line.
    Type(Purpose),
}

/// The help for the keys that both screens have.
const BOTH: [(&str, &str); 9] = [
    ("j k  ↓ ↑", "down, up"),
    ("^F ^B  PgDn PgUp", "a page down, up"),
    ("g G  Home End", "first, last"),
    ("h l  ← →", "h: close branch; l: open branch; bytes: left, right"),
    ("Enter Space", "open or close; in a list: unfold, or go to the frame"),
    ("Tab  Shift-Tab", "next panel, previous panel"),
    ("mouse", "click selects, second click opens; Shift marks text"),
    ("t  ?  F1", "t: change the colours; ? and F1: this help"),
    ("q  ^C  Esc", "q and ^C: quit; Esc: leave a list or a filter"),
];
/// The help for the keys that only the capture screen has.
const CAPTURE: [(&str, &str); 7] = [
    ("n N", "next, previous finding"),
    ("/  :", "search packets (Enter alone: next); go to a frame"),
    ("f", "display filter, in the language of weft dissect -Y"),
    ("F C O I S", "findings, connections, operations, I/O, statistics"),
    ("L M P", "ladder, messages, payload of the connection"),
    ("a", "absolute or relative sequence numbers and times"),
    ("p", "live: pause or resume the list; G: newest packet"),
];
/// The help for the keys that only the run screen has.
const RUN: [(&str, &str); 5] = [
    ("n N", "next, previous failure"),
    ("/", "search cases (Enter alone: next)"),
    ("r R", "rerun the case or branch; rerun all failed cases"),
    ("u", "rerun the case or branch until something fails"),
    ("s", "stop; the results of finished cases remain"),
];

/// Returns the help for the keys of a screen: pairs of keys and meaning.
pub(crate) fn keys(of_run: bool) -> impl Iterator<Item = (&'static str, &'static str)> {
    let own: &[_] = if of_run { &RUN } else { &CAPTURE };
    own.iter().chain(&BOTH).copied()
}

/// Returns the command of a key, or `None` if the key has no command.
pub(crate) fn command(key: KeyEvent) -> Option<Command> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => Some(Command::Quit),
            KeyCode::Char('f') => Some(Command::Move(Motion::PageDown)),
            KeyCode::Char('b') => Some(Command::Move(Motion::PageUp)),
            _ => None,
        };
    }
    Some(match key.code {
        KeyCode::Char('q') => Command::Quit,
        KeyCode::Esc => Command::Back,
        KeyCode::Char('?') | KeyCode::F(1) => Command::Help,
        KeyCode::Tab => Command::NextPanel,
        KeyCode::BackTab => Command::PreviousPanel,
        KeyCode::Char('j') | KeyCode::Down => Command::Move(Motion::Down),
        KeyCode::Char('k') | KeyCode::Up => Command::Move(Motion::Up),
        KeyCode::PageDown => Command::Move(Motion::PageDown),
        KeyCode::PageUp => Command::Move(Motion::PageUp),
        KeyCode::Char('g') | KeyCode::Home => Command::Move(Motion::First),
        KeyCode::Char('G') | KeyCode::End => Command::Move(Motion::Last),
        KeyCode::Char('h') | KeyCode::Left => Command::Left,
        KeyCode::Char('l') | KeyCode::Right => Command::Right,
        KeyCode::Enter | KeyCode::Char(' ') => Command::Toggle,
        KeyCode::Char('/') => Command::Type(Purpose::Search),
        KeyCode::Char(':') => Command::Type(Purpose::Frame),
        KeyCode::Char('f') => Command::Type(Purpose::Filter),
        KeyCode::Char('F') => Command::Open(Kind::Findings),
        KeyCode::Char('C') => Command::Open(Kind::Connections),
        KeyCode::Char('L') => Command::Open(Kind::Ladder),
        KeyCode::Char('O') => Command::Open(Kind::Operations),
        KeyCode::Char('I') => Command::Open(Kind::Commands),
        KeyCode::Char('S') => Command::Open(Kind::Statistics),
        KeyCode::Char('M') => Command::Open(Kind::Messages),
        KeyCode::Char('P') => Command::Open(Kind::Payload),
        KeyCode::Char('t') => Command::Theme,
        KeyCode::Char('r') => Command::Again,
        KeyCode::Char('R') => Command::AgainFailed,
        KeyCode::Char('u') => Command::UntilFailure,
        KeyCode::Char('s') => Command::Stop,
        KeyCode::Char('p') => Command::Pause,
        KeyCode::Char('a') => Command::Absolute,
        KeyCode::Char('n') => Command::NextMarked,
        KeyCode::Char('N') => Command::PreviousMarked,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_arrows_have_the_same_commands() {
        for (letter, arrow) in
            [('j', KeyCode::Down), ('k', KeyCode::Up), ('h', KeyCode::Left), ('l', KeyCode::Right), ('G', KeyCode::End)]
        {
            let by_letter = command(KeyEvent::from(KeyCode::Char(letter)));
            assert!(by_letter.is_some());
            assert_eq!(by_letter, command(KeyEvent::from(arrow)), "{letter}");
        }
    }

    #[test]
    fn the_help_has_every_key() {
        let help: String = keys(true).chain(keys(false)).map(|(keys, _)| format!(" {keys} ")).collect();
        for letter in ('!'..='~').filter(|letter| command(KeyEvent::from(KeyCode::Char(*letter))).is_some()) {
            assert!(help.contains(&format!(" {letter} ")), "{letter} is not in the help: {help}");
        }
    }

    #[test]
    fn the_guide_has_every_key() {
        let page = include_str!("../../docs/terminal.md");
        for letter in ('!'..='~').filter(|letter| command(KeyEvent::from(KeyCode::Char(*letter))).is_some()) {
            assert!(page.contains(&format!("`{letter}`")), "{letter} is not in docs/terminal.md");
        }
    }

    #[test]
    fn ignores_released_keys() {
        let mut key = KeyEvent::from(KeyCode::Char('j'));
        key.kind = KeyEventKind::Release;
        assert_eq!(command(key), None);
    }
}
