//! The look of things, by meaning. No meaning hangs on a colour alone: a word or a sign always says the same.

use ratatui::style::{Color, Modifier, Style};
use weft_core::requirement::Severity;
use weft_suites::model::Verdict;

/// Styles by meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Theme {
    colours: bool,
}

impl Theme {
    /// The terminal's own sixteen colours, so that dark and light terminals both stay readable.
    pub(crate) const COLOURS: Theme = Theme { colours: true };
    /// Bold and reverse only.
    pub(crate) const PLAIN: Theme = Theme { colours: false };

    /// Colours, unless `NO_COLOR` (<https://no-color.org>) is set to something.
    pub(crate) fn of_environment() -> Self {
        match std::env::var_os("NO_COLOR") {
            Some(value) if !value.is_empty() => Theme::PLAIN,
            _ => Theme::COLOURS,
        }
    }

    fn coloured(self, colour: Color) -> Style {
        if self.colours { Style::new().fg(colour) } else { Style::new() }
    }

    /// Name of the program, headings.
    pub(crate) fn heading(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// What matters less.
    pub(crate) fn faint(self) -> Style {
        self.coloured(Color::DarkGray)
    }

    /// The border of a panel.
    pub(crate) fn border(self, focused: bool) -> Style {
        match focused {
            true => self.coloured(Color::Cyan).add_modifier(Modifier::BOLD),
            false => self.faint(),
        }
    }

    /// The selected line.
    pub(crate) fn selected(self, focused: bool) -> Style {
        match focused {
            true => Style::new().add_modifier(Modifier::REVERSED),
            false => Style::new().add_modifier(Modifier::UNDERLINED),
        }
    }

    /// The octets of the selected field.
    pub(crate) fn marked(self) -> Style {
        match self.colours {
            true => Style::new().fg(Color::Black).bg(Color::Yellow),
            false => Style::new().add_modifier(Modifier::REVERSED),
        }
    }

    /// The octet under the cursor.
    pub(crate) fn cursor(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD)
    }

    /// A frame or line with a finding.
    pub(crate) fn severity(self, severity: Severity) -> Style {
        match severity {
            Severity::Error => self.coloured(Color::Red).add_modifier(Modifier::BOLD),
            Severity::Warning => self.coloured(Color::Yellow),
            Severity::Note => self.coloured(Color::Blue),
        }
    }

    /// A verdict.
    pub(crate) fn verdict(self, verdict: Verdict) -> Style {
        match verdict {
            Verdict::Pass => self.coloured(Color::Green),
            Verdict::Fail => self.coloured(Color::Red).add_modifier(Modifier::BOLD),
            Verdict::Inconclusive => self.coloured(Color::Yellow),
            Verdict::Error => self.coloured(Color::Magenta).add_modifier(Modifier::BOLD),
            Verdict::NotApplicable | Verdict::Unimplemented => self.faint(),
        }
    }
}
