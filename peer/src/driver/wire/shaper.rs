//! Finds the flow of each frame. Frames without a flow, such as ARP, pass unchanged.

use std::collections::HashMap;
use std::net::SocketAddr;

use super::flow::Flow;
use super::frame::TcpFrame;

/// The addresses of a connection: first the tester's, then the target's.
pub(super) type FlowKey = (SocketAddr, SocketAddr);

/// The flows of all connections.
#[derive(Debug, Default)]
pub(super) struct Shaper {
    flows: HashMap<FlowKey, Flow>,
}

impl Shaper {
    /// Adds the flow of a new connection.
    pub(super) fn open(&mut self, key: FlowKey, flow: Flow) {
        self.flows.insert(key, flow);
    }

    /// Removes the flow of a connection that is over.
    pub(super) fn close(&mut self, key: &FlowKey) {
        self.flows.remove(key);
    }

    /// Returns the flow of a connection.
    pub(super) fn flow(&mut self, key: &FlowKey) -> Option<&mut Flow> {
        self.flows.get_mut(key)
    }

    /// Changes a frame that TCP sends. Returns the frame for the interface, or `None` if no frame
    /// leaves.
    pub(super) fn outgoing(&mut self, frame: Vec<u8>) -> Option<Vec<u8>> {
        let Some(location) = TcpFrame::find(&frame) else { return Some(frame) };
        match self.flows.get_mut(&(location.source, location.destination)) {
            Some(flow) => flow.outgoing(frame, &location),
            None => Some(frame),
        }
    }

    /// Changes a frame that the interface has received.
    pub(super) fn incoming(&mut self, frame: &mut [u8]) {
        if let Some(location) = TcpFrame::find(frame)
            && let Some(flow) = self.flows.get_mut(&(location.destination, location.source))
        {
            flow.incoming(frame, &location);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{TARGET, TESTER, checked, frame, syn, v6};
    use super::*;

    #[test]
    fn each_connection_has_its_own_flow() {
        let mut shaper = Shaper::default();
        shaper.open((TESTER, TARGET), Flow::new(Some(7)));
        let other = frame(v6(TESTER), v6(TARGET), 1000, 1, b"abc");
        assert_eq!(shaper.outgoing(other.clone()), Some(other));
        let sent = shaper.outgoing(syn(1000)).unwrap();
        assert_eq!(checked(&sent).1.seq_number().0, 7);
        let mut received = frame(TARGET, TESTER, 1, 8, b"");
        shaper.incoming(&mut received);
        let location = TcpFrame::find(&received).unwrap();
        assert_eq!(location.segment(&received).ack_number().0, 1001);
        shaper.close(&(TESTER, TARGET));
        let sent = frame(TESTER, TARGET, 1000, 1, b"abc");
        assert_eq!(shaper.outgoing(sent.clone()), Some(sent));
    }

    #[test]
    fn frames_that_are_not_tcp_pass() {
        let mut shaper = Shaper::default();
        for frame in [vec![], vec![0; 13], vec![0xff; 60], [vec![0; 12], vec![0x08, 0x06], vec![0; 28]].concat()] {
            assert_eq!(shaper.outgoing(frame.clone()), Some(frame.clone()));
            let mut received = frame.clone();
            shaper.incoming(&mut received);
            assert_eq!(received, frame);
        }
    }
}
