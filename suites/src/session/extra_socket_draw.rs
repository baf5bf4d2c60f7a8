//! Draws the rare steps of sessions with SDP sockets, for `extra_draw`.

use std::ops::Range;

use fastrand::Rng;

use super::drive_step::{DriveAction, DriveStep};
use super::profile::Profile;
use super::sdp_step::{SdpAction, SdpStep, SocketFields};
use super::shared_draw::{NEAR, full_segment, near, pick};
use super::socket_draw::{SHORT, is_small};
use super::step::Step;

/// Maximum number of bytes of a send. With small buffers, the maximum is [`SHORT`].
const MAX_SEND: u32 = 60_000;
/// Maximum number of bytes in a receive of a driven socket's user.
const MAX_READ: u32 = 20_000;
/// TCP ports of the target for suspensions. The target may listen on a port for a while, so the
/// next suspension needs another port.
const PORTS: Range<u16> = 20_000..30_000;

/// A step of the tester's SDP socket.
pub(super) fn tester(connection: u32, action: SdpAction) -> Step {
    Step::Sdp(SdpStep { connection, action })
}

/// A command for the user of a driven SDP socket.
pub(super) fn user(connection: u32, action: DriveAction) -> Step {
    Step::Drive(DriveStep { connection, action })
}

/// A connection with SDP.
pub(super) struct Socket {
    pub(super) connection: u32,
    /// The fields with which the first step opens the connection.
    fields: SocketFields,
    /// Whether a connection of the session has small buffers.
    is_small: bool,
    /// Maximum number of bytes of a send.
    pub(super) most: u32,
}

impl Socket {
    /// Returns the connection with this number in a session with these steps.
    pub(super) fn of(connection: u32, steps: &[Step]) -> Self {
        let mut opened = steps.iter().filter_map(|step| match *step {
            Step::Sdp(SdpStep { connection, action: SdpAction::Open(fields) }) => Some((connection, fields)),
            _ => None,
        });
        let is_small = opened.clone().any(|(_, fields)| is_small(&fields));
        let own = opened.find(|(number, _)| *number == connection);
        let fields = own.map(|(_, fields)| fields).unwrap_or_default();
        Socket { connection, fields, is_small, most: if is_small { SHORT } else { MAX_SEND } }
    }

    fn tester(&self, action: SdpAction) -> Step {
        tester(self.connection, action)
    }

    fn user(&self, action: DriveAction) -> Step {
        user(self.connection, action)
    }

    fn answers(&self) -> Step {
        Step::Answers { connection: self.connection }
    }

    /// Returns sends that almost fill a number of segments or of the target's Private Buffers, or
    /// that are slightly longer.
    pub(super) fn sizes(&self, rng: &mut Rng, profile: &Profile) -> Vec<Step> {
        let mut steps = Vec::new();
        for _ in 0..rng.u32(2..=4) {
            // With Data, the payload follows the header of 16 bytes in the segments.
            let (segment, header) = (full_segment(rng, profile), pick(rng, &[0, 16]));
            let size = near(rng, segment, self.most);
            steps.push(self.tester(SdpAction::Send { size: size.saturating_sub(header).max(1), urgent: false }));
        }
        if !self.is_small {
            steps.push(self.tester(SdpAction::Fill { count: rng.u32(1..=3), more: pick(rng, &NEAR) }));
        }
        steps.push(self.answers());
        steps
    }

    /// Like [`sizes`](Self::sizes), for the sends and the receives of the target's user.
    pub(super) fn driven_sizes(&self, rng: &mut Rng, profile: &Profile) -> Vec<Step> {
        let send = |size: u32| self.user(DriveAction::Send { size: size.max(1), urgent: false });
        // The header of a message has 16 bytes.
        let buffer = self.fields.recv_size.saturating_sub(16).max(1);
        let segment = full_segment(rng, profile);
        let size = near(rng, segment, self.most.min(MAX_READ)).max(1);
        vec![
            self.user(DriveAction::Change("threshold 1073741824")),
            send(near(rng, buffer, self.most)),
            send(near(rng, buffer, self.most)),
            send(near(rng, segment, self.most).saturating_sub(16)),
            // The default.
            self.user(DriveAction::Change("threshold 500")),
            send(near(rng, segment, self.most)),
            self.user(DriveAction::Read { count: 1, size, piece: 0 }),
            self.answers(),
        ]
    }

    /// Returns a DisConn while the target still sends, and opens the connection again.
    pub(super) fn end(&self, rng: &mut Rng) -> Vec<Step> {
        let size: u32 = pick(rng, &[3000, 30_000, 60_000]);
        vec![
            self.tester(SdpAction::StopReading(100)),
            self.tester(SdpAction::Send { size: size.min(self.most), urgent: false }),
            self.tester(SdpAction::Run(pick(rng, &[0, 5, 20]))),
            Step::Close { connection: self.connection },
            self.tester(SdpAction::Open(self.fields)),
        ]
    }

    /// Like [`end`](Self::end), with a driven socket.
    pub(super) fn driven_end(&self, rng: &mut Rng) -> Vec<Step> {
        let send = |size: u32| self.user(DriveAction::Send { size: size.min(self.most), urgent: false });
        let mut steps = vec![
            self.tester(SdpAction::StopReading(pick(rng, &[1, 30, 100]))),
            send(pick(rng, &[3000, 30_000, 60_000])),
            send(9000),
        ];
        if rng.bool() {
            let size = (self.most / 2).min(2000);
            steps.extend([self.user(DriveAction::Read { count: 2, size, piece: 0 }), send(600)]);
        }
        steps.extend([self.tester(SdpAction::CloseEarly), self.tester(SdpAction::Open(self.fields))]);
        steps
    }

    /// Returns a suspension by the tester, often during a transfer, and sends after the connection
    /// has resumed.
    pub(super) fn resumption(&self, rng: &mut Rng) -> Vec<Step> {
        let send = |size: u32| self.tester(SdpAction::Send { size: size.min(self.most), urgent: false });
        vec![
            send(pick(rng, &[20, 3000, 30_000])),
            self.tester(SdpAction::Run(pick(rng, &[0, 1, 20]))),
            self.tester(SdpAction::Resume),
            send(pick(rng, &[20, 9000])),
            send(100),
            self.answers(),
        ]
    }

    /// Returns a suspension by the target's user, often during a transfer. Opens another connection
    /// after it.
    pub(super) fn suspension(&self, rng: &mut Rng) -> Vec<Step> {
        let size: u32 = pick(rng, &[20, 3000, 30_000]);
        let mut steps = vec![
            self.tester(SdpAction::StopReading(pick(rng, &[1, 30]))),
            self.user(DriveAction::Send { size: size.min(self.most), urgent: false }),
            self.tester(SdpAction::Run(pick(rng, &[0, 1, 20]))),
        ];
        if rng.bool() {
            let size = self.most.min(2000);
            steps.push(self.user(DriveAction::Read { count: 1, size, piece: 0 }));
        }
        steps.extend([
            self.user(DriveAction::Suspend(rng.u16(PORTS))),
            self.tester(SdpAction::Open(self.fields)),
            self.user(DriveAction::Send { size: 20, urgent: false }),
            self.answers(),
        ]);
        steps
    }

    /// Returns receives that the target's user cancels while the tester sends bytes for them. In
    /// Pipelined Mode, the target advertises the longer receives.
    pub(super) fn cancelled_receives(&self, rng: &mut Rng) -> Vec<Step> {
        let mode = if rng.bool() { "pipelined" } else { "combined" };
        let mut steps = vec![self.tester(SdpAction::Mode(mode))];
        for _ in 0..rng.u32(1..=3) {
            let size: u32 = pick(rng, &[200, 5000, MAX_READ]);
            let size = size.min(self.most);
            let (ms, piece) = (pick(rng, &[0, 1, 10, 50]), pick(rng, &[0, 700, 6000]));
            steps.push(self.user(DriveAction::CancelReceive { size, ms, piece }));
            if rng.bool() {
                steps.push(self.tester(SdpAction::Run(pick(rng, &[1, 10, 60]))));
            }
            steps.push(self.user(DriveAction::Send { size: 20, urgent: false }));
        }
        steps.push(self.answers());
        steps
    }
}
