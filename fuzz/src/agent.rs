//! The agent's control connection. What is held against docs/agent.md is what the agent's own tests
//! hold.

#[path = "../../agent/tests/session/mod.rs"]
#[allow(dead_code, reason = "tests use more of it")]
mod session;

const TOKEN: &str = "secret";
const HELLO: &[u8] = b"{\"id\":1,\"do\":{\"hello\":{\"version\":1,\"token\":\"secret\"}}}\n";

/// A tester says `data` behind its first octet, which tells whether a right hello goes before it,
/// and in what pieces it arrives.
pub fn control_connection(data: &[u8]) {
    let Some((how, said)) = data.split_first() else { return };
    let said = if how & 1 == 0 { [HELLO, said].concat() } else { said.to_vec() };
    let piece = [usize::MAX, 1, 7, 100][usize::from(how >> 1 & 3)];
    session::play(&said, || piece, Some(TOKEN));
    session::play_soft(&said, || piece, Some(TOKEN));
}
