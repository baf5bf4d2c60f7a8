//! How many requirements hold, in words.

use weft_suites::model::Score;

/// `41 of 45 MUST, 3 of 3 SHOULD`: of those that were tried.
pub(super) fn words(score: &Score) -> String {
    let part =
        |(strength, tally): (_, weft_suites::model::Tally)| format!("{} of {} {strength}", tally.held, tally.tried());
    score.parts().map(part).collect::<Vec<_>>().join(", ")
}
