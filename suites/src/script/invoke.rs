//! Runs one case: a new Lua state, the script, then the function of the case.

use std::sync::Arc;

use mlua::{Lua, Table};
use tokio::sync::Mutex;

use super::agent::TargetVerbs;
use super::load::{self, LoadError, SuiteCase};
use super::objects::{Context, Tester};
use super::{Limits, location};
use crate::model::{Capability, CaseKey, ParameterValue, Parameters, SourceLocation};
use crate::stage::{Stage, Stop};
use crate::targets::Target;

/// The script itself is wrong. This is no verdict on the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScriptFault {
    pub(crate) at: SourceLocation,
    pub(crate) message: String,
}

/// Runs the function of a case until it ends. If the function did no good exchange after its last
/// expectation, `invoke` does a good exchange, to show that the target still works. The stage
/// records the target's actions.
pub(crate) async fn invoke(
    case: &SuiteCase,
    key: &CaseKey,
    stage: Arc<Mutex<Stage>>,
    target: Arc<Target>,
    limits: Limits,
    seed: u64,
) -> Result<(), ScriptFault> {
    let fault = |message: String| ScriptFault { at: case.info.source.clone(), message };
    let (lua, declared) = load::load(&case.script, limits, seed).map_err(|error| match error {
        LoadError::Script { at, message } => ScriptFault { at, message },
        other => fault(other.to_string()),
    })?;
    let Some(declared) = declared.into_iter().find(|declared| declared.info.id == case.info.id) else {
        return Err(fault(format!("the script no longer declares {}", case.info.id)));
    };
    let parameters = parameter_table(&lua, &key.parameters).map_err(|error| fault(error.to_string()))?;
    let requirements = Arc::new(case.info.requirements.clone());
    let needs_agent = case.info.capabilities.contains(&Capability::Agent);
    let context = Context { stage: Arc::clone(&stage), target, requirements };
    let agent = needs_agent.then(|| TargetVerbs { context: context.clone() });
    let tester = Tester { context };
    let run = async {
        declared.run.call_async::<()>((tester, parameters, agent)).await?;
        let mut stage = stage.lock().await;
        let log = stage.log();
        if log.decision.is_none() && !log.alive_after {
            stage.connections.at = Some(case.info.source.clone());
            stage.good_exchange(Vec::new()).await?;
        }
        mlua::Result::Ok(())
    };
    match tokio::time::timeout(limits.time, run).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) if error.downcast_ref::<Stop>().is_some() => Ok(()),
        Ok(Err(error)) => {
            let (at, message) = location::of_error(&error, &case.script.file);
            Err(ScriptFault { at: at.unwrap_or_else(|| case.info.source.clone()), message })
        }
        Err(_) => Err(fault(format!("the case took more than {:?}", limits.time))),
    }
}

/// Returns `p`, the table of parameters. If a script reads an unknown name, it gets an error, and
/// not nil.
fn parameter_table(lua: &Lua, parameters: &Parameters) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    for (name, value) in parameters {
        match value {
            ParameterValue::Bool(value) => table.raw_set(name.as_str(), *value)?,
            ParameterValue::Integer(value) => table.raw_set(name.as_str(), *value)?,
            ParameterValue::Text(value) => table.raw_set(name.as_str(), value.as_str())?,
        }
    }
    let names = parameters.keys().cloned().collect::<Vec<_>>().join(", ");
    let missing = lua.create_function(move |_, (_, name): (Table, String)| -> mlua::Result<()> {
        let known = if names.is_empty() { "none" } else { names.as_str() };
        Err(mlua::Error::runtime(format!("the case has no parameter {name:?}; parameters of the case: {known}")))
    })?;
    let meta = lua.create_table()?;
    meta.raw_set("__index", missing)?;
    table.set_metatable(Some(meta))?;
    Ok(table)
}
