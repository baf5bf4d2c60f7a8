//! The requirement catalogues. They contain every normative statement of the specifications, each
//! with a stable id.
//!
//! Each row of the files `core/requirements/*.csv` is a requirement. The build reads these files. A
//! damaged catalogue does not compile. Code names a requirement with
//! [`requirement!`](crate::requirement!), which rejects an unknown id at compile time. In data
//! files (suite scripts, baselines), [`RequirementId::from_str`](std::str::FromStr) parses the ids,
//! and rejects an unknown id at load time.
//!
//! `weft-suites` counts the coverage of the requirements.

mod id;
mod level;
mod row;

pub use id::{RequirementId, UnknownRequirement, all, by_name};
pub use level::{Level, Severity};
pub use row::{Catalogue, Class, Classification, Observe, Requirement};
