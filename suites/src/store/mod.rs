//! The results store: runs, their plans and their results in SQLite, or in PostgreSQL with the same schema.
//!
//! A case is written when it is finished, in one transaction, so a run that is killed keeps what it had. Evidence files are
//! beside the database, under the paths that the results name; where the database is a server, they stay in the run's folder.

mod read;
mod write;

use std::path::Path;

use sqlx::any::{AnyPoolOptions, install_default_drivers};
use sqlx::migrate::Migrator;
use sqlx::{AnyPool, Executor};

pub use read::{PastResult, PlannedCase, RunDetail, RunRecord};

/// Why the store does not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database.
    #[error("results store: {0}")]
    Database(#[from] sqlx::Error),
    /// Its schema cannot be brought up to date.
    #[error("results store: {0}")]
    Migrate(#[from] sqlx::migrate::MigrateError),
    /// A stored document does not read back.
    #[error("results store: a document of run {run} is damaged: {error}")]
    Damaged {
        /// The run.
        run: String,
        /// What is wrong.
        error: String,
    },
    /// No store has such an address.
    #[error("results store: expected sqlite://PATH or postgres://USER@HOST/DATABASE, and a path of UTF-8")]
    Address,
}

/// An open store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    pool: AnyPool,
}

/// Name of the database in a run's folder.
pub const FILE_NAME: &str = "results.sqlite";

/// How the schema came to be.
static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

/// Connections to the database at most.
const CONNECTIONS: u32 = 4;

impl Store {
    /// Opens the database file, creates it where it does not exist, and brings its schema up to date.
    ///
    /// # Errors
    /// The file cannot be opened or is no such database.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        let path = std::path::absolute(path).map_err(|error| StoreError::Database(error.into()))?;
        Self::connect(&format!("sqlite://{}", encoded(path.to_str().ok_or(StoreError::Address)?))).await
    }

    /// Connects to the store at a URL, `sqlite://PATH` or `postgres://USER@HOST/DATABASE`, and brings its schema up to date. A
    /// file is created where it does not exist, a database of a server is not.
    ///
    /// # Errors
    /// The database cannot be reached or is none.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        install_default_drivers();
        let is_file = url.starts_with("sqlite:");
        if !is_file && !url.starts_with("postgres:") && !url.starts_with("postgresql:") {
            return Err(StoreError::Address);
        }
        let url = if is_file && !url.contains('?') { format!("{url}?mode=rwc") } else { url.to_owned() };
        let pool = AnyPoolOptions::new().max_connections(CONNECTIONS).connect(&url).await?;
        if is_file {
            // Kept in the file: readers (the web page) see a run while it is written.
            pool.execute("PRAGMA journal_mode = WAL").await?;
            // SQLite's driver has no lock around migrations: of two that open a new file, both would create its tables.
            let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await?;
            // `run` itself takes no transaction in a future that may be sent to another thread.
            MIGRATIONS.run_direct(None, &mut *transaction, false).await?;
            transaction.commit().await?;
        } else {
            MIGRATIONS.run(&pool).await?;
        }
        Ok(Store { pool })
    }

    /// Closes the database once everything is written.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

/// A path as it stands in a URL.
fn encoded(path: &str) -> String {
    path.bytes()
        .map(|octet| match octet {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => char::from(octet).to_string(),
            octet => format!("%{octet:02X}"),
        })
        .collect()
}
