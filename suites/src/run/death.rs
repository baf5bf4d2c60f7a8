//! A target that dies of a case: a good exchange worked before the stimulus, and none works after it.
//!
//! Such a case fails, and what is known of the target's end belongs to its report: how the program ended that was started as
//! the target, and what the command `crashed` prints.

use std::sync::Arc;

use super::RunError;
use super::case::Site;
use super::excuse;
use crate::model::{CaseInfo, CaseKey, Event, EventSink};
use crate::stage::Stage;
use crate::target::{CRASHED_SECONDS, Start, Target, TargetKind};

impl Site {
    /// Fails a case whose target is dead behind it, if that is certain.
    pub(super) async fn judge_death(
        &self,
        case: &CaseInfo,
        key: &CaseKey,
        target: &Arc<Target>,
        stage: &mut Stage,
    ) -> Result<(), RunError> {
        if target.kind != TargetKind::Tcp || !stage.log.is_dead_after() {
            return Ok(());
        }
        let state = excuse::TargetState { address: stage.target_address(), has_ended: stage.has_target_ended() };
        let mut words = stage.target_end();
        // It may serve one connection at a time.
        stage.leave().await;
        // One exchange may fail by chance. A person is not asked for another connection.
        let reached = self.live.link(target)?;
        if !matches!(reached.start, Some(Start::Person { .. })) {
            let quiet: Arc<dyn EventSink> = Arc::new(|_: &Event| {});
            let mut look = Stage::new(target.clone(), reached, key.clone(), quiet);
            let alive = look.good_exchange(Vec::new(), None).await.is_ok();
            look.leave().await;
            if alive {
                return Ok(());
            }
        }
        let mut has_crashed = false;
        if let Some(crashed) = &target.crashed {
            let (ended, printed) = crashed.run_and_read(target.scaled(CRASHED_SECONDS)).await;
            has_crashed = ended.is_ok();
            if has_crashed {
                words.extend(printed);
            }
        }
        if state.has_ended || has_crashed || excuse::host_is_there(target, state).await {
            let first = case.requirements.first().copied();
            stage.log.fail_as_dead(first, words.last().map(String::as_str));
            words.iter().for_each(|words| stage.note(&format!("last words of the target: {words}")));
        }
        Ok(())
    }
}
