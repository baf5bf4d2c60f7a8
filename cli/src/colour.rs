//! Colours of the output. By default, weft uses colours only on a terminal, and only if the
//! environment allows colours.

use std::ffi::OsString;
use std::io::{IsTerminal, stdout};

use anstyle::{AnsiColor, Style};
use weft_core::requirement::Severity;

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum ColourChoice {
    /// If the output is a terminal
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Colours text, or returns it unchanged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Colour(bool);

impl ColourChoice {
    /// Decides for standard output.
    pub(crate) fn decide(self) -> Colour {
        Colour(match self {
            ColourChoice::Auto => stdout().is_terminal() && is_wanted(|name| std::env::var_os(name)),
            ColourChoice::Always => true,
            ColourChoice::Never => false,
        })
    }
}

/// Returns whether the environment allows colours. `NO_COLOR` (<https://no-color.org>) and a
/// terminal of type "dumb" forbid colours.
fn is_wanted(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    variable("NO_COLOR").is_none_or(|value| value.is_empty()) && variable("TERM").is_none_or(|term| term != "dumb")
}

impl Colour {
    fn paint(self, style: Style, text: &str) -> String {
        if self.0 && !text.is_empty() { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// Colours the text of a finding of this severity.
    pub(crate) fn severity(self, severity: Severity, text: &str) -> String {
        match severity {
            Severity::Error => self.paint(AnsiColor::Red.on_default(), text),
            Severity::Warning => self.paint(AnsiColor::Yellow.on_default(), text),
            Severity::Note => self.paint(AnsiColor::Cyan.on_default(), text),
        }
    }

    /// Makes text dim. This function is for less important text.
    pub(crate) fn faint(self, text: &str) -> String {
        self.paint(Style::new().dimmed(), text)
    }

    /// Makes a heading bold.
    pub(crate) fn strong(self, text: &str) -> String {
        self.paint(Style::new().bold(), text)
    }

    /// Colours an error.
    pub(crate) fn wrong(self, text: &str) -> String {
        self.paint(AnsiColor::Red.on_default(), text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_ansi_sequences() {
        let on = Colour(true);
        assert_eq!(on.wrong("x"), "\x1b[31mx\x1b[0m");
        assert_eq!(on.severity(Severity::Warning, "x"), "\x1b[33mx\x1b[0m");
        assert_eq!(on.faint("x") + &on.strong("x"), "\x1b[2mx\x1b[0m\x1b[1mx\x1b[0m");
        assert_eq!(on.strong("") + &Colour(false).strong("x"), "x");
    }

    #[test]
    fn a_dumb_terminal_has_no_colours() {
        let wanted = |given: &[(&str, &str)]| {
            is_wanted(|name| given.iter().find(|(it, _)| *it == name).map(|(_, value)| OsString::from(value)))
        };
        assert!(wanted(&[]) && wanted(&[("TERM", "xterm"), ("NO_COLOR", "")]));
        assert!(!wanted(&[("TERM", "dumb")]) && !wanted(&[("TERM", "xterm"), ("NO_COLOR", "1")]));
    }
}
