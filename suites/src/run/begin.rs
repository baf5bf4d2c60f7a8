//! Begins a run: with a new plan, or with the plan and the results of an unfinished run.

use super::recorder::RetryPolicy;
use super::{Filter, Plan, RunError, seed};
use crate::clock;
use crate::model::{Capability, CaseKey, CaseResult, Labels, RunInfo, TargetInfo};
use crate::script::Suites;
use crate::store::Store;
use crate::targets::Target;

/// A run that has begun, and is in the store.
pub(super) struct StartedRun {
    pub(super) run: RunInfo,
    pub(super) plan: Plan,
    /// For each key of the plan, the result that a resumed run already has, if there is one.
    pub(super) results: Vec<Option<CaseResult>>,
    /// Time that a resumed run took before it was stopped, in microseconds. 0 for a new run.
    pub(super) spent_us: u64,
}

/// Returns the capabilities that the target of a new run lost since the newest run that probed it.
/// A run with the facts of an earlier run has what the target lost at that time.
pub(super) async fn lost_capabilities(
    store: &Store,
    target: &Target,
    retry_policy: &mut RetryPolicy,
) -> Result<Vec<Capability>, RunError> {
    if let Some(lost) = &target.options.lost_capabilities {
        return Ok(lost.clone());
    }
    if target.options.probed_facts.is_none() {
        return Ok(Vec::new());
    }
    let mut retries = retry_policy.retries();
    loop {
        match store.last_probed(target.name()).await {
            Ok(earlier) => return Ok(earlier.map(|earlier| target.lost_since(&earlier)).unwrap_or_default()),
            Err(error) => retries.wait_after(error).await?,
        }
    }
}

/// Begins a new run.
pub(super) async fn start_new(
    store: &Store,
    target: TargetInfo,
    suites: &Suites,
    filter: &Filter,
    seed: Option<u64>,
    labels: &Labels,
    retry_policy: &mut RetryPolicy,
) -> Result<StartedRun, RunError> {
    let seed = seed.unwrap_or(seed::DEFAULT_SEED);
    let plan = Plan::of(suites, filter, seed);
    let started_unix_ms = clock::unix_ns() / 1_000_000;
    let run = RunInfo {
        id: seed::run_id(started_unix_ms),
        target,
        seed,
        started_unix_ms,
        weft_version: env!("CARGO_PKG_VERSION").to_owned(),
        is_selection: plan.is_selection(suites, seed),
        rerun_of: filter.rerun_of().map(str::to_owned),
        suites: suites.folder.as_ref().map(|folder| folder.display().to_string()),
        labels: labels.clone(),
    };
    let mut retries = retry_policy.retries();
    while let Err(error) = store.begin(&run, &plan.cases, &plan.keys).await {
        retries.wait_after(error).await?;
    }
    let results = plan.keys.iter().map(|_| None).collect();
    Ok(StartedRun { run, plan, results, spent_us: 0 })
}

/// Resumes the newest unfinished run against the target.
pub(super) async fn resume(store: &Store, target: &TargetInfo, suites: &Suites) -> Result<StartedRun, RunError> {
    let name = target.name.as_str();
    let nothing = || RunError::Resume(format!("this store has no unfinished run against {name}"));
    let id = store.unfinished(name).await?.ok_or_else(nothing)?;
    let detail = store.run(&id).await?.ok_or_else(nothing)?;
    let report = store.report(&id).await?.ok_or_else(nothing)?;
    let changed = |what: String| RunError::Resume(format!("run {id} cannot be resumed: {what}"));
    let known = &detail.record.info.target;
    if !known.has_same_description(target) {
        return Err(changed(format!("the description of {name} has changed since the run began")));
    }
    // The facts are missing if the agent did not answer.
    if !known.device.is_empty() && !target.device.is_empty() && known.device != target.device {
        return Err(changed(format!("the firmware, driver or kernel of {name} has changed since the run began")));
    }
    let weft = env!("CARGO_PKG_VERSION");
    if detail.record.info.weft_version != weft {
        return Err(changed(format!(
            "weft {} started the run, but this is weft {weft}",
            detail.record.info.weft_version
        )));
    }
    for case in &detail.cases {
        if suites.case(&case.id).is_none_or(|now| now.info.version != case.version) {
            return Err(changed(format!("the suites no longer have version {} of {}", case.version, case.id)));
        }
    }
    let keys: Vec<_> = detail.planned.into_iter().map(|planned| planned.key).collect();
    let find = |key: &CaseKey| report.results.iter().find(|result| result.key == *key).cloned();
    let results: Vec<Option<CaseResult>> = keys.iter().map(find).collect();
    let spent_us = report.summary.duration_us;
    Ok(StartedRun { run: detail.record.info, plan: Plan { cases: detail.cases, keys }, results, spent_us })
}
