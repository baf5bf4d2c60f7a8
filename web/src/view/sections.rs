//! The page with the requirements that a run judged, by section of the specifications.

use std::collections::BTreeMap;

use askama::Template;
use weft_core::RequirementId;
use weft_core::requirement::Catalogue;
use weft_suites::model::{RunInfo, Verdict};
use weft_suites::report::{Section, sections_of};

use super::{time, url};

#[derive(Template)]
#[template(path = "sections.html")]
struct Page<'a> {
    info: &'a RunInfo,
    run_href: String,
    started: String,
    parts: Vec<Part>,
}

/// One specification.
struct Part {
    name: String,
    sections: Vec<Line>,
    pass: usize,
    fail: usize,
    undecided: usize,
}

struct Line {
    section: Section,
    requirements: Vec<(RequirementId, Verdict)>,
}

impl Line {
    fn judged(&self) -> usize {
        self.section.pass + self.section.fail + self.section.undecided
    }
}

/// Renders the page. `judged` has the worst verdict of each requirement.
pub(crate) fn sections(info: &RunInfo, judged: &BTreeMap<RequirementId, Verdict>) -> Result<String, askama::Error> {
    let sections = sections_of(judged.clone());
    let line = |section: &Section| {
        let is_in_section =
            |id: &RequirementId| (id.row().catalogue, id.row().section) == (section.catalogue, section.section);
        let requirements =
            judged.iter().filter(|(id, _)| is_in_section(id)).map(|(id, verdict)| (*id, *verdict)).collect();
        Line { section: section.clone(), requirements }
    };
    let part = |sections: &[Section]| Part {
        name: sections.first().map(|first| name(first.catalogue)).unwrap_or_default(),
        pass: sections.iter().map(|section| section.pass).sum(),
        fail: sections.iter().map(|section| section.fail).sum(),
        undecided: sections.iter().map(|section| section.undecided).sum(),
        sections: sections.iter().map(line).collect(),
    };
    let parts = sections.chunk_by(|a, b| a.catalogue == b.catalogue).map(part).collect();
    Page { info, run_href: url::run(&info.id), started: time::utc(info.started_unix_ms), parts }.render()
}

fn name(catalogue: Catalogue) -> String {
    format!("{} ({catalogue})", catalogue.specification())
}
