//! A line that the user types at the foot of a screen: what to search, where to go, which packets to list.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::complete::completed;

/// Characters that a line holds.
const MOST: usize = 400;

/// What the line is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Text that is searched.
    Search,
    /// The number of a frame.
    Frame,
    /// A display filter.
    Filter,
}

/// A line that is being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) purpose: Purpose,
    pub(crate) text: String,
}

/// What a key did to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Typed {
    /// It goes on.
    More,
    /// It is whole.
    Done,
    /// It was given up.
    Dropped,
}

impl Entry {
    /// An empty line.
    pub(crate) fn new(purpose: Purpose) -> Self {
        Entry { purpose, text: String::new() }
    }

    /// Takes a key. What is removed from an empty line gives it up, as in vi.
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

    /// As it is shown.
    pub(crate) fn shown(&self) -> String {
        match self.purpose {
            Purpose::Search => format!("/{}", self.text),
            Purpose::Frame => format!("frame :{}", self.text),
            Purpose::Filter => format!("filter: {}", self.text),
        }
    }
}

/// What a key did to a screen's line.
#[derive(Debug)]
pub(crate) enum Given {
    /// There is no line: the key is for others.
    NoLine,
    /// It was the line's.
    Taken,
    /// The line is whole, and gone.
    Whole(Entry),
}

/// Gives a key to the line that is being typed, if there is one.
pub(crate) fn give(line: &mut Option<Entry>, key: KeyEvent) -> Given {
    let Some(mut entry) = line.take() else { return Given::NoLine };
    match entry.key(key) {
        Typed::More => *line = Some(entry),
        Typed::Done => return Given::Whole(entry),
        Typed::Dropped => {}
    }
    Given::Taken
}

/// The first place behind `from`, around the end, for which `is_it` holds; `from` itself comes last.
pub(crate) fn next_place(from: usize, len: usize, is_it: impl Fn(usize) -> bool) -> Option<usize> {
    (1..=len).map(|step| (from + step) % len).find(|place| is_it(*place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(entry: &mut Entry, codes: &[KeyCode]) -> Typed {
        codes.iter().map(|code| entry.key(KeyEvent::from(*code))).last().unwrap()
    }

    #[test]
    fn a_line_is_typed_mended_and_given() {
        let mut entry = Entry::new(Purpose::Search);
        let codes = [KeyCode::Char('q'), KeyCode::Char('x'), KeyCode::Backspace, KeyCode::Char('n')];
        assert_eq!((typed(&mut entry, &codes), entry.shown().as_str()), (Typed::More, "/qn"));
        assert_eq!(typed(&mut entry, &[KeyCode::Enter]), Typed::Done);
        let codes = [KeyCode::Backspace, KeyCode::Backspace, KeyCode::Backspace];
        assert_eq!(typed(&mut entry, &codes), Typed::Dropped);
        assert_eq!(entry.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Typed::Dropped);
    }

    #[test]
    fn a_line_does_not_grow_without_end() {
        let mut entry = Entry::new(Purpose::Frame);
        for _ in 0..1000 {
            entry.key(KeyEvent::from(KeyCode::Char('1')));
        }
        assert_eq!(entry.text.chars().count(), MOST);
    }

    #[test]
    fn a_search_goes_around_the_end() {
        assert_eq!(next_place(3, 5, |place| place == 1), Some(1));
        assert_eq!(next_place(1, 5, |place| place == 1), Some(1));
        assert_eq!(next_place(0, 0, |_| true), None);
        assert_eq!(next_place(4, 5, |_| false), None);
    }
}
