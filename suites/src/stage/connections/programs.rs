//! The programs that were started as the target, one for each connection that it opens, and how
//! they ended.

use std::time::Duration;

use tokio::time::Instant;

use crate::model::{Direction, ProgramEnd, StepKind};
use crate::stage::Log;
use crate::targets::Running;

/// A program closes its connections a moment before its end is known.
const ENDING: Duration = Duration::from_millis(200);
/// How often its end is looked for meanwhile.
const LOOK: Duration = Duration::from_millis(10);

/// One of them.
#[derive(Debug)]
struct Program {
    running: Running,
    /// The first connection that it opened.
    connection: Option<u32>,
    /// The script did something to it.
    is_stimulated: bool,
}

/// How one of them ended by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EndedProgram {
    pub(crate) end: ProgramEnd,
    /// The script had done something to it.
    pub(crate) is_stimulated: bool,
}

impl Program {
    fn ended(&mut self) -> Option<EndedProgram> {
        let (command, status) = self.running.ended()?;
        let end = ProgramEnd::of(self.connection, command, status);
        Some(EndedProgram { end, is_stimulated: self.is_stimulated })
    }
}

/// All of them, in the order in which they were started.
#[derive(Debug, Default)]
pub(in crate::stage) struct Programs {
    list: Vec<Program>,
}

impl Programs {
    /// This was started for the target's next connection.
    pub(in crate::stage) fn add(&mut self, running: Running) {
        self.list.push(Program { running, connection: None, is_stimulated: false });
    }

    /// The target opened a connection.
    pub(in crate::stage) fn assign(&mut self, number: u32) {
        if let Some(program) = self.list.last_mut() {
            program.connection.get_or_insert(number);
        }
    }

    /// The script does something to the target, on this connection.
    pub(super) fn stimulate(&mut self, number: u32) {
        let opened = |program: &&mut Program| program.connection.is_some_and(|first| first <= number);
        if let Some(program) = self.list.iter_mut().rfind(opened) {
            program.is_stimulated = true;
        }
    }

    /// The same without a connection.
    pub(super) fn stimulate_last(&mut self) {
        if let Some(program) = self.list.last_mut() {
            program.is_stimulated = true;
        }
    }

    pub(super) fn clear(&mut self) {
        self.list.clear();
    }

    /// How the program ended that was started last, once it has.
    pub(in crate::stage) fn last_end(&mut self) -> Option<(String, std::process::ExitStatus)> {
        self.list.last_mut().and_then(|program| program.running.ended())
    }

    /// Those that have ended by themselves, in the order in which they were started. Where the case
    /// is decided, or one has crashed, this waits a moment for the end of each that has closed its
    /// connection.
    pub(crate) async fn ended(&mut self, log: &Log) -> Vec<EndedProgram> {
        let until = Instant::now() + ENDING;
        loop {
            let ended: Vec<EndedProgram> = self.list.iter_mut().filter_map(Program::ended).collect();
            let matters = log.decision.is_some() || ended.iter().any(|program| program.end.is_crash());
            if !matters || !self.is_any_ending(log) || Instant::now() >= until {
                return ended;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// A program runs that has closed its connection.
    fn is_any_ending(&mut self, log: &Log) -> bool {
        let steps = &log.steps;
        let has_closed = |number: u32| {
            let is_close = |kind| matches!(kind, StepKind::Fin | StepKind::Reset);
            let of_target = |direction| direction == Direction::Received;
            steps.iter().any(|step| step.connection == number && of_target(step.direction) && is_close(step.kind))
        };
        self.list.iter_mut().any(|program| {
            program.connection.is_some_and(has_closed) && program.running.is_program() && program.ended().is_none()
        })
    }
}
