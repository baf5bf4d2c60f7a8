//! The steps of a session with a driven SDP socket: the commands of docs/sdp-driver.md. The steps
//! call the functions of `suites/library/sdp_drive_session.lua`. The steps of the tester's own
//! socket are in `sdp_step`.

use std::fmt::{self, Display, Formatter};

use super::lua_table::LuaTable;
use crate::targets::{DriverCommand, Target};

/// The commands that a driven socket executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Commands(u32);

impl Commands {
    /// Returns the commands that the target file lists. Without a list, these are all commands.
    pub(super) fn of(target: &Target) -> Self {
        let listed = target.description.commands.as_ref();
        Commands(listed.map_or(u32::MAX, |listed| listed.iter().fold(0, |all, command| all | bit(*command))))
    }

    /// Returns whether the socket executes the command.
    pub(super) fn contains(self, command: DriverCommand) -> bool {
        self.0 & bit(command) != 0
    }
}

/// Returns the bit of a command.
fn bit(command: DriverCommand) -> u32 {
    1 << command as u32
}

/// A step on the connection with the number `connection`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DriveStep {
    pub(crate) connection: u32,
    pub(crate) action: DriveAction,
}

/// A command for the target's user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DriveAction {
    /// Sends `size` bytes. With `urgent`, the last byte is Out-Of-Band data.
    Send { size: u32, urgent: bool },
    /// Posts `count` receives of `size` bytes. The tester sends enough bytes for them, in sends of
    /// at most `piece` bytes, or in one send if `piece` is 0.
    Read { count: u32, size: u32, piece: u32 },
    /// Waits for this number of milliseconds.
    Wait(u32),
    /// Cancels the sends.
    CancelSends,
    /// Posts a receive of `size` bytes, waits for `ms` milliseconds, and cancels the receive. The
    /// tester sends enough bytes for the receive, in sends of at most `piece` bytes, or in one send
    /// if `piece` is 0.
    CancelReceive { size: u32, ms: u32, piece: u32 },
    /// Shuts down the sending half-connection.
    Shut,
    /// Ends the connection abortively.
    Abort,
    /// Suspends the connection. The SuspComm has this TCP port of the target.
    Suspend(u16),
    /// Executes a command that neither sends nor receives, and that does not end the connection.
    Change(&'static str),
}

impl DriveAction {
    /// Returns the command. `None` if the text of a `Change` is not a command. A `CancelReceive`
    /// also needs the commands `read` and `wait`.
    pub(super) fn command(self) -> Option<DriverCommand> {
        Some(match self {
            DriveAction::Send { urgent: false, .. } => DriverCommand::Send,
            DriveAction::Send { urgent: true, .. } => DriverCommand::Urgent,
            DriveAction::Read { .. } => DriverCommand::Read,
            DriveAction::Wait(_) => DriverCommand::Wait,
            DriveAction::CancelSends => DriverCommand::CancelSends,
            DriveAction::CancelReceive { .. } => DriverCommand::CancelReceives,
            DriveAction::Shut => DriverCommand::Shut,
            DriveAction::Abort => DriverCommand::Abort,
            DriveAction::Suspend(_) => DriverCommand::Suspend,
            DriveAction::Change(line) => DriverCommand::of_text(line).next()?,
        })
    }
}

impl DriveStep {
    /// Returns simpler steps, the simplest first. `smaller` returns smaller values of a number.
    pub(crate) fn simpler(self, smaller: impl Fn(u32) -> Vec<u32>) -> Vec<DriveStep> {
        let positive = |value: u32| smaller(value).into_iter().filter(|less| *less > 0);
        let actions: Vec<DriveAction> = match self.action {
            DriveAction::Send { size, urgent } => {
                let plain = urgent.then_some(DriveAction::Send { size, urgent: false });
                plain.into_iter().chain(positive(size).map(|size| DriveAction::Send { size, urgent })).collect()
            }
            DriveAction::Read { count, size, piece } => {
                let plain = (piece > 0).then_some(DriveAction::Read { count, size, piece: 0 });
                let counts = positive(count).map(|count| DriveAction::Read { count, size, piece });
                let sizes = positive(size).map(|size| DriveAction::Read { count, size, piece });
                plain.into_iter().chain(counts).chain(sizes).collect()
            }
            DriveAction::Wait(ms) => positive(ms).map(DriveAction::Wait).collect(),
            DriveAction::CancelReceive { size, ms, piece } => {
                let plain = (piece > 0).then_some(DriveAction::CancelReceive { size, ms, piece: 0 });
                let times = smaller(ms).into_iter().map(|ms| DriveAction::CancelReceive { size, ms, piece });
                let sizes = positive(size).map(|size| DriveAction::CancelReceive { size, ms, piece });
                plain.into_iter().chain(times).chain(sizes).collect()
            }
            DriveAction::CancelSends
            | DriveAction::Shut
            | DriveAction::Abort
            | DriveAction::Suspend(_)
            | DriveAction::Change(_) => Vec::new(),
        };
        actions.into_iter().map(|action| DriveStep { action, ..self }).collect()
    }
}

/// A call in Lua, with the session in `s`.
impl Display for DriveStep {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let connection = self.connection;
        match self.action {
            DriveAction::Send { size, urgent } => {
                write!(f, "s:target_send({connection}, {})", LuaTable::of_size(size).flag("urgent", urgent))
            }
            DriveAction::Read { count, size, piece } => {
                let table = LuaTable::of_size(size).number("count", count, 1).number("piece", piece, 0);
                write!(f, "s:target_read({connection}, {table})")
            }
            DriveAction::Wait(ms) => write!(f, "s:command({connection}, \"wait {ms}\")"),
            DriveAction::CancelSends => write!(f, "s:target_cancel({connection})"),
            DriveAction::CancelReceive { size, ms, piece } => {
                let table = LuaTable::of_size(size).number("wait", ms, 0).number("piece", piece, 0);
                write!(f, "s:target_cancel_receive({connection}, {table})")
            }
            DriveAction::Shut => write!(f, "s:target_shut({connection})"),
            DriveAction::Abort => write!(f, "s:target_abort({connection})"),
            DriveAction::Suspend(port) => write!(f, "s:target_suspend({connection}, {port})"),
            DriveAction::Change(line) => write!(f, "s:command({connection}, \"{line}\")"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_file_limits_the_commands() {
        let file = |more: &str| {
            let text = format!("name = \"d\"\nkind = \"builtin\"\nservice = \"sdp-drive\"\n{more}");
            Commands::of(&Target::from_toml("d.toml", &text).unwrap())
        };
        let some = file("[sdp]\ncommands = [\"send\", \"cancel-sends\"]\n");
        for (action, is_listed) in [
            (DriveAction::Send { size: 1, urgent: false }, true),
            (DriveAction::Send { size: 1, urgent: true }, false),
            (DriveAction::CancelSends, true),
            (DriveAction::Change("mode out pipelined"), false),
        ] {
            let command = action.command().unwrap();
            assert_eq!((some.contains(command), file("").contains(command)), (is_listed, true), "{command}");
        }
    }
}
