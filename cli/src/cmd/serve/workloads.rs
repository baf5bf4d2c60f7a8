//! The workloads port of `weft serve`: serves ping, probe, cat and bench with the software RNIC.
//! The private data of the MPA Request selects the workload.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::Semaphore;
use weft_core::text::visible;
use weft_dissector::output::text::counted;
use weft_peer::Deviations;
use weft_peer::driver::cm::{CmError, CmSettings, ConnectRequest};
use weft_peer::driver::{Device, TrafficLog};
use weft_peer::hostile::mangle::Mangling;
use weft_peer::memory::MemorySettings;
use weft_peer::mpa::PrivateData;
use weft_peer::workload::bench::{self, Plan};
use weft_peer::workload::cat::{Cat, Totals, TransferRequest};
use weft_peer::workload::ping::{SIZES, Server};
use weft_peer::workload::probe::{self, Probe, ProbeSettings};
use weft_peer::workload::{WorkloadError, or_reject};

use super::shares::Shares;
use crate::rnic;

/// Maximum number of connections at a time. The echo service has the same limit.
const CONNECTIONS: usize = 1024;

/// Starts to listen, and returns the address. A task serves the connections until the runtime ends.
pub(super) fn start(
    address: SocketAddr,
    deviations: Deviations,
    mangling: Option<Mangling>,
    traffic: Option<TrafficLog>,
    quiet: bool,
) -> anyhow::Result<SocketAddr> {
    let device = rnic::open(traffic, mangling)?;
    device.verbs(|rnic| rnic.deviate(deviations));
    let listener = rnic::listen(&device, address, CmSettings::default())?;
    let address = listener.local_addr();
    tokio::spawn(async move {
        let permits = Arc::new(Semaphore::new(CONNECTIONS));
        let shares = Shares::of(MemorySettings::default().max_octets);
        loop {
            // Acquiring cannot fail, because nothing closes the semaphore. A client above the limit
            // waits for its MPA Reply.
            let permit = Arc::clone(&permits).acquire_owned().await.ok();
            let request = listener.next().await;
            let (device, shares) = (device.clone(), Arc::clone(&shares));
            tokio::spawn(async move {
                let _permit = permit;
                let (peer, served) = match request {
                    Ok(request) => (request.peer_addr().ok(), serve_within(&shares, &device, request).await),
                    Err(error) => (None, Err(error.into())),
                };
                if !quiet {
                    let peer = peer.map_or_else(|| "a peer".to_owned(), |peer| peer.to_string());
                    let what = served.unwrap_or_else(|error| error.to_string());
                    let _ = writeln!(io::stderr(), "      {peer}  {}", visible(&what));
                }
            });
        }
    });
    Ok(address)
}

/// Serves one peer, or rejects a peer that is not allowed to reserve enough memory.
async fn serve_within(shares: &Arc<Shares>, device: &Device, request: ConnectRequest) -> Result<String, WorkloadError> {
    let peer = request.peer_addr().map_err(CmError::from)?;
    let bytes = memory(request.peer().private_data.as_octets());
    let Some(_reservation) = shares.reserve(peer.ip(), bytes) else {
        let reason = PrivateData::new(&b"no room"[..]).unwrap_or_default();
        request.reject(&reason).await?;
        return Ok(format!("rejected: the workload needs {bytes} bytes of memory, more than this peer can reserve"));
    };
    serve(device, request).await
}

/// Returns the bytes of registered memory that this side needs for a workload.
fn memory(private_data: &[u8]) -> u64 {
    if let Some((plan, _)) = Plan::parse(private_data) {
        plan.memory()
    } else if TransferRequest::parse(private_data).is_some() {
        Cat::MEMORY
    } else if probe::is_requested(private_data) {
        probe_settings().memory()
    } else {
        Server::memory(*SIZES.end())
    }
}

fn probe_settings() -> ProbeSettings {
    ProbeSettings { echo: true, ..ProbeSettings::default() }
}

/// Serves one peer until the connection ends. Returns a description of what happened.
async fn serve(device: &Device, request: ConnectRequest) -> Result<String, WorkloadError> {
    let private_data = request.peer().private_data.as_octets();
    if Plan::parse(private_data).is_some() {
        bench::serve(device, request).await?;
        return Ok("bench: done".to_owned());
    }
    if let Some((TransferRequest { pull, .. }, _)) = TransferRequest::parse(private_data) {
        if pull {
            let reason = PrivateData::new(&b"nothing to give"[..]).unwrap_or_default();
            request.reject(&reason).await?;
            return Ok("cat: rejected, because this server has no data to send".to_owned());
        }
        let (mut cat, _) = Cat::accept(device, request).await?;
        let Totals { length, hash } = cat.receive_stream(&mut |_| Ok(())).await?;
        cat.ended().await?;
        return Ok(format!("cat: {length} bytes received and discarded, FNV-1a hash {hash:016x}"));
    }
    if probe::is_requested(private_data) {
        return probed(device, request).await;
    }
    let (mut server, request) = or_reject(request, Server::new(device, *SIZES.end())).await?;
    server.accept(request)?;
    let mut rounds = 0;
    while server.round().await?.is_some() {
        rounds += 1;
    }
    server.disconnect().await?;
    Ok(format!("ping: {}", counted(rounds, "round")))
}

/// Receives the operations of a probe, and sends each received Send back.
async fn probed(device: &Device, request: ConnectRequest) -> Result<String, WorkloadError> {
    let (mut probe, request) = or_reject(request, Probe::new(device, probe_settings())).await?;
    probe.accept(request)?;
    let mut messages = 0;
    while probe.next().await?.is_some() {
        messages += 1;
    }
    let ended = probe.finish().await?;
    let messages = counted(messages, "message");
    Ok(format!("probe: {messages} echoed; the connection ended by {}", crate::cmd::probe::how(&ended)))
}
