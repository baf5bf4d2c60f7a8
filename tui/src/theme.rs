//! Styles by meaning. Colour is never the only sign: a word or a character always shows the same
//! information.

use ratatui::style::{Color, Modifier, Style};
use weft_core::requirement::Severity;
use weft_suites::model::Verdict;

/// A set of styles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Theme {
    /// Colours for a dark background, from the sixteen colours of the terminal.
    Dark,
    /// Colours for a light background.
    Light,
    /// No colours: bold, underlined and reverse text only.
    Plain,
}

impl Theme {
    /// Returns the theme in the environment variable `WEFT_THEME` (dark, light, none). Without one
    /// of these values, returns the plain theme if `NO_COLOR` (<https://no-color.org>) is set and
    /// not empty, otherwise the dark theme.
    pub(crate) fn of_environment() -> Self {
        match (std::env::var("WEFT_THEME").as_deref(), std::env::var_os("NO_COLOR")) {
            (Ok("light"), _) => Theme::Light,
            (Ok("none"), _) => Theme::Plain,
            (Ok("dark"), _) => Theme::Dark,
            (_, Some(value)) if !value.is_empty() => Theme::Plain,
            _ => Theme::Dark,
        }
    }

    /// The next theme, with wrap-around.
    pub(crate) fn next(self) -> Self {
        match self {
            Theme::Dark => Theme::Light,
            Theme::Light => Theme::Plain,
            Theme::Plain => Theme::Dark,
        }
    }

    /// Returns a style with the colour `dark` in the dark theme and `light` in the light theme.
    fn coloured(self, dark: Color, light: Color) -> Style {
        match self {
            Theme::Dark => Style::new().fg(dark),
            Theme::Light => Style::new().fg(light),
            Theme::Plain => Style::new(),
        }
    }

    /// Headings and the name of the program.
    pub(crate) fn heading(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Less important text.
    pub(crate) fn faint(self) -> Style {
        self.coloured(Color::DarkGray, Color::Indexed(240))
    }

    /// The border of a panel.
    pub(crate) fn border(self, focused: bool) -> Style {
        match focused {
            true => self.coloured(Color::Cyan, Color::Blue).add_modifier(Modifier::BOLD),
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

    /// The bytes of the selected field.
    pub(crate) fn marked(self) -> Style {
        match self {
            Theme::Dark | Theme::Light => Style::new().fg(Color::Black).bg(Color::Yellow),
            Theme::Plain => Style::new().add_modifier(Modifier::REVERSED),
        }
    }

    /// The byte under the cursor.
    pub(crate) fn cursor(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD)
    }

    /// A frame or line with a finding.
    pub(crate) fn severity(self, severity: Severity) -> Style {
        match severity {
            Severity::Error => self.coloured(Color::Red, Color::Indexed(124)).add_modifier(Modifier::BOLD),
            Severity::Warning => self.coloured(Color::Yellow, Color::Indexed(130)),
            Severity::Note => self.coloured(Color::LightBlue, Color::Blue),
        }
    }

    /// A verdict.
    pub(crate) fn verdict(self, verdict: Verdict) -> Style {
        match verdict {
            Verdict::Pass => self.coloured(Color::Green, Color::Indexed(28)),
            Verdict::Fail => self.coloured(Color::Red, Color::Indexed(124)).add_modifier(Modifier::BOLD),
            Verdict::Inconclusive => self.coloured(Color::Yellow, Color::Indexed(130)),
            Verdict::Error => self.coloured(Color::Magenta, Color::Indexed(90)).add_modifier(Modifier::BOLD),
            Verdict::NotApplicable | Verdict::Unimplemented => self.faint(),
        }
    }
}
