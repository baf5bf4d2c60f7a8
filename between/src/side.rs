//! The two sides of the bridge.

use std::fmt;
use std::ops::{Index, IndexMut};

use serde::Serialize;

/// A side of the bridge. The implementation under test on side A is the first argument of
/// `weft between`, and the implementation on side B is the second argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Side {
    /// The first side.
    A,
    /// The second side.
    B,
}

impl Side {
    /// Both sides.
    pub const BOTH: [Side; 2] = [Side::A, Side::B];

    /// The opposite side.
    #[must_use]
    pub fn peer(self) -> Self {
        match self {
            Side::A => Side::B,
            Side::B => Side::A,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Side::A => "A",
            Side::B => "B",
        })
    }
}

/// One value for each side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct PerSide<T> {
    /// The value of side A.
    pub a: T,
    /// The value of side B.
    pub b: T,
}

impl<T> PerSide<T> {
    /// Makes the value of each side.
    pub fn new(mut make: impl FnMut(Side) -> T) -> Self {
        PerSide { a: make(Side::A), b: make(Side::B) }
    }
}

impl<T> Index<Side> for PerSide<T> {
    type Output = T;

    fn index(&self, side: Side) -> &T {
        match side {
            Side::A => &self.a,
            Side::B => &self.b,
        }
    }
}

impl<T> IndexMut<Side> for PerSide<T> {
    fn index_mut(&mut self, side: Side) -> &mut T {
        match side {
            Side::A => &mut self.a,
            Side::B => &mut self.b,
        }
    }
}
