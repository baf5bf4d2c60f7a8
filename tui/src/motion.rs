//! Movements of the selection in a list.

/// Up or down, and how far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Motion {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
}
