//! Finds the value of a parameter at which a target begins to fail.
//!
//! A case lists only some values of a parameter. The case can declare the parameter as a scale: then
//! each value between the listed values is valid, too. If the target passes for a value and fails for
//! the next listed value, weft runs the case with values between the two, and halves the distance each
//! time. These runs leave evidence, but no results.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use tokio::sync::watch;

use super::context::RunContext;
use super::{RunError, cancelled};
use crate::model::{Boundary, CaseKey, CaseResult, ParameterValue, Parameters, Verdict};

/// Maximum number of boundaries that one run searches. The search takes time, and a target that fails
/// everywhere has the same reason everywhere. The other boundaries have the listed values.
const MAX_SEARCHED: usize = 10;

/// A case, one of its scales, and the values of all other parameters.
type Line<'r> = (&'r str, &'r str, Parameters);

/// The nearest values with different verdicts.
#[derive(Debug, PartialEq, Eq)]
struct Bracket {
    /// The variant that failed.
    key: CaseKey,
    parameter: String,
    passes: i64,
    fails: i64,
}

impl RunContext {
    /// Finds the boundaries of all scales in these results. If the run is cancelled, the boundaries
    /// have the nearest values that were found until then.
    pub(super) async fn boundaries(
        &self,
        results: &[CaseResult],
        cancel: &mut Option<watch::Receiver<bool>>,
    ) -> Result<Vec<Boundary>, RunError> {
        self.is_silent.store(true, Relaxed);
        let mut found = Vec::new();
        let verdicts = results.iter().map(|result| (&result.key, result.verdict));
        for bracket in brackets(verdicts, |case| self.suites.scales_of(case)) {
            let is_searched = found.len() < MAX_SEARCHED;
            let Bracket { mut key, parameter, mut passes, mut fails } = bracket;
            let mut runs = 0;
            while is_searched && passes.abs_diff(fails) > 1 {
                let middle = passes.midpoint(fails);
                let mut tried = key.clone();
                tried.parameters.insert(parameter.clone(), ParameterValue::Integer(middle));
                let finished = tokio::select! {
                    biased;
                    () = cancelled(cancel) => break,
                    finished = self.run_case(&tried) => finished?,
                };
                runs += 1;
                match finished.into_result().verdict {
                    Verdict::Pass => passes = middle,
                    Verdict::Fail => (key, fails) = (tried, middle),
                    // The values between the two have no verdict.
                    _ => break,
                }
            }
            found.push(Boundary { key, parameter, passes, fails, runs });
        }
        Ok(found)
    }
}

/// Returns for each scale the last value that passes and the first value that fails, if the verdict
/// changes exactly once from the least value to the greatest.
fn brackets<'r, 's>(
    results: impl Iterator<Item = (&'r CaseKey, Verdict)>,
    scales_of: impl Fn(&str) -> &'s [String],
) -> Vec<Bracket> {
    let mut lines: BTreeMap<Line<'_>, Vec<(i64, &CaseKey, Verdict)>> = BTreeMap::new();
    for (key, verdict) in results {
        for scale in scales_of(&key.case) {
            let mut others = key.parameters.clone();
            if let Some(ParameterValue::Integer(value)) = others.remove(scale) {
                lines.entry((&key.case, scale, others)).or_default().push((value, key, verdict));
            }
        }
    }
    let mut found: Vec<Bracket> = Vec::new();
    for ((case, parameter, _), mut line) in lines {
        line.sort_by_key(|(value, ..)| *value);
        let mut changes = line.windows(2).filter_map(|pair| match pair {
            [one, other] if one.2 != other.2 => Some((*one, *other)),
            _ => None,
        });
        let (Some((one, other)), None) = (changes.next(), changes.next()) else { continue };
        let (passes, fails) = match (one.2, other.2) {
            (Verdict::Pass, Verdict::Fail) => (one, other),
            (Verdict::Fail, Verdict::Pass) => (other, one),
            _ => continue,
        };
        // The other parameters rarely move a boundary, so one line of each case is enough.
        if !found.iter().any(|known| known.key.case == case && known.parameter == parameter) {
            let parameter = parameter.to_owned();
            found.push(Bracket { key: fails.1.clone(), parameter, passes: passes.0, fails: fails.0 });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_has_a_bracket_if_its_verdict_changes_once() {
        let scales = [String::from("size")];
        let of = |verdicts: &[(i64, Verdict)]| {
            let keys: Vec<CaseKey> =
                verdicts.iter().map(|(size, _)| format!("mpa/1-x/y[kind=a,size={size}]").parse().unwrap()).collect();
            let results = keys.iter().zip(verdicts).map(|(key, (_, verdict))| (key, *verdict));
            brackets(results, |_| &scales).into_iter().map(|it| (it.passes, it.fails)).collect::<Vec<_>>()
        };
        use Verdict::{Fail, Inconclusive, Pass};
        assert_eq!(of(&[(1, Pass), (4, Pass), (1441, Fail), (9000, Fail)]), [(4, 1441)]);
        assert_eq!(of(&[(9, Pass), (1, Fail)]), [(9, 1)]);
        assert_eq!(of(&[(1, Pass), (2, Fail), (3, Pass)]), []);
        assert_eq!(of(&[(1, Pass), (2, Inconclusive)]), []);
        assert_eq!(of(&[(1, Pass), (2, Pass)]), []);
        assert_eq!(of(&[]), []);
    }
}
