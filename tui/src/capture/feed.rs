//! A bounded queue from a reading thread to the screen, which takes many items at once.
//!
//! The screen never waits. The thread waits while the queue is full, and learns when the screen is
//! gone. The screen learns when the thread is gone, and whether it failed. A channel would hand
//! over one item at a time, and a capture has millions.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

/// The maximum number of waiting items, without those of the last call of `send`.
const MOST: usize = 1 << 16;
/// The message for the user if a thread failed.
pub(crate) const FAILED: &str = "weft failed while it read the capture; please report this defect";
/// How often a waiting thread checks whether the screen is gone.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Debug)]
struct Queue<T> {
    items: Mutex<Vec<T>>,
    room: Condvar,
    /// The thread has sent its last item.
    is_complete: AtomicBool,
}

/// The screen's end.
#[derive(Debug)]
pub(crate) struct Feed<T>(Arc<Queue<T>>);

/// The thread's end.
#[derive(Debug)]
pub(crate) struct Source<T>(Weak<Queue<T>>);

/// Makes a queue.
pub(crate) fn feed<T>() -> (Source<T>, Feed<T>) {
    let queue = Arc::new(Queue { items: Mutex::default(), room: Condvar::new(), is_complete: AtomicBool::default() });
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

    /// Has the thread ended before its last item, and is the queue empty?
    pub(crate) fn has_failed(&self) -> bool {
        self.is_over() && !self.0.is_complete.load(Relaxed)
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

    /// Moves the last items into the queue.
    pub(crate) fn finish(self, mut items: Vec<T>) {
        // The screen may be gone.
        if self.send(&mut items)
            && let Some(queue) = self.0.upgrade()
        {
            queue.is_complete.store(true, Relaxed);
        }
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
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_full_queue_blocks_the_thread_and_loses_nothing() {
        let (source, feed) = feed();
        let thread = std::thread::spawn(move || {
            let is_sent = (0..3 * MOST).all(|item| source.send(&mut vec![item]));
            source.finish(vec![3 * MOST]);
            is_sent
        });
        let mut got = Vec::new();
        let deadline = Instant::now() + Duration::from_mins(1);
        while !feed.is_over() {
            assert!(Instant::now() < deadline, "the thread does not end");
            let piece = feed.take(1000);
            assert!(piece.len() <= 1000);
            got.extend(piece);
            std::thread::yield_now();
        }
        assert!(thread.join().unwrap() && !feed.has_failed());
        assert!(got.into_iter().eq(0..=3 * MOST));
    }

    #[test]
    fn a_thread_that_fails_ends_the_queue() {
        let (source, feed) = feed();
        let thread = std::thread::spawn(move || {
            assert!(source.send(&mut vec![1]));
            panic!("on purpose");
        });
        assert!(thread.join().is_err() && !feed.is_over() && !feed.has_failed());
        assert_eq!(feed.take(2), [1]);
        assert!(feed.is_over() && feed.has_failed());
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
