//! Stores lines that are printed later, up to 64 KiB in memory and the rest in an unnamed temporary
//! file.
//!
//! With the file, even a capture with millions of findings needs little memory.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, Write};

/// Maximum number of bytes in memory. If there are more bytes, all of them move to the file.
const IN_MEMORY: usize = 64 << 10;

/// The stored lines, in the order of the calls of [`Spool::push`].
#[derive(Debug, Default)]
pub(crate) struct Spool {
    text: String,
    /// The temporary file. Its lines come before the lines in `text`.
    file: Option<BufWriter<File>>,
    lines: u64,
}

impl Spool {
    /// Adds a line.
    ///
    /// # Errors
    /// The temporary file cannot be created or written.
    pub(crate) fn push(&mut self, line: &str) -> io::Result<()> {
        self.text.push_str(line);
        self.text.push('\n');
        self.lines += 1;
        if self.text.len() > IN_MEMORY {
            let file = match &mut self.file {
                Some(file) => file,
                None => self.file.insert(BufWriter::new(tempfile::tempfile()?)),
            };
            file.write_all(self.text.as_bytes())?;
            self.text.clear();
        }
        Ok(())
    }

    /// Number of lines.
    pub(crate) fn count(&self) -> u64 {
        self.lines
    }

    /// Writes the lines, each after `indent`.
    ///
    /// # Errors
    /// The temporary file cannot be read, or `out` cannot be written.
    pub(crate) fn write(self, indent: &str, out: &mut impl Write) -> io::Result<()> {
        let mut write = |text: &str| text.lines().try_for_each(|line| writeln!(out, "{indent}{line}"));
        if let Some(file) = self.file {
            let mut file = io::BufReader::new(file.into_inner().map_err(io::IntoInnerError::into_error)?);
            file.rewind()?;
            let mut line = String::new();
            while io::BufRead::read_line(&mut file.by_ref(), &mut line)? > 0 {
                write(&line)?;
                line.clear();
            }
        }
        write(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_beyond_the_memory_keep_their_order() {
        let mut spool = Spool::default();
        let line = |number: usize| format!("finding {number} of many");
        for number in 0..10_000 {
            spool.push(&line(number)).unwrap();
        }
        assert_eq!((spool.count(), spool.text.len() <= IN_MEMORY, spool.file.is_some()), (10_000, true, true));
        let mut out = Vec::new();
        spool.write("  ", &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().enumerate().all(|(number, found)| found == format!("  {}", line(number))));
        assert_eq!(text.lines().count(), 10_000);
    }

    #[test]
    fn few_lines_need_no_file() {
        let mut spool = Spool::default();
        spool.push("one").unwrap();
        assert!(spool.file.is_none());
        let mut out = Vec::new();
        spool.write("", &mut out).unwrap();
        assert_eq!(out, b"one\n");
    }
}
