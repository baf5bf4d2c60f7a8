//! A bounded queue from a reading thread to the screen. The screen takes many items at once.
//!
//! The screen never waits. The thread waits while the queue is full, and notices when the screen is
//! gone. The screen notices when the thread has ended, and whether it has failed. A channel would
//! pass one item at a time, which is slow for the millions of items of a capture.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

/// `send` waits while the queue has at least this number of items. After `send`, the queue can have
/// more items, because `send` adds all of its items at once.
const QUEUE_LIMIT: usize = 1 << 16;
/// The message for the user if a thread failed.
pub(crate) const FAILED: &str = "weft failed while it read the capture; please report this defect";
/// Interval at which a waiting thread checks whether the screen is gone.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug)]
struct Shared<T> {
    items: Mutex<Vec<T>>,
    room: Condvar,
    /// Whether the thread has sent its last item.
    is_complete: AtomicBool,
}

/// The receiving side of the queue, for the screen.
#[derive(Debug)]
pub(crate) struct QueueReceiver<T>(Arc<Shared<T>>);

/// The sending side of the queue, for the thread.
#[derive(Debug)]
pub(crate) struct QueueSender<T>(Weak<Shared<T>>);

/// Makes a queue.
pub(crate) fn queue<T>() -> (QueueSender<T>, QueueReceiver<T>) {
    let shared = Arc::new(Shared { items: Mutex::default(), room: Condvar::new(), is_complete: AtomicBool::default() });
    (QueueSender(Arc::downgrade(&shared)), QueueReceiver(shared))
}

impl<T> QueueReceiver<T> {
    /// Takes at most `most` items from the queue.
    pub(crate) fn take(&self, most: usize) -> Vec<T> {
        let mut items = self.0.items.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = if items.len() <= most { std::mem::take(&mut *items) } else { items.drain(..most).collect() };
        self.0.room.notify_all();
        taken
    }

    /// Returns whether the thread has ended and the queue is empty.
    pub(crate) fn is_over(&self) -> bool {
        // Check the thread first, because a thread sends its last items before it ends.
        Arc::weak_count(&self.0) == 0 && self.0.items.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Returns whether the queue is empty, and the thread ended before it sent its last item.
    pub(crate) fn has_failed(&self) -> bool {
        self.is_over() && !self.0.is_complete.load(Relaxed)
    }
}

impl<T> QueueSender<T> {
    /// Moves all `items` into the queue. Returns `false` if the screen is gone.
    pub(crate) fn send(&self, items: &mut Vec<T>) -> bool {
        while let Some(queue) = self.0.upgrade() {
            let mut waiting = queue.items.lock().unwrap_or_else(PoisonError::into_inner);
            if waiting.len() < QUEUE_LIMIT {
                waiting.append(items);
                return true;
            }
            drop(queue.room.wait_timeout(waiting, CHECK_INTERVAL));
        }
        false
    }

    /// Moves the last items into the queue, and marks the queue as complete.
    pub(crate) fn finish(self, mut items: Vec<T>) {
        // If the screen is gone, there is nothing to do.
        if self.send(&mut items)
            && let Some(queue) = self.0.upgrade()
        {
            queue.is_complete.store(true, Relaxed);
        }
    }

    /// Returns a function that returns whether the screen is gone.
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
        let (sender, receiver) = queue();
        let thread = std::thread::spawn(move || {
            let is_sent = (0..3 * QUEUE_LIMIT).all(|item| sender.send(&mut vec![item]));
            sender.finish(vec![3 * QUEUE_LIMIT]);
            is_sent
        });
        let mut got = Vec::new();
        let deadline = Instant::now() + Duration::from_mins(1);
        while !receiver.is_over() {
            assert!(Instant::now() < deadline, "the thread does not end");
            let piece = receiver.take(1000);
            assert!(piece.len() <= 1000);
            got.extend(piece);
            std::thread::yield_now();
        }
        assert!(thread.join().unwrap() && !receiver.has_failed());
        assert!(got.into_iter().eq(0..=3 * QUEUE_LIMIT));
    }

    #[test]
    fn a_thread_that_fails_ends_the_queue() {
        let (sender, receiver) = queue();
        let thread = std::thread::spawn(move || {
            assert!(sender.send(&mut vec![1]));
            panic!("on purpose");
        });
        assert!(thread.join().is_err() && !receiver.is_over() && !receiver.has_failed());
        assert_eq!(receiver.take(2), [1]);
        assert!(receiver.is_over() && receiver.has_failed());
    }

    #[test]
    fn a_screen_that_is_gone_ends_the_thread() {
        let (sender, receiver) = queue();
        let gone = sender.gone();
        assert!(sender.send(&mut vec![1; QUEUE_LIMIT]) && !gone());
        drop(receiver);
        assert!(!sender.send(&mut vec![2]) && gone());
    }
}
