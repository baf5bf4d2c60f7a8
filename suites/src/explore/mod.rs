//! Judged random traffic. weft draws sessions (selects their steps at random) that the protocols
//! and the target's service allow, plays them, and judges them like cases. A session that fails is
//! reduced and saved as a case.
//!
//! | file | content |
//! | --- | --- |
//! | `limits` | what the target can do: the largest Send, connections at the same time |
//! | `shrink` | reduces a session that fails |
//!
//! The seed determines the sessions, as long as the target has the same limits. Each deliberate
//! fault in a session is a separate step. So if the target refuses any other step, that is a
//! failure.

mod limits;
mod shrink;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fastrand::Rng;
use tokio::sync::watch;
use weft_core::RequirementId;

use crate::model::{CaseResult, RequirementVerdict, Verdict};
use crate::run::{CaseRunner, RunError, random_seed};
use crate::script::Suites;
use crate::session::{self, Profile, SessionService, Step};
use crate::targets::Target;

/// After this number of consecutive sessions without a verdict, a service is not explored any more.
const MAX_UNDECIDED: u32 = 5;
/// After this number of different failures, the exploration stops.
const MAX_FAILURES: usize = 20;
/// Maximum number of times that weft plays a reduced session until it fails again. If it never
/// fails again, weft saves the session without the reduction.
const REPLAYS: usize = 3;
/// Interval between two reports of the progress. A new failure is also reported at once.
const PROGRESS: Duration = Duration::from_secs(1);

/// How to explore.
#[derive(Debug, Clone)]
pub struct ExploreOptions {
    /// The target. Its service is echo, rping, or an SDP echo, sink or source.
    pub target: Target,
    /// Folder for the saved cases: a folder of suites. It is created if it is missing. Cases of an
    /// earlier exploration are deleted.
    pub out: PathBuf,
    /// Seed of the sessions. If it is `None`, weft draws a random seed.
    pub seed: Option<u64>,
    /// How long to draw sessions. The reduction of a failure is part of this time.
    pub time: Duration,
    /// Maximum number of sessions. `None`: no maximum.
    pub sessions: Option<u64>,
    /// Maximum number of connections of a session at a time, from 1.
    pub connections: u32,
    /// Whether the exploration ends after the first failure, when the failure is reduced and saved.
    pub until_fail: bool,
    /// Becomes `true` when the exploration shall stop.
    pub cancel: Option<watch::Receiver<bool>>,
}

/// Counts of an exploration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExploreProgress {
    /// Number of sessions that were drawn and played.
    pub sessions: u64,
    /// Number of their steps.
    pub steps: u64,
    /// Number of sessions that failed.
    pub failed: u64,
    /// Number of different failures. Each has a saved case.
    pub failures: usize,
    /// Number of sessions without a verdict, for example because the link was lost.
    pub undecided: u64,
}

/// A failure that the exploration found.
#[derive(Debug, Clone)]
pub struct ExploredFailure {
    /// Id of the saved case.
    pub case: String,
    /// Number of steps before and after the reduction.
    pub steps: [usize; 2],
    /// The result of the reduced session.
    pub result: CaseResult,
}

/// The result of an exploration.
#[derive(Debug, Clone)]
pub struct Exploration {
    /// The seed.
    pub seed: u64,
    /// The limits of the target that the sessions respect, a sentence for each.
    pub limits: Vec<String>,
    /// The counts.
    pub progress: ExploreProgress,
    /// The failures, in the order in which they were found.
    pub failures: Vec<ExploredFailure>,
    /// The reason why the most recent undecided session has no verdict.
    pub undecided: Option<String>,
    /// Why the exploration ended before its time, if it did.
    pub stopped: Option<String>,
}

/// Why a target cannot be explored.
#[derive(Debug, thiserror::Error)]
pub enum ExploreError {
    /// The service of the target has no sessions.
    #[error(
        "{0} has the service {1}; --explore needs a target with the service `echo` or `rping`, or an SDP socket that echoes, discards or sends data"
    )]
    Service(String, &'static str),
    /// The tester cannot work.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Plays sessions. Each session is a separate case.
struct Player {
    runner: CaseRunner,
    /// Folder for the evidence of the current session.
    scratch: PathBuf,
}

impl Player {
    /// Plays a session and returns its result.
    async fn play(&self, service: SessionService, name: &str, steps: &[Step]) -> Result<CaseResult, RunError> {
        let file = format!("{}/{name}.lua", service.topic());
        let suites = Suites::generated(&file, session::lua(service, name, "", steps, &[]));
        // The text is generated from steps, and each sequence of steps is a correct case.
        let case = suites.map_err(|error| RunError::Write {
            path: self.scratch.clone(),
            error: std::io::Error::other(error.to_string()),
        })?;
        self.runner.run(&case).await
    }
}

/// Returns the requirements that the target violated in a session. Empty if the session did not
/// fail.
fn violated(result: &CaseResult) -> BTreeSet<RequirementId> {
    result.failing().collect()
}

/// Explores a target. Calls `progress` at most once per second, and after each failure.
///
/// # Errors
/// The target has no service with sessions, or the tester cannot work.
pub async fn explore(
    options: &ExploreOptions,
    mut progress: impl FnMut(&ExploreProgress),
) -> Result<Exploration, ExploreError> {
    let began = Instant::now();
    let target = &options.target;
    let offered = SessionService::ALL.into_iter().filter(|(service, _)| target.offers(*service));
    let services: Vec<SessionService> = offered.map(|(_, service)| service).collect();
    if services.is_empty() {
        return Err(ExploreError::Service(target.name().to_owned(), target.service().as_str()));
    }
    let seed = options.seed.unwrap_or_else(random_seed);
    let failed = |path: &Path| {
        let path = path.to_owned();
        |error| RunError::Write { path, error }
    };
    for service in &services {
        let folder = options.out.join(service.topic());
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(&folder)(error).into()),
            _ => fs::create_dir_all(&folder).map_err(failed(&folder))?,
        }
    }
    // weft does not read a folder as suites if its name begins with a dot.
    let scratch = options.out.join(".session");
    let suites = Suites::none();
    let player = Player { runner: CaseRunner::open(target, suites, scratch.clone(), seed).await?, scratch };

    let mut found = Exploration {
        seed,
        limits: Vec::new(),
        progress: ExploreProgress::default(),
        failures: Vec::new(),
        undecided: None,
        stopped: None,
    };
    let mut sources = Vec::new();
    let mut known: Vec<BTreeSet<RequirementId>> = Vec::new();
    for service in services {
        let (profile, sentences) = limits::find(&player, target, service, options.connections).await?;
        found.limits.extend(sentences);
        let name = format!("{seed}-0");
        let result = player.play(service, &name, &[]).await?;
        let always = violated(&result);
        sources.push(SessionSource { profile, always: always.clone(), undecided: 0 });
        if !always.is_empty() && !known.contains(&always) {
            known.push(always);
            let origin = format!("A session of seed {seed} without steps. Every session fails in the same way.");
            let case = save(&options.out, service, &name, &origin, &[], &result)?;
            found.failures.push(ExploredFailure { case, steps: [0, 0], result });
            found.progress.failures = found.failures.len();
        }
    }
    let mut shown = Instant::now();
    // A reduction may continue after `options.time`, for at most half of this time.
    let end = began + options.time + options.time / 2;
    let is_cancelled = || options.cancel.as_ref().is_some_and(|cancel| *cancel.borrow());
    let is_over = || is_cancelled() || Instant::now() >= end;
    while began.elapsed() < options.time && options.sessions.is_none_or(|most| found.progress.sessions < most) {
        if is_cancelled() {
            found.stopped = Some("the exploration was interrupted".to_owned());
            break;
        }
        if options.until_fail && !found.failures.is_empty() {
            found.stopped = Some("weft found a failure".to_owned());
            break;
        }
        let number = found.progress.sessions + 1;
        let mut rng = Rng::with_seed(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let chosen = rng.usize(..sources.len());
        let SessionSource { profile, always, .. } = &sources[chosen];
        let (profile, always) = (*profile, always.clone());
        let steps = match profile.service.is_sdp() {
            true => session::sdp_steps(&mut rng, profile.connections),
            false => session::steps(&mut rng, &profile),
        };
        let name = format!("{seed}-{number}");
        let result = player.play(profile.service, &name, &steps).await?;
        found.progress.sessions = number;
        found.progress.steps += steps.len() as u64;
        let rows: BTreeSet<RequirementId> = violated(&result).difference(&always).copied().collect();
        if rows.is_empty() && matches!(result.verdict, Verdict::Inconclusive | Verdict::Error) {
            found.progress.undecided += 1;
            found.undecided = Some(result.explanation.clone());
            sources[chosen].undecided += 1;
            if sources[chosen].undecided >= MAX_UNDECIDED {
                let (service, why) = (profile.service.name(), &result.explanation);
                found.limits.push(format!("no verdict in {MAX_UNDECIDED} consecutive sessions with {service} ({why})"));
                sources.remove(chosen);
                if sources.is_empty() {
                    found.stopped = Some("the last sessions of every service had no verdict".to_owned());
                    break;
                }
            }
        } else {
            sources[chosen].undecided = 0;
        }
        if !rows.is_empty() {
            found.progress.failed += 1;
            if !known.contains(&rows) {
                let failure = reduce(&player, &profile, &name, steps, result, &rows, &is_over).await?;
                known.push(rows);
                // The reduced session may violate fewer requirements than the session that was
                // drawn. An earlier failure may already have violated the same requirements.
                let rows: BTreeSet<RequirementId> = violated(&failure.result).difference(&always).copied().collect();
                if known[..known.len() - 1].contains(&rows) {
                    continue;
                }
                known.push(rows);
                let [before, after] = failure.steps;
                let origin = format!("Session {number} of seed {seed}, reduced from {before} to {after} steps.");
                let case = save(&options.out, profile.service, &name, &origin, &failure.reduced, &failure.result)?;
                found.failures.push(ExploredFailure { case, steps: failure.steps, result: failure.result });
                found.progress.failures = found.failures.len();
                progress(&found.progress);
                if found.failures.len() >= MAX_FAILURES {
                    found.stopped = Some(format!("weft found {MAX_FAILURES} different failures"));
                    break;
                }
            }
        }
        if shown.elapsed() >= PROGRESS {
            shown = Instant::now();
            progress(&found.progress);
        }
    }
    // The evidence of the last session is not needed any more. It is written again with each run of
    // a saved case.
    let _ = fs::remove_dir_all(&player.scratch);
    Ok(found)
}

/// A service of the target, for which sessions are drawn.
struct SessionSource {
    profile: Profile,
    /// Requirements that the target violates in every session, even in a session without steps.
    always: BTreeSet<RequirementId>,
    /// The number of consecutive sessions without a verdict.
    undecided: u32,
}

/// Writes a session as a case, and returns the id of the case. `origin` describes in one line where
/// the session comes from.
fn save(
    out: &Path,
    service: SessionService,
    name: &str,
    origin: &str,
    steps: &[Step],
    result: &CaseResult,
) -> Result<String, RunError> {
    let is_observed = |judged: &&RequirementVerdict| judged.verdict == Verdict::Fail && judged.also_observed;
    let observed: Vec<RequirementId> =
        result.requirements.iter().filter(is_observed).map(|judged| judged.requirement).collect();
    let path = out.join(service.topic()).join(format!("{name}.lua"));
    let text = session::lua(service, name, origin, steps, &observed);
    fs::write(&path, text).map_err(|error| RunError::Write { path, error })?;
    Ok(format!("{}/{name}", service.topic()))
}

/// A reduced session.
struct Reduced {
    steps: [usize; 2],
    reduced: Vec<Step>,
    result: CaseResult,
}

/// Reduces a session that violates `rows`, as its result `first` shows.
async fn reduce(
    player: &Player,
    profile: &Profile,
    name: &str,
    steps: Vec<Step>,
    first: CaseResult,
    rows: &BTreeSet<RequirementId>,
    is_cancelled: &impl Fn() -> bool,
) -> Result<Reduced, RunError> {
    let before = steps.len();
    let fails = async |steps: &[Step]| {
        if is_cancelled() {
            return Ok(false);
        }
        let result = player.play(profile.service, name, steps).await?;
        Ok::<bool, RunError>(violated(&result).intersection(rows).next().is_some())
    };
    let (mut reduced, _) = shrink::shrink(steps.clone(), fails).await?;
    number_from_1(&mut reduced);
    // There are two reasons why the reduced session may not fail again. First, the new numbers
    // change the order in which the last connections are closed. Second, if the failure depends on
    // the timing, the shorter session may have failed only by chance.
    for steps in [&reduced, &steps] {
        for _ in 0..REPLAYS {
            if is_cancelled() {
                break;
            }
            let result = player.play(profile.service, name, steps).await?;
            if violated(&result).intersection(rows).next().is_some() {
                return Ok(Reduced { steps: [before, steps.len()], reduced: steps.clone(), result });
            }
        }
    }
    Ok(Reduced { steps: [before, before], reduced: steps, result: first })
}

/// Numbers the connections from 1, in the order of their first steps.
fn number_from_1(steps: &mut [Step]) {
    let mut numbers = Vec::new();
    for number in steps.iter_mut().filter_map(Step::connection) {
        let place = numbers.iter().position(|known| known == number).unwrap_or_else(|| {
            numbers.push(*number);
            numbers.len() - 1
        });
        *number = u32::try_from(place + 1).unwrap_or(u32::MAX);
    }
}
