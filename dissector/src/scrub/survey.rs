//! [`Survey`]: finds the protocols above RDMAP.

use std::collections::HashMap;

use weft_core::wire::sdp::FieldOrder;

use crate::parse::Kind;
use crate::sink::Sink;
use crate::stream_id::StreamId;
use crate::unit::Unit;
use crate::upper::Ulp;

use super::kept::Upper;
use super::plan::DirectionKey;

/// The sink of the first pass: records the protocol above RDMAP of each connection. Some protocols
/// are recognised only after many messages.
#[derive(Debug, Default)]
pub struct Survey {
    /// The field order of the SDP messages of each direction.
    orders: HashMap<DirectionKey, FieldOrder>,
    /// The recognised protocols of each connection.
    ulps: HashMap<StreamId, Vec<Ulp>>,
}

impl Survey {
    /// Number of connections whose messages above the transport are replaced completely: those of
    /// RPC (NFS) and SMB2. `weft io` lists no commands of them in the copy.
    #[must_use]
    pub fn connections_without_commands(&self) -> u64 {
        let is_replaced = |ulps: &&Vec<Ulp>| ulps.iter().any(|ulp| matches!(ulp, Ulp::RpcRdma | Ulp::SmbDirect));
        self.ulps.values().filter(is_replaced).count() as u64
    }

    /// The protocol in this direction of a connection.
    pub(super) fn upper(&self, key: &DirectionKey) -> Upper<'_> {
        match self.orders.get(key) {
            Some(order) => Upper::Sdp(*order),
            None => Upper::Recognised(self.ulps.get(&key.0).map_or(&[], Vec::as_slice)),
        }
    }
}

impl Sink for Survey {
    fn unit(&mut self, unit: &Unit<'_>) {
        let Some(stream) = unit.stream else { return };
        if let Kind::Sdp(_, order, _) = unit.kind {
            self.orders.entry((stream, unit.ends.src)).or_insert(order);
        }
        if let Some(ulp) = unit.context.and_then(|context| context.ulp) {
            let ulps = self.ulps.entry(stream).or_default();
            if !ulps.contains(&ulp) {
                ulps.push(ulp);
            }
        }
    }
}
