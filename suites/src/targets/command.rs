//! Runs a command of a target file until the command ends. The command restarts a dead target, or
//! reports whether the target has crashed.
//!
//! The command may use a power switch, a virtual machine or a service manager. The run
//! ([`crate::run`]) decides when to execute it.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LocalCommand {
    pub(crate) program: String,
    pub(crate) arguments: Vec<String>,
}

impl std::fmt::Display for LocalCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.program)?;
        self.arguments.iter().try_for_each(|argument| write!(f, " {argument}"))
    }
}

/// Time limit in seconds for the command `restart`, not yet multiplied by the time scale.
pub(crate) const RESTART_SECONDS: f64 = 120.0;
/// Time limit in seconds for the command `crashed`, not yet multiplied by the time scale.
pub(crate) const CRASHED_SECONDS: f64 = 10.0;

impl LocalCommand {
    /// Runs the command until it ends, at most for `limit`. Its output goes to weft's standard
    /// error. Its standard input is empty.
    ///
    /// # Errors
    /// The command does not start, its exit status is not 0, or it does not end in time. The text
    /// names the fault.
    pub(crate) async fn run(&self, limit: Duration) -> Result<(), String> {
        let child = self.command().stdout(std::io::stderr()).spawn();
        self.wait(KilledOnDrop(child.map_err(|error| self.failed(&error))?), limit).await
    }

    /// Runs the command as [`run`](Self::run) does, but does not print its standard output. Returns
    /// the last lines of the standard output.
    pub(crate) async fn run_and_read(&self, limit: Duration) -> (Result<(), String>, Vec<String>) {
        let mut child = match self.command().stdout(Stdio::piped()).spawn() {
            Ok(child) => child,
            Err(error) => return (Err(self.failed(&error)), Vec::new()),
        };
        let Some(output) = child.stdout.take() else { return (Ok(()), Vec::new()) };
        // A separate thread reads the output. Otherwise, a command that prints more than a pipe
        // holds would not end.
        let reader = std::thread::spawn(move || last_lines(output));
        let ended = self.wait(KilledOnDrop(child), limit).await;
        let until = Instant::now() + LOOK * 10;
        // Wait for the reader only for a short time. A program that the command started may still
        // run and keep the pipe open.
        while !reader.is_finished() && Instant::now() < until {
            tokio::time::sleep(LOOK).await;
        }
        let lines = if reader.is_finished() { reader.join().unwrap_or_default() } else { Vec::new() };
        (ended, lines)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::null());
        command
    }

    fn failed(&self, error: &std::io::Error) -> String {
        format!("{}: {error}", self.program)
    }

    async fn wait(&self, mut running: KilledOnDrop, limit: Duration) -> Result<(), String> {
        let failed = |error: std::io::Error| self.failed(&error);
        let end = Instant::now() + limit;
        loop {
            match running.0.try_wait().map_err(failed)? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("{}: {status}", self.program)),
                None if Instant::now() >= end => {
                    return Err(format!("{} did not end within {} s", self.program, limit.as_secs()));
                }
                None => tokio::time::sleep(LOOK).await,
            }
        }
    }
}

/// Maximum number of lines that are kept of a command's output. `MAX_LINE_LEN` is the maximum
/// length of a line in bytes. A longer line counts as several lines.
const MAX_LINES: usize = 10;
const MAX_LINE_LEN: u64 = 400;

/// Returns the last lines of a command's output, without empty lines.
fn last_lines(output: ChildStdout) -> Vec<String> {
    let mut reader = BufReader::new(output);
    let mut lines = VecDeque::new();
    loop {
        let mut line = Vec::new();
        match (&mut reader).take(MAX_LINE_LEN).read_until(b'\n', &mut line) {
            Ok(1..) => {}
            Ok(0) | Err(_) => return lines.into(),
        }
        let line = String::from_utf8_lossy(&line).trim().to_owned();
        if !line.is_empty() {
            lines.push_back(line);
        }
        if lines.len() > MAX_LINES {
            lines.pop_front();
        }
    }
}

/// Interval between checks whether the command has ended.
const LOOK: Duration = Duration::from_millis(20);

/// A process that is killed when this guard is dropped.
struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        // If the process has already ended, both calls fail or do nothing.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str) -> LocalCommand {
        LocalCommand { program: "/bin/sh".into(), arguments: vec!["-c".into(), line.into()] }
    }

    #[tokio::test]
    async fn reports_its_status() {
        let minute = Duration::from_secs(60);
        assert_eq!(shell("exit 0").run(minute).await, Ok(()));
        assert_eq!(shell("exit 3").run(minute).await.unwrap_err(), "/bin/sh: exit status: 3");
        let missing = LocalCommand { program: "/nowhere/restart".into(), arguments: Vec::new() };
        assert!(missing.run(minute).await.unwrap_err().starts_with("/nowhere/restart: "));
    }

    #[tokio::test]
    async fn its_last_lines_are_read() {
        let minute = Duration::from_secs(60);
        let (ended, lines) = shell("seq 1 100000; echo; echo panic; exit 0").run_and_read(minute).await;
        assert_eq!((ended, lines.len(), lines.last().map(String::as_str)), (Ok(()), 10, Some("panic")));
        let (ended, lines) = shell("exit 3").run_and_read(minute).await;
        assert_eq!((ended.unwrap_err().as_str(), lines.len()), ("/bin/sh: exit status: 3", 0));
    }

    #[tokio::test]
    async fn it_is_not_waited_for_without_end() {
        let outcome = shell("exec cat /dev/zero >/dev/null").run(Duration::from_millis(1)).await;
        assert_eq!(outcome.unwrap_err(), "/bin/sh did not end within 0 s");
    }
}
