//! Tests the functions of SDP sockets, except plain reads and writes.

use std::io::{ErrorKind, IoSlice};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::requirement;
use weft_core::wire::sdp::{FieldOrder, Mode};
use weft_peer::driver::Device;
use weft_peer::driver::device::{BusyPoll, DeviceSettings};
use weft_peer::driver::sdp::SdpSettings;
use weft_peer::sdp::{Half, Policy, Profile};
use weft_peer::verbs::{Node, RnicSettings};

use crate::sdp_socket::{pair, pair_of, settings};

fn plain() -> SdpSettings {
    settings(Profile::Swapped, FieldOrder::Figure)
}

/// Returns the kind of timer that the kernel's table of TCP connections shows for the connection
/// with these ports. 2 is keep-alive, and 0 is no timer.
fn timer(local_port: u16, remote_port: u16) -> u8 {
    let ports = [format!(":{local_port:04X}"), format!(":{remote_port:04X}")];
    loop {
        let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
        let columns = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let ours = |columns: &Vec<&str>| columns[1].ends_with(&ports[0]) && columns[2].ends_with(&ports[1]);
        let timer = columns.skip(1).find(ours).unwrap()[5].split(':').next().unwrap().parse().unwrap();
        // Kind 1 shows that some data is not acknowledged yet.
        if timer != 1 {
            return timer;
        }
    }
}

#[tokio::test]
async fn keep_alive_is_tcps() {
    let mut proof = Coverage::new(CoverageKind::Test);
    for (keep_alive, expected) in [(None, 0), (Some(Duration::from_secs(100)), 2)] {
        let (here, there) = pair(SdpSettings { keep_alive, ..plain() }).await;
        let ports = [here.local_addr().port(), here.peer_addr().port()];
        let both = [timer(ports[0], ports[1]), timer(ports[1], ports[0])];
        proof.verify(requirement!("SDP-14.3-2"), || assert_eq!(both, [expected; 2], "{keep_alive:?}"));
        drop((here, there));
    }
}

#[tokio::test]
async fn several_slices_are_written_as_one() {
    let (mut here, mut there) = pair(plain()).await;
    assert!(here.is_write_vectored());
    let slices = [&b"ab"[..], b"", b"cde", b"f"].map(IoSlice::new);
    assert_eq!(here.write_vectored(&slices).await.unwrap(), 6);
    here.flush().await.unwrap();
    let mut got = [0; 6];
    there.read_exact(&mut got).await.unwrap();
    assert_eq!(&got, b"abcdef");
    assert_eq!(here.statistics().sending.moved.bcopy.operations, 1, "one message");
    // A write accepts only as many octets as the buffer holds.
    here.set_send_buffer(4);
    assert_eq!((here.send_buffer(), here.write_vectored(&slices).await.unwrap()), (4, 4));
    there.read_exact(&mut got[..4]).await.unwrap();
    assert_eq!(&got[..4], b"abcd");
}

#[tokio::test]
async fn peeked_octets_can_be_read_again() {
    let (mut here, mut there) = pair(plain()).await;
    here.write_all(b"abcdef").await.unwrap();
    let mut octets = [0; 10];
    assert_eq!(there.peek(&mut octets[..4]).await.unwrap(), 4);
    assert_eq!(&octets[..4], b"abcd");
    assert_eq!(there.peek(&mut octets).await.unwrap(), 6);
    assert_eq!(there.statistics().unread, 6);
    there.read_exact(&mut octets[..6]).await.unwrap();
    assert_eq!((&octets[..6], there.statistics().unread), (&b"abcdef"[..], 0));
    here.shutdown().await.unwrap();
    assert_eq!(there.peek(&mut octets).await.unwrap(), 0);
}

/// In every Mode, a read with MSG_WAITALL waits until it has all octets. Three conditions end the
/// wait earlier: an Out-Of-Band octet, the end of the stream, and a broken connection.
#[tokio::test]
async fn waits_for_all_octets() {
    let sent: Vec<u8> = (0..100_000u32).map(|n| (n ^ n >> 8) as u8).collect();
    for mode in [Mode::Combined, Mode::Pipelined, Mode::Buffered] {
        let (mut here, there) = pair(plain()).await;
        if mode != Mode::Combined {
            here.set_mode(Half::Out, mode).unwrap();
        }
        let mut buffer = vec![0; sent.len()];
        let writing = async {
            for piece in sent.chunks(999) {
                here.write_all(piece).await.unwrap();
                here.flush().await.unwrap();
                tokio::task::yield_now().await;
            }
        };
        let (got, ()) = tokio::join!(there.receive_all(&mut buffer), writing);
        assert_eq!(got.unwrap(), sent.len(), "{mode}");
        assert!(buffer == sent, "{mode}");
        // A wait ends when it reaches the position of an Out-Of-Band octet. The next wait begins
        // after this position.
        here.send_urgent(b"abcX").await.unwrap();
        here.write_all(b"defg").await.unwrap();
        assert_eq!(there.receive_all(&mut buffer).await.unwrap(), 3, "{mode}");
        assert_eq!((&buffer[..3], there.at_mark()), (&b"abc"[..], true), "{mode}");
        assert_eq!(there.receive_all(&mut buffer[..4]).await.unwrap(), 4, "{mode}");
        assert_eq!(&buffer[..4], b"defg", "{mode}");
        // The wait ends at the end of the stream.
        here.write_all(b"hi").await.unwrap();
        here.shutdown().await.unwrap();
        assert_eq!(there.receive_all(&mut buffer).await.unwrap(), 2, "{mode}");
        assert_eq!(there.receive_all(&mut buffer).await.unwrap(), 0, "{mode}");
        // The wait ends when the connection breaks.
        let (mut here, there) = pair(plain()).await;
        here.write_all(b"hi").await.unwrap();
        here.flush().await.unwrap();
        let arrived = async {
            while there.statistics().unread < 2 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(crate::cm::LONG, arrived).await.unwrap();
        here.abort();
        assert_eq!(there.receive_all(&mut buffer).await.unwrap(), 2, "{mode}");
        let error = there.receive_all(&mut buffer).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{mode}");
    }
}

#[tokio::test]
async fn an_urgent_octet_is_beside_the_stream() {
    let (mut here, mut there) = pair(plain()).await;
    assert_eq!(there.receive_urgent().unwrap_err().kind(), ErrorKind::InvalidInput);
    here.send_urgent(b"abcX").await.unwrap();
    here.write_all(b"def").await.unwrap();
    assert!(there.urgent().await);
    let mut octets = [0; 10];
    // A read ends at the position of the octet.
    let mut read = 0;
    while read < 3 {
        read += there.read(&mut octets[read..]).await.unwrap();
    }
    assert_eq!(&octets[..read], b"abc");
    assert!(there.at_mark());
    assert_eq!(there.receive_urgent().unwrap(), b'X');
    assert_eq!(there.receive_urgent().unwrap_err().kind(), ErrorKind::InvalidInput, "the octet was already received");
    there.read_exact(&mut octets[..3]).await.unwrap();
    assert_eq!(&octets[..3], b"def");
    assert!(!there.at_mark());
    drop(here);
    assert!(!there.urgent().await, "no more Out-Of-Band octet can arrive");
}

#[tokio::test]
async fn an_urgent_octet_may_stay_in_the_stream() {
    let (mut here, mut there) = pair(plain()).await;
    there.set_oob_inline(true);
    assert!(there.oob_inline());
    here.write_all(b"ab").await.unwrap();
    here.send_urgent(b"X").await.unwrap();
    here.write_all(b"cd").await.unwrap();
    assert!(there.urgent().await);
    let mut octets = [0; 10];
    let mut read = 0;
    while read < 2 {
        read += there.read(&mut octets[read..]).await.unwrap();
    }
    assert_eq!((&octets[..read], there.at_mark()), (&b"ab"[..], true));
    assert_eq!(there.receive_urgent().unwrap_err().kind(), ErrorKind::InvalidInput);
    there.read_exact(&mut octets[..3]).await.unwrap();
    assert_eq!((&octets[..3], there.at_mark()), (&b"Xcd"[..], false));
}

/// The next read begins at the position of an Out-Of-Band octet. The octets after this position
/// arrive, even if the socket posts only one receive at a time.
#[tokio::test]
async fn one_receive_is_enough_for_urgent_octets() {
    for inline in [false, true] {
        let (mut here, mut there) = pair(SdpSettings { receives: 1, ..plain() }).await;
        there.set_oob_inline(inline);
        let both = async {
            let mut got = Vec::new();
            for _ in 0..3 {
                here.send_urgent(b"X").await.unwrap();
                here.write_all(b"abc").await.unwrap();
            }
            here.send_urgent(b"X").await.unwrap();
            here.shutdown().await.unwrap();
            there.read_to_end(&mut got).await.unwrap();
            got
        };
        let got = tokio::time::timeout(Duration::from_secs(20), both).await;
        let expected: &[u8] = if inline { b"XabcXabcXabcX" } else { b"abcabcabc" };
        assert_eq!(got.as_deref(), Ok(expected), "inline {inline}");
    }
}

/// A sender announces Out-Of-Band data before it sends the queued data. So the announcement arrives
/// earlier than the Out-Of-Band octet.
#[tokio::test]
async fn an_announced_octet_is_waited_for() {
    let (here, there) = pair(plain()).await;
    // The user does not read. The posted receives fill up, so the Out-Of-Band octet cannot arrive
    // yet.
    here.set_policy(Policy { source_threshold: u64::MAX, ..Policy::default() });
    there.set_receive_buffer(1);
    assert_eq!(there.receive_buffer(), 1 << 16);
    let mut octets = vec![7; (1 << 19) - 60_000];
    (&mut &here).write_all(&octets).await.unwrap();
    octets.truncate(50_000);
    octets.push(b'X');
    here.send_urgent(&octets).await.unwrap();
    let mut reader = &there;
    let mut buffer = vec![0; 100_000];
    while there.receive_urgent().is_err_and(|error| error.kind() == ErrorKind::InvalidInput) {
        assert!(reader.read(&mut buffer).await.unwrap() > 0);
    }
    assert_eq!(there.receive_urgent().unwrap_err().kind(), ErrorKind::WouldBlock, "the octet has not arrived yet");
    while !there.at_mark() {
        assert!(reader.read(&mut buffer).await.unwrap() > 0);
    }
    assert_eq!(there.receive_urgent().unwrap(), b'X');
}

#[tokio::test]
async fn each_half_ends_by_itself() {
    let (mut here, mut there) = pair(plain()).await;
    here.shut_down(Half::In);
    there.write_all(&[1; 300_000]).await.unwrap();
    assert_eq!(here.read(&mut [0; 10]).await.unwrap(), 0);
    there.flush().await.unwrap();
    here.write_all(b"still").await.unwrap();
    here.shut_down(Half::Out);
    assert_eq!(here.write(b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
    let mut got = Vec::new();
    there.read_to_end(&mut got).await.unwrap();
    assert_eq!(got, b"still");
    there.write_all(&[2; 100]).await.unwrap();
    there.shut_down(Half::Out);
    here.closed().await;
    there.closed().await;
}

/// If data arrives after the reader has shut down, the socket frees the buffer of the data at once.
/// The socket does not wait for a timer.
#[tokio::test(start_paused = true)]
async fn unread_octets_do_not_block_the_sender() {
    for mode in [Mode::Combined, Mode::Pipelined, Mode::Buffered] {
        let begin = tokio::time::Instant::now();
        // The clock is paused. So a device that polls until some time has passed would poll
        // forever.
        let settings = DeviceSettings { busy_poll: BusyPoll::For(Duration::ZERO), ..DeviceSettings::default() };
        let rnic = || Node::new(["weft0"]).open("weft0", RnicSettings::default()).unwrap().0;
        let (mut here, there) = pair_of([(); 2].map(|()| Device::with(rnic(), settings.clone())), plain()).await;
        if mode != Mode::Combined {
            here.set_mode(Half::Out, mode).unwrap();
        }
        there.set_receive_buffer(1);
        there.shut_down(Half::In);
        for len in [1, 300_000, 4_000_000] {
            here.write_all(&vec![5; len]).await.unwrap();
            here.flush().await.unwrap();
        }
        here.shutdown().await.unwrap();
        there.shut_down(Half::Out);
        there.closed().await;
        // The timers of the protocol are about 10 ms, and the timer of an idle connection is 1 s.
        assert!(begin.elapsed() < Duration::from_millis(200), "{mode}: {:?}", begin.elapsed());
    }
}

/// For each transfer mechanism (Bcopy, Read Zcopy, Write Zcopy), both sides count the same number
/// of octets.
#[tokio::test]
async fn both_sides_count_the_same() {
    for mode in [Mode::Combined, Mode::Pipelined, Mode::Buffered] {
        let (mut here, mut there) = pair(plain()).await;
        if mode != Mode::Combined {
            here.set_mode(Half::Out, mode).unwrap();
        }
        // Small pieces are sent by Bcopy, and large pieces as the Mode requires.
        for len in [100, 60_000, 1, 200_000] {
            here.write_all(&vec![3; len]).await.unwrap();
            there.read_exact(&mut vec![0; len]).await.unwrap();
        }
        here.shutdown().await.unwrap();
        assert_eq!(there.read(&mut [0; 1]).await.unwrap(), 0);
        let (sent, received) = (here.statistics().sending, there.statistics().receiving);
        assert_eq!((sent.mode, received.mode), (mode, mode));
        assert_eq!(sent.moved, received.moved, "{mode}");
        assert_eq!(sent.moved.octets(), 260_101);
        let zcopy = sent.moved.read_zcopy.octets + sent.moved.write_zcopy.octets;
        assert_eq!(zcopy > 0, mode != Mode::Buffered, "{mode}: {sent:?}");
        assert_eq!(here.statistics().receiving.moved.octets(), 0);
        assert_eq!((here.statistics().unsent, sent.adverts), (0, 0));
        assert!(here.statistics().credit >= 2 && here.statistics().credit_given >= 2);
        assert_eq!((here.statistics().message_limit, here.statistics().recv_size), (8192, 8192));
    }
}
