//! Connects a client on side A with a server on side B by TCP. The client connects to the proxy,
//! and the proxy connects to the server.
//!
//! A proxy needs no permission and no interfaces, but it has two TCP connections of its own. It
//! forwards bytes, so it can delay, divide and corrupt the bytes. It cannot lose, duplicate or
//! reorder segments, and it cannot change the MTU or the window
//! ([`Impairments::need_frames`](crate::Impairments::need_frames)). The frames of the captures are
//! synthetic ([`crate::synthetic`]). They have the addresses of the client and of the server.

use std::collections::{HashMap, VecDeque};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::SockRef;

use crate::driver::{now, wait_time};
use crate::frame::TcpFrame;
use crate::run::{Outgoing, Run};
use crate::side::{PerSide, Side};
use crate::synthetic::{Connection, MAX_PAYLOAD, SegmentKind};

/// Longest time between two checks of the stop flag.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// After the stop, the bytes that have already arrived are still forwarded. If more bytes arrive
/// all the time, the forwarding ends after this number of nanoseconds.
const DRAIN_TIME: u64 = 500_000_000;
/// Time limit for connecting to the server.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// If this many bytes wait for one side, the proxy stops reading from the other side.
const MAX_WAITING: usize = 1 << 20;
/// If this many bytes from one side wait in the bridge, the proxy also stops reading from this
/// side. Above its own maximum, the bridge drops frames, and TCP cannot repair this loss. So this
/// value is less than the maximum of the bridge.
const MAX_IN_BRIDGE: usize = 16 << 20;
/// Number of bytes per read.
const READ_LEN: usize = 64 * 1024;

/// A listening proxy.
#[derive(Debug)]
pub struct Proxy {
    listener: TcpListener,
    server: SocketAddr,
}

/// The proxy's end of a TCP connection with one side.
#[derive(Debug)]
struct Leg {
    stream: TcpStream,
    /// The pieces to write. Each piece is one write, and so usually one TCP segment.
    pieces: VecDeque<Vec<u8>>,
    /// Number of bytes in `pieces`.
    waiting: usize,
    /// Whether the side has ended its direction, or the connection has failed.
    has_ended: bool,
    /// Whether the proxy has received the end of the other direction from the bridge.
    must_end: bool,
    /// Whether the proxy has ended its direction.
    is_shut: bool,
}

impl Leg {
    fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Leg { stream, pieces: VecDeque::new(), waiting: 0, has_ended: false, must_end: false, is_shut: false })
    }

    /// Writes the waiting pieces, as far as the socket accepts them.
    fn write(&mut self) -> io::Result<()> {
        while let Some(piece) = self.pieces.front_mut() {
            match self.stream.write(piece) {
                Ok(len) => {
                    self.waiting -= len;
                    piece.drain(..len);
                    if piece.is_empty() {
                        self.pieces.pop_front();
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.must_end && !self.is_shut {
            self.is_shut = true;
            self.stream.shutdown(Shutdown::Write)?;
        }
        Ok(())
    }

    /// Closes the connection with a reset.
    fn reset(&mut self) {
        // If the peer has already closed the connection, there is nothing to reset.
        let _ = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
        self.pieces.clear();
        self.waiting = 0;
        (self.has_ended, self.must_end, self.is_shut) = (true, true, true);
    }
}

/// A connection between a client and the server.
#[derive(Debug)]
struct Pair {
    legs: PerSide<Leg>,
    frames: Connection,
    addresses: PerSide<SocketAddr>,
}

impl Pair {
    fn is_over(&self) -> bool {
        Side::BOTH.iter().all(|side| self.legs[*side].has_ended && self.legs[*side].is_shut)
    }

    /// Reads from one side, and passes the bytes, the end or the reset to the bridge.
    fn read<W: Write>(&mut self, side: Side, buffer: &mut [u8], run: &mut Run<W>) -> io::Result<()> {
        let (kind, len) = match self.legs[side].stream.read(buffer) {
            Ok(0) => (SegmentKind::Fin, 0),
            Ok(len) => (SegmentKind::Data, len),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(()),
            Err(_) => {
                self.legs[side].reset();
                (SegmentKind::Reset, 0)
            }
        };
        if kind != SegmentKind::Data {
            self.legs[side].has_ended = true;
            let frame = self.frames.frame(side, kind, &[]);
            return run.frame(now(), side, &frame);
        }
        for chunk in buffer[..len].chunks(MAX_PAYLOAD) {
            let frame = self.frames.frame(side, kind, chunk);
            run.frame(now(), side, &frame)?;
        }
        Ok(())
    }
}

/// The connections of the proxy.
#[derive(Default)]
struct Pairs {
    list: HashMap<u32, Pair>,
    /// The connection of each sender and receiver.
    numbers: HashMap<(SocketAddr, SocketAddr), u32>,
    next: u32,
}

impl Pairs {
    /// Connects a new client with the server.
    fn open<W: Write>(
        &mut self,
        client: TcpStream,
        address: SocketAddr,
        server: SocketAddr,
        run: &mut Run<W>,
    ) -> io::Result<()> {
        let stream = match TcpStream::connect_timeout(&server, CONNECT_TIME) {
            Ok(stream) => stream,
            Err(error) => {
                tracing::warn!(%server, client = %address, %error, "cannot connect to the server");
                let _ = SockRef::from(&client).set_linger(Some(Duration::ZERO));
                return Ok(());
            }
        };
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        let frames = Connection::new(address, server, number);
        let addresses = frames.addresses();
        let (Ok(a), Ok(b)) = (Leg::new(client), Leg::new(stream)) else {
            tracing::warn!(client = %address, "the connection failed before its first byte");
            return Ok(());
        };
        let legs = PerSide { a, b };
        let mut pair = Pair { legs, frames, addresses };
        let handshake = [(Side::A, SegmentKind::Syn), (Side::B, SegmentKind::SynAck), (Side::A, SegmentKind::Ack)];
        for (side, kind) in handshake {
            let frame = pair.frames.frame(side, kind, &[]);
            run.pass(now(), side, &frame)?;
        }
        for side in Side::BOTH {
            self.numbers.insert((addresses[side], addresses[side.peer()]), number);
        }
        self.list.insert(number, pair);
        Ok(())
    }

    /// Whether bytes wait to be written.
    fn have_pieces(&self) -> bool {
        self.list.values().any(|pair| Side::BOTH.iter().any(|side| !pair.legs[*side].pieces.is_empty()))
    }

    /// Passes a delivered frame to the connection that it belongs to.
    fn deliver(&mut self, outgoing: &Outgoing) {
        let Some(tcp) = TcpFrame::find(&outgoing.octets) else { return };
        let Some(pair) = self.numbers.get(&(tcp.src, tcp.dst)).and_then(|number| self.list.get_mut(number)) else {
            return;
        };
        let leg = &mut pair.legs[outgoing.to];
        if tcp.is_rst() {
            return leg.reset();
        }
        if !tcp.is_empty() {
            leg.waiting += tcp.len();
            leg.pieces.push_back(outgoing.octets[tcp.payload.clone()].to_vec());
        }
        leg.must_end |= tcp.is_fin();
    }

    /// Writes the waiting bytes of all connections, and removes connections that have ended.
    fn write<W: Write>(&mut self, run: &mut Run<W>) -> io::Result<()> {
        for pair in self.list.values_mut() {
            for side in Side::BOTH {
                if pair.legs[side].write().is_err() {
                    pair.legs[side].reset();
                    let frame = pair.frames.frame(side, SegmentKind::Reset, &[]);
                    run.frame(now(), side, &frame)?;
                }
            }
        }
        self.list.retain(|number, pair| {
            let is_over = pair.is_over();
            if is_over {
                for side in Side::BOTH {
                    let key = (pair.addresses[side], pair.addresses[side.peer()]);
                    if self.numbers.get(&key) == Some(number) {
                        self.numbers.remove(&key);
                    }
                }
            }
            !is_over
        });
        Ok(())
    }
}

impl Proxy {
    /// Listens for clients at `listen`. Clients are connected with `server`.
    ///
    /// # Errors
    /// The proxy cannot listen.
    pub fn listen(listen: SocketAddr, server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(listen)?;
        listener.set_nonblocking(true)?;
        Ok(Proxy { listener, server })
    }

    /// The address at which the proxy listens.
    ///
    /// # Errors
    /// The system reports an error.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Forwards bytes until `stop` is set.
    ///
    /// # Errors
    /// A capture cannot be written.
    pub fn forward<W: Write>(&self, run: &mut Run<W>, stop: &AtomicBool) -> io::Result<()> {
        let mut pairs = Pairs::default();
        let mut buffer = vec![0; READ_LEN];
        let mut end: Option<u64> = None;
        loop {
            if end.is_none() && stop.load(Relaxed) {
                end = Some(now().saturating_add(DRAIN_TIME));
            }
            let until = if end.is_some() { u64::MAX } else { now() };
            while let Some(outgoing) = run.deliver(now(), until)? {
                pairs.deliver(&outgoing);
            }
            pairs.write(run)?;
            let most = if end.is_some() { Duration::ZERO } else { CHECK_INTERVAL };
            let ready = self.wait(&pairs, run, wait_time(run.next_due(), most));
            if end.is_some_and(|end| (ready.legs.is_empty() && !pairs.have_pieces()) || now() >= end) {
                return Ok(());
            }
            if ready.is_listener_ready {
                match self.listener.accept() {
                    Ok((client, address)) => pairs.open(client, address, self.server, run)?,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    // The client has already closed the connection.
                    Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                    // For example, too many open files. The proxy serves the other connections.
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a client");
                        std::thread::sleep(CHECK_INTERVAL);
                    }
                }
            }
            for (number, side) in ready.legs {
                if let Some(pair) = pairs.list.get_mut(&number).filter(|pair| !pair.legs[side].has_ended) {
                    pair.read(side, &mut buffer, run)?;
                }
            }
        }
    }

    /// Waits until a socket is ready.
    fn wait<W: Write>(&self, pairs: &Pairs, run: &Run<W>, time_limit: Duration) -> Ready {
        let mut keys = Vec::new();
        let mut polled = vec![PollFd::new(&self.listener, PollFlags::IN)];
        for (number, pair) in &pairs.list {
            for side in Side::BOTH {
                let leg = &pair.legs[side];
                let mut flags = PollFlags::empty();
                let has_room = pair.legs[side.peer()].waiting < MAX_WAITING && run.waiting(side) < MAX_IN_BRIDGE;
                if !leg.has_ended && has_room {
                    flags |= PollFlags::IN;
                }
                if !leg.pieces.is_empty() {
                    flags |= PollFlags::OUT;
                }
                if !flags.is_empty() {
                    keys.push((*number, side));
                    polled.push(PollFd::new(&leg.stream, flags));
                }
            }
        }
        let time_limit = Timespec::try_from(time_limit).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        // If a signal ends the wait, no socket is ready.
        let _ = poll(&mut polled, Some(&time_limit));
        let is_ready =
            |polled: &PollFd<'_>| polled.revents().intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR);
        let legs = keys.into_iter().zip(&polled[1..]).filter(|(_, polled)| is_ready(polled)).map(|(key, _)| key);
        Ready { is_listener_ready: is_ready(&polled[0]), legs: legs.collect() }
    }
}

/// The sockets that are ready for reading.
struct Ready {
    is_listener_ready: bool,
    legs: Vec<(u32, Side)>,
}
