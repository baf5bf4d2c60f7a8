//! Errors in a filter, with their position.

/// The error about an invalid filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("filter, column {column}: {message}")]
pub struct FilterError {
    /// Column of the first wrong character; the first column is 1. If the filter ends too early,
    /// this can be the column after the last character.
    pub column: usize,
    /// Number of wrong characters, at least 1.
    pub width: usize,
    /// Description of the error and of the expected text.
    pub message: String,
}

impl FilterError {
    pub(super) fn new(text: &str, span: &std::ops::Range<usize>, message: impl Into<String>) -> Self {
        let characters = |range: &str| range.chars().count();
        let start = span.start.min(text.len());
        FilterError {
            column: characters(&text[..start]) + 1,
            width: characters(&text[start..span.end.clamp(start, text.len())]).max(1),
            message: message.into(),
        }
    }

    /// Two lines for a terminal: the filter, and carets below the wrong characters.
    #[must_use]
    pub fn pointed(&self, text: &str) -> String {
        // Control characters would move the carets.
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        format!("  {text}\n  {:indent$}{}", "", "^".repeat(self.width), indent = self.column - 1)
    }
}
