//! The table of the protocols above RDMAP, and the types that the macro `protocols` generates from
//! the table.

use std::fmt;
use std::ops::Range;

use super::pdu::PduPart;
use super::protocol::{Judgement, Message, Protocol, SendInfo, Verdict};
use super::startup::{Startup, StartupJudgement};
use super::{ceph, iser, lustre, ninep, nvme, rpcrdma, rping, rsockets, smb_direct};
use crate::direction::Direction;
use crate::parse::SegmentView;

/// Generates the types of this file. Each protocol module must have a type `Connection` that
/// implements [`Protocol`], and a type `Message`.
macro_rules! protocols {
    ($($name:ident => $module:ident,)*) => {
        /// A protocol above RDMAP.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Ulp {
            $(#[doc = concat!("See [`", stringify!($module), "`].")] $name,)*
        }

        impl Ulp {
            /// Number of protocols.
            pub(super) const COUNT: usize = [$(Ulp::$name),*].len();

            /// The name in JSON and in filters.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Ulp::$name => $module::Connection::NAME,)*
                }
            }

            /// See [`Protocol::pdu`].
            pub(crate) fn pdu(self, octets: &[u8], len: u64) -> Option<PduPart<'_>> {
                match self {
                    $(Ulp::$name => $module::Connection::pdu(octets, len),)*
                }
            }

            /// See [`Protocol::headers`].
            pub(crate) fn headers(self, bytes: &[u8], is_complete: bool) -> Vec<Range<usize>> {
                match self {
                    $(Ulp::$name => $module::Connection::headers(bytes, is_complete),)*
                }
            }

            /// The length of the data at the start of a Read Response that can prove the protocol.
            pub(crate) fn proof_len(self, data: &[u8]) -> usize {
                match self {
                    $(Ulp::$name => $module::Connection::proof_len(data),)*
                }
            }
        }

        /// The name in text.
        impl fmt::Display for Ulp {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self {
                    $(Ulp::$name => $module::Connection::TITLE,)*
                })
            }
        }

        /// A parsed message of a protocol above RDMAP.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum UlpMessage {
            $(#[doc = concat!("Of [`", stringify!($module), "`].")] $name($module::Message),)*
        }

        impl UlpMessage {
            /// The protocol.
            #[must_use]
            pub fn ulp(&self) -> Ulp {
                match self {
                    $(UlpMessage::$name(_) => Ulp::$name,)*
                }
            }

            /// The name of the message in the specification of the protocol.
            #[must_use]
            pub fn message(&self) -> &'static str {
                match self {
                    $(UlpMessage::$name(parsed) => parsed.name(),)*
                }
            }
        }

        impl fmt::Display for UlpMessage {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{} {}", self.ulp(), self.message())?;
                match self {
                    $(UlpMessage::$name(parsed) => parsed.details(f),)*
                }
            }
        }

        /// The recognition state of all protocols for one connection.
        #[derive(Debug, Clone, Default)]
        pub(super) struct Connections {
            $($module: $module::Connection,)*
        }

        impl Connections {
            /// Tests the first bytes of a Send for every protocol, or for one protocol if `only` is
            /// set. The results are in the order of the table. `is_complete` is set if `bytes` are
            /// the complete Send.
            pub(super) fn read(
                bytes: &[u8],
                is_complete: bool,
                only: Option<Ulp>,
            ) -> [Verdict<UlpMessage>; Ulp::COUNT] {
                [$(if only.is_none_or(|only| only == Ulp::$name) {
                    $module::Connection::read(bytes, is_complete).map(UlpMessage::$name)
                } else {
                    Verdict::Open
                },)*]
            }

            /// The protocol to which the private data of a start-up frame belongs. The second value
            /// is set if the private data proves the protocol.
            pub(super) fn startup(&mut self, startup: &Startup<'_>) -> Option<(Ulp, bool)> {
                $(match self.$module.startup(startup) {
                    StartupJudgement::Other => {}
                    StartupJudgement::Belongs => return Some((Ulp::$name, false)),
                    StartupJudgement::Proves => return Some((Ulp::$name, true)),
                })*
                None
            }

            /// See [`Protocol::message`].
            pub(super) fn message(&mut self, send: &SendInfo, message: &mut UlpMessage) -> Judgement {
                match message {
                    $(UlpMessage::$name(parsed) => self.$module.message(send, parsed),)*
                }
            }

            /// Records a Read Request for every protocol, or for one protocol if `only` is set. See
            /// [`Protocol::read_request`].
            pub(super) fn read_request(&mut self, direction: Direction, view: &SegmentView<'_>, only: Option<Ulp>) {
                $(if only.is_none_or(|only| only == Ulp::$name) {
                    self.$module.read_request(direction, view);
                })*
            }

            /// See [`Protocol::read_response`]. `ulp` is the recognised protocol.
            pub(super) fn read_response(
                &mut self,
                ulp: Ulp,
                direction: Direction,
                view: &SegmentView<'_>,
            ) -> Option<UlpMessage> {
                match ulp {
                    $(Ulp::$name => self.$module.read_response(direction, view).map(UlpMessage::$name),)*
                }
            }

            /// Allocated memory in bytes.
            pub(super) fn memory(&self) -> usize {
                [$(self.$module.memory()),*].iter().sum()
            }

            /// The protocol that this segment of a Read Response proves.
            pub(super) fn proved_by_response(&self, direction: Direction, view: &SegmentView<'_>) -> Option<Ulp> {
                $(if self.$module.is_proved_by_response(direction, view) {
                    return Some(Ulp::$name);
                })*
                None
            }
        }
    };
}

protocols! {
    Rping => rping,
    RpcRdma => rpcrdma,
    SmbDirect => smb_direct,
    Nvme => nvme,
    Iser => iser,
    Rsockets => rsockets,
    Lustre => lustre,
    NineP => ninep,
    Ceph => ceph,
}
