//! Errors in a filter, with their position.

/// A filter that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("filter, column {column}: {message}")]
pub struct FilterError {
    /// The first wrong character, counted from 1; one past the end if something is missing there.
    pub column: usize,
    /// How many characters are wrong; at least 1.
    pub width: usize,
    /// What is wrong, and what is expected.
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

    /// Two lines for a terminal: the filter, and carets below the error.
    #[must_use]
    pub fn pointed(&self, text: &str) -> String {
        // Control characters would move the carets.
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        format!("  {text}\n  {:indent$}{}", "", "^".repeat(self.width), indent = self.column - 1)
    }
}
