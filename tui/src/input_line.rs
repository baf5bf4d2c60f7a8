//! The input line in the footer of a screen: a search text, a frame number, or a display filter.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::complete::completed;

/// The maximum length of the text in characters.
const MAX_TEXT_CHARS: usize = 400;

/// The purpose of an input line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A search text.
    Search,
    /// The number of a frame.
    Frame,
    /// A display filter.
    Filter,
}

/// An input line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InputLine {
    pub(crate) purpose: Purpose,
    pub(crate) text: String,
}

/// The effect of a key on the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineState {
    /// The line stays open.
    More,
    /// The line is complete.
    Done,
    /// The line was cancelled.
    Dropped,
}

impl InputLine {
    /// Opens an empty line.
    pub(crate) fn new(purpose: Purpose) -> Self {
        InputLine { purpose, text: String::new() }
    }

    /// Handles a key. Backspace in an empty line cancels the line, as in vi.
    fn key(&mut self, key: KeyEvent) -> LineState {
        if key.kind == KeyEventKind::Release {
            return LineState::More;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => return LineState::Done,
            KeyCode::Esc => return LineState::Dropped,
            KeyCode::Char('c') if control => return LineState::Dropped,
            KeyCode::Tab if self.purpose == Purpose::Filter => self.text = completed(&self.text),
            KeyCode::Char('u') if control => self.text.clear(),
            KeyCode::Backspace if self.text.pop().is_none() => return LineState::Dropped,
            KeyCode::Char(c) if !control && self.text.chars().count() < MAX_TEXT_CHARS => self.text.push(c),
            _ => {}
        }
        LineState::More
    }

    /// Returns the text to show on the screen.
    pub(crate) fn shown(&self) -> String {
        match self.purpose {
            Purpose::Search => format!("/{}", self.text),
            Purpose::Frame => format!("frame :{}", self.text),
            Purpose::Filter => format!("filter: {}", self.text),
        }
    }
}

/// The effect of a key on the input line of a screen.
#[derive(Debug)]
pub(crate) enum KeyEffect {
    /// There is no input line, so the key was not handled.
    NoLine,
    /// The input line handled the key.
    Taken,
    /// The input line is complete and closed.
    Complete(InputLine),
}

/// Passes a key to the input line, if there is one.
pub(crate) fn handle_key(line: &mut Option<InputLine>, key: KeyEvent) -> KeyEffect {
    let Some(mut input_line) = line.take() else { return KeyEffect::NoLine };
    match input_line.key(key) {
        LineState::More => *line = Some(input_line),
        LineState::Done => return KeyEffect::Complete(input_line),
        LineState::Dropped => {}
    }
    KeyEffect::Taken
}

/// Returns the first index after `from` that matches, among `len` indexes. The search wraps around
/// and checks `from` last.
pub(crate) fn next_place(from: usize, len: usize, matches: impl Fn(usize) -> bool) -> Option<usize> {
    (1..=len).map(|step| (from + step) % len).find(|place| matches(*place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(input_line: &mut InputLine, codes: &[KeyCode]) -> LineState {
        codes.iter().map(|code| input_line.key(KeyEvent::from(*code))).last().unwrap()
    }

    #[test]
    fn keys_edit_complete_and_cancel_a_line() {
        let mut input_line = InputLine::new(Purpose::Search);
        let codes = [KeyCode::Char('q'), KeyCode::Char('x'), KeyCode::Backspace, KeyCode::Char('n')];
        assert_eq!((typed(&mut input_line, &codes), input_line.shown().as_str()), (LineState::More, "/qn"));
        assert_eq!(typed(&mut input_line, &[KeyCode::Enter]), LineState::Done);
        let codes = [KeyCode::Backspace, KeyCode::Backspace, KeyCode::Backspace];
        assert_eq!(typed(&mut input_line, &codes), LineState::Dropped);
        assert_eq!(input_line.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), LineState::Dropped);
    }

    #[test]
    fn limits_the_length_of_a_line() {
        let mut input_line = InputLine::new(Purpose::Frame);
        for _ in 0..1000 {
            input_line.key(KeyEvent::from(KeyCode::Char('1')));
        }
        assert_eq!(input_line.text.chars().count(), MAX_TEXT_CHARS);
    }

    #[test]
    fn a_search_wraps_around() {
        assert_eq!(next_place(3, 5, |place| place == 1), Some(1));
        assert_eq!(next_place(1, 5, |place| place == 1), Some(1));
        assert_eq!(next_place(0, 0, |_| true), None);
        assert_eq!(next_place(4, 5, |_| false), None);
    }
}
