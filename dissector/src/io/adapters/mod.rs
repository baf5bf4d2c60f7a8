//! Adapters: each translates the messages of one storage protocol into [`IoEvent`]s.
//!
//! To add a protocol, add a file with a function `read`, its `mod` line, its line in [`read`], and
//! its name in [`is_followed`].

mod iser;
mod nvme;
mod rpc;
mod smb;
#[cfg(test)]
mod testing;

use super::event::IoEvent;
use crate::context::Context;
use crate::exchange::CapturePoint;
use crate::upper::{Ulp, UlpMessage};

/// Returns whether the protocol has an adapter, so [`IoTracker`](super::IoTracker) follows its
/// commands.
#[must_use]
pub fn is_followed(protocol: Ulp) -> bool {
    matches!(protocol, Ulp::RpcRdma | Ulp::SmbDirect | Ulp::Nvme | Ulp::Iser)
}

/// Adds what the message that ends with the current FPDU means to `events`. Returns whether the
/// protocol has an adapter.
pub(super) fn read(protocol: Ulp, context: &Context, events: &mut Vec<IoEvent>) -> bool {
    match (protocol, &context.ulp_message) {
        (Ulp::RpcRdma, _) => rpc::read(context.rpc.as_deref(), events),
        (Ulp::SmbDirect, _) => smb::read(context.smb.as_deref(), events),
        (_, Some(UlpMessage::Nvme(message))) => nvme::read(message, events),
        (_, Some(UlpMessage::Iser(message))) => iser::read(message, events),
        _ => return false,
    }
    true
}

/// Where a message that is in several Sends began; `None` if the message is in one Send.
pub(super) fn began(context: &Context) -> Option<CapturePoint> {
    let latest = context.smb.as_ref()?.latest()?;
    (latest.fragments > 1).then_some(CapturePoint { frame: latest.first_frame, time: latest.first_time })
}
