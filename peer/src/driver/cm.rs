//! Connection management, similar to librdmacm, over TCP: listen, connect, accept, reject,
//! disconnect. It supports private data, IPv4 and IPv6.
//!
//! The connecting side is MPA's Initiator. The listening side is MPA's Responder. The Responder's
//! Queue Pair sends the Reply as its stream message. This message precedes all FPDUs.

use core::time::Duration;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::sync::{Mutex, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::accept_error::{ACCEPT_PAUSE, is_connection_error};
use super::device::Device;
use super::stream::{Opener, Stream};
use super::tcp::bound_socket;
use crate::mpa::{
    AfterReply, AfterRequest, EnhancedUse, Model, MpaSettings, Negotiated, PeerFrame, PrivateData, PrivateDataTooLong,
    SetupError, StartupError, WaitDecision, WaitReply, WaitRequest,
};
use crate::rdmap::Outbound;
use crate::reject::reject_if;
use crate::verbs::{LlpSettings, QpError, QpHandle, QpModify, QpState};

/// Settings of a connection, for either side.
#[derive(Debug, Clone, Copy)]
pub struct CmSettings {
    /// Settings of MPA.
    pub mpa: MpaSettings,
    /// Time limit for opening the TCP connection. The same limit applies to the wait for the peer's
    /// complete start-up frame. Default 10 s.
    pub startup_timeout: Duration,
    /// If true, this side connects again when the peer closes, resets or does not answer after an
    /// enhanced Request. The second Request has revision 1 (P2P-10-5). Only the connecting side
    /// uses this setting. If the settings require the peer-to-peer model, this side connects again
    /// only if [`agreed_rtr`](MpaSettings::agreed_rtr) replaces the negotiation of that model. With
    /// revision 1, the two sides do not negotiate IRD and ORD. Each side then uses the values of
    /// its own Queue Pair. Default false, because RFC 6581 section 10 permits the second Request
    /// only if the application can work without the negotiation.
    pub fall_back: bool,
}

impl Default for CmSettings {
    fn default() -> Self {
        CmSettings { mpa: MpaSettings::default(), startup_timeout: Duration::from_secs(10), fall_back: false }
    }
}

impl CmSettings {
    /// Settings for the second Request, after the first Request got no answer. `None` if this side
    /// must not send a second Request.
    fn fall_back_settings(self) -> Option<Self> {
        let mpa = MpaSettings { enhanced: EnhancedUse::Answer, ..self.mpa };
        let suits = mpa.enhanced_settings.model == Model::ClientServer || mpa.agreed_rtr.is_some();
        (self.fall_back && self.mpa.requests_enhanced() && suits).then_some(CmSettings {
            mpa,
            fall_back: false,
            ..self
        })
    }
}

/// Why the connection was not established.
#[derive(Debug, thiserror::Error)]
pub enum CmError {
    /// The peer closed before its start-up frame was complete.
    #[error("the peer closed the connection during start-up")]
    Closed,
    /// An error of TCP.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// This side's private data is too long.
    #[error(transparent)]
    PrivateData(#[from] PrivateDataTooLong),
    /// The peer's IRD is lower than the smallest ORD that this side can use
    /// ([`min_ord`](crate::mpa::EnhancedSettings::min_ord)). This side has rejected the Request
    /// with a Reply that contains `min_ord` (P2P-9.1-21).
    #[error("the peer's IRD is lower than the ORD that this side needs")]
    PeerIrd,
    /// The Queue Pair cannot be connected to the stream.
    #[error(transparent)]
    Qp(#[from] QpError),
    /// The peer rejected the Request, perhaps with private data.
    #[error("the peer rejected the connection")]
    Rejected(PeerFrame),
    /// The peer accepted the Request, but its Reply contains values that this side cannot use.
    #[error(transparent)]
    Setup(SetupError),
    /// The peer's start-up frame is invalid.
    #[error(transparent)]
    Startup(#[from] StartupError),
    /// TCP did not connect in time, or the peer's start-up frame was not complete in time.
    #[error("the peer did not answer, or did not send a complete start-up frame, before the timeout")]
    TimedOut,
}

impl CmError {
    /// Returns whether this error can mean that the Responder does not support enhanced Requests.
    fn may_fall_back(&self) -> bool {
        match self {
            CmError::Closed | CmError::TimedOut => true,
            CmError::Io(error) => matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe),
            CmError::PrivateData(_)
            | CmError::PeerIrd
            | CmError::Qp(_)
            | CmError::Rejected(_)
            | CmError::Setup(_)
            | CmError::Startup(_) => false,
        }
    }
}

/// An established connection. Its Queue Pair is in RTS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connected {
    /// The negotiated values.
    pub negotiated: Negotiated,
    /// The peer's start-up frame, with its private data.
    pub peer: PeerFrame,
}

impl Device {
    /// Connects an idle Queue Pair to a listener. `private_data` is sent in the Request.
    ///
    /// # Errors
    /// See [`CmError`]. After an error the Queue Pair is still idle.
    pub async fn connect(
        &self,
        qp: QpHandle,
        address: SocketAddr,
        settings: CmSettings,
        private_data: &PrivateData,
    ) -> Result<Connected, CmError> {
        let stream = self.open_stream(address, settings).await?;
        match (self.start_up(stream, qp, settings, private_data).await, settings.fall_back_settings()) {
            (Err(error), Some(settings)) if error.may_fall_back() => {
                let stream = self.open_stream(address, settings).await?;
                self.start_up(stream, qp, settings, private_data).await
            }
            (result, _) => result,
        }
    }

    async fn open_stream(&self, address: SocketAddr, settings: CmSettings) -> Result<Stream, CmError> {
        let connecting = timeout(settings.startup_timeout, TcpStream::connect(address));
        let tcp = connecting.await.map_err(|_| CmError::TimedOut)??;
        Ok(self.stream_of(tcp, Opener::Here)?)
    }

    /// Performs MPA start-up on `stream`, and connects the stream to the Queue Pair.
    async fn start_up(
        &self,
        stream: Stream,
        qp: QpHandle,
        settings: CmSettings,
        private_data: &PrivateData,
    ) -> Result<Connected, CmError> {
        let mut request = Vec::new();
        let deviations = self.verbs(|rnic| rnic.deviations().clone());
        let waiting = WaitReply::start(settings.mpa, private_data, deviations.clone(), &mut request)?;
        let answered = async {
            stream.write_all(&request).await?;
            let mut waiting = waiting;
            loop {
                match waiting.handle_octets(&read_some(&stream).await?)? {
                    AfterReply::Waiting(more) => waiting = more,
                    AfterReply::Accepted(negotiated, peer) => return Ok(Connected { negotiated, peer }),
                    AfterReply::Unacceptable(negotiated, _, error) => {
                        // The Terminate reports the reason to the peer (RFC 6581 section 9).
                        stream.write_all(&Outbound::setup_terminate(&negotiated, error, deviations)).await?;
                        stream.finish()?;
                        stream.flushed().await?;
                        return Err(CmError::Setup(error));
                    }
                    AfterReply::Rejected(peer) => {
                        stream.finish()?;
                        stream.flushed().await?;
                        return Err(CmError::Rejected(peer));
                    }
                }
            }
        };
        let connected = timeout(settings.startup_timeout, answered).await.map_err(|_| CmError::TimedOut)??;
        let llp = LlpSettings::new(&connected.negotiated, stream.emss()?);
        let (ird, ord) = agreed_depths(&connected.negotiated);
        self.join(stream, llp, qp, |llp| QpModify { ird, ord, ..QpModify::to_rts(llp) })?;
        Ok(connected)
    }

    /// Closes a Queue Pair's connection gracefully, and waits until the Queue Pair is in Idle. If
    /// the peer does not close gracefully, the Queue Pair enters Error, and the wait ends.
    ///
    /// # Errors
    /// The Queue Pair is not in RTS.
    pub async fn disconnect(&self, qp: QpHandle) -> Result<(), QpError> {
        self.modify_qp(qp, &QpModify::to(QpState::Closing))?;
        self.ended(qp).await.map(|_| ())
    }
}

/// Accepts connections. Start-ups run concurrently, so a slow peer does not delay other peers.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    arrived: Mutex<mpsc::Receiver<Result<ConnectRequest, CmError>>>,
    _accepting: JoinSet<()>,
}

/// Maximum number of connections that TCP queues while the listener is busy.
const BACKLOG: u32 = 1024;
/// Maximum number of start-ups in progress. The same number is the maximum of complete start-ups
/// that wait in the channel for a call of `next`. Further connections wait in TCP's queue.
const MAX_STARTUPS: usize = 256;
impl Listener {
    /// Listens on `address`. Port 0 picks a free port.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn bind(device: &Device, address: SocketAddr, settings: CmSettings) -> io::Result<Self> {
        let listener = bound_socket(address)?.listen(BACKLOG)?;
        let address = listener.local_addr()?;
        let (sender, arrived) = mpsc::channel(MAX_STARTUPS);
        let listener = Arc::new(listener);
        let accept = move || {
            let listener = Arc::clone(&listener);
            async move { listener.accept().await.map(|(tcp, _)| tcp) }
        };
        let mut accepting = JoinSet::new();
        accepting.spawn(accept_all(device.clone(), settings, sender, accept, || sleep(ACCEPT_PAUSE)));
        Ok(Listener { address, arrived: Mutex::new(arrived), _accepting: accepting })
    }

    /// Returns the address that the listener is bound to.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Waits for the next connection whose Request has arrived.
    ///
    /// # Errors
    /// See [`CmError`]. The error concerns one peer, or reports that no connection can be accepted
    /// for now. In both cases, the listener continues to accept.
    pub async fn next(&self) -> Result<ConnectRequest, CmError> {
        // The accepting task ends only when the listener is dropped.
        self.arrived.lock().await.recv().await.unwrap_or(Err(CmError::Closed))
    }
}

/// Accepts connections while the listener exists, and runs the start-ups concurrently. If accepting
/// fails, the task reports the error and tries again. If the error concerns the listener and not
/// only one connection, the task first pauses.
async fn accept_all<A: Future<Output = io::Result<TcpStream>>, P: Future>(
    device: Device,
    settings: CmSettings,
    sender: mpsc::Sender<Result<ConnectRequest, CmError>>,
    accept: impl Fn() -> A,
    pause: impl Fn() -> P,
) {
    let permits = Arc::new(Semaphore::new(MAX_STARTUPS));
    let mut startups = JoinSet::new();
    loop {
        // The semaphore is never closed.
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = accept() => accepted,
            Some(_) = startups.join_next() => continue,
        };
        let is_stuck = accepted.as_ref().is_err_and(|error| !is_connection_error(error));
        let stream = accepted.and_then(|tcp| device.stream_of(tcp, Opener::Peer));
        let (device, sender) = (device.clone(), sender.clone());
        startups.spawn(async move {
            let request = match stream {
                Ok(stream) => requested(device, stream, settings).await,
                Err(error) => Err(error.into()),
            };
            // If the listener has been dropped, the connection closes.
            let _ = sender.send(request).await;
            // The permit is released only here. Therefore the listener stops accepting if its user
            // fetches no requests.
            drop(permit);
        });
        if is_stuck {
            pause().await;
        }
    }
}

/// Waits for a peer's Request. A Request that this side cannot work with is rejected.
async fn requested(device: Device, stream: Stream, settings: CmSettings) -> Result<ConnectRequest, CmError> {
    let deviations = device.verbs(|rnic| rnic.deviations().clone());
    let arrived = async {
        let mut waiting = WaitRequest::start(settings.mpa, deviations);
        loop {
            match waiting.handle_octets(&read_some(&stream).await?)? {
                AfterRequest::Waiting(more) => waiting = more,
                AfterRequest::Arrived(decision) => return Ok::<_, CmError>(decision),
            }
        }
    };
    let decision = timeout(settings.startup_timeout, arrived).await.map_err(|_| CmError::TimedOut)??;
    let request = ConnectRequest { device, stream, decision };
    if request.decision.is_insufficient() {
        request.reject(&PrivateData::default()).await?;
        return Err(CmError::PeerIrd);
    }
    Ok(request)
}

/// The Request of a peer that wants to connect. Dropping this value closes the connection.
#[derive(Debug)]
pub struct ConnectRequest {
    device: Device,
    stream: Stream,
    decision: WaitDecision,
}

impl ConnectRequest {
    /// Returns the peer's Request, with its private data.
    #[must_use]
    pub fn peer(&self) -> &PeerFrame {
        self.decision.request()
    }

    /// Returns the peer's address.
    ///
    /// # Errors
    /// The connection is closed.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stream.tcp.peer_addr()
    }

    /// Accepts the connection on an idle Queue Pair. Post the Queue Pair's receives before this
    /// call. Work Requests of this side wait until the peer's first message has arrived.
    ///
    /// # Errors
    /// See [`CmError`]. After an error the connection is closed.
    pub fn accept(self, qp: QpHandle, private_data: &PrivateData) -> Result<Connected, CmError> {
        self.decision.check(private_data)?;
        let peer = self.decision.request().clone();
        let mut reply = Vec::new();
        let negotiated = self.decision.accept(private_data, &mut reply);
        let llp = LlpSettings::new(&negotiated, self.stream.emss()?);
        let (ird, ord) = agreed_depths(&negotiated);
        let modify = |llp| QpModify { stream_message: Some(reply.into()), ird, ord, ..QpModify::to_rts(llp) };
        self.device.join(self.stream, llp, qp, modify)?;
        Ok(Connected { negotiated, peer })
    }

    /// Rejects the Request and closes the connection.
    ///
    /// # Errors
    /// See [`CmError`].
    pub async fn reject(self, private_data: &PrivateData) -> Result<(), CmError> {
        self.decision.check(private_data)?;
        let mut reply = Vec::new();
        self.decision.reject(private_data, &mut reply);
        self.stream.write_all(&reply).await?;
        self.stream.finish()?;
        self.stream.flushed().await?;
        Ok(())
    }
}

/// Returns the negotiated IRD and ORD (RFC 6581). Both are `None` if there was no negotiation.
fn agreed_depths(negotiated: &Negotiated) -> (Option<u32>, Option<u32>) {
    negotiated.enhanced.map(|agreed| (agreed.ird.into(), agreed.ord.into())).unzip()
}

/// Reads at least one byte of a start-up frame.
async fn read_some(stream: &Stream) -> Result<Vec<u8>, CmError> {
    let mut octets = vec![0; 1024];
    let read = stream.read_some(&mut octets).await?;
    reject_if(read == 0, CmError::Closed)?;
    octets.truncate(read);
    Ok(octets)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::verbs::{Node, RnicSettings};

    /// If the user does not fetch connections, the waiting connections must not use unlimited
    /// memory. They first fill the channel. After that, further connections take all permits of the
    /// semaphore.
    #[tokio::test]
    async fn a_listener_whose_user_takes_nobody_stops_accepting() {
        let device = Device::new(Node::new(["weft0"]).open("weft0", RnicSettings::default()).unwrap().0);
        let (sender, mut arrived) = mpsc::channel(MAX_STARTUPS);
        let tries = Cell::new(0);
        let accept = || async {
            tries.set(tries.get() + 1);
            Err(io::ErrorKind::ConnectionAborted.into())
        };
        let accepting = accept_all(device, CmSettings::default(), sender, accept, || async {});
        let watching = async {
            let turns = || async {
                for _ in 0..20 * MAX_STARTUPS {
                    tokio::task::yield_now().await;
                }
                tries.get()
            };
            assert_eq!(turns().await, 2 * MAX_STARTUPS);
            assert!(matches!(arrived.recv().await, Some(Err(CmError::Io(_)))));
            assert_eq!(turns().await, 2 * MAX_STARTUPS + 1);
        };
        tokio::select! {
            () = accepting => unreachable!("the listener never ends"),
            () = watching => {}
        }
    }

    /// The first `accept` fails with an error that concerns one peer, and the listener does not
    /// pause. Every later `accept` fails with EMFILE, and the listener pauses each time.
    #[tokio::test]
    async fn a_listener_that_can_accept_nobody_pauses() {
        let device = Device::new(Node::new(["weft0"]).open("weft0", RnicSettings::default()).unwrap().0);
        let (sender, mut arrived) = mpsc::channel(MAX_STARTUPS);
        let (tries, pauses) = (Cell::new(0), Semaphore::new(0));
        let accept = || async {
            tries.set(tries.get() + 1);
            let gone = tries.get() == 1;
            Err(if gone { io::ErrorKind::ConnectionAborted.into() } else { io::Error::from_raw_os_error(24) })
        };
        let pause = || async { pauses.acquire().await.unwrap().forget() };
        let accepting = accept_all(device, CmSettings::default(), sender, accept, pause);
        let watching = async {
            for tried in [2, 3, 4] {
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
                assert_eq!(tries.get(), tried);
                pauses.add_permits(1);
            }
            for _ in 0..4 {
                assert!(matches!(arrived.recv().await, Some(Err(CmError::Io(_)))));
            }
        };
        tokio::select! {
            () = accepting => unreachable!("the listener never ends"),
            () = watching => {}
        }
    }
}
