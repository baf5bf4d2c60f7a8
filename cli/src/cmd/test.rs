//! `weft test`: runs the test suites against a target, the implementation under test.

mod explore;
mod old_options;
mod repeat;
mod screen;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;
use weft_suites::model::{Event, EventSink, Fanout, RunReport, TargetInfo, Tier, parse_label};
use weft_suites::recover::recover;
use weft_suites::script::Suites;
use weft_suites::targets::{MarkerDirections, Target};
use weft_suites::{Filter, RunOptions, Schedule, folder, random_seed, report, store};
use weft_web::{Access, CaptureOptions, Live, Retention, RunSchedule, WebOptions};

use crate::cmd::suite;
use crate::dashboard;
use crate::exit::{self, BadInput, print_line, reject};
use crate::results::{make_folder, open_store, record, terminal, write_allure};
use crate::runtime;
use crate::select::{self, SeedArgument};
use crate::signals;
use crate::suites::load;
use crate::target::{baseline_of, resolve};

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "`weft suite` lists and shows the cases, and the results of a case in earlier runs.\n\n\
    weft writes these files to the folder of --out:\n  \
    - the reports report.html, report.json, report.sarif, report.tap, junit.xml and summary.md\n  \
    - the results store results.sqlite, with the results of all runs\n  \
    - a capture evidence.pcapng and a log transcript.json for each case, passed or failed, in\n    \
    cases/<case>/<parameters>/\n\
    The next run with the same folder first moves the reports and cases to earlier/<run id>/. weft\n\
    keeps the newest 20 of these runs.\n\n\
    Examples:\n  \
    weft test builtin                                 test weft's own responder, on a virtual clock\n  \
    weft test builtin --deviate mpa.accepts-wrong-key  test a responder that violates one rule\n  \
    weft test nic.toml --out nic mpa/7.1.1-key MPA-7.1.2-4   run some cases against a NIC\n  \
    weft test nic.toml --out nic --resume             continue a stopped run\n  \
    weft test nic.toml --out nic --baseline known.toml   report only failures that are not known\n  \
    weft test nic.toml --explore --for 10m            play random sessions, and reduce those that fail")]
pub(crate) struct Arguments {
    /// Test this target: builtin, another builtin name, or a TOML file
    ///
    /// builtin is weft's own responder in this process, on a virtual clock. builtin-tcp is the same
    /// responder over TCP on loopback. builtin-plain supports neither CRCs nor RFC 6581.
    /// builtin-initiator and builtin-initiator-tcp are weft's initiator, which connects to the
    /// tester. A TOML file has the address and the properties of a target on the network. If the
    /// file of a responder has no capabilities, weft first probes the target to find them out.
    /// `weft target add` writes a file with capabilities.
    #[arg(value_name = "TARGET", required_unless_present_any = ["list", "show", "prove", "lua_annotations"])]
    target: Option<String>,
    /// Run only the cases of this id, id prefix, requirement, section or tag
    ///
    /// A case runs if it matches at least one SELECT. Examples: the id `mpa/7.1.1-key/wrong-octet`,
    /// the requirement MPA-7.1.1-2, the section mpa/7.1 or MPA-7.1. A prefix is the part of an id
    /// before a `/`. `id[parameter=value]` selects one variant.
    #[arg(value_name = "SELECT")]
    select: Vec<String>,
    /// Violate a rule on purpose (builtin targets only); repeatable
    ///
    /// `weft deviations` lists the names.
    #[arg(long, value_name = "NAME")]
    deviate: Vec<String>,
    /// Write the results to this folder
    ///
    /// weft first moves the files of an earlier run in this folder to DIR/earlier.
    #[arg(long, short, value_name = "DIR", default_value = "weft-report")]
    out: PathBuf,
    /// Also write Allure results to this folder
    ///
    /// `allure serve DIR` shows them. weft keeps the results of other runs in this folder.
    #[arg(long, value_name = "DIR")]
    allure: Option<PathBuf>,
    /// Use the suites of this folder instead of the built-in ones
    #[arg(long, value_name = "DIR")]
    suites: Option<PathBuf>,
    /// Use this seed for random choices: a number, or random for a new seed
    ///
    /// In the tiers smoke and default, the seed selects the variants of each case. The default seed
    /// is 1, so that two runs have the same variants and `weft diff` can compare them. With
    /// --repeat, random gives each run another seed. With --explore, the default is random.
    #[arg(long, value_name = "NUMBER|random", value_parser = select::seed)]
    seed: Option<SeedArgument>,
    /// Choose how many variants of each case to run
    ///
    /// `smoke` runs a few variants. `default` runs enough variants that any two values of different
    /// parameters occur together at least once. `full` runs all combinations of parameter values.
    #[arg(long, value_name = "TIER", default_value_t, value_parser = select::tier())]
    tier: Tier,
    /// Run all cases with markers in these directions
    ///
    /// A target file needs the capability `markers` if the target inserts markers, and
    /// `asks-for-markers` if the target requests markers. weft stores these results under another
    /// target name, such as builtin+markers.
    #[arg(long, value_name = "WHICH", value_enum)]
    markers: Option<Markers>,
    /// Run only part I of N of the selected cases
    ///
    /// All N parts together run each selected variant once. If you use --seed, use the same number
    /// for each part.
    #[arg(long, value_name = "I/N", value_parser = select::shard)]
    shard: Option<(usize, usize)>,
    /// Run only those selected cases that failed in the last complete run of the target
    ///
    /// If the target has no complete run, weft uses its newest partial run.
    #[arg(long, value_name = "WHICH", value_enum)]
    rerun: Option<Rerun>,
    /// Label the run, so that reports show the label and the dashboard can filter by it; repeatable
    ///
    /// Examples: --label firmware=2.1, --label host=lab-3. The table `labels` of a target file has
    /// the same effect.
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_label, conflicts_with = "resume")]
    label: Vec<(String, String)>,
    /// Capture on this interface during the run, and use the capture as evidence
    ///
    /// The evidence then has the real TCP segments, FINs and resets. Without this option, weft
    /// records its own bytes, and TCP headers in the evidence are synthetic. The field `capture` in
    /// a target file has the same effect as this option.
    #[arg(long, value_name = "IF")]
    capture: Option<String>,
    /// Reject a target file that runs commands on this machine
    ///
    /// The fields start, restart, crashed and agent can have commands.
    #[arg(long)]
    no_commands: bool,
    /// Also expect the failures that this file lists, in addition to those of the target file
    ///
    /// `weft baseline write` writes such a file. If a run has only expected failures, the exit code
    /// is 0.
    #[arg(long, value_name = "FILE", conflicts_with = "explore")]
    baseline: Option<PathBuf>,
    /// Run everything N times, and report the verdicts that change
    #[arg(long, value_name = "N", conflicts_with_all = ["tui", "web", "resume"], value_parser = clap::value_parser!(u32).range(1..))]
    repeat: Option<u32>,
    /// Repeat the run until a result is unexpected, at most --repeat times
    ///
    /// With --explore, the exploration ends after its first failure.
    #[arg(long, conflicts_with_all = ["tui", "web", "resume"])]
    until_fail: bool,
    /// Print each case that does not run, instead of counts by reason
    #[arg(long, short, conflicts_with = "quiet")]
    verbose: bool,
    /// Do not print the cases that pass, for example in a log of a CI system
    #[arg(long, short)]
    quiet: bool,
    /// Run this many cases at a time (builtin targets only)
    ///
    /// The default is 1 for a target in this process, and 24 for a builtin target over TCP. For
    /// other targets, weft always runs one case at a time.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    jobs: usize,
    /// Continue the newest unfinished run of this target
    ///
    /// If all cases of the run have finished, weft only writes the missing reports.
    #[arg(long, conflicts_with_all = ["select", "seed", "tier", "rerun", "shard"])]
    resume: bool,
    /// Use this results store instead of the file in the folder of --out
    ///
    /// The URL is sqlite://PATH or postgres://USER@HOST/DATABASE. Set the password of PostgreSQL in
    /// PGPASSWORD, not in the URL.
    #[arg(long, value_name = "URL", env = "WEFT_STORE", hide_env_values = true)]
    store: Option<String>,
    /// Show the run in the terminal, where you can run cases again
    ///
    /// If you quit the screen, the run stops and keeps its finished results. The exit code is that
    /// of the run.
    #[arg(long, conflicts_with = "list")]
    tui: bool,
    /// Show the run in a browser at this loopback address until Ctrl-C
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["list", "tui"])]
    web: Option<SocketAddr>,
    #[command(flatten)]
    explore: explore::ExploreArguments,
    #[command(flatten)]
    former: old_options::Options,
}

/// The values of --markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Markers {
    /// The tester requests markers, so the target inserts them
    FromTarget,
    /// The target requests markers, so the tester inserts them
    ToTarget,
    /// Both sides request markers
    Both,
}

impl From<Markers> for MarkerDirections {
    fn from(markers: Markers) -> Self {
        match markers {
            Markers::FromTarget => MarkerDirections::FromTarget,
            Markers::ToTarget => MarkerDirections::ToTarget,
            Markers::Both => MarkerDirections::Both,
        }
    }
}

/// The values of --rerun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Rerun {
    /// Cases that ran, but did not pass
    Failed,
}

impl Arguments {
    async fn open_store(&self) -> anyhow::Result<store::Store> {
        open_store(self.store.as_deref(), &self.out).await
    }

    /// Returns the target with its capabilities. If its file lacks them, a new run probes the
    /// target. With `--resume` or `--rerun`, the run uses what the probes of the earlier run found
    /// out.
    async fn complete(&self, target: Target) -> anyhow::Result<Target> {
        if !target.lacks_capabilities() {
            return Ok(target);
        }
        let sink = Arc::new(|_: &Event| {});
        Ok(match self.earlier_target(target.name()).await? {
            Some(earlier) => target.complete_like(&earlier, sink).await,
            None => target.complete(sink).await,
        })
    }

    /// Returns the target of the run that `--resume` continues or `--rerun` repeats. If all runs
    /// are finished, `--resume` writes the reports of the newest run. `target` is the name in the
    /// target file.
    async fn earlier_target(&self, target: &str) -> anyhow::Result<Option<TargetInfo>> {
        let is_new = !self.resume && self.rerun.is_none();
        // If there is no store, the run reports this later.
        if is_new || self.store.is_none() && !self.out.join(store::FILE_NAME).is_file() {
            return Ok(None);
        }
        let suffix = self.markers.map_or("", |markers| MarkerDirections::from(markers).suffix());
        let name = format!("{target}{suffix}");
        let store = self.open_store().await?;
        let unfinished = if self.resume { store.unfinished(&name).await? } else { None };
        let record = match unfinished {
            Some(run) => store.record(&run).await?,
            None => store.latest(&name).await?.map(|latest| latest.record),
        };
        store.close().await;
        Ok(record.map(|record| record.info.target))
    }

    /// Returns the cases to run, and the seed if it is not the default.
    ///
    /// The seed selects the variants of a case. All parts of `--shard` need the same seed, because
    /// they divide the same variants. `--rerun` needs the seed of the run that it repeats.
    async fn filter(&self, target: &Target) -> anyhow::Result<(Filter, Option<u64>)> {
        let filter = select::of_shard(Filter::of(self.select.iter().cloned()).tier(self.tier), self.shard);
        if self.rerun == Some(Rerun::Failed) {
            let (run, seed, failed) = repeat::failed_cases(&self.open_store().await?, target.name()).await?;
            return Ok((filter.rerun(&run, failed), self.seed().or(Some(seed))));
        }
        if self.shard.is_some() && self.seed == Some(SeedArgument::Random) {
            reject!("--shard needs the same seed for each part; use --seed NUMBER, or omit --seed");
        }
        Ok((filter, self.seed()))
    }

    /// Returns the seed of the command line, if there is one.
    fn seed(&self) -> Option<u64> {
        self.seed.map(|seed| match seed {
            SeedArgument::Number(number) => number,
            SeedArgument::Random => random_seed(),
        })
    }

    fn schedule(&self) -> Schedule {
        Schedule { jobs: self.jobs, store: self.store.clone(), resume: self.resume, store_retry_time: None }
    }
}

/// Runs the suites.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let suites = load(arguments.suites.as_deref())?;
    if let Some(code) = old_options::run(arguments, &suites)? {
        return Ok(code);
    }
    let Some(name) = &arguments.target else { reject!("missing target") };
    let target = resolve(name, &arguments.deviate, arguments.no_commands)?;
    select::each_selects(&suites, &arguments.select, arguments.tier)?;
    let target = match arguments.former.history {
        Some(_) => target,
        None => runtime::block_on(arguments.complete(target))?,
    };
    let target = match &arguments.capture {
        None => target,
        Some(interface) => target.captured_on(interface.clone()).ok_or_else(|| {
            BadInput("--capture needs a target on the network; builtin targets are in this process".to_owned())
        })?,
    };
    let target = match arguments.markers {
        None => target,
        Some(directions) => target.with_markers(directions.into()).map_err(|error| BadInput(error.to_string()))?,
    };
    let known = baseline_of(Some(&target), arguments.baseline.as_deref())?;
    let target = target.with_baseline(known).with_labels(arguments.label.iter().cloned());
    if arguments.jobs > 1 && !target.runs_several_cases() {
        exit::note(&format!("--jobs {} is ignored: this target runs one case at a time", arguments.jobs));
    }
    if let Some(case) = &arguments.former.history {
        return runtime::block_on(async {
            suite::print_history(&arguments.open_store().await?, target.name(), case).await
        });
    }
    runtime::block_on(async {
        let (stop, cancel) = watch::channel(false);
        let stop = Arc::new(stop);
        let stopper = Arc::clone(&stop);
        // True if the run is finished, and only the dashboard is still active.
        let over = Arc::new(AtomicBool::new(false));
        let over_by_then = Arc::clone(&over);
        let on_screen = arguments.tui;
        let explores = arguments.explore.explore;
        let stop_requested = signals::interrupted();
        let interrupted = tokio::spawn(async move {
            stop_requested.await;
            if !over_by_then.load(Ordering::Relaxed) {
                exit::note(match explores {
                    true => "stopping; weft saves the failures that it has found",
                    false => "stopping; weft keeps the finished results, and --resume continues the run",
                });
            }
            stopper.send_replace(true);
            // Do not exit here, because the screen must first restore the terminal.
            if on_screen {
                return;
            }
            // A script in a long computation delays the stop, so a second signal ends the process
            // at once. The finished results are in the store.
            let stop = signals::interrupted().await;
            exit::note("stopped at once, because of a second signal");
            std::process::exit(i32::from(stop.status()));
        });
        if arguments.resume
            && let Some(report) = complete_reports(arguments, &target, &suites).await?
        {
            return Ok(ExitCode::from(report.summary.exit_code.code()));
        }
        if arguments.explore.explore {
            let code = explore::run(arguments, target, cancel).await?;
            interrupted.abort();
            return Ok(ExitCode::from(code));
        }
        let (filter, seed) = arguments.filter(&target).await?;
        make_folder(&arguments.out)?;
        let options = RunOptions { target, suites, filter, out: arguments.out.clone(), seed, cancel: Some(cancel) };
        let schedule = arguments.schedule();
        let code = match arguments.web {
            Some(address) => in_browser(arguments, options, schedule, address, &stop, &over).await?.summary.exit_code,
            None if arguments.tui => {
                let report = screen::run(options, schedule, stop).await?;
                write_allure(&report, &arguments.out, arguments.allure.as_deref())?;
                report.summary.exit_code
            }
            None if arguments.until_fail || arguments.repeat.is_some() => {
                let repetition = repeat::Repetition {
                    most: arguments.repeat,
                    until_fail: arguments.until_fail,
                    draws: arguments.seed == Some(SeedArgument::Random),
                };
                repeat::run(arguments, options, schedule, repetition).await?
            }
            None => {
                let sink = Arc::new(terminal(arguments.verbose, arguments.quiet, &arguments.out));
                play_by(arguments, options, schedule, sink).await?.summary.exit_code
            }
        };
        interrupted.abort();
        Ok(ExitCode::from(code.code()))
    })
}

/// For `--resume`: if all runs against the target are finished, but the reports of the last run are
/// incomplete, writes these reports again. Otherwise returns `None`.
async fn complete_reports(
    arguments: &Arguments,
    target: &Target,
    suites: &Suites,
) -> anyhow::Result<Option<RunReport>> {
    let out = &arguments.out;
    let is_its = folder::run_of(out).is_some_and(|run| run.target.name == target.name());
    if !is_its || arguments.store.is_none() && !out.join(store::FILE_NAME).is_file() {
        return Ok(None);
    }
    // If another run is writing to the folder, that run will write its reports itself.
    let Some(_kept) = folder::lock_idle(out) else { return Ok(None) };
    let store = arguments.open_store().await?;
    let report = match store.unfinished(target.name()).await? {
        Some(_) => None,
        None => Some(recover(out, Some(&store), suites, target.baseline()).await?),
    };
    store.close().await;
    let Some(report) = report else { return Ok(None) };
    if report::are_written(&report, out)? {
        return Ok(None);
    }
    report::write_all(&report, out)?;
    write_allure(&report, out, arguments.allure.as_deref())?;
    print_line!("run {} is finished; its reports were incomplete, so weft wrote them again", report.run.id);
    print_line!("report: {}", out.join("report.html").display());
    Ok(Some(report))
}

/// Runs the cases with a dashboard that shows the run. The dashboard continues after the run, until
/// a signal stops it.
async fn in_browser(
    arguments: &Arguments,
    options: RunOptions,
    schedule: Schedule,
    address: SocketAddr,
    stop: &watch::Sender<bool>,
    over: &AtomicBool,
) -> anyhow::Result<RunReport> {
    let store = match &schedule.store {
        Some(url) => url.clone(),
        None => store::Store::url(&options.out.join(store::FILE_NAME))?,
    };
    let live = Live::default();
    let web = WebOptions {
        listen: address,
        store,
        folder: options.out.clone(),
        access: Access::default(),
        live: live.clone(),
        start: None,
        captures: CaptureOptions::default(),
        retention: Retention::default(),
        schedule: RunSchedule::default(),
        webhook: None,
    };
    let (ready, up) = tokio::sync::oneshot::channel();
    let mut stopped = stop.subscribe();
    let announce = move |address| {
        dashboard::announce(address);
        // Sending fails only if the receiver was dropped, because the run was abandoned.
        let _ = ready.send(());
    };
    let dashboard = tokio::spawn(weft_web::serve(web, announce, async move {
        // An error means that the sender was dropped, so the dashboard stops, too.
        let _ = stopped.wait_for(|stop| *stop).await;
    }));
    if up.await.is_err() {
        dashboard.await?.map_err(dashboard::explain)?;
        anyhow::bail!("the dashboard stopped before the run started");
    }
    let sink = Fanout(vec![Arc::new(terminal(arguments.verbose, arguments.quiet, &arguments.out)), live.sink()]);
    let report = play_by(arguments, options, schedule, Arc::new(sink)).await?;
    over.store(true, Ordering::Relaxed);
    print_line!("the dashboard runs until Ctrl-C");
    dashboard.await?.map_err(dashboard::explain)?;
    Ok(report)
}

/// Runs the cases, writes all reports into the run's folder, and prints the path of report.html. If
/// a case failed, also prints the command that describes a failure.
async fn play_by(
    arguments: &Arguments,
    options: RunOptions,
    schedule: Schedule,
    sink: Arc<dyn EventSink>,
) -> anyhow::Result<RunReport> {
    let out = options.out.clone();
    let report = record(options, schedule, sink).await?;
    write_allure(&report, &out, arguments.allure.as_deref())?;
    print_line!("report: {}", out.join("report.html").display());
    if report.summary.counts.fail > 0 {
        print_line!("text about a failure for the maker of the target: weft report {} --ticket CASE", out.display());
    }
    Ok(report)
}
