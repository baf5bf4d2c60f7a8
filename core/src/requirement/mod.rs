//! The requirement catalogues: every normative statement of the specifications as a row with a
//! stable id.
//!
//! The rows come from `core/requirements/*.csv` at build time; a damaged catalogue does not
//! compile. Code names a requirement with [`requirement!`](crate::requirement!), which refuses an
//! unknown id at compile time; data (suite scripts, baselines) goes through
//! [`RequirementId::from_str`](std::str::FromStr), which refuses it at load time.
//!
//! Coverage of the rows is counted in `weft-suites`, not here.

mod id;
mod level;
mod row;

pub use id::{RequirementId, UnknownRequirement, all, by_name};
pub use level::{Level, Severity};
pub use row::{Catalogue, Class, Classified, Observe, Requirement};
