//! Recognises temporary failures of the store: the database restarts, is locked, or has no free
//! connection.

use super::StoreError;

/// The beginnings of the SQLSTATE codes that report temporary failures. In this order, the causes
/// are the connection, missing resources, and an operator (for example, a restart).
const CLASSES: [&str; 3] = ["08", "53", "57P"];
/// `SQLITE_BUSY` and `SQLITE_LOCKED`. The low byte of an extended code has one of these values.
const LOCKS: [u32; 2] = [5, 6];

impl StoreError {
    /// Returns whether the same request may succeed later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        let StoreError::Database(error) = self else { return false };
        match error {
            sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut => true,
            sqlx::Error::Database(error) => error.code().is_some_and(|code| is_transient(&code)),
            _ => false,
        }
    }
}

/// Returns whether a code reports a temporary failure. A SQLSTATE has five characters, a code of
/// SQLite at most four digits.
fn is_transient(code: &str) -> bool {
    match code.len() {
        5 => CLASSES.iter().any(|class| code.starts_with(class)),
        _ => code.parse::<u32>().is_ok_and(|code| LOCKS.contains(&(code & 0xff))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restarts_and_locks_pass_and_mistakes_stay() {
        // These codes are admin_shutdown, cannot_connect_now, connection_failure,
        // too_many_connections, SQLITE_BUSY, SQLITE_BUSY_RECOVERY and SQLITE_LOCKED.
        for code in ["57P01", "57P03", "08006", "53300", "5", "261", "6"] {
            assert!(is_transient(code), "{code}");
        }
        // These codes are query_canceled, undefined_table, invalid_password, SQLITE_CORRUPT and
        // SQLITE_CONSTRAINT_UNIQUE.
        for code in ["57014", "42P01", "28P01", "11", "2067", ""] {
            assert!(!is_transient(code), "{code}");
        }
    }

    #[test]
    fn a_closed_pool_stays_closed() {
        assert!(!StoreError::from(sqlx::Error::PoolClosed).is_transient());
        assert!(StoreError::from(sqlx::Error::PoolTimedOut).is_transient());
    }
}
