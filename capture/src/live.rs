//! libpcap, by way of the package pcap.

use std::fmt;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use pcap::{Active, Capture, Device, Error, Precision};

use crate::{Drops, Interface, Next, OpenError, Packet, Settings};

/// An interface that is being captured on.
pub struct Live {
    capture: Capture<Active>,
    link_type: u16,
    drops: Counters,
    batch: Timespec,
    /// Was there nothing at the last look? Then the next one waits.
    dry: bool,
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").field("link_type", &self.link_type).field("drops", &self.drops).finish_non_exhaustive()
    }
}

impl Live {
    /// Begins to capture; frames from now on are not missed while the kernel's buffer has room for
    /// them.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(settings: &Settings) -> Result<Self, OpenError> {
        let failed = |error: &Error| refusal(&settings.interface, error);
        let clamped = |value: u128, most: i32| i32::try_from(value).unwrap_or(most).clamp(1, most);
        let mut capture = Capture::from_device(settings.interface.as_str())
            .map_err(|error| failed(&error))?
            .promisc(settings.promiscuous)
            .snaplen(clamped(settings.snap_len.into(), i32::MAX))
            .timeout(clamped(settings.batch.as_millis(), i32::MAX))
            .buffer_size(clamped(settings.buffer_mib.into(), 2047) << 20)
            .precision(Precision::Nano)
            .open()
            .map_err(|error| failed(&error))?
            // Otherwise libpcap waits for a frame for ever: its timeout is the kernel's for a batch
            // that has begun.
            .setnonblock()
            .map_err(|error| failed(&error))?;
        if let Some(filter) = &settings.filter {
            capture
                .filter(filter, true)
                .map_err(|error| OpenError::Filter { filter: filter.clone(), why: words(&error) })?;
        }
        // All types of today fit into it; a reader of frames reports any other.
        let link_type = u16::try_from(capture.get_datalink().0).unwrap_or(u16::MAX);
        let batch = Timespec::try_from(settings.batch).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        Ok(Live { capture, link_type: as_in_files(link_type), drops: Counters::default(), batch, dry: false })
    }

    /// Link type of its frames, as <https://www.tcpdump.org/linktypes.html> numbers it.
    #[must_use]
    pub fn link_type(&self) -> u16 {
        self.link_type
    }

    /// The next frame. Where there was none the last time, waits for one during
    /// [`Settings::batch`].
    pub fn next_frame(&mut self) -> Next<'_> {
        if self.dry {
            match poll(&mut [PollFd::new(&self.capture, PollFlags::IN)], Some(&self.batch)) {
                Ok(0) | Err(Errno::INTR) => return Next::Idle,
                Ok(_) => {}
                Err(error) => return Next::Over(error.to_string()),
            }
        }
        match self.capture.next_packet() {
            Ok(packet) => {
                self.dry = false;
                let seconds = u64::try_from(packet.header.ts.tv_sec).unwrap_or(0);
                // In the precision that was requested.
                let fraction = u64::try_from(packet.header.ts.tv_usec).unwrap_or(0);
                Next::Packet(Packet {
                    time: seconds.saturating_mul(1_000_000_000).saturating_add(fraction),
                    octets: packet.data,
                    wire_len: packet.header.len.max(packet.header.caplen),
                })
            }
            Err(Error::TimeoutExpired) => {
                self.dry = true;
                Next::Idle
            }
            Err(error) => Next::Over(words(&error)),
        }
    }

    /// What was lost so far. Call it at least every 2^32 frames: the kernel's counters are no
    /// longer than that.
    pub fn drops(&mut self) -> Drops {
        if let Ok(now) = self.capture.stats() {
            self.drops.advance([now.received, now.dropped, now.if_dropped]);
        }
        let [received, kernel, interface] = self.drops.total;
        Drops { received, kernel, interface }
    }
}

/// libpcap's numbers are those of the operating system where they differ from those in files:
/// raw IP is the one that Linux has.
fn as_in_files(link_type: u16) -> u16 {
    const DLT_RAW: u16 = 12;
    const LINKTYPE_RAW: u16 = 101;
    if link_type == DLT_RAW { LINKTYPE_RAW } else { link_type }
}

/// Counters of 32 bits that go round.
#[derive(Debug, Default)]
struct Counters {
    last: [u32; 3],
    total: [u64; 3],
}

impl Counters {
    fn advance(&mut self, now: [u32; 3]) {
        for ((total, last), now) in self.total.iter_mut().zip(&mut self.last).zip(now) {
            *total += u64::from(now.wrapping_sub(*last));
            *last = now;
        }
    }
}

/// The interfaces of this machine (of this network namespace).
///
/// # Errors
/// [`OpenError::Other`] when the system does not list them.
pub fn interfaces() -> Result<Vec<Interface>, OpenError> {
    let failed = |error: Error| OpenError::Other { interface: "interfaces".to_owned(), why: words(&error) };
    Ok(Device::list().map_err(failed)?.into_iter().map(interface).collect())
}

fn interface(device: Device) -> Interface {
    Interface {
        up: device.flags.is_up(),
        name: device.name,
        description: device.desc,
        addresses: device.addresses.iter().map(|address| address.addr).collect(),
    }
}

/// Why opening failed. libpcap has numbers for this, and the package pcap gives only its words.
fn refusal(interface: &str, error: &Error) -> OpenError {
    let (interface, why) = (interface.to_owned(), words(error));
    let lower = why.to_lowercase();
    if ["permission", "not permitted", "cap_net_raw"].iter().any(|word| lower.contains(word)) {
        return OpenError::NotPermitted { interface };
    }
    let known: Vec<String> = interfaces().map(|all| all.into_iter().map(|one| one.name).collect()).unwrap_or_default();
    if !known.is_empty() && !known.contains(&interface) {
        return OpenError::NoSuchInterface { interface, known };
    }
    OpenError::Other { interface, why }
}

/// libpcap's message, without the package's own prefix.
fn words(error: &Error) -> String {
    match error {
        Error::PcapError(text) => text.trim_end_matches('\n').to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_go_round() {
        let mut counters = Counters::default();
        counters.advance([u32::MAX, 1, 0]);
        counters.advance([1, 1, 0]);
        assert_eq!(counters.total, [u64::from(u32::MAX) + 2, 1, 0]);
    }

    #[test]
    fn loopback_is_listed() {
        let found = interfaces().unwrap();
        assert!(found.iter().any(|interface| interface.name == "lo"), "{found:?}");
    }

    #[test]
    fn refusals_name_the_remedy() {
        let refused = |why: &str| refusal("lo", &Error::PcapError(why.to_owned()));
        // The words of libpcap 1.10 for EPERM, and of older ones.
        for why in [
            "Attempt to create packet socket failed - CAP_NET_RAW may be required",
            "socket: Operation not permitted",
            "lo: You don't have permission to perform this capture on that device",
        ] {
            assert_eq!(refused(why), OpenError::NotPermitted { interface: "lo".to_owned() });
        }
        assert!(
            refused("socket: Operation not permitted").to_string().contains("setcap cap_net_raw,cap_net_admin=eip /")
        );
        let missing = refusal("weft-none0", &Error::PcapError("No such device exists".to_owned())).to_string();
        assert!(
            missing.starts_with("weft-none0: there is no such interface; there are ") && missing.contains("lo"),
            "{missing}"
        );
        assert_eq!(refused("odd").to_string(), "lo: odd");
    }
}
