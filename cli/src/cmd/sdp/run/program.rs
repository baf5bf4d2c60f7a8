//! Detects programs for which the preload library has no effect: static programs, Go programs,
//! set-user-ID programs, and programs with io_uring.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Maximum number of bytes that are read from a file.
const MAX_FILE_OCTETS: u64 = 256 << 20;
/// Maximum number of program headers that are read.
const HEADERS: usize = 256;
/// Maximum number of scripts in a chain. In a chain, a script is the interpreter of another script.
const SCRIPTS: usize = 4;

/// Type of the program header that names the dynamic linker (PT_INTERP).
const INTERPRETER: u32 = 3;
/// Type of a program header with notes (PT_NOTE).
const NOTE: u32 = 4;

/// Returns the warnings about a program. Returns no warnings if the file cannot be read.
pub(super) fn warnings(program: &Path) -> Vec<&'static str> {
    let mut path = program.to_path_buf();
    for _ in 0..SCRIPTS {
        let Some(octets) = read(&path) else { return Vec::new() };
        match interpreter(&octets) {
            Some(interpreter) => path = interpreter,
            None => {
                let mut found = of_binary(&octets);
                if fs::metadata(&path).is_ok_and(|it| it.mode() & 0o6000 != 0) {
                    found.push(
                        "this program is set-user-ID or set-group-ID, so the dynamic linker does not load the preload \
                         library",
                    );
                }
                return found;
            }
        }
    }
    Vec::new()
}

/// Reads at most [`MAX_FILE_OCTETS`] bytes of a file.
fn read(path: &Path) -> Option<Vec<u8>> {
    let mut octets = Vec::new();
    File::open(path).ok()?.take(MAX_FILE_OCTETS).read_to_end(&mut octets).ok()?;
    Some(octets)
}

/// Returns the path of a script's interpreter. Returns `None` for other files.
fn interpreter(octets: &[u8]) -> Option<PathBuf> {
    let line = octets.strip_prefix(b"#!")?.split(|octet| *octet == b'\n').next()?;
    let mut words = str::from_utf8(line).ok()?.split_ascii_whitespace();
    let first = words.next()?;
    if Path::new(first).file_name()? != "env" {
        return Some(first.into());
    }
    super::find(words.next()?.as_ref())
}

/// Returns the warnings about a binary.
fn of_binary(octets: &[u8]) -> Vec<&'static str> {
    let Some(headers) = program_headers(octets) else { return Vec::new() };
    let mut found = Vec::new();
    if headers.iter().any(|(kind, note)| *kind == NOTE && is_go(note)) {
        found.push(
            "this is a Go program, which calls the kernel without the C library; so its connections do not use SDP",
        );
    } else if !headers.iter().any(|(kind, _)| *kind == INTERPRETER) {
        found.push("this program is linked statically, so it does not load the preload library");
    }
    if [&b"liburing.so"[..], b"io_uring_setup", b"io_uring_queue_init"].iter().any(|name| contains(octets, name)) {
        found.push("this program contains io_uring; connections by io_uring do not use SDP");
    }
    found
}

/// Returns the types and contents of the program headers of a 64-bit little-endian ELF file (System
/// V ABI, chapter 5). Returns `None` for other files.
fn program_headers(octets: &[u8]) -> Option<Vec<(u32, &[u8])>> {
    if octets.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let number = |at: usize, len: usize| {
        let octets = octets.get(at..at.checked_add(len)?)?;
        octets.iter().rev().try_fold(0usize, |sum, octet| sum.checked_mul(256)?.checked_add(usize::from(*octet)))
    };
    let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?.min(HEADERS));
    let header = |index: usize| {
        let at = table.checked_add(index.checked_mul(size)?)?;
        let (kind, from, len) = (number(at, 4)?, number(at.checked_add(8)?, 8)?, number(at.checked_add(32)?, 8)?);
        let contents = octets.get(from..from.checked_add(len)?).unwrap_or_default();
        Some((u32::try_from(kind).ok()?, contents))
    };
    (0..count).map(header).collect()
}

/// Returns whether the note has the name "Go". Go's linker gives this name to the note that
/// contains the build ID.
fn is_go(note: &[u8]) -> bool {
    note.get(12..16) == Some(b"Go\0\0")
}

fn contains(octets: &[u8], name: &[u8]) -> bool {
    octets.windows(name.len()).any(|window| window == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF header and these program headers with their contents.
    fn elf(headers: &[(u32, &[u8])]) -> Vec<u8> {
        let mut octets = b"\x7fELF\x02\x01".to_vec();
        octets.resize(64, 0);
        octets[32] = 64;
        octets[54] = 56;
        octets[56] = headers.len() as u8;
        let mut contents = Vec::new();
        for (kind, of) in headers {
            let from = 64 + 56 * headers.len() + contents.len();
            octets.extend(kind.to_le_bytes());
            octets.extend([0; 4]);
            octets.extend((from as u64).to_le_bytes());
            octets.extend([0; 16]);
            octets.extend((of.len() as u64).to_le_bytes());
            octets.extend([0; 16]);
            contents.extend(*of);
        }
        [octets, contents].concat()
    }

    #[test]
    fn warns_about_programs_that_the_library_does_not_reach() {
        let linker = (INTERPRETER, &b"/lib64/ld-linux-x86-64.so.2\0"[..]);
        let go = (NOTE, &b"\x04\0\0\0\x53\0\0\0\x04\0\0\0Go\0\0id"[..]);
        let gnu = (NOTE, &b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0id"[..]);
        let uring = (1, &b"\0liburing.so.2\0"[..]);
        for (headers, words) in [
            (&[linker, gnu][..], None),
            (&[gnu], Some("statically")),
            (&[go], Some("Go program")),
            (&[linker, go], Some("Go program")),
            (&[linker, uring], Some("io_uring")),
        ] {
            let found = of_binary(&elf(headers));
            assert_eq!(found.len(), usize::from(words.is_some()), "{found:?}");
            assert!(words.is_none_or(|words| found[0].contains(words)), "{found:?}");
        }
    }

    #[test]
    fn does_not_warn_about_other_files() {
        let complete = elf(&[(NOTE, b"")]);
        for len in 0..120 {
            of_binary(&complete[..len]);
        }
        let mut wild = complete.clone();
        wild[32..40].fill(0xff);
        assert!(of_binary(&wild).is_empty());
        assert!(of_binary(b"text").is_empty());
        assert_eq!(interpreter(b"#! /bin/sh -e\ntrue"), Some("/bin/sh".into()));
        assert_eq!(interpreter(b"#!\n"), None);
    }
}
