//! A bounded queue from a reading thread to the screen, which takes many items at once.
//!
//! The screen never waits. The thread waits while the queue is full, and learns when the screen is
//! gone. A channel would hand over one item at a time, and a capture has millions.

use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

/// The maximum number of waiting items, without those of the last call of `send`.
const MOST: usize = 1 << 16;
/// How often a waiting thread checks whether the screen is gone.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Debug)]
struct Queue<T> {
    items: Mutex<Vec<T>>,
    room: Condvar,
}

/// The screen's end.
#[derive(Debug)]
pub(crate) struct Feed<T>(Arc<Queue<T>>);

/// The thread's end.
#[derive(Debug)]
pub(crate) struct Source<T>(Weak<Queue<T>>);

/// Makes a queue.
pub(crate) fn feed<T>() -> (Source<T>, Feed<T>) {
    let queue = Arc::new(Queue { items: Mutex::new(Vec::new()), room: Condvar::new() });
    (Source(Arc::downgrade(&queue)), Feed(queue))
}

impl<T> Feed<T> {
    /// Takes at most `most` items.
    pub(crate) fn take(&self, most: usize) -> Vec<T> {
        let mut items = self.0.items.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = if items.len() <= most { std::mem::take(&mut *items) } else { items.drain(..most).collect() };
        self.0.room.notify_all();
        taken
    }

    /// Has the thread ended, and is the queue empty?
    pub(crate) fn is_over(&self) -> bool {
        // In this order, because a thread sends its last items before it ends.
        Arc::weak_count(&self.0) == 0 && self.0.items.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

impl<T> Source<T> {
    /// Moves all `items` into the queue; `false` if the screen is gone.
    pub(crate) fn send(&self, items: &mut Vec<T>) -> bool {
        while let Some(queue) = self.0.upgrade() {
            let mut waiting = queue.items.lock().unwrap_or_else(PoisonError::into_inner);
            if waiting.len() < MOST {
                waiting.append(items);
                return true;
            }
            drop(queue.room.wait_timeout(waiting, LOOK));
        }
        false
    }

    /// A function that returns whether the screen is gone.
    pub(crate) fn gone(&self) -> impl Fn() -> bool + Clone + Send + 'static
    where
        T: Send + 'static,
    {
        let queue = Weak::clone(&self.0);
        move || queue.strong_count() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_blocks_the_thread_and_loses_nothing() {
        let (source, feed) = feed();
        let thread = std::thread::spawn(move || (0..3 * MOST).all(|item| source.send(&mut vec![item])));
        let mut got = Vec::new();
        while !feed.is_over() {
            let piece = feed.take(1000);
            assert!(piece.len() <= 1000);
            got.extend(piece);
            std::thread::yield_now();
        }
        assert!(thread.join().unwrap());
        assert!(got.into_iter().eq(0..3 * MOST));
    }

    #[test]
    fn a_screen_that_is_gone_ends_the_thread() {
        let (source, feed) = feed();
        let gone = source.gone();
        assert!(source.send(&mut vec![1; MOST]) && !gone());
        drop(feed);
        assert!(!source.send(&mut vec![2]) && gone());
    }
}
