//! The agent's control connection. This target uses the checks of the agent's own tests, which
//! compare the agent with docs/agent.md.

#[path = "../../agent/tests/session/mod.rs"]
#[allow(dead_code, reason = "the tests use all items, the fuzz target uses only some items")]
mod session;

const TOKEN: &str = "secret";
const HELLO: &[u8] = b"{\"id\":1,\"do\":{\"hello\":{\"version\":1,\"token\":\"secret\"}}}\n";

/// Sends `data`, without its first byte, to the agent. The first byte has options: whether the
/// tester sends a correct hello first, and the size of the pieces in which the bytes arrive.
pub fn control_connection(data: &[u8]) {
    let Some((options, sent)) = data.split_first() else { return };
    let sent = if options & 1 == 0 { [HELLO, sent].concat() } else { sent.to_vec() };
    let piece = [usize::MAX, 1, 7, 100][usize::from(options >> 1 & 3)];
    session::play(&sent, || piece, Some(TOKEN));
    session::play_soft(&sent, || piece, Some(TOKEN));
}
