//! Control connections over TCP, each on a thread of its own. Nothing that a tester does but
//! `exit`, and nothing that the host runs out of, ends the listening.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{SockRef, TcpKeepalive};

use crate::protocol::Failure;
use crate::serve::{Carrier, Ended, serve, turn_away};

/// Control connections at once.
pub const MOST_TESTERS: usize = 8;
/// A tester that takes nothing for so long has gone.
const WRITTEN_WITHIN: Duration = Duration::from_secs(10);
/// TCP asks a tester that says nothing for so long whether its host is still there, and asks again. (A host that lost its power says no farewell.)
const ASKED_AFTER: Duration = Duration::from_secs(30);
const ASKED_EVERY: Duration = Duration::from_secs(5);
/// What the host lacks now it may have again in a moment; who waits in the backlog makes `accept` return at once until then.
const MOMENT: Duration = Duration::from_secs(1);

/// Serves all who come, for as long as the listener can be listened on. `carrier` is made for each of them; `told` hears of the beginning
/// (`None`) and the end of each.
pub fn listen<C: Carrier>(
    listener: &TcpListener,
    token: Option<&str>,
    carrier: impl Fn() -> Result<C, Failure> + Send + Sync + 'static,
    told: impl Fn(&str, Option<Result<(), Ended>>) + Send + Sync + 'static,
) -> io::Error {
    let begin = Instant::now();
    let testers = Arc::new(AtomicUsize::new(0));
    let shared = Arc::new((carrier, told, token.map(str::to_owned)));
    loop {
        let (stream, peer) = match listener.accept() {
            Ok((stream, peer)) => (Arc::new(stream), peer.to_string()),
            Err(why) if is_for_good(&why) => return why,
            Err(why) => {
                // One that has gone already is no reason to wait.
                if why.kind() != io::ErrorKind::ConnectionAborted {
                    (shared.1)("a tester", Some(Err(why.into())));
                    thread::sleep(MOMENT);
                }
                continue;
            }
        };
        // A line fits into the buffers of a connection that is new.
        let turn_away = |why: &str| (shared.1)(&peer, Some(Err(turn_away(&*stream, begin, why))));
        let Some(place) = Place::take(&testers) else {
            turn_away(&format!("{MOST_TESTERS} testers are there already"));
            continue;
        };
        let served = {
            let (shared, stream, peer) = (Arc::clone(&shared), Arc::clone(&stream), peer.clone());
            move || {
                // Given back whatever becomes of this thread.
                let _place = place;
                let (carrier, told, token) = &*shared;
                told(&peer, None);
                told(&peer, Some(one(&stream, token.as_deref(), begin, carrier)));
            }
        };
        if let Err(why) = thread::Builder::new().name("tester".to_owned()).spawn(served) {
            turn_away(&format!("no thread for one more tester: {why}"));
        }
    }
}

/// Whether `accept` fails because of the listener itself: it is none, or is closed. All else (accept(2)) is its caller's, or of the moment.
fn is_for_good(why: &io::Error) -> bool {
    matches!(why.raw_os_error(), Some(libc::EBADF | libc::EINVAL | libc::ENOTSOCK | libc::EOPNOTSUPP))
}

/// One of the [`MOST_TESTERS`].
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(testers: &Arc<AtomicUsize>) -> Option<Self> {
        let more = |taken| (taken < MOST_TESTERS).then_some(taken + 1);
        testers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Place(Arc::clone(testers)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
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
    SockRef::from(stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(ASKED_AFTER).with_interval(ASKED_EVERY))?;
    serve(stream, stream, token, begin, carrier)
}
