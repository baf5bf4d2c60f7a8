//! Tests the endpoint that all workloads use.

use weft_peer::memory::Access;
use weft_peer::mpa::PrivateData;
use weft_peer::verbs::QpState;
use weft_peer::workload::{Endpoint, EndpointSettings, WorkloadError};

use super::{device, listener, settings};

/// After a graceful end, posting work must fail. The work would never complete, and a task that
/// waits for its completion would wait forever.
#[tokio::test]
async fn work_after_a_graceful_end_fails() {
    let (here, there) = (device(), device());
    let listener = listener(&there);
    let mut endpoint = Endpoint::new(&here, EndpointSettings::default()).unwrap();
    let memory = endpoint.register(64, Access::LOCAL).unwrap();
    endpoint.post_receive(0, memory.part(0, 64)).unwrap();
    let peer = async {
        let peer = Endpoint::new(&there, EndpointSettings::default()).unwrap();
        peer.accept(listener.next().await.unwrap(), &PrivateData::default()).unwrap();
        peer.disconnect().await.unwrap();
    };
    let none = PrivateData::default();
    let (connected, ()) = tokio::join!(endpoint.connect(listener.local_addr(), settings(), &none), peer);
    connected.unwrap();
    assert_eq!(endpoint.ended().await.unwrap(), QpState::Idle);
    for result in [endpoint.send(&b"too late"[..]), endpoint.post_receive(0, memory.part(0, 64))] {
        assert!(matches!(result, Err(WorkloadError::Ended { .. })), "{result:?}");
    }
}
