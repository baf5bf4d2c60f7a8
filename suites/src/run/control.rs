//! The control run of a failed case, and its effect on the verdict. The control repeats the script
//! with correct bytes in place of the stimulus.
//!
//! If the control also fails, the case is inconclusive. Its explanation then names the basic cases
//! that failed in this run.

use std::sync::Arc;

use super::context::RunContext;
use super::error::RunError;
use crate::model::{CaseKey, Event, EventSink};
use crate::script::SuiteCase;
use crate::stage::Stage;
use crate::targets::{Start, Target};

impl RunContext {
    /// If the case failed, and a step of its script deviates from a correct exchange, runs the
    /// control of the case. Returns a sentence for the explanation, or an empty text.
    pub(super) async fn control(
        &self,
        case: &SuiteCase,
        key: &CaseKey,
        target: &Arc<Target>,
        seed: u64,
        stage: &mut Stage,
    ) -> Result<String, RunError> {
        let lengths = stage.log().control.lengths.clone();
        let has_startup = stage.log().control.has_startup;
        let has_fpdus = !lengths.is_empty() && target.service().driver().facts().has_plain_exchange;
        if !stage.log().has_failed() || lengths.is_empty() && !has_startup {
            return Ok(String::new());
        }
        if !has_startup && !has_fpdus {
            let service = target.service().as_str();
            return Ok(format!(
                " weft made no control run (the case without its unusual step), because a target with the service \
                 {service} sends no answers."
            ));
        }
        let case_link = self.live.link(target)?;
        if matches!(case_link.start, Some(Start::Manual { .. })) {
            return Ok(" weft made no control run (the case without its unusual step), because the target file has no `start`.".to_owned());
        }
        let quiet: Arc<dyn EventSink> = Arc::new(|_: &Event| {});
        let control = Stage::new(target.clone(), case_link, key.clone(), quiet).into_control(lengths);
        let control = self.run_script(case, key, target, seed, control).await?;
        let log = control.stage.log();
        let explanation =
            log.decision.as_ref().map_or("the control run has no verdict", |decision| &decision.explanation);
        Ok(match &log.control.outcome {
            Some(Ok(())) => {
                let legal = if has_startup { "a legal start-up" } else { "a correct exchange" };
                stage.recorder().note_control(&format!("the script works if {legal} replaces the step that deviates"));
                String::new()
            }
            Some(Err(why)) => {
                stage.recorder().note_control(why);
                stage.log_mut().excuse("The control run (the case without its unusual step) fails, too");
                let sentence = format!(" In the control run, {why}.");
                stage.log_mut().control.outcome = control.stage.log().control.outcome.clone();
                sentence
            }
            None => {
                stage.recorder().note_control(&format!("not reached: {explanation}"));
                match log.connections == 0 && log.refused.is_some() {
                    true => {
                        " weft made no control run (the case without its unusual step), because the target \
                         accepts no connection."
                    }
                    false => " The control run (the case without its unusual step) ended before this step.",
                }
                .to_owned()
            }
        })
    }
}
