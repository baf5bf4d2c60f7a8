//! The agent's control connection. What is held against docs/agent.md is what the agent's own tests
//! hold.

#[path = "../../agent/tests/session/mod.rs"]
#[allow(dead_code, reason = "tests use more of it")]
mod session;

const TOKEN: &str = "secret";
const HELLO: &[u8] = b"{\"id\":1,\"do\":{\"hello\":{\"version\":1,\"token\":\"secret\"}}}\n";

/// A tester sends `data` without its first octet. This octet selects whether a correct hello
/// precedes it, and the size of the pieces in which it arrives.
pub fn control_connection(data: &[u8]) {
    let Some((options, sent)) = data.split_first() else { return };
    let sent = if options & 1 == 0 { [HELLO, sent].concat() } else { sent.to_vec() };
    let piece = [usize::MAX, 1, 7, 100][usize::from(options >> 1 & 3)];
    session::play(&sent, || piece, Some(TOKEN));
    session::play_soft(&sent, || piece, Some(TOKEN));
}
