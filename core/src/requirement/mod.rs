//! The requirement catalogues: every normative statement of the specifications, each with a stable
//! id.
//!
//! The build reads the requirements from `core/requirements/*.csv`, one per row. A damaged
//! catalogue does not compile. Code names a requirement with [`requirement!`](crate::requirement!),
//! which rejects an unknown id at compile time. Data files (suite scripts, baselines) are parsed by
//! [`RequirementId::from_str`](std::str::FromStr), which rejects an unknown id at load time.
//!
//! `weft-suites` counts the coverage of the requirements.

mod id;
mod level;
mod row;

pub use id::{RequirementId, UnknownRequirement, all, by_name};
pub use level::{Level, Severity};
pub use row::{Catalogue, Class, Classified, Observe, Requirement};
