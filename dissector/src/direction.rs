//! The two directions of a connection.

use std::net::SocketAddr;
use std::ops::{Index, IndexMut};

/// A direction of a connection. A direction can index an array that has one element for each
/// direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Direction {
    /// From the endpoint that sent the first frame of the connection. This direction has number 0.
    #[default]
    Forward,
    /// The direction opposite to [`Direction::Forward`]. It has number 1.
    Reverse,
}

impl Direction {
    /// Both directions in the order of their numbers.
    pub const BOTH: [Direction; 2] = [Direction::Forward, Direction::Reverse];

    /// The direction in which `src` sends. `first` sent the first frame of the connection.
    #[inline]
    pub(crate) fn sent_by(src: SocketAddr, first: SocketAddr) -> Self {
        if src == first { Direction::Forward } else { Direction::Reverse }
    }

    /// The opposite direction.
    #[must_use]
    #[inline]
    pub fn peer(self) -> Self {
        match self {
            Direction::Forward => Direction::Reverse,
            Direction::Reverse => Direction::Forward,
        }
    }
}

impl From<u8> for Direction {
    /// 0 is [`Direction::Forward`]. All other numbers are [`Direction::Reverse`].
    #[inline]
    fn from(number: u8) -> Self {
        if number == 0 { Direction::Forward } else { Direction::Reverse }
    }
}

impl From<Direction> for u8 {
    #[inline]
    fn from(direction: Direction) -> u8 {
        direction as u8
    }
}

impl From<Direction> for usize {
    #[inline]
    fn from(direction: Direction) -> usize {
        direction as usize
    }
}

impl<T> Index<Direction> for [T; 2] {
    type Output = T;

    #[inline]
    fn index(&self, direction: Direction) -> &T {
        let [forward, reverse] = self;
        match direction {
            Direction::Forward => forward,
            Direction::Reverse => reverse,
        }
    }
}

impl<T> IndexMut<Direction> for [T; 2] {
    #[inline]
    fn index_mut(&mut self, direction: Direction) -> &mut T {
        let [forward, reverse] = self;
        match direction {
            Direction::Forward => forward,
            Direction::Reverse => reverse,
        }
    }
}
