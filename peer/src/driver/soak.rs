//! The soak (a long random test) over real TCP. One listener and one connecting side exchange
//! mangled bytes in both directions. They use one connection after another.
//!
//! The checks are the same as in [`soak`](crate::soak). Each connection has a time limit, because
//! the test cannot skip real time. Both RNICs exist as long as the [`SoakPair`]. Therefore leaked
//! resources of all connections add up.

use core::time::Duration;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use fastrand::Rng;
use tokio::time::{sleep, timeout};

use super::Device;
use super::cm::{CmSettings, Listener};
use super::device::DeviceSettings;
use crate::hostile::mangle::{Mangling, Plan};
use crate::memory::{MemorySettings, PdId};
use crate::mpa::PrivateData;
use crate::soak::{GuardedMemory, RandomWork, Remote, SoakError, draw_mpa};
use crate::verbs::{CqHandle, Node, QpHandle, QpInit, RnicSettings};

/// If a connection takes longer than this time, the soak reports a hang. Normal connections are
/// much faster. The start-up of each side takes at most 2 s. A close resets the connection if no
/// byte moves for 1 s. The mangler delays a write by at most 50 ms.
pub const LIMIT: Duration = Duration::from_secs(60);
const STARTUP: Duration = Duration::from_secs(2);
const CLOSE: Duration = Duration::from_secs(1);
const LONGEST_DELAY: Duration = Duration::from_millis(50);

/// A listener and a connector on the loopback interface. Use it in a tokio runtime.
#[derive(Debug)]
pub struct SoakPair {
    listener: Listener,
    /// The device that listens and the device that connects.
    devices: [Device; 2],
    seed: u64,
}

impl SoakPair {
    /// Creates a pair whose first connection has this seed. Each further connection has the
    /// previous seed plus one.
    ///
    /// # Errors
    /// No port can be bound.
    pub fn new(plan: &Plan, seed: u64) -> io::Result<Self> {
        let device = |ends: u64| {
            let memory = MemorySettings { stag_seed: seed ^ ends, ..MemorySettings::default() };
            let settings = RnicSettings { memory, close_timeout: CLOSE, ..RnicSettings::default() };
            let (rnic, _) = Node::new(["weft0"]).open("weft0", settings).map_err(io::Error::other)?;
            let mangling = Mangling { longest_delay: LONGEST_DELAY, ..Mangling::new(plan.clone(), seed) };
            let settings = DeviceSettings { mangling: Some(mangling), ..DeviceSettings::default() };
            Ok::<Device, io::Error>(Device::with(rnic, settings))
        };
        let devices = [device(0)?, device(1)?];
        let settings = CmSettings { startup_timeout: STARTUP, ..CmSettings::default() };
        let listener = Listener::bind(&devices[0], SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), settings)?;
        Ok(SoakPair { listener, devices, seed })
    }

    /// Returns the seed of the next connection.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Runs one connection until it ends.
    ///
    /// # Errors
    /// A check of the soak failed.
    pub async fn play(&mut self) -> Result<(), SoakError> {
        let mut rng = Rng::with_seed(self.seed);
        self.seed = self.seed.wrapping_add(1);
        let [listens, connects] = &self.devices;
        let listens = Endpoint::new(listens, &mut rng).map_err(SoakError::NoEndpoint)?;
        let connects = Endpoint::new(connects, &mut rng).map_err(SoakError::NoEndpoint)?;
        let remotes = [listens.guarded.remote(), connects.guarded.remote()];
        let settings = CmSettings { mpa: draw_mpa(&mut rng), startup_timeout: STARTUP, ..CmSettings::default() };
        let data = PrivateData::new(vec![0x5a; rng.usize(0..20)]).unwrap_or_default();
        let (mut other, none) = (rng.fork(), PrivateData::default());
        let both = async {
            tokio::join!(
                async {
                    // Mangling can make the Request invalid. Then the listener rejects the Request.
                    let accepted = self.listener.next().await;
                    if accepted.is_ok_and(|request| request.accept(listens.qp, &none).is_ok()) {
                        listens.post_and_close(&mut other, &remotes[1]).await;
                    }
                },
                async {
                    let address = self.listener.local_addr();
                    if connects.device.connect(connects.qp, address, settings, &data).await.is_ok() {
                        connects.post_and_close(&mut rng, &remotes[0]).await;
                    }
                }
            )
        };
        if timeout(LIMIT, both).await.is_err() {
            return Err(SoakError::Hang { after: LIMIT, description: "over TCP".to_owned() });
        }
        for (end, one) in [connects, listens].into_iter().enumerate() {
            one.device
                .verbs(|rnic| one.guarded.check(rnic))
                .map_err(|violation| SoakError::Memory { end, violation })?;
            one.release().map_err(|error| SoakError::Leak { end, error })?;
        }
        Ok(())
    }
}

/// One side of a connection, with the resources that it uses.
#[derive(Debug)]
struct Endpoint {
    device: Device,
    pd: PdId,
    cq: CqHandle,
    qp: QpHandle,
    guarded: GuardedMemory,
}

impl Endpoint {
    fn new(device: &Device, rng: &mut Rng) -> Result<Self, String> {
        let pd = device.verbs(|rnic| rnic.memory_mut().allocate_pd()).map_err(|error| error.to_string())?;
        let cq = device.create_cq(1 << 12).map_err(|error| error.to_string())?;
        let init = QpInit { max_sq_wrs: 256, max_rq_wrs: 256, ord: 8, ird: 8, ..QpInit::new(pd, cq, cq) };
        let (qp, _, _) = device.verbs(|rnic| rnic.create_qp(init, None)).map_err(|error| error.to_string())?;
        let guarded = device.verbs(|rnic| GuardedMemory::new(rnic, pd, rng)).map_err(|error| error.to_string())?;
        let end = Endpoint { device: device.clone(), pd, cq, qp, guarded };
        // The queue is empty, so it accepts all receives.
        let _ = device.post_receive(qp, RandomWork::receives(rng, &end.guarded));
        Ok(end)
    }

    /// Posts random work, then closes the connection.
    async fn post_and_close(&self, rng: &mut Rng, peer: &Remote) {
        for _ in 0..rng.u32(1..=6) {
            // A queue that is full or in the Error state rejects the receives.
            let _ = self.device.post_receive(self.qp, RandomWork::receives(rng, &self.guarded));
            let _ = self.device.post_send(self.qp, RandomWork::operations(rng, &self.guarded, peer));
            sleep(Duration::from_millis(rng.u64(0..20))).await;
            self.device.verbs(|rnic| while rnic.poll_cq(self.cq).is_ok() {});
        }
        // Ignore an error, because the connection has possibly ended, or is closing.
        let _ = self.device.disconnect(self.qp).await;
        let _ = self.device.ended(self.qp).await;
    }

    fn release(self) -> Result<(), String> {
        self.device.destroy_qp(self.qp).map_err(|error| format!("QP: {error}"))?;
        self.device.verbs(|rnic| self.guarded.release(rnic))?;
        self.device.destroy_cq(self.cq).map_err(|error| format!("CQ: {error}"))?;
        self.device.verbs(|rnic| rnic.memory_mut().deallocate_pd(self.pd)).map_err(|error| format!("PD: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn some_connections_are_played_and_nothing_breaks() {
        let mut pair = SoakPair::new(&Plan::all(), 1).unwrap();
        for _ in 0..8 {
            let seed = pair.seed();
            if let Err(error) = pair.play().await {
                panic!("seed {seed}: {error}");
            }
        }
    }
}
