//! The two directions of a connection.

use std::net::SocketAddr;
use std::ops::{Index, IndexMut};

/// A direction of a connection, and an index of arrays that have an element for each of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Direction {
    /// From the end that sent the connection's first frame. Its number is 0.
    #[default]
    Forward,
    /// From the other end. Its number is 1.
    Reverse,
}

impl Direction {
    /// Both, by their numbers.
    pub const BOTH: [Direction; 2] = [Direction::Forward, Direction::Reverse];

    /// The direction of what `src` sends on a connection whose first frame `first` sent.
    #[inline]
    pub(crate) fn sent_by(src: SocketAddr, first: SocketAddr) -> Self {
        if src == first { Direction::Forward } else { Direction::Reverse }
    }

    /// The direction from the end that receives this one.
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
    /// Any number other than 0 is the direction from the other end.
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
