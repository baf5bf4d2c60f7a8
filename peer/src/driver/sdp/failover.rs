//! Socket duplication and managed failover (section 13) of sockets: a connection moves to another
//! listener of this side, perhaps of another device, and a peer that asks for it is followed.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpSocket, TcpStream};

use super::area::Area;
use super::ends::Ends;
use super::engine::{Engine, queue_pair};
use super::stream::{Shared, set_up, until, wait};
use super::{SdpError, SdpListener, SdpStream};
use crate::driver::Device;
use crate::driver::stream::Opener;
use crate::memory::PdId;
use crate::verbs::Rnic;

/// How long the peer has to end the TCP connection that the two sides leave. Both have all that was
/// sent on it: SuspCommAck is the last message (section 13.1.1), and one repetition of TCP's comes
/// well within this time.
const LEAVE: Duration = Duration::from_secs(2);

impl SdpStream {
    /// Moves this end of the connection to `listener`, and to its device: the peer ends TCP and
    /// connects there (sections 13.1.1 and 13.2). What was written and what has arrived stays; who
    /// reads and writes notices nothing. Meanwhile nobody else may accept from the listener:
    /// connections of others are closed. The listener has to be on the same address; the peer keeps
    /// its address, and its port where it can (it cannot where it was connected to).
    ///
    /// When it is dropped before its end the connection may be lost.
    ///
    /// # Errors
    /// The connection is shut down, or is moved already; or it was lost meanwhile.
    pub async fn fail_over(&self, listener: &SdpListener) -> Result<(), SdpError> {
        let port = listener.local_addr()?.port();
        let shared = self.shared();
        let moves = {
            let mut engine = self.lock();
            let refused = |refused: crate::sdp::Refused| SdpError::Io(ErrorKind::InvalidInput, refused.to_string());
            engine.machine.suspend(port).map_err(refused)?;
            self.go(&mut engine);
            engine.moves
        };
        wait(shared, |engine| engine.reconnect == Some(None) || engine.machine.is_over()).await;
        let ends = self.lock().ends;
        let accepted = async {
            loop {
                let (tcp, from) = listener.tcp.accept().await?;
                let port = ends.connected || from.port() == ends.peer.port();
                // SDP-13.1.1-2 to SDP-13.1.1-4; a port that was listened on cannot be connected
                // from (C30).
                if port && from.ip() == ends.peer.ip() && tcp.local_addr()?.ip() == ends.local.ip() {
                    return Ok::<_, std::io::Error>(tcp);
                }
            }
        };
        tokio::select! {
            tcp = accepted => {
                let mut engine = self.lock();
                engine.successor = Some((listener.device.clone(), tcp?));
                engine.wake();
            }
            () = wait(shared, |engine| engine.machine.is_over()) => {}
        }
        wait(shared, |engine| engine.moves > moves || engine.machine.is_over()).await;
        let engine = self.lock();
        if engine.machine.is_over() {
            return Err(engine.error.clone().unwrap_or(SdpError::Closed));
        }
        Ok(())
    }
}

/// The connection rests: TCP ends, and another connection takes its place.
pub(super) async fn go_on(shared: &Arc<Shared>) {
    let (device, qp) = {
        let engine = shared.lock();
        (engine.device.clone(), engine.qp)
    };
    // If it cannot be closed, it is reset with its Queue Pair.
    let _ = tokio::time::timeout(LEAVE, device.disconnect(qp)).await;
    if let Err(error) = replace(shared).await {
        let mut engine = shared.lock();
        engine.error.get_or_insert(error);
        engine.machine.abort(shared.clock.now());
    }
}

async fn replace(shared: &Arc<Shared>) -> Result<(), SdpError> {
    let (device, ends, port, timeout, deadline) = {
        let engine = shared.lock();
        let port = engine.reconnect.flatten();
        (engine.device.clone(), engine.ends, port, engine.settings.connect_timeout, engine.machine.poll_timeout())
    };
    let late = || SdpError::Io(ErrorKind::TimedOut, "the connection was not replaced in time".to_owned());
    let (device, tcp, opener) = match port {
        Some(port) => {
            // Where it was connected to, the port of before is one that is listened on (C30).
            let before = ends.connected.then_some(ends.local);
            let connecting = connect(before, SocketAddr::new(ends.peer.ip(), port));
            let tcp = tokio::time::timeout(timeout, connecting).await.map_err(|_| late())??;
            (device, tcp, Opener::Here)
        }
        None => {
            tokio::select! {
                () = wait(shared, |engine| engine.successor.is_some() || engine.machine.is_over()) => {}
                () = until(shared, deadline) => {}
            }
            let (device, tcp) = shared.lock().successor.take().ok_or_else(late)?;
            (device, tcp, Opener::Peer)
        }
    };
    let ends = Ends { local: tcp.local_addr()?, peer: tcp.peer_addr()?, connected: port.is_some() };
    let settings = shared.lock().settings;
    settings.dress(&tcp)?;
    let stream = device.stream_of(tcp, opener)?;
    {
        let mut engine = shared.lock();
        engine.renew(&device)?;
        engine.ends = ends;
        engine.machine.reconnected(shared.clock.now());
    }
    set_up(shared, stream).await
}

/// Connects, from the port of before where there was one. A port that is bound and not left to the
/// connect is shared with no other connection, so it can be had again when the peer moves (section
/// 13.1.1).
pub(super) async fn connect(before: Option<SocketAddr>, to: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = reusable(to)?;
    let any = if to.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
    // One that somebody has taken meanwhile is not to be had; the peer may not mind.
    if before.is_none_or(|before| socket.bind(before).is_err()) {
        socket.bind(SocketAddr::new(any, 0))?;
    }
    socket.connect(to).await
}

/// Connects from this address and no other.
pub(super) async fn connect_from(source: SocketAddr, to: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = reusable(to)?;
    socket.bind(source)?;
    socket.connect(to).await
}

/// A socket of the family, whose port can be had again.
fn reusable(like: SocketAddr) -> std::io::Result<TcpSocket> {
    let socket = if like.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    Ok(socket)
}

impl Engine {
    /// Another Queue Pair, perhaps of another device, which everything moves to.
    fn renew(&mut self, device: &Device) -> Result<(), SdpError> {
        self.tear_down();
        if !self.device.is(device) {
            self.move_to(device)?;
        }
        (self.cqs, self.qp) = queue_pair(&self.device, self.pd, &self.settings.sdp)?;
        self.start_anew();
        Ok(())
    }

    fn move_to(&mut self, device: &Device) -> Result<(), SdpError> {
        let pd = device.verbs(Rnic::allocate_pd)?;
        let (from, old) = (self.device.clone(), self.pd);
        self.expose_nothing();
        for area in self.areas_mut() {
            area.move_to(&from, device)?;
        }
        (self.device, self.pd) = (device.clone(), pd);
        give_up(&from, old);
        Ok(())
    }
}

fn give_up(device: &Device, pd: PdId) {
    // Nothing of this connection is in it any more.
    let _ = device.verbs(|rnic| rnic.deallocate_pd(pd));
}

impl Area {
    /// The same octets in the memory of another device, and not registered.
    fn move_to(&mut self, from: &Device, to: &Device) -> Result<(), SdpError> {
        let octets = from.verbs(|rnic| self.octets(rnic, 0, self.len()).to_vec());
        let there = to.verbs(|rnic| {
            let area = Area::new(rnic, octets.len())?;
            area.put(rnic, 0, &octets);
            Ok::<_, SdpError>(area)
        })?;
        let here = std::mem::replace(self, there);
        from.verbs(|rnic| here.free(rnic));
        Ok(())
    }
}
