//! The migrations of the results store: one step for each file of `suites/migrations`, in order.
//!
//! A released step never changes: the database stores the hash of the step's text, and rejects a
//! changed text. The steps are listed here, because the macro `sqlx::migrate!` would compile all of
//! sqlx and SQLite a second time, for use inside the compiler.

use sqlx::SqlSafeStr;
use sqlx::migrate::{Migration, MigrationType, Migrator};

/// Version, name and text of each step. The file is `VERSION_NAME.sql`.
const STEPS: [(i64, &str, &str); 6] = [
    (1, "runs", include_str!("../../migrations/0001_runs.sql")),
    (2, "runs by target", include_str!("../../migrations/0002_runs_by_target.sql")),
    (3, "lists", include_str!("../../migrations/0003_lists.sql")),
    (4, "judged", include_str!("../../migrations/0004_judged.sql")),
    (5, "alive", include_str!("../../migrations/0005_alive.sql")),
    (6, "sequence", include_str!("../../migrations/0006_sequence.sql")),
];

/// Returns the migrations that update a database to the newest schema.
pub(super) fn migrator() -> Migrator {
    let step = |(version, name, text): (i64, &'static str, &'static str)| {
        Migration::new(version, name.into(), MigrationType::Simple, text.into_sql_str(), false)
    };
    Migrator::with_migrations(STEPS.map(step).into())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{STEPS, migrator};

    /// A file that is missing in the table would never be applied.
    #[test]
    fn lists_every_file() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
        let mut files: Vec<String> = folder
            .read_dir()
            .expect("the folder")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name of UTF-8"))
            .collect();
        files.sort();
        let listed: Vec<String> =
            STEPS.iter().map(|(version, name, _)| format!("{version:04}_{}.sql", name.replace(' ', "_"))).collect();
        assert_eq!(listed, files);
    }

    /// The hashes in databases of version 0.1, as `sha384sum suites/migrations/*.sql` prints them.
    /// If they change, existing stores cannot be opened.
    #[test]
    fn keeps_the_hashes_of_existing_stores() {
        let hashes: Vec<String> =
            migrator().iter().map(|step| step.checksum.iter().map(|byte| format!("{byte:02x}")).collect()).collect();
        assert_eq!(
            hashes[..4],
            [
                "091f837b8df4936ab9780530e11bc64c422a1b50cc8dc4e059627564324da5ca18e733686621ce4f81b810c15dfdb493",
                "98f2cdc313dae77623ccc25a24663362a87e0649f7684b528e12387b98ec65df41d2d2c98fdfbb2c1639408d44f7e23b",
                "051dbe72666c721bda48c01a0de9095dcc30ceb8f71be3dc742bc0ac37e34eabe7f5cb0a21d2127d61126f25557cdd77",
                "bc4c653d195046fc2a33327146ecbae22452f10de86ceb74cc6860d6b9708259c1113f22c77e6ca0fb5960de65fe1bc4",
            ]
        );
    }
}
