//! Tests `weft sdp bench`, which runs as a process. The numbers that it prints are consistent. It
//! measures TCP with the same number and size of messages as SDP.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::sdp::process::WEFT;

/// Time limit for a run. It is long enough for a busy machine. Without it, the test would hang if a
/// defect of SDP makes the two ends wait for each other.
const LONGEST: Duration = Duration::from_secs(120);

/// Runs `weft sdp bench` with these options. Returns its lines and its duration.
fn bench(options: &str) -> (Vec<Value>, Duration) {
    let begin = Instant::now();
    let mut process = Command::new("timeout")
        .args([&LONGEST.as_secs().to_string(), WEFT, "sdp", "bench", "--json"])
        .args(options.split_whitespace())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = String::new();
    process.stdout.take().unwrap().read_to_string(&mut lines).unwrap();
    let status = process.wait().unwrap();
    assert!(status.success(), "sdp bench {options}: {status}");
    (lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), begin.elapsed())
}

fn number(line: &Value, name: &str) -> f64 {
    line[name].as_f64().unwrap_or_else(|| panic!("{name}: {line}"))
}

/// Each run measures TCP, Pipelined Mode and Bcopy, with the same messages.
#[test]
fn bench_measures_the_same_messages_over_tcp_and_sdp() {
    const MIB: f64 = 1_048_576.0;
    // Each line has the options, the unit, the size of a message, the number of messages, and the
    // number of samples. 1 MiB divided by 3000 bytes is 349.5, so this run has 350 messages.
    for (options, unit, size, count, samples) in [
        ("--total 1 --samples 1", "MB/s", 1 << 20, 1, 1),
        ("--total 1 --samples 3 --size 4096 --no-crc", "MB/s", 4096, 256, 3),
        ("--total 1 --samples 2 --size 3000", "MB/s", 3000, 350, 2),
        ("--latency --rounds 20 --samples 3", "us", 1, 20, 3),
        ("--latency --rounds 10 --samples 1 --size 5000", "us", 5000, 10, 1),
        // The message is so large that the other end needs several reads before it can return it.
        ("--latency --rounds 2 --samples 1 --size 3000000", "us", 3_000_000, 2, 1),
    ] {
        let (lines, took) = bench(options);
        let subjects: Vec<&Value> = lines.iter().map(|line| &line["what"]).collect();
        assert_eq!(subjects, ["tcp", "pipelined", "bcopy"], "{options}");
        for line in &lines {
            assert_eq!((&line["kind"], &line["unit"]), (&"sdp_bench".into(), &unit.into()), "{options}: {line}");
            let messages = (&line["octets"], &line["count"], &line["samples"]);
            assert_eq!(messages, (&size.into(), &count.into(), &samples.into()), "{options}: {line}");
            let (least, median, most) = (number(line, "min"), number(line, "median"), number(line, "max"));
            assert!(0.0 < least && least <= median && median <= most, "{options}: {line}");
            // All messages of a sample together have the total size, rounded up to complete
            // messages.
            let octets = f64::from(size) * f64::from(count);
            assert!(unit == "us" || (octets - f64::from(size) < MIB && MIB <= octets), "{options}: {line}");
            // No sample took longer than the process. Bytes divided by MB/s are microseconds, and
            // messages multiplied by us are microseconds.
            let longest = if unit == "us" { most * f64::from(count) } else { octets / least };
            assert!(longest <= took.as_secs_f64() * 1e6, "{options}: {line}, but the run took {took:?}");
        }
        assert_eq!(lines[0]["of_tcp"], Value::Null, "{options}");
        for line in &lines[1..] {
            let ratio = number(line, "median") / number(&lines[0], "median");
            assert!((number(line, "of_tcp") - ratio).abs() < 1e-9, "{options}: {line}");
        }
    }
}

/// Without `--json`, the output has a line of text for each measurement, with the same sizes, units
/// and ratios.
#[test]
fn bench_prints_a_line_for_each_subject() {
    let run = ["sdp", "bench", "--total", "1", "--samples", "1", "--size", "65536"];
    let output = Command::new(WEFT).args(run).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let [tcp, pipelined, bcopy] = lines[..] else { panic!("{text}") };
    for (line, name) in [(tcp, "tcp "), (pipelined, "pipelined "), (bcopy, "bcopy ")] {
        assert!(line.starts_with(name) && line.contains(" 65536 bytes ") && line.contains(" MB/s  ("), "{text}");
        assert_eq!(line.ends_with(" of TCP"), name != "tcp ", "{text}");
    }
}

#[test]
fn bench_measures_many_connections() {
    let (lines, took) = bench("--connections 20");
    let [line] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!((&line["kind"], &line["connections"]), (&"sdp_scale".into(), &20.into()), "{line}");
    let (connecting, round_trip) = (number(line, "connect_seconds"), number(line, "round_trip_seconds"));
    assert!(0.0 < connecting && 0.0 < round_trip && connecting + round_trip <= took.as_secs_f64(), "{line}");
    // Each idle end has its own receive buffers, so it uses some memory.
    assert!(number(line, "kib_per_idle_end") > 0.0, "{line}");
}

/// A measurement without messages is a usage error.
#[test]
fn bench_rejects_a_measurement_of_nothing() {
    for nothing in ["--size=0", "--total=0", "--rounds=0", "--samples=0", "--connections=0"] {
        let bench = Command::new(WEFT).args(["sdp", "bench", nothing]).output().unwrap();
        assert_eq!((bench.status.code(), bench.stdout.len()), (Some(2), 0), "{bench:?}");
    }
}
