//! Live captures and sending with libpcap, through the crate `pcap`.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use pcap::{Active, Capture, Device, Direction, Error, Linktype, Precision};

use crate::{Drops, Interface, Next, OpenError, Packet, Settings};

/// A live capture on an interface.
pub struct Live {
    capture: Capture<Active>,
    link_type: u16,
    drops: Counters,
    batch: Timespec,
    /// Whether the last call of `next_frame` returned no frame. The next call then waits for a
    /// frame.
    dry: bool,
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").field("link_type", &self.link_type).field("drops", &self.drops).finish_non_exhaustive()
    }
}

impl Live {
    /// Starts a capture. From now on, the kernel stores frames in its buffer. A frame is lost only
    /// if the buffer is full.
    ///
    /// # Errors
    /// Returns an [`OpenError`] if the interface cannot be opened, or if the filter is not valid.
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
            .immediate_mode(settings.is_immediate)
            .open()
            .map_err(|error| failed(&error))?
            // In blocking mode, libpcap can wait for a frame forever, because its timeout starts
            // only when the first frame of a batch arrives.
            .setnonblock()
            .map_err(|error| failed(&error))?;
        if let Some(filter) = &settings.filter {
            capture
                .filter(filter, true)
                .map_err(|error| OpenError::Filter { filter: filter.clone(), why: words(&error) })?;
        }
        if settings.is_inbound_only {
            capture.direction(Direction::In).map_err(|error| failed(&error))?;
        }
        // All known link types fit into 16 bits. The reader of the frames reports unknown types.
        let link_type = u16::try_from(capture.get_datalink().0).unwrap_or(u16::MAX);
        let batch = Timespec::try_from(settings.batch).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        Ok(Live { capture, link_type: as_in_files(link_type), drops: Counters::default(), batch, dry: false })
    }

    /// Returns the link type of the frames, as a number of
    /// <https://www.tcpdump.org/linktypes.html>.
    #[must_use]
    pub fn link_type(&self) -> u16 {
        self.link_type
    }

    /// Returns the next frame. If the last call returned [`Next::Idle`], waits for a frame at most
    /// for [`Settings::batch`].
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
                // `tv_usec` has nanoseconds here, because `open` requested this precision.
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

    /// Waits until one of `interfaces` has a frame, but not longer than `time_limit`.
    pub fn wait(interfaces: &[&Live], time_limit: Duration) {
        let mut polled: Vec<PollFd<'_>> =
            interfaces.iter().map(|live| PollFd::new(&live.capture, PollFlags::IN)).collect();
        let time_limit = Timespec::try_from(time_limit).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        // A signal or an error ends the wait, too. `next_frame` reports an error of the interface.
        let _ = poll(&mut polled, Some(&time_limit));
    }

    /// Returns a descriptor that is readable while frames wait. It can be used to wait for frames
    /// together with other events.
    ///
    /// # Errors
    /// The process has no more descriptors.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.capture.as_fd().try_clone_to_owned()
    }

    /// Sends a frame. The frame begins with its link header.
    ///
    /// # Errors
    /// Returns the system's message, for example if the frame is longer than the interface allows.
    pub fn send(&mut self, octets: &[u8]) -> Result<(), String> {
        self.capture.sendpacket(octets).map_err(|error| words(&error))
    }

    /// Returns the numbers of received and dropped frames. Call this function at least once per
    /// 2^32 frames, because the kernel's counters have 32 bits.
    pub fn drops(&mut self) -> Drops {
        if let Ok(now) = self.capture.stats() {
            self.drops.advance([now.received, now.dropped, now.if_dropped]);
        }
        let [received, kernel, interface] = self.drops.total;
        Drops { received, kernel, interface }
    }
}

/// Converts a link type of libpcap (DLT) to the number in capture files (LINKTYPE). On Linux, only
/// the number of raw IP differs.
fn as_in_files(link_type: u16) -> u16 {
    const DLT_RAW: u16 = 12;
    const LINKTYPE_RAW: u16 = 101;
    if link_type == DLT_RAW { LINKTYPE_RAW } else { link_type }
}

/// Computes 64-bit counts from 32-bit counters that wrap around.
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

/// Lists the interfaces of this machine, in the current network namespace.
///
/// # Errors
/// Returns [`OpenError::Other`] if the system cannot list the interfaces.
pub fn interfaces() -> Result<Vec<Interface>, OpenError> {
    let failed = |error: Error| OpenError::Other { interface: "cannot list interfaces".to_owned(), why: words(&error) };
    Ok(Device::list().map_err(failed)?.into_iter().map(interface).collect())
}

/// Checks a capture filter for Ethernet, without an interface and without privileges.
///
/// # Errors
/// Returns [`OpenError::Filter`] if the filter is not valid.
pub fn check_filter(filter: &str) -> Result<(), OpenError> {
    let failed = |error: &Error| OpenError::Filter { filter: filter.to_owned(), why: words(error) };
    let capture = Capture::dead(Linktype::ETHERNET).map_err(|error| failed(&error))?;
    capture.compile(filter, true).map_err(|error| failed(&error))?;
    Ok(())
}

fn interface(device: Device) -> Interface {
    Interface {
        up: device.flags.is_up(),
        name: device.name,
        description: device.desc,
        addresses: device.addresses.iter().map(|address| address.addr).collect(),
    }
}

/// Finds out from libpcap's message why opening failed. libpcap has error numbers, but the crate
/// `pcap` passes only the message.
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

/// Returns libpcap's message, without the prefix of the crate `pcap`.
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
    fn filters_are_checked_without_an_interface() {
        assert_eq!(check_filter("tcp port 7174"), Ok(()));
        let error = check_filter("tcp and (").unwrap_err();
        assert!(matches!(&error, OpenError::Filter { filter, .. } if filter == "tcp and ("), "{error}");
    }

    #[test]
    fn refusals_name_the_remedy() {
        let refused = |why: &str| refusal("lo", &Error::PcapError(why.to_owned()));
        // These are messages of libpcap for EPERM. They come from version 1.10 and from older
        // versions.
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
            missing.starts_with("weft-none0: there is no such interface; this host has ") && missing.contains("lo"),
            "{missing}"
        );
        assert_eq!(refused("odd").to_string(), "lo: odd");
    }
}
