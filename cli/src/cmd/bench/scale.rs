//! `--connections`: measures the memory of an idle connection, and the bandwidth of many
//! connections at once.

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Instant;

use tokio::task::JoinSet;
use weft_dissector::output::text::counted;
use weft_peer::driver::Device;
use weft_peer::workload::bench::{Carrier, Plan, Source, connect_source};

use super::Arguments;
use crate::exit::BadInput;
use crate::rnic;
use crate::runtime;

/// Number of bytes that each connection transfers.
const TOTAL: u64 = 1 << 20;

/// Connects, measures memory, transfers data on all connections at once, and prints the results.
pub(super) async fn run(
    arguments: &Arguments,
    device: &Device,
    other: SocketAddr,
    carrier: Carrier,
    size: u32,
) -> anyhow::Result<()> {
    let wanted = arguments.connections.unwrap_or(1);
    let ends = if arguments.address.is_some() { 1 } else { 2 };
    runtime::enough_descriptors(wanted, ends)?;
    let plan = Plan { carrier, size, depth: arguments.depth, latency: false, reverse: false };
    let settings = arguments.mpa.settings();
    let before = resident()?;
    let mut connecting = JoinSet::new();
    for _ in 0..wanted {
        let device = device.clone();
        connecting.spawn(async move { connect_source(&device, other, settings, plan).await });
    }
    let mut sources = Vec::new();
    while let Some(connected) = connecting.join_next().await {
        let (source, _) =
            connected?.map_err(|error| BadInput(format!("cannot open connection {}: {error}", sources.len() + 1)))?;
        sources.push(source);
    }
    let idle = resident()?.saturating_sub(before);
    let count = TOTAL.div_ceil(u64::from(size.max(1)));
    let begin = Instant::now();
    let mut running = JoinSet::new();
    for source in sources {
        running.spawn(async move { source.run(count).await.map(|()| source) });
    }
    let mut done: Vec<Source> = Vec::new();
    while let Some(ran) = running.join_next().await {
        done.push(ran?.map_err(rnic::workload_error)?);
    }
    let time = begin.elapsed().as_secs_f64();
    for source in &done {
        source.disconnect().await.map_err(rnic::workload_error)?;
    }
    let each = idle as f64 / 1024.0 / f64::from(wanted) / ends as f64;
    let rate = (count * u64::from(size) * u64::from(wanted)) as f64 / time / 1e6;
    let mut out = io::stdout().lock();
    if arguments.json {
        let line = serde_json::json!({
            "kind": "scale", "what": carrier.name(), "connections": wanted, "octets": size, "depth": arguments.depth,
            "kib_per_idle_end": each, "count": count, "seconds": time, "mb_per_s": rate,
        });
        writeln!(out, "{line}")?;
    } else {
        let name = carrier.name();
        writeln!(out, "{}, {each:.1} KiB of memory per idle endpoint", counted(wanted.into(), "connection"))?;
        writeln!(
            out,
            "{name}: {count} messages of {size} bytes on each connection in {time:.2} s, {rate:.1} MB/s in total"
        )?;
    }
    Ok(())
}

/// Returns the resident size of this process in bytes. Fails on systems other than Linux.
pub(in crate::cmd) fn resident() -> anyhow::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kib.ok_or_else(|| anyhow::anyhow!("cannot measure memory: /proc/self/status has no VmRSS"))? * 1024)
}
