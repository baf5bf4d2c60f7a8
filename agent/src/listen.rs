//! Control connections over TCP, each on a thread of its own.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::protocol::Failure;
use crate::serve::{Carrier, Ended, serve, turn_away};

/// Control connections at once.
pub const MOST_TESTERS: usize = 8;
/// A tester that takes nothing for so long has gone.
const WRITTEN_WITHIN: Duration = Duration::from_secs(10);

/// Serves all who come, for ever. `carrier` is made for each of them; `told` hears of the beginning (`None`) and the end of each.
pub fn listen<C: Carrier>(
    listener: &TcpListener,
    token: Option<&str>,
    carrier: impl Fn() -> Result<C, Failure> + Send + Sync + 'static,
    told: impl Fn(&str, Option<Result<(), Ended>>) + Send + Sync + 'static,
) -> io::Error {
    let begin = Instant::now();
    let shared = Arc::new((carrier, told, token.map(str::to_owned), AtomicUsize::new(0)));
    loop {
        let (stream, peer) = match listener.accept() {
            Ok(accepted) => accepted,
            // The peer's fault, or one of the moment.
            Err(why) if why.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(why) => return why,
        };
        if shared.3.fetch_add(1, Ordering::Relaxed) >= MOST_TESTERS {
            shared.3.fetch_sub(1, Ordering::Relaxed);
            // A line fits into the buffers of a connection that is new.
            let ended = turn_away(&stream, begin, &format!("{MOST_TESTERS} testers are there already"));
            (shared.1)(&peer.to_string(), Some(Err(ended)));
            continue;
        }
        let shared = Arc::clone(&shared);
        thread::spawn(move || {
            let (carrier, told, token, testers) = &*shared;
            let peer = peer.to_string();
            told(&peer, None);
            let ended = one(&stream, token.as_deref(), begin, carrier);
            told(&peer, Some(ended));
            testers.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

fn one<C: Carrier>(
    stream: &TcpStream,
    token: Option<&str>,
    begin: Instant,
    carrier: impl FnOnce() -> Result<C, Failure>,
) -> Result<(), Ended> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(WRITTEN_WITHIN))?;
    serve(stream, stream, token, begin, carrier)
}
