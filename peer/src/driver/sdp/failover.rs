//! Socket duplication and managed failover (section 13 of the SDP draft). A connection moves to
//! another listener of this side, perhaps on another device. If the peer moves its side, this side
//! connects to the peer's new listener.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;

use super::addresses::Addresses;
use super::area::Area;
use super::engine::{Engine, queue_pair};
use super::stream::{Shared, set_up, wait};
use super::{SdpError, SdpListener, SdpStream};
use crate::driver::Device;
use crate::driver::stream::Opener;
use crate::driver::tcp::reusable_socket;

/// How long the peer may take to close the old TCP connection. This time is enough for one
/// retransmission by TCP. If the peer takes longer, no data is lost, because SuspCommAck is the
/// last message on the old connection (section 13.1.1).
const CLOSE_WAIT: Duration = Duration::from_secs(2);

impl SdpStream {
    /// Moves this side of the connection to `listener` and its device. The peer closes TCP and
    /// connects to the listener (sections 13.1.1 and 13.2). Written data and unread data stay, and
    /// readers and writers notice nothing.
    ///
    /// The listener must have the same IP address as this side. Until the move is complete, other
    /// tasks must not accept from the listener, and the listener closes connections of other peers.
    /// The peer must keep its IP address. If the peer opened the old connection, it must also keep
    /// its port.
    ///
    /// If the future is dropped before it completes, the connection can be lost.
    ///
    /// # Errors
    /// The connection is shut down, is already moving, or is lost during the move.
    pub async fn fail_over(&self, listener: &SdpListener) -> Result<(), SdpError> {
        let port = listener.local_addr()?.port();
        let shared = &self.shared;
        let moves = {
            let mut engine = self.lock();
            let refused =
                |refused: crate::sdp::CommandError| SdpError::Io(ErrorKind::InvalidInput, refused.to_string());
            engine.machine.suspend(port).map_err(refused)?;
            self.go(&mut engine);
            engine.moves
        };
        wait(shared, |engine| engine.reconnect == Some(None) || engine.machine.is_over()).await;
        let addresses = self.lock().addresses;
        let accepted = async {
            loop {
                let (tcp, from) = listener.tcp.accept().await?;
                let port = addresses.connected || from.port() == addresses.peer.port();
                // Checks SDP-13.1.1-2 to SDP-13.1.1-4. If the peer accepted the old connection, the
                // check ignores the peer's port. In this case the peer still listens on the old
                // port, so it cannot connect from that port.
                if port && from.ip() == addresses.peer.ip() && tcp.local_addr()?.ip() == addresses.local.ip() {
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
        if engine.machine.is_over() { Err(engine.error.clone().unwrap_or(SdpError::Closed)) } else { Ok(()) }
    }
}

/// Replaces the TCP connection of a suspended connection.
pub(super) async fn replace_connection(shared: &Arc<Shared>) {
    let (device, qp) = {
        let engine = shared.lock();
        (engine.device.clone(), engine.qp)
    };
    // If the connection cannot be closed gracefully, it is reset when its Queue Pair is destroyed.
    let _ = tokio::time::timeout(CLOSE_WAIT, device.disconnect(qp)).await;
    if let Err(error) = replace(shared).await {
        let mut engine = shared.lock();
        engine.error.get_or_insert(error);
        engine.machine.abort(shared.clock.now());
    }
}

async fn replace(shared: &Arc<Shared>) -> Result<(), SdpError> {
    let (device, addresses, port, timeout, deadline) = {
        let engine = shared.lock();
        let port = engine.reconnect.flatten();
        (engine.device.clone(), engine.addresses, port, engine.settings.connect_timeout, engine.machine.poll_timeout())
    };
    let late = || {
        let why = "no new connection replaced the suspended connection in time";
        SdpError::Io(ErrorKind::TimedOut, why.to_owned())
    };
    let (device, tcp, opener) = match port {
        Some(port) => {
            // If this side accepted the old connection, a listener still uses the old local port.
            let before = addresses.connected.then_some(addresses.local);
            let connecting = connect(before, SocketAddr::new(addresses.peer.ip(), port));
            let tcp = tokio::time::timeout(timeout, connecting).await.map_err(|_| late())??;
            (device, tcp, Opener::Here)
        }
        None => {
            tokio::select! {
                () = wait(shared, |engine| engine.successor.is_some() || engine.machine.is_over()) => {}
                () = shared.clock.sleep_until(deadline) => {}
            }
            let (device, tcp) = shared.lock().successor.take().ok_or_else(late)?;
            (device, tcp, Opener::Peer)
        }
    };
    let addresses = Addresses { local: tcp.local_addr()?, peer: tcp.peer_addr()?, connected: port.is_some() };
    let settings = shared.lock().settings;
    settings.apply_keep_alive(&tcp)?;
    let stream = device.stream_of(tcp, opener)?;
    {
        let mut engine = shared.lock();
        engine.renew(&device)?;
        engine.addresses = addresses;
        engine.machine.reconnected(shared.clock.now());
    }
    set_up(shared, stream).await
}

/// Connects from the address `before`. If `before` is `None` or cannot be bound, connects from a
/// free port. The port is bound explicitly. The operating system then gives the port to no other
/// connection. Therefore this side can use the port again when the peer moves (section 13.1.1).
pub(super) async fn connect(before: Option<SocketAddr>, to: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = reusable_socket(to)?;
    let any = if to.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
    // If another socket uses the port, connect from a different port, because some peers accept
    // this.
    if before.is_none_or(|before| socket.bind(before).is_err()) {
        socket.bind(SocketAddr::new(any, 0))?;
    }
    socket.connect(to).await
}

/// Connects from `source` only.
pub(super) async fn connect_from(source: SocketAddr, to: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = reusable_socket(to)?;
    socket.bind(source)?;
    socket.connect(to).await
}

impl Engine {
    /// Replaces the Queue Pair, and moves all memory if `device` is another device.
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
        let pd = device.verbs(|rnic| rnic.memory_mut().allocate_pd())?;
        let (from, old) = (self.device.clone(), self.pd);
        self.expose_nothing();
        for area in self.areas_mut() {
            area.move_to(&from, device)?;
        }
        (self.device, self.pd) = (device.clone(), pd);
        // The connection has no objects left in this Protection Domain.
        let _ = from.verbs(|rnic| rnic.memory_mut().deallocate_pd(old));
        Ok(())
    }
}

impl Area {
    /// Moves the area's bytes to memory of another device. The new memory is not registered.
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
