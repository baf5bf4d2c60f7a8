//! A command of a target file that runs to its end: one that brings a dead target back, or one that
//! says whether the target has crashed.
//!
//! What it does (a power switch, a virtual machine, a service manager) is its own business; when to call it is the run's
//! ([`crate::run`]).

use std::process::{Child, Command, Stdio};
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

/// Seconds that `restart` has.
pub(crate) const RESTART_SECONDS: f64 = 120.0;
/// Seconds that `crashed` has.
pub(crate) const CRASHED_SECONDS: f64 = 10.0;

impl LocalCommand {
    /// Runs it to its end, at most so long. What it prints goes to weft's standard error; it reads nothing.
    ///
    /// # Errors
    /// It does not start, its status is not 0, or it does not end; the text says which.
    pub(crate) async fn run(&self, limit: Duration) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.program);
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::null()).stdout(std::io::stderr());
        let mut running = Running(command.spawn().map_err(failed)?);
        let end = Instant::now() + limit;
        loop {
            match running.0.try_wait().map_err(failed)? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("{}: {status}", self.program)),
                None if Instant::now() >= end => {
                    return Err(format!("{}: no end within {} s", self.program, limit.as_secs()));
                }
                None => tokio::time::sleep(LOOK).await,
            }
        }
    }
}

/// How often its end is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// A process that does not outlive the wait for it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Where it has ended already, both fail or do nothing.
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
    async fn its_status_is_told() {
        let minute = Duration::from_secs(60);
        assert_eq!(shell("exit 0").run(minute).await, Ok(()));
        assert_eq!(shell("exit 3").run(minute).await.unwrap_err(), "/bin/sh: exit status: 3");
        let missing = LocalCommand { program: "/nowhere/restart".into(), arguments: Vec::new() };
        assert!(missing.run(minute).await.unwrap_err().starts_with("/nowhere/restart: "));
    }

    #[tokio::test]
    async fn it_is_not_waited_for_without_end() {
        let told = shell("exec cat /dev/zero >/dev/null").run(Duration::from_millis(1)).await;
        assert_eq!(told.unwrap_err(), "/bin/sh: no end within 0 s");
    }
}
