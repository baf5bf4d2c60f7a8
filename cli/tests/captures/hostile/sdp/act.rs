//! Performs the actions of the users in each scene of SDP. Each user performs its actions in turn.

use weft_core::wire::sdp::Mode;
use weft_peer::sdp::Half;

use super::net::Net;
use super::scene::Scene;

impl Scene {
    /// Performs the actions of the scene, with `from` as the sender of data and `to` as the
    /// receiver.
    pub(super) fn act(self, net: &mut Net, from: usize, to: usize) {
        let pipelined = |net: &mut Net, side: usize| {
            let _ = net.ends[side].machine.set_mode(Half::Out, Mode::Pipelined);
            net.settle();
        };
        match self {
            Scene::Bcopy | Scene::Natural => {
                for len in [1, 300, 400] {
                    net.send(from, len);
                    net.read(to);
                }
            }
            Scene::Combined | Scene::CombinedBySendSm | Scene::CombinedInParts | Scene::Hints | Scene::OneRead => {
                for len in [2000, 3000, 2000] {
                    net.send(from, len);
                    net.read(to);
                }
            }
            Scene::CombinedByReads => {
                net.send(from, 2000);
                net.ends[to].receive(700, false);
                net.settle();
                net.read(to);
            }
            Scene::Pipelined | Scene::PipelinedBySendSm | Scene::MaxAdverts => {
                pipelined(net, from);
                for len in [2000, 3000, 2500, 2700] {
                    net.send(from, len);
                }
                net.read(to);
                net.send(from, 300);
                net.read(to);
            }
            Scene::Written | Scene::Transactions => {
                pipelined(net, from);
                if self == Scene::Transactions {
                    pipelined(net, to);
                    net.ends[to].send(vec![7; 200], false);
                }
                for _ in 0..3 {
                    net.ends[to].receive(3000, false);
                }
                net.settle();
                for len in [2000, 3000, 5000] {
                    net.send(from, len);
                }
                net.read(to);
                net.read(from);
            }
            Scene::Modes => {
                for mode in [Mode::Pipelined, Mode::Combined, Mode::Buffered] {
                    let _ = net.ends[from].machine.set_mode(Half::Out, mode);
                    net.settle();
                    if mode == Mode::Pipelined {
                        net.ends[to].receive(2000, false);
                        net.settle();
                    }
                    for len in [2000, 300] {
                        net.send(from, len);
                        net.read(to);
                    }
                }
                let _ = net.ends[to].machine.set_mode(Half::In, Mode::Combined);
                net.settle();
                net.send(from, 2000);
                net.read(to);
            }
            Scene::Stale => {
                pipelined(net, from);
                net.ends[from].send(vec![1; 100], false);
                net.ends[to].receive(2000, false);
                net.ends[to].receive(2000, false);
                net.load();
                net.settle();
                net.send(from, 1500);
                net.read(to);
            }
            Scene::Crossing => {
                pipelined(net, from);
                net.ends[from].send(vec![1; 1800], false);
                net.ends[to].receive(2000, false);
                net.load();
                net.settle();
                net.read(to);
            }
            Scene::RevokedSend | Scene::RevokedSends => {
                if self == Scene::RevokedSends {
                    pipelined(net, from);
                    net.send(from, 2500);
                }
                net.send(from, 2000);
                net.ends[from].machine.cancel_sends();
                net.settle();
                net.send(from, 2000);
                net.ends[to].receive(3000, false);
                net.settle();
            }
            Scene::RevokedInProcess => {
                net.send(from, 2000);
                net.ends[to].receive(3000, false);
                net.load();
                net.ends[from].machine.cancel_sends();
                net.load();
                // The Read Request has not arrived yet.
                net.deliver(from);
                net.ends[to].send(vec![1; 50], false);
                net.settle();
                net.read(from);
            }
            Scene::Leaving => {
                pipelined(net, from);
                net.ends[from].send(vec![1; 1800], false);
                net.load();
                let _ = net.ends[from].machine.set_mode(Half::Out, Mode::Combined);
                net.ends[to].receive(2000, false);
                net.load();
                net.settle();
                net.read(to);
            }
            Scene::RevokedLate => {
                net.send(from, 2000);
                net.ends[to].receive(2000, false);
                net.load();
                net.deliver(to);
                while net.deliver(from) {}
                net.ends[from].send(vec![1; 2000], false);
                net.ends[from].machine.cancel_sends();
                net.load();
                net.settle();
                net.send(from, 2000);
                net.read(to);
            }
            Scene::RevokedWrite => {
                pipelined(net, from);
                net.ends[to].receive(2000, false);
                net.settle();
                net.ends[from].send(vec![1; 1500], false);
                net.load();
                net.ends[to].machine.cancel_receives();
                net.load();
                net.settle();
                net.read(to);
            }
            Scene::HintsCrossing => {
                pipelined(net, from);
                net.ends[to].receive(2000, false);
                net.settle();
                net.ends[from].send(vec![1; 1500], false);
                net.load();
                let _ = net.ends[to].machine.set_mode(Half::Out, Mode::Buffered);
                net.load();
                net.settle();
                net.read(to);
                net.send(to, 300);
                net.read(from);
            }
            Scene::SmallerPipelined => {
                pipelined(net, from);
                net.ends[from].machine.resize(500);
                net.load();
                net.settle();
                net.ends[to].receive(700, false);
                net.settle();
                net.send(from, 650);
                net.read(to);
            }
            Scene::LargerRefused => {
                for size in [2000, 3000] {
                    net.ends[from].machine.resize(size);
                    net.load();
                    net.send(from, 300);
                    net.read(to);
                }
            }
            Scene::LargerTwice => {
                for size in [2000, 2500] {
                    net.ends[from].machine.resize(size);
                    net.settle();
                    // Send more messages than the initial number of Private Buffers.
                    for _ in 0..24 {
                        net.ends[from].send(vec![9; 100], false);
                    }
                    net.settle();
                    net.read(to);
                    for _ in 0..40 {
                        net.send(from, 100);
                        net.read(to);
                    }
                }
            }
            Scene::RevokedStale => {
                pipelined(net, from);
                net.ends[to].receive(2000, false);
                net.settle();
                net.ends[from].send(vec![1; 100], false);
                net.load();
                net.ends[to].machine.cancel_receives();
                net.load();
                net.settle();
                net.read(to);
                net.send(from, 300);
                net.read(to);
            }
            Scene::LargerPipelined => {
                net.ends[from].machine.resize(2000);
                net.load();
                for _ in 0..20 {
                    net.send(from, 100);
                    net.read(to);
                }
                pipelined(net, from);
                net.ends[to].receive(1500, false);
                net.settle();
                net.send(from, 1400);
                net.read(to);
            }
            Scene::RevokedReceive => {
                net.send(from, 100);
                net.read(to);
                pipelined(net, from);
                net.ends[to].receive(2000, false);
                net.ends[to].receive(2000, false);
                net.settle();
                net.ends[to].machine.cancel_receives();
                net.settle();
                net.ends[to].receive(2000, false);
                net.settle();
                net.send(from, 1500);
            }
            Scene::Credit => {
                net.ends[to].receive(12 * 200, true);
                for _ in 0..12 {
                    net.ends[from].send(vec![9; 200], false);
                }
                net.settle();
                net.read(to);
            }
            Scene::Urgent | Scene::UrgentFar => {
                let len = if self == Scene::Urgent { 300 } else { 67_000 };
                net.ends[to].receive(40, false);
                if self == Scene::Urgent {
                    // This data is advertised with a SrcAvail, which also announces the urgent byte
                    // after the data.
                    net.ends[from].send(vec![2; 2000], false);
                }
                net.ends[from].send(vec![3; len], true);
                net.settle();
                net.read(to);
                net.send(from, 100);
                net.read(to);
            }
            Scene::Larger | Scene::Smaller => {
                net.ends[from].machine.resize(if self == Scene::Larger { 2000 } else { 500 });
                net.load();
                net.send(from, 2000);
                net.read(to);
                for _ in 0..20 {
                    net.send(from, 1900);
                    net.read(to);
                }
            }
            Scene::Suspended | Scene::SuspendedReading | Scene::SuspendedRead => {
                if self == Scene::Suspended {
                    // The user reads this data only after the move to the next TCP connection.
                    net.send(to, 2000);
                } else {
                    let (source, reader) = if self == Scene::SuspendedRead { (from, to) } else { (to, from) };
                    net.send(source, 2000);
                    net.ends[reader].receive(3000, false);
                    net.load();
                }
                let _ = net.ends[from].machine.suspend(Net::port(from));
                net.load();
                net.settle();
                net.wait(200);
                net.read(from);
                net.send(from, 2000);
                net.send(to, 300);
                net.read(to);
                net.read(from);
            }
            Scene::HalfClosed | Scene::Aborted | Scene::ResizesCrossing | Scene::SuspendsCrossing => {
                net.send(from, 300);
                net.read(to);
            }
        }
    }
}
