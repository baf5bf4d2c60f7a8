//! Measures how fast the dissector reads a capture, in bytes per second. Run it with
//! `cargo bench --manifest-path bench/Cargo.toml`.
//!
//! The capture is made in memory (8 connections, every 50th CRC wrong), so that the result does not
//! depend on a disk. There are three benchmarks. `read` only reads the frames of the capture.
//! `units` also dissects the frames and checks the rules. `json` also writes a line of JSON for
//! each message.

use std::hint::black_box;
use std::io::{Cursor, sink};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use weft_bench::generate;
use weft_dissector::output::json::JsonWriter;
use weft_dissector::source::Capture;
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Sink};

/// Length of the capture in bytes.
const OCTETS: u64 = 4_000_000;

#[derive(Default)]
struct Count {
    units: u64,
}

impl Sink for Count {
    fn unit(&mut self, _: &Unit<'_>) {
        self.units += 1;
    }
}

#[derive(Default)]
struct Json {
    writer: JsonWriter,
}

impl Sink for Json {
    fn unit(&mut self, unit: &Unit<'_>) {
        self.writer.write(unit, &mut sink()).expect("writing to a sink cannot fail");
    }
}

fn open(octets: &[u8]) -> Capture {
    Capture::from_reader(Box::new(Cursor::new(octets.to_vec()))).expect("a pcap")
}

fn dissect(octets: &[u8], sink: &mut dyn Sink) {
    let (mut capture, mut dissector) = (open(octets), Dissector::default());
    while let Some(frame) = capture.next_frame() {
        dissector.frame(&frame, sink);
    }
    dissector.finish(sink);
}

fn benches(c: &mut Criterion) {
    let mut octets = Vec::new();
    let truth = generate(&mut octets, OCTETS, 8, 50).expect("writing to memory cannot fail");
    let mut count = Count::default();
    dissect(&octets, &mut count);
    // In addition to the FPDUs, each connection has an MPA Request and an MPA Reply.
    assert_eq!(count.units, truth.fpdus + 16, "the number of parsed units differs from the number of generated units");
    let mut group = c.benchmark_group("dissect");
    group.throughput(Throughput::Bytes(octets.len() as u64));
    group.bench_function("read", |b| {
        b.iter(|| {
            let mut capture = open(&octets);
            while let Some(frame) = capture.next_frame() {
                black_box(frame);
            }
        });
    });
    group.bench_function("units", |b| b.iter(|| dissect(&octets, &mut Count::default())));
    group.bench_function("json", |b| b.iter(|| dissect(&octets, &mut Json::default())));
    group.finish();
}

criterion_group!(hot_path, benches);
criterion_main!(hot_path);
