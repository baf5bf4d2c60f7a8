//! The commands that control a driven SDP socket (`sdp-drive`, `sdp-connect`). docs/sdp-driver.md
//! defines them.

use core::fmt;

use serde::{Deserialize, Serialize};

/// The first word of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DriverCommand {
    /// Aborts the connection.
    Abort,
    /// Selects how the socket answers a SrcAvail.
    Answer,
    /// Cancels the posted receives.
    CancelReceives,
    /// Cancels the posted sends.
    CancelSends,
    /// Changes the Mode when the peer sets REQ_PIPE.
    Follow,
    /// Sets REQ_PIPE in completion messages.
    Hints,
    /// Sets the maximum size of an RDMA Read.
    MaxRead,
    /// Requests a Mode for a half-connection.
    Mode,
    /// Sets the number of payload bytes in a SrcAvail.
    Payload,
    /// Posts receives.
    Read,
    /// Requests another size of the peer's Private Buffers.
    Resize,
    /// Sends bytes.
    Send,
    /// Shuts down the sending half-connection.
    Shut,
    /// Suspends the connection.
    Suspend,
    /// Sets the Data Source Bcopy Threshold.
    Threshold,
    /// Sends bytes, of which the last one is Out-Of-Band data.
    Urgent,
    /// Waits before the next command.
    Wait,
}

impl fmt::Display for DriverCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl DriverCommand {
    /// Returns the commands in a text, in which a newline or `;` ends a command. Unknown words are
    /// left out.
    pub(crate) fn of_text(text: &str) -> impl Iterator<Item = DriverCommand> + '_ {
        use serde::de::IntoDeserializer;
        text.split(['\n', ';']).filter_map(|command| {
            let word = command.split_whitespace().next()?;
            let name: serde::de::value::StrDeserializer<'_, serde::de::value::Error> = word.into_deserializer();
            DriverCommand::deserialize(name).ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::DriverCommand;

    #[test]
    fn a_text_can_have_several_commands() {
        let commands: Vec<_> = DriverCommand::of_text("mode out pipelined; send 5\n max-read 100;;juggle 3").collect();
        assert_eq!(commands, [DriverCommand::Mode, DriverCommand::Send, DriverCommand::MaxRead]);
        assert_eq!(DriverCommand::CancelReceives.to_string(), "cancel-receives");
    }
}
