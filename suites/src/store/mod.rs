//! The results store: runs, their plans and their results in SQLite, or in PostgreSQL with the same
//! schema.
//!
//! A case is written in one transaction when it has finished, so a killed run keeps its results.
//! Results have the paths of the evidence files, relative to the run's folder
//! ([`crate::folder::of_run`]). By default, the database is a file in the output folder.

mod alive;
mod changes;
mod combined;
mod latest;
mod lists;
mod migrations;
mod probed;
mod read;
mod remove;
mod scores;
mod transient;
mod write;

use std::path::Path;
use std::time::{Duration, Instant};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use sqlx::any::{AnyPoolOptions, install_default_drivers};
use sqlx::migrate::MigrateError;
use sqlx::{AnyPool, Executor};

use combined::CombinedRuns;

pub use changes::VerdictChange;
pub use latest::Latest;
pub use lists::{RunsPage, TargetRecord};
pub use read::{PastResult, PlannedCase, RunDetail, RunRecord};
pub use remove::StoredRun;
pub use scores::UnstableCase;

/// An error of the store. Its message has the messages of all its causes.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store cannot be opened, is not a database, or its schema cannot be updated.
    #[error("{place} cannot be used as a results store: {error}")]
    Open {
        /// The file, or the server and its database.
        place: String,
        /// The reason.
        error: String,
    },
    /// The database failed.
    #[error("results store: {0}")]
    Database(sqlx::Error),
    /// A stored document cannot be read.
    #[error("the results store has a damaged document of run {run}: {error}")]
    Damaged {
        /// The run.
        run: String,
        /// The reason.
        error: String,
    },
    /// The text is not the address of a store.
    #[error("results store: expected sqlite://PATH or postgres://USER@HOST/DATABASE; PATH must be UTF-8")]
    Address,
}

impl StoreError {
    /// Returns whether the same write may succeed later. A write that violates a constraint of the
    /// database, or that is itself wrong, cannot succeed later.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            StoreError::Database(sqlx::Error::Database(error)) => matches!(error.kind(), sqlx::error::ErrorKind::Other),
            StoreError::Database(error) => matches!(
                error,
                sqlx::Error::Io(_)
                    | sqlx::Error::Tls(_)
                    | sqlx::Error::Protocol(_)
                    | sqlx::Error::PoolTimedOut
                    | sqlx::Error::WorkerCrashed
            ),
            StoreError::Open { .. } | StoreError::Damaged { .. } | StoreError::Address => false,
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        StoreError::Database(error)
    }
}

/// The reason why a database is not opened.
#[derive(Debug, thiserror::Error)]
enum DatabaseOpenError {
    #[error("{0}")]
    Database(#[from] sqlx::Error),
    #[error("{0}")]
    Migrate(#[from] MigrateError),
}

impl DatabaseOpenError {
    /// Returns whether another connection locks the SQLite file (`SQLITE_BUSY` and its kinds, whose
    /// low byte is 5).
    fn is_busy(&self) -> bool {
        let error = match self {
            DatabaseOpenError::Database(error) => error,
            DatabaseOpenError::Migrate(MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)) => {
                error
            }
            _ => return false,
        };
        let code = error.as_database_error().and_then(|error| error.code()?.parse::<u32>().ok());
        code.is_some_and(|code| code & 0xFF == 5)
    }
}

/// An open store. Cloning it is cheap.
#[derive(Debug, Clone)]
pub struct Store {
    pool: AnyPool,
    /// Whether the database is SQLite. Otherwise it is PostgreSQL.
    is_file: bool,
    combined: CombinedRuns,
}

/// Name of the database in a run's folder.
pub const FILE_NAME: &str = "results.sqlite";

/// Beginning of the URL of a file. `ESCAPED` has the characters that are escaped in the file's
/// path.
const FILE_URL: &str = "sqlite://";
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// Maximum number of connections to the database.
const CONNECTIONS: u32 = 4;
/// Time to wait for a connection. With the default of 30 s, an unreachable server would be reported
/// later.
const CONNECT: Duration = Duration::from_secs(10);
/// Total time to wait for a file that other processes use. `BUSY_STEP` is the time between two
/// attempts.
const BUSY: Duration = Duration::from_secs(60);
const BUSY_STEP: Duration = Duration::from_millis(5);

impl Store {
    /// Opens or creates the database file, and updates its schema.
    ///
    /// # Errors
    /// The file cannot be opened, or is not a results store.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        Self::connect(&Self::url(path)?).await
    }

    /// Returns the URL of a database file.
    ///
    /// # Errors
    /// The path is not UTF-8, or it is relative and there is no current folder.
    pub fn url(path: &Path) -> Result<String, StoreError> {
        let path = std::path::absolute(path).map_err(|error| StoreError::Database(error.into()))?;
        Ok(format!("{FILE_URL}{}", utf8_percent_encode(path.to_str().ok_or(StoreError::Address)?, ESCAPED)))
    }

    /// Connects to the store at a URL, `sqlite://PATH` or `postgres://USER@HOST/DATABASE`, and
    /// updates its schema. A missing file is created. A missing database on a server is an error.
    ///
    /// # Errors
    /// The database cannot be reached, or is not a results store.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        let is_file = url.starts_with("sqlite:");
        if !is_file && !url.starts_with("postgres:") && !url.starts_with("postgresql:") {
            return Err(StoreError::Address);
        }
        let opened = Self::opened(url, is_file).await;
        opened.map_err(|error| StoreError::Open { place: place(url), error: error.to_string() })
    }

    async fn opened(url: &str, is_file: bool) -> Result<Self, DatabaseOpenError> {
        install_default_drivers();
        let url = if is_file && !url.contains('?') { format!("{url}?mode=rwc") } else { url.to_owned() };
        let pool = AnyPoolOptions::new().max_connections(CONNECTIONS).acquire_timeout(CONNECT).connect(&url).await?;
        if is_file {
            let give_up = Instant::now() + BUSY;
            loop {
                match prepare_file(&pool).await {
                    Err(error) if error.is_busy() && Instant::now() < give_up => tokio::time::sleep(BUSY_STEP).await,
                    done => break done?,
                }
            }
        } else {
            migrations::migrator().run(&pool).await?;
        }
        Ok(Store { pool, is_file, combined: CombinedRuns::default() })
    }

    /// Closes the database after all writes.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

/// Updates the mode and schema of a database file. If the file is busy, call this function again.
async fn prepare_file(pool: &AnyPool) -> Result<(), DatabaseOpenError> {
    // With the mode WAL, readers (the web page) can read a run while it is written. The file stores
    // the mode. If another connection holds a lock, SQLite rejects a change of the mode
    // immediately, without its usual wait.
    pool.execute("PRAGMA journal_mode = WAL").await?;
    // SQLite's driver does not lock migrations. Without this transaction, two processes that open a
    // new file would both create its tables.
    let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await?;
    // `run` cannot be used: with a transaction, its future cannot be sent to another thread.
    migrations::migrator().run_direct(None, &mut *transaction, false).await?;
    transaction.commit().await?;
    Ok(())
}

/// Returns the location in a URL, for messages: the path of a file, or server and database without
/// user and password.
fn place(url: &str) -> String {
    let named = url.split('?').next().unwrap_or(url);
    match named.strip_prefix(FILE_URL) {
        Some(path) => percent_decode_str(path).decode_utf8_lossy().into_owned(),
        None => named.rsplit_once('@').map_or_else(|| named.to_owned(), |(_, server)| server.to_owned()),
    }
}
