//! The ladder diagram of a transcript, in a form that a page without inline styles may hold.

use weft_suites::model::Step;
use weft_suites::report;

/// The diagram as SVG. Its style attributes become presentation attributes, which the pages' Content-Security-Policy allows;
/// the values are the same, custom properties included.
pub(super) fn svg(steps: &[Step]) -> String {
    with_attributes(&report::ladder(steps))
}

/// In that SVG all text is escaped: a quotation mark stands only around attributes, and `style="` only begins one.
fn with_attributes(svg: &str) -> String {
    const BEGIN: &str = " style=\"";
    let mut out = String::with_capacity(svg.len());
    let mut rest = svg;
    while let Some((before, behind)) = rest.split_once(BEGIN) {
        out.push_str(before);
        let Some((style, after)) = behind.split_once('"') else { break };
        for (name, value) in style.split(';').filter_map(|one| one.split_once(':')) {
            out.push_str(&format!(" {}=\"{}\"", name.trim(), value.trim()));
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_suites::model::{Direction, Octets, StepKind};

    #[test]
    fn styles_become_attributes_and_text_stays() {
        let before = "<line x1=\"1\" style=\"stroke:var(--a,#888);stroke-width: 2\"/><text>style=&quot;x</text>";
        let after = "<line x1=\"1\" stroke=\"var(--a,#888)\" stroke-width=\"2\"/><text>style=&quot;x</text>";
        assert_eq!(with_attributes(before), after);
    }

    #[test]
    fn no_style_is_left_in_a_diagram() {
        let kinds = [StepKind::Octets, StepKind::Met, StepKind::Unmet, StepKind::Reset, StepKind::Note];
        let directions = [Direction::Sent, Direction::Received, Direction::Observed];
        let steps: Vec<Step> = kinds
            .into_iter()
            .flat_map(|kind| directions.map(|direction| (kind, direction)))
            .map(|(kind, direction)| Step {
                at_ns: 1,
                connection: 1,
                direction,
                kind,
                text: "a style=\"color:red\" <b>".into(),
                octets: Some(Octets::new(b"MPA")),
            })
            .collect();
        let svg = svg(&steps);
        assert!(!svg.contains(" style=\"") && svg.contains("stroke=\"") && svg.contains("style=&quot;color:red&quot;"));
    }
}
