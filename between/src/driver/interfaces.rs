//! Bridges two network interfaces. The bridge is transparent: it has no address, and both sides can
//! be in one subnet.
//!
//! The interfaces must not have addresses in use by this host, and must not be in another bridge:
//! otherwise this host answers or forwards the same frames, too. Offloads of the interfaces can
//! merge segments (GRO, LRO). The bridge then divides the merged segments again, but not at the
//! places where the sender had divided them. Switch off these offloads to see the sender's
//! segments: `ethtool -K IF gro off lro off`.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use weft_capture::{Live, Next, OpenError, Settings};
use weft_dissector::link_type::ETHERNET;

use crate::driver::{now, wait_time};
use crate::run::Run;
use crate::side::{PerSide, Side};

/// Longest time between two checks of the stop flag.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum number of frames that are read from one interface before the other interface has its
/// turn.
const BURST: usize = 64;
/// After the stop, the frames that the kernel has already captured are still forwarded. If more
/// frames arrive all the time, the forwarding ends after this number of nanoseconds.
const DRAIN_TIME: u64 = 500_000_000;
/// The MTU of an interface whose MTU cannot be read.
const DEFAULT_MTU: u16 = 1500;

/// The two interfaces of a bridge.
#[derive(Debug)]
pub struct Interfaces {
    live: PerSide<Live>,
    /// Maximum length of an IP packet on each interface in bytes.
    mtu: PerSide<u16>,
}

/// Why the bridge stopped.
#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// An interface has ended.
    #[error("interface of side {side}: {why}")]
    Interface {
        /// The side.
        side: Side,
        /// The reason.
        why: String,
    },
    /// A capture cannot be written.
    #[error("cannot write a capture: {0}")]
    Capture(#[from] std::io::Error),
}

impl Interfaces {
    /// Opens both interfaces. This needs the same permission as a live capture.
    ///
    /// # Errors
    /// An interface cannot be opened, or its frames are not Ethernet frames.
    pub fn open(names: &PerSide<String>) -> Result<Self, OpenError> {
        let open = |name: &String| {
            let settings =
                Settings { batch: Duration::ZERO, is_inbound_only: true, is_immediate: true, ..Settings::new(name) };
            let live = Live::open(&settings)?;
            if live.link_type() == ETHERNET {
                return Ok(live);
            }
            let why = format!("its frames have link type {}, but a bridge needs Ethernet frames", live.link_type());
            Err(OpenError::Other { interface: name.clone(), why })
        };
        let live = PerSide { a: open(&names.a)?, b: open(&names.b)? };
        Ok(Interfaces { live, mtu: PerSide { a: mtu(&names.a), b: mtu(&names.b) } })
    }

    /// Forwards frames until `stop` is set. Frames that still wait in the bridge are then sent
    /// without a further delay.
    ///
    /// # Errors
    /// An interface ends, or a capture cannot be written.
    pub fn forward<W: Write>(&mut self, run: &mut Run<W>, stop: &AtomicBool) -> Result<(), BridgeError> {
        for side in Side::BOTH {
            run.set_link_mtu(side, self.mtu[side]);
        }
        let mut end: Option<u64> = None;
        loop {
            if end.is_none() && stop.load(Relaxed) {
                end = Some(now().saturating_add(DRAIN_TIME));
            }
            let mut is_idle = true;
            for side in Side::BOTH {
                for _ in 0..BURST {
                    match self.live[side].next_frame() {
                        Next::Packet(packet) => {
                            run.frame(now(), side, packet.octets)?;
                            is_idle = false;
                        }
                        Next::Idle => break,
                        Next::Over(why) => return Err(BridgeError::Interface { side, why }),
                    }
                }
            }
            let is_over = end.is_some_and(|end| is_idle || now() >= end);
            let until = if is_over { u64::MAX } else { now() };
            while let Some(outgoing) = run.deliver(now(), until)? {
                if let Err(why) = self.live[outgoing.to].send(&outgoing.octets) {
                    tracing::warn!(side = %outgoing.to, len = outgoing.octets.len(), why, "a frame was not sent");
                }
            }
            if is_over {
                return Ok(());
            }
            if is_idle {
                Live::wait(&[&self.live.a, &self.live.b], wait_time(run.next_due(), CHECK_INTERVAL));
            }
        }
    }
}

/// The MTU of an interface.
fn mtu(interface: &str) -> u16 {
    let path = std::path::Path::new("/sys/class/net").join(interface).join("mtu");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mtu: u32 = text.trim().parse().unwrap_or(DEFAULT_MTU.into());
    u16::try_from(mtu).unwrap_or(u16::MAX)
}
