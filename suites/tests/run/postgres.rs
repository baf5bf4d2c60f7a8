//! Starts a PostgreSQL server from Debian's packages for one test. Its data is in a temporary
//! folder. It has its own port on the loopback interface.
#![allow(dead_code, reason = "the tests of the crate `web` also use this file, but restart no server")]

use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server that is stopped when it is dropped.
pub struct Server {
    pub url: String,
    process: Child,
    start: Command,
    stop: Command,
    programs: PathBuf,
    port: u16,
    _folder: tempfile::TempDir,
}

/// The number of Debian's user `nobody`. PostgreSQL refuses to run as root.
const NOBODY: u32 = 65534;

impl Server {
    /// Starts a server. Returns `None` if this machine has no PostgreSQL.
    pub fn start() -> Option<Self> {
        let programs = programs()?;
        let folder = tempfile::tempdir().unwrap();
        let is_root = std::fs::metadata("/proc/self").is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0);
        if is_root {
            chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let command = |name: &str| {
            let mut command = Command::new(programs.join(name));
            command.current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
            if is_root {
                command.uid(NOBODY).gid(NOBODY);
            }
            command
        };
        let data = folder.path().join("data");
        let made = command("initdb").args(["-A", "trust", "-U", "weft", "-N", "-D"]).arg(&data).status().unwrap();
        assert!(made.success(), "initdb");
        // The port is free at this moment. If another process takes it in the meantime, the server
        // does not start and the test fails.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut start = command("postgres");
        start.args(["-h", "127.0.0.1", "-p", &port.to_string(), "-F", "-k"]).arg(folder.path()).arg("-D").arg(&data);
        let process = start.spawn().unwrap();
        let mut stop = command("pg_ctl");
        stop.args(["stop", "-m", "immediate", "-D"]).arg(&data);
        let url = format!("postgres://weft@127.0.0.1:{port}/postgres");
        let mut server = Server { url, process, start, stop, programs, port, _folder: folder };
        server.wait();
        Some(server)
    }

    /// Stops the server at once, which ends all connections to it.
    pub fn stop(&mut self) {
        assert!(self.stop.status().unwrap().success(), "pg_ctl stop");
        self.process.wait().unwrap();
    }

    /// Starts the server again after a stop, with the same data.
    pub fn restart(&mut self) {
        self.process = self.start.spawn().unwrap();
        self.wait();
    }

    /// Waits until the server is ready. `pg_isready` queries the server. If the process has ended,
    /// the server will never be ready.
    fn wait(&mut self) {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let ready = Command::new(self.programs.join("pg_isready"))
                .args(["-q", "-t", "1", "-h", "127.0.0.1", "-p", &self.port.to_string()])
                .status();
            if ready.unwrap().success() {
                return;
            }
            assert!(self.process.try_wait().unwrap().is_none(), "the server ended");
            assert!(Instant::now() < end, "the server is not ready after a minute");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // `pg_ctl stop` lets the server remove its shared memory. If this fails, kill the process.
        if !self.stop.status().is_ok_and(|status| status.success()) {
            let _ = self.process.kill();
        }
        let _ = self.process.wait();
    }
}

/// Returns the folder with `initdb` and `postgres` of the newest installed version.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut folders: Vec<PathBuf> = versions.filter_map(|entry| Some(entry.ok()?.path().join("bin"))).collect();
    folders
        .retain(|folder| ["initdb", "postgres", "pg_isready", "pg_ctl"].iter().all(|name| folder.join(name).is_file()));
    folders.sort();
    folders.pop()
}
