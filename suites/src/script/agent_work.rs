//! Posts work requests of a script.

use weft_agent::protocol::{Action, Object, Success};

use super::agent_options::WorkFields;
use crate::stage::Stage;

/// Posts a work request. Returns its number and the result. If the agent refuses the work request,
/// and the script accepts a refusal, returns the reason instead of the number.
pub(super) async fn post(
    stage: &mut Stage,
    work: &WorkFields,
    action: impl FnOnce(u64) -> Action,
) -> mlua::Result<(Option<u64>, Success, Option<String>)> {
    let number = work.work.unwrap_or_else(|| stage.agent().next_work());
    match stage.agent().stimulate(action(number)).await? {
        Err(failure) if work.may_refuse => Ok((None, Success::Nothing, Some(failure.to_string()))),
        result => Ok((Some(number), stage.agent().succeeded(result)?, None)),
    }
}

/// Posts a receive on a pair or on a shared receive queue.
pub(super) async fn post_receive(
    stage: &mut Stage,
    on: Object,
    work: &WorkFields,
) -> mlua::Result<(Option<u64>, Option<String>)> {
    let parts = work.parts.clone();
    let (number, _, why) = post(stage, work, |work| Action::PostReceive { on, work, parts }).await?;
    Ok((number, why))
}
