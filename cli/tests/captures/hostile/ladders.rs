//! Two correct endpoints perform the exchanges of Figures 18 to 23 of draft-pinkerton-iwarp-sdp-01,
//! and `weft ladder` draws these exchanges.
//!
//! The test compares the messages and their senders with the draft's figures. The user's guide
//! contains the pictures, as text and as SVG. The test also compares the pictures in the guide with
//! weft's current output. With `WEFT_BLESS=1`, the test replaces the pictures in the guide.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use weft_core::wire::sdp::Mode;
use weft_peer::Deviations;
use weft_peer::sdp::{Half, Policy, Settings};

use crate::hostile::portmap;
use crate::hostile::sdp::net::Net;

/// An arrow of a figure, with the name of its message. `Right` points to the right, and `Left`
/// points to the left.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Arrow {
    Right(String),
    Left(String),
}

fn right(name: &str) -> Arrow {
    Arrow::Right(name.to_owned())
}

fn left(name: &str) -> Arrow {
    Arrow::Left(name.to_owned())
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

fn drawn(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_weft")).arg("ladder").args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the arrows in a picture that belong to these frames.
fn arrows(picture: &str, frames: &Range<usize>) -> Vec<Arrow> {
    const NAMES: [&str; 13] = [
        "SDP port mapper PMReq",
        "SDP port mapper PMAccept",
        "SDP port mapper PMAck",
        "SDP port mapper PMDeny",
        "SDP SrcAvail",
        "SDP SinkAvail",
        "SDP RdmaRdCompl",
        "SDP RdmaWrCompl",
        "SDP Data",
        "RDMA Read Request",
        "RDMA Read Response",
        "RDMA Write",
        "SDP ModeChange",
    ];
    let of_frames = picture.lines().skip(2).filter(|line| line.contains(['├', '◀'])).filter(|line| {
        let frame = line.split_whitespace().nth(1).and_then(|number| number.parse().ok());
        frame.is_some_and(|frame: usize| frames.contains(&frame))
    });
    let arrow = |line: &str| {
        let has_name = |name: &&&str| line.contains(&format!("─ {name} ")) || line.contains(&format!(" {name} ─"));
        let name = NAMES.iter().find(has_name).unwrap_or_else(|| panic!("an arrow without a name: {line}"));
        let name = name.trim_start_matches("SDP port mapper ").trim_start_matches("SDP ");
        if line.contains('▶') { right(name) } else { left(name) }
    };
    of_frames.map(arrow).collect()
}

/// Draws a capture. Compares the arrows of `frames` with `figure`, the arrows of the draft's
/// figure. Compares the pictures with the pictures in the guide.
fn shows(name: &str, capture: &[u8], option: &[&str], frames: &Range<usize>, figure: &[Arrow]) {
    let folder = tempfile::tempdir().unwrap();
    let at = |file: &str| folder.path().join(file).to_str().unwrap().to_owned();
    let (file, svg) = (at("capture.pcapng"), at("ladder.svg"));
    fs::write(&file, capture).unwrap();
    let text = drawn(&[&[&file, "--width", "100"], option].concat());
    assert_eq!(arrows(&text, frames), figure, "{name}:\n{text}");
    assert_eq!(drawn(&[&[&file, "-o", &svg], option].concat()), "");
    let (page, picture) = (docs().join("sdp.md"), docs().join(format!("sdp/{name}.svg")));
    let (guide, svg) = (fs::read_to_string(&page).unwrap(), fs::read_to_string(svg).unwrap());
    let marks = [format!("<!-- {name}: begin -->\n```text\n"), format!("```\n<!-- {name}: end -->")];
    let (before, rest) = guide.split_once(&marks[0]).unwrap();
    let (shown, after) = rest.split_once(&marks[1]).unwrap();
    if std::env::var_os("WEFT_BLESS").is_some() {
        fs::write(&picture, svg).unwrap();
        fs::write(&page, [before, &marks[0], &text, &marks[1], after].concat()).unwrap();
        return;
    }
    assert_eq!(shown, text, "docs/sdp.md, {name}: WEFT_BLESS=1 renews it");
    assert!(fs::read_to_string(&picture).unwrap() == svg, "{}: WEFT_BLESS=1 renews it", picture.display());
}

/// Returns two connected ends. Because of their policy, they send only messages that the test
/// requests.
fn connected() -> Net {
    let policy = Policy { source_threshold: 500, sink_threshold: 0, src_avail_payload: 40, ..Policy::default() };
    let settings = Settings { bufs: 6, recv_size: 1000, des_rem_rcv_sz: 1000, policy, ..Settings::default() };
    let mut net = Net::new([settings; 2], [&Deviations::NONE; 2]);
    net.settle();
    // The peer returns the credit that HelloAck used.
    net.wait(40);
    net
}

/// Returns the numbers of the frames that `exchange` adds.
fn frames_of(net: &mut Net, exchange: impl FnOnce(&mut Net)) -> Range<usize> {
    let before = net.capture.len();
    exchange(net);
    before + 1..net.capture.len() + 1
}

fn close(net: &mut Net) {
    for end in 0..2 {
        net.ends[end].machine.shut_down();
        net.settle();
    }
    net.wait(1000);
    assert!(net.is_over());
}

/// Changes to Pipelined Mode for the data that `from` sends.
fn pipelined(net: &mut Net, from: usize) {
    net.ends[from].machine.set_mode(Half::Out, Mode::Pipelined).unwrap();
    net.settle();
}

/// Figures 18 and 19, with the PM Client on the left. (In figure 18, the left side has the name of
/// the PM Server, but the arrows of a client.)
fn the_port_mapper_accepts_and_denies() {
    let none = Deviations::NONE;
    let capture = |scene: portmap::Scene| scene.play([&none, &none]).capture;
    let three_way = [right("PMReq"), left("PMAccept"), right("PMAck")];
    shows("figure-18", &capture(portmap::Scene::Mapped), &["--exchange", "0"], &(1..usize::MAX), &three_way);
    let two_way = [right("PMReq"), left("PMDeny")];
    shows("figure-19", &capture(portmap::Scene::Denied), &["--exchange", "0"], &(1..usize::MAX), &two_way);
}

/// Figure 20. It shows the payloads #1 to #3, and a flow control update without payload.
fn bcopy() {
    let mut net = connected();
    let frames = frames_of(&mut net, |net| {
        for len in [300, 400, 200] {
            net.ends[0].send(vec![7; len], false);
        }
        net.settle();
        net.ends[1].receive(900, true);
        net.settle();
    });
    close(&mut net);
    shows(
        "figure-20",
        &net.capture.pcapng(),
        &[],
        &frames,
        &[right("Data"), right("Data"), right("Data"), left("Data")],
    );
}

/// Figure 21, with the optional second RDMA Read and its RdmaRdCompl.
fn read_zcopy() {
    let mut net = connected();
    let frames = frames_of(&mut net, |net| {
        net.send(0, 2040);
        // Post one receive for a part of the data, and another receive for the rest.
        for len in [1240, 3000] {
            net.ends[1].receive(len, false);
            net.settle();
        }
    });
    close(&mut net);
    let read = [left("RDMA Read Request"), right("RDMA Read Response"), left("RdmaRdCompl")];
    shows("figure-21", &net.capture.pcapng(), &[], &frames, &[&[right("SrcAvail")], &read[..], &read[..]].concat());
}

/// Figure 22, with the Data Source on the left.
fn write_zcopy() {
    let mut net = connected();
    pipelined(&mut net, 0);
    let frames = frames_of(&mut net, |net| {
        net.ends[1].receive(3000, false);
        net.settle();
        net.send(0, 2500);
    });
    close(&mut net);
    let figure = [left("SinkAvail"), right("RDMA Write"), right("RdmaWrCompl")];
    shows("figure-22", &net.capture.pcapng(), &[], &frames, &figure);
}

/// Figure 23. Its first half shows a command and the buffer for the reply in two messages. Its
/// second half shows them in one message.
fn a_transaction() {
    let reply = [left("RDMA Write"), left("RdmaWrCompl")];
    for (name, transactions) in [("figure-23-two", false), ("figure-23", true)] {
        let mut net = connected();
        net.ends[0].machine.policy_mut().transactions = transactions;
        pipelined(&mut net, 1);
        net.ends[1].receive(300, false);
        let frames = frames_of(&mut net, |net| {
            // Peer A sends a command, and posts the receive for the reply directly after it.
            net.ends[0].send(vec![3; 300], false);
            net.ends[0].receive(3000, false);
            net.settle();
            net.send(1, 2500);
        });
        close(&mut net);
        let command = if transactions { vec![right("SinkAvail")] } else { vec![right("Data"), right("SinkAvail")] };
        shows(name, &net.capture.pcapng(), &[], &frames, &[&command[..], &reply[..]].concat());
    }
}

#[test]
fn the_drafts_ladders_come_out_of_exchanges_and_the_guide_shows_them() {
    the_port_mapper_accepts_and_denies();
    bcopy();
    read_zcopy();
    write_zcopy();
    a_transaction();
}
