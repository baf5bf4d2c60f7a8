//! Tests `weft soak`: its reports, and the repetition of a run with a seed.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::process::{Command, Output};

fn soak(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weft")).arg("soak").args(arguments).output().unwrap()
}

fn last_line(run: &Output) -> String {
    String::from_utf8_lossy(&run.stdout).lines().last().unwrap_or_default().to_owned()
}

#[test]
fn runs_are_counted_and_the_seed_is_printed() {
    let run = soak(&["--runs", "20", "--lanes", "2"]);
    assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
    let text = String::from_utf8_lossy(&run.stdout);
    let first = text.lines().next().unwrap();
    assert!(first.starts_with("running for 3600 s; the first seed is "), "{first}");
    // There are 20 runs in the process. There are also two lanes, which are pairs of endpoints that
    // connect over TCP, with 20 runs on each lane.
    let last = last_line(&run);
    let start = "all checks passed: 20 runs inside weft's process (";
    assert!(last.starts_with(start) && last.contains("), 40 over TCP in "), "{last}");
}

#[test]
fn a_seed_replays() {
    let octets = |seed: &str| {
        let run = soak(&["--over", "virtual", "--runs", "1", "--mangle", "cut=2,delay", "--seed", seed]);
        assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
        // The line also has the time and the memory of the process, which differ between runs.
        let line = last_line(&run);
        line.split(" in ").next().unwrap().to_owned()
    };
    assert_eq!(octets("7"), octets("7"));
}

#[test]
fn a_time_that_is_none_is_refused_in_words() {
    let run = soak(&["--for", "soon"]);
    let text = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(2), "{text}");
    assert!(text.contains("\"soon\" is not a time; use a number and s, m or h, such as 90s"), "{text}");
}

/// A soak test without runs proves nothing. So it is a usage error, not a pass.
#[test]
fn a_soak_of_nothing_is_refused() {
    for nothing in [["--for", "0s"], ["--runs", "0"], ["--mangle", "all=0"]] {
        let run = soak(&nothing);
        assert_eq!((run.status.code(), last_line(&run)), (Some(2), String::new()), "{nothing:?}");
    }
}
