//! [`Tail`] reads a file. The owner of the file limits how many bytes the reader may read, for
//! example because the file still grows.

use std::io::{self, Read};

/// The owner of a file. An implementation may wait in each of these functions to block the reader.
pub trait Control {
    /// The number of bytes that the reader may read at offset `at`. If the number is 0, the reader
    /// reports the end of the file.
    ///
    /// # Errors
    /// The owner does not allow the reader to read the file. The error has the reason.
    fn readable(&mut self, at: u64) -> io::Result<u64>;

    /// Called if the file has no bytes at offset `at`. Returns whether the file ends at this
    /// offset. If the result is `false`, the reader tries to read at the same offset again.
    fn is_end(&mut self, at: u64) -> bool {
        let _ = at;
        true
    }

    /// Called after the reader has read `count` bytes.
    fn advance(&mut self, count: u64) {
        let _ = count;
    }
}

/// A reader of a file under the control of its owner.
#[derive(Debug)]
pub struct Tail<R, C> {
    file: R,
    control: C,
    at: u64,
}

impl<R: Read, C: Control> Tail<R, C> {
    /// Reads `file` from its current position, which counts as offset 0.
    pub fn new(file: R, control: C) -> Self {
        Tail { file, control, at: 0 }
    }
}

impl<R: Read, C: Control> Read for Tail<R, C> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let most = usize::try_from(self.control.readable(self.at)?).unwrap_or(usize::MAX).min(out.len());
            if most == 0 {
                return Ok(0);
            }
            let count = self.file.read(&mut out[..most])?;
            if count > 0 {
                self.at += count as u64;
                self.control.advance(count as u64);
                return Ok(count);
            }
            if self.control.is_end(self.at) {
                return Ok(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An owner that lets the reader read at most two bytes at a time. At the end of the file, the
    /// owner lets the reader try twice.
    struct Steps {
        attempts: u32,
        got: u64,
    }

    impl Control for &mut Steps {
        fn readable(&mut self, at: u64) -> io::Result<u64> {
            if at > 100 { Err(io::Error::other("too far")) } else { Ok(2) }
        }

        fn is_end(&mut self, _: u64) -> bool {
            self.attempts += 1;
            self.attempts == 2
        }

        fn advance(&mut self, count: u64) {
            self.got += count;
        }
    }

    #[test]
    fn reads_as_far_as_the_owner_allows() {
        let mut steps = Steps { attempts: 0, got: 0 };
        let mut text = String::new();
        Tail::new(&b"words"[..], &mut steps).read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), steps.attempts, steps.got), ("words", 2, 5));
        let error = Tail::new(io::repeat(0), &mut steps).read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "too far");
    }
}
