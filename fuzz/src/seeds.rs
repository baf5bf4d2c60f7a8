//! `seeds CAPTURES CONTROL CORPUS` fills the seed corpus in the folder CORPUS. The seeds come from
//! two folders. CAPTURES has captures, and CONTROL has the control connections of the agent's
//! tests.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use weft_dissector::source::Capture;
use weft_dissector::unit::{Kind, Unit};
use weft_dissector::{Dissector, Sink};

// This program is built with the instrumentation of the fuzz targets, so it needs the libraries
// that they link.
libfuzzer_sys::fuzz_target!(|_data: &[u8]| {});

/// The maximum number of seeds for one target.
const MAX_SEEDS: usize = 200;

struct Writer {
    corpus: PathBuf,
    failed: io::Result<()>,
    written: [usize; TARGETS.len()],
}

/// The targets of the protocols above RDMAP.
const UPPER: [&str; 4] = ["iser", "nvme", "rpcrdma", "smb"];

/// The targets whose seeds come from the messages in captures.
const TARGETS: [&str; 7] = ["startup", "ddp", "rdmap", "sdp", "portmap", "fpdu", "deframe"];

impl Writer {
    fn seed(&mut self, target: usize, octets: &[u8]) {
        let count = &mut self.written[target];
        if self.failed.is_ok() && *count < MAX_SEEDS {
            *count += 1;
            self.failed = fs::write(self.corpus.join(TARGETS[target]).join(format!("seed-{count:03}")), octets);
        }
    }
}

impl Sink for Writer {
    fn unit(&mut self, unit: &Unit<'_>) {
        match &unit.kind {
            Kind::Startup(_, part) => self.seed(0, part.raw().0),
            Kind::Fpdu(fpdu) => {
                let ulpdu = fpdu.ulpdu().raw().0;
                self.seed(1, ulpdu);
                self.seed(2, ulpdu.get(18..).unwrap_or(&[]));
                for target in [5, 6] {
                    self.seed(target, &[&[0; 60], ulpdu].concat());
                }
            }
            Kind::Sdp(_, _, part) => self.seed(3, part.raw().0),
            Kind::PortMapper(part) => self.seed(4, part.raw().0),
            Kind::Streaming { .. } | Kind::Gap { .. } | Kind::Unparsed { .. } => {}
        }
    }
}

fn captures(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            captures(&path, found)?;
        } else if path.extension().is_some_and(|it| it == "pcap" || it == "pcapng") {
            found.push(path);
        }
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let mut arguments = env::args().skip(1).map(PathBuf::from);
    let (Some(folder), Some(control), Some(corpus)) = (arguments.next(), arguments.next(), arguments.next()) else {
        return Err(io::Error::other("usage: seeds CAPTURES CONTROL CORPUS"));
    };
    let others = ["agent", "capture", "segments", "filter", "workload", "shim"];
    for target in TARGETS.into_iter().chain(UPPER).chain(others) {
        fs::create_dir_all(corpus.join(target))?;
    }
    let mut found = Vec::new();
    captures(&folder, &mut found)?;
    found.sort();
    let mut writer = Writer { corpus: corpus.clone(), failed: Ok(()), written: [0; TARGETS.len()] };
    for (n, path) in found.iter().enumerate() {
        fs::copy(path, corpus.join("capture").join(format!("seed-{n:03}")))?;
        let Ok(mut capture) = Capture::open(path) else { continue };
        let mut dissector = Dissector::default();
        while let Some(frame) = capture.next_frame() {
            dissector.frame(&frame, &mut writer);
        }
        dissector.finish(&mut writer);
    }
    let filters = [
        "iwarp_rdma.opcode == \"Send\" && iwarp_mpa.ulpdulength > 100",
        "tcp.port in {4210, 5000..5010} and not iwarp_ddp.last_flag == 1",
        "crc_status == bad || finding.severity >= warning",
        "iwarp_mpa.privatedata contains 72:65:76 or payload matches \"^GET \"",
    ];
    for (n, filter) in filters.iter().enumerate() {
        fs::write(corpus.join("filter").join(format!("seed-{n:03}")), filter)?;
    }
    let workloads: [&[u8]; 4] = [
        b"weft-bench/1 write 65536 16 bandwidth forth 1000@2a",
        b"weft-cat/1 send push 1000@2a",
        b"SIWP\x29\x0a\xde\0\0\0\x7f\xcd\x02\x99\x80\0\0\x10\0\0\0\0\0\x07hello",
        b"\0\0\x7f\xcd\x02\x99\x80\0\x29\x0a\xde\0\0\0\0\x40",
    ];
    for (n, octets) in workloads.iter().enumerate() {
        fs::write(corpus.join("workload").join(format!("seed-{n:03}")), octets)?;
    }
    // The Sends that the target knows, then one of them a second time, without a change.
    for (target, n) in UPPER.iter().flat_map(|target| (0..8_u8).map(move |n| (target, n))) {
        fs::write(corpus.join(target).join(format!("seed-{n:03}")), [0, n << 4 | 0x08, 0])?;
    }
    let lines = [
        "connect 192.0.2.17:80 both [fd00::1]:7080 source 192.0.2.5:0 no-wait",
        "connect 192.0.2.17:80 pm 192.0.2.1:3935 sdp-only no-wait",
        "listen [::]:80 sdp [::]:7080 only-v6",
        "names 127.0.0.1:80 127.83.68.80:5000",
        "at 127.83.68.80:5",
        "failed not-available no such port",
    ];
    for (n, line) in lines.iter().enumerate() {
        fs::write(corpus.join("shim").join(format!("seed-{n:03}")), line)?;
    }
    for (n, entry) in fs::read_dir(control)?.enumerate() {
        // The first byte 1 means: the file already has the hello, and arrives in one piece.
        let sent = [vec![1], fs::read(entry?.path())?].concat();
        fs::write(corpus.join("agent").join(format!("seed-{n:03}")), sent)?;
    }
    writer.failed
}
