//! The programs that were started as the target, and how they ended. weft starts one program for
//! each connection that the target opens.

use std::time::Duration;

use tokio::time::Instant;

use crate::model::{Direction, ProgramEnd, StepKind};
use crate::stage::Log;
use crate::targets::Running;

/// Time to wait for the end of a program after it has closed its connections.
const ENDING: Duration = Duration::from_millis(200);
/// Interval between checks whether the program has ended.
const LOOK: Duration = Duration::from_millis(10);

/// A program that was started as the target.
#[derive(Debug)]
struct Program {
    running: Running,
    /// Number of the first connection that the program opened.
    connection: Option<u32>,
    /// Whether the script sent a stimulus to the program.
    is_stimulated: bool,
}

/// A program that has ended by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EndedProgram {
    pub(crate) end: ProgramEnd,
    /// Whether the script had sent a stimulus to the program.
    pub(crate) is_stimulated: bool,
}

impl Program {
    fn ended(&mut self) -> Option<EndedProgram> {
        let (command, status) = self.running.ended()?;
        let end = ProgramEnd::of(self.connection, command, status);
        Some(EndedProgram { end, is_stimulated: self.is_stimulated })
    }
}

/// All programs, in the order in which they were started.
#[derive(Debug, Default)]
pub(in crate::stage) struct Programs {
    list: Vec<Program>,
}

impl Programs {
    /// Adds a program that was started for the target's next connection.
    pub(in crate::stage) fn add(&mut self, running: Running) {
        self.list.push(Program { running, connection: None, is_stimulated: false });
    }

    /// Notes that the target opened a connection.
    pub(in crate::stage) fn assign(&mut self, number: u32) {
        if let Some(program) = self.list.last_mut() {
            program.connection.get_or_insert(number);
        }
    }

    /// Notes a stimulus on this connection.
    pub(super) fn stimulate(&mut self, number: u32) {
        let opened = |program: &&mut Program| program.connection.is_some_and(|first| first <= number);
        if let Some(program) = self.list.iter_mut().rfind(opened) {
            program.is_stimulated = true;
        }
    }

    /// Notes a stimulus that belongs to no connection. The last started program counts as its
    /// receiver.
    pub(super) fn stimulate_last(&mut self) {
        if let Some(program) = self.list.last_mut() {
            program.is_stimulated = true;
        }
    }

    pub(super) fn clear(&mut self) {
        self.list.clear();
    }

    /// Returns the command line and the exit status of the last program, once it has ended.
    pub(in crate::stage) fn last_end(&mut self) -> Option<(String, std::process::ExitStatus)> {
        self.list.last_mut().and_then(|program| program.running.ended())
    }

    /// Returns the programs that have ended by themselves, in the order in which they were started.
    /// If the case is decided, or a program has crashed, waits a short time for the end of each
    /// program that has closed its connection.
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

    /// Returns whether a program still runs although it has closed its connection.
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
