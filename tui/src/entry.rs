//! The input line in the footer of a screen: a search text, a frame number, or a display filter.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::complete::completed;

/// The maximum length in characters.
const MOST: usize = 400;

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
pub(crate) struct Entry {
    pub(crate) purpose: Purpose,
    pub(crate) text: String,
}

/// The effect of a key on the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Typed {
    /// The line stays open.
    More,
    /// The line is complete.
    Done,
    /// The line was cancelled.
    Dropped,
}

impl Entry {
    /// An empty line.
    pub(crate) fn new(purpose: Purpose) -> Self {
        Entry { purpose, text: String::new() }
    }

    /// Handles a key. Backspace in an empty line cancels it, as in vi.
    fn key(&mut self, key: KeyEvent) -> Typed {
        if key.kind == KeyEventKind::Release {
            return Typed::More;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => return Typed::Done,
            KeyCode::Esc => return Typed::Dropped,
            KeyCode::Char('c') if control => return Typed::Dropped,
            KeyCode::Tab if self.purpose == Purpose::Filter => self.text = completed(&self.text),
            KeyCode::Char('u') if control => self.text.clear(),
            KeyCode::Backspace if self.text.pop().is_none() => return Typed::Dropped,
            KeyCode::Char(c) if !control && self.text.chars().count() < MOST => self.text.push(c),
            _ => {}
        }
        Typed::More
    }

    /// The text on the screen.
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
pub(crate) enum Given {
    /// There is no input line.
    NoLine,
    /// The input line handled the key.
    Taken,
    /// The input line is complete and closed.
    Complete(Entry),
}

/// Gives a key to the input line, if there is one.
pub(crate) fn give(line: &mut Option<Entry>, key: KeyEvent) -> Given {
    let Some(mut entry) = line.take() else { return Given::NoLine };
    match entry.key(key) {
        Typed::More => *line = Some(entry),
        Typed::Done => return Given::Complete(entry),
        Typed::Dropped => {}
    }
    Given::Taken
}

/// The first index after `from` that matches, with wrap-around; `from` comes last.
pub(crate) fn next_place(from: usize, len: usize, matches: impl Fn(usize) -> bool) -> Option<usize> {
    (1..=len).map(|step| (from + step) % len).find(|place| matches(*place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(entry: &mut Entry, codes: &[KeyCode]) -> Typed {
        codes.iter().map(|code| entry.key(KeyEvent::from(*code))).last().unwrap()
    }

    #[test]
    fn keys_edit_complete_and_cancel_a_line() {
        let mut entry = Entry::new(Purpose::Search);
        let codes = [KeyCode::Char('q'), KeyCode::Char('x'), KeyCode::Backspace, KeyCode::Char('n')];
        assert_eq!((typed(&mut entry, &codes), entry.shown().as_str()), (Typed::More, "/qn"));
        assert_eq!(typed(&mut entry, &[KeyCode::Enter]), Typed::Done);
        let codes = [KeyCode::Backspace, KeyCode::Backspace, KeyCode::Backspace];
        assert_eq!(typed(&mut entry, &codes), Typed::Dropped);
        assert_eq!(entry.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Typed::Dropped);
    }

    #[test]
    fn limits_the_length_of_a_line() {
        let mut entry = Entry::new(Purpose::Frame);
        for _ in 0..1000 {
            entry.key(KeyEvent::from(KeyCode::Char('1')));
        }
        assert_eq!(entry.text.chars().count(), MOST);
    }

    #[test]
    fn a_search_wraps_around() {
        assert_eq!(next_place(3, 5, |place| place == 1), Some(1));
        assert_eq!(next_place(1, 5, |place| place == 1), Some(1));
        assert_eq!(next_place(0, 0, |_| true), None);
        assert_eq!(next_place(4, 5, |_| false), None);
    }
}
