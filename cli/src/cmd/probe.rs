//! `weft probe`: runs single RDMA operations, valid or invalid. weft uses its software RNIC, and is
//! the client or the server.

mod report;

use std::process::ExitCode;
use std::time::Duration;

use weft_peer::driver::cm::{CmError, ConnectRequest, Listener};
use weft_peer::driver::{Device, TrafficLog};
use weft_peer::mpa::PrivateData;
use weft_peer::workload::probe::{Arrived, Done, Ended, Op, Probe, ProbeSettings};
use weft_peer::workload::{WorkloadError, or_reject};

use crate::exit::{BadInput, CommandFailure, UNEXPECTED, note};
use crate::rnic::{self, RnicArguments, SideArguments};
use crate::runtime;
use crate::signals;

use report::Report;
pub(super) use report::how;

/// The command line.
#[derive(clap::Args)]
#[command(
    group = clap::ArgGroup::new("side").args(["server", "client"]).required(true),
    after_help = "Operations on N bytes:\n  \
    send:N                     Send\n  \
    sendse:N                   Send with Solicited Event\n  \
    sendinv:N                  Send with Invalidate of the STag of the peer's region\n  \
    sendseinv:N                Send with Solicited Event and Invalidate\n  \
    write:N[:OFFSET]           RDMA Write to the peer's region\n  \
    read:N[:OFFSET]            RDMA Read of the peer's region\n  \
    fetchadd[:OFFSET]          add 1 to an 8-byte number in the peer's region (RFC 7306)\n  \
    immediate                  8 bytes of Immediate Data (RFC 7306)\n  \
    burst:OP:N:COUNT           COUNT operations at once; OP is send, write or read\n  \
    recv                       wait for a Send of the peer, at most --wait seconds\n  \
    disc                       close the connection\n  \
    abort                      reset the connection\n  \
    end                        wait until the peer ends the connection, at most --wait seconds\n\
    OFFSET is relative to the start of the peer's region, and can be outside the region.\n\n\
    Invalid operations:\n  \
    writebadkey:N, readbadkey:N   with an STag that does not exist\n  \
    writeoob:N, readoob:N         half of the bytes are after the end of the region\n  \
    writewrap:N, readwrap:N       half of the bytes are after Tagged Offset 2^64 - 1\n  \
    sendinvz:N                    Send with Invalidate of STag 0\n\
    To choose a wrong STag, append a number X: write:N:OFFSET:X, read:N:OFFSET:X,\n\
    fetchadd:OFFSET:X, sendinv:N:0:X, sendseinv:N:0:X. weft uses STag XOR X as the STag.\n\n\
    Byte i of a Send or Write is 13 i + 5 (mod 256). Byte i of a region is initially 7 i + 3 (mod\n\
    256). Hashes in the output are 64-bit FNV-1a. The peer is `weft probe`, `weft serve`, or siwprobe\n\
    (in interop/siw) on any RDMA device.\n\n\
    Exit codes:\n  \
    0  all operations succeeded, and both sides closed the connection\n  \
    1  an operation failed, or the connection broke\n  \
    3  no connection\n\n\
    Examples:\n  \
    weft probe -s -a 127.0.0.1                                  serve one client\n  \
    weft probe -c -a 127.0.0.1 send:0 write:65536 read:65536    run three operations\n  \
    weft probe -c -a 127.0.0.1 writebadkey:100 end              test the reaction to a wrong STag"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    side: SideArguments,
    /// Run these operations in this order (listed below)
    #[arg(value_name = "OPERATION", value_parser = Op::parse)]
    operations: Vec<Op>,
    /// Server: serve this many connections, one after the other
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 1, conflicts_with = "client")]
    connections: u32,
    /// Server: reject each MPA Request, with --text as private data
    #[arg(long, conflicts_with_all = ["client", "operations"])]
    reject: bool,
    /// Register a region of this size for the peer
    ///
    /// The size is also the maximum for messages that this side sends.
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_REGION_OCTETS)))]
    region: u32,
    /// Let the peer read (r) or write (w) the region, or both (rw)
    #[arg(long, value_name = "RIGHTS", default_value = "rw", value_parser = ["rw", "r", "w", "none"])]
    rights: String,
    /// Post this many receive buffers
    #[arg(long, value_name = "COUNT", default_value_t = 16, value_parser = clap::value_parser!(u32).range(..=1024))]
    receives: u32,
    /// Set the size of each receive buffer
    #[arg(long, value_name = "BYTES", default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_REGION_OCTETS)))]
    room: u32,
    /// Answer each received Send with a Send of the same data
    #[arg(long)]
    echo: bool,
    /// Append this text to the private data of the MPA start-up
    ///
    /// The private data begins with a description of the region for the peer.
    #[arg(long, value_name = "TEXT", default_value = "")]
    text: String,
    /// Pause this many milliseconds before the first operation
    ///
    /// Linux's software iWARP driver (siw) loses a message that arrives immediately after its MPA
    /// Reply. A pause of 50 ms avoids the loss.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    settle: u64,
    /// Wait at most this many seconds in each `recv` and `end`
    ///
    /// If the time is over, the operation has failed.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    wait: u32,
    /// Print each line as a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    rnic: RnicArguments,
}

/// Maximum size in bytes of the region, and of a receive buffer.
const MAX_REGION_OCTETS: u32 = 64 << 20;

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    runtime::on_one_thread(arguments.rnic.watch.around(async |traffic| {
        let is_client = arguments.side.client;
        let done = if is_client { client(arguments, traffic).await } else { server(arguments, traffic).await };
        done.map(|()| ExitCode::SUCCESS)
    }))
}

impl Arguments {
    /// The time limit of an operation that waits for the peer.
    fn max_wait(&self) -> Duration {
        Duration::from_secs(self.wait.into())
    }

    fn probe(&self) -> ProbeSettings {
        let (ird, ord) = self.rnic.mpa.depths();
        ProbeSettings {
            region: self.region,
            readable: self.rights.contains('r'),
            writable: self.rights.contains('w'),
            receives: self.receives,
            room: self.room,
            ord,
            ird,
            echo: self.echo,
            text: self.text.clone().into(),
        }
    }
}

/// Connects and runs the operations.
async fn client(arguments: &Arguments, traffic: Option<TrafficLog>) -> anyhow::Result<()> {
    let address = arguments.side.resolve().await?;
    let device = arguments.rnic.open(traffic)?;
    let mut probe = Probe::new(&device, arguments.probe()).map_err(rnic::workload_error)?;
    let report = Report::new(arguments.json);
    let connected = match probe.connect(address, arguments.rnic.mpa.settings()).await {
        Ok(connected) => connected,
        Err(error) => {
            if let CmError::Rejected(peer) = &error {
                report.rejection("rejected", "rejected by the peer", peer.private_data.as_octets());
            }
            return Err(rnic::unreachable(address, &error));
        }
    };
    report.connected(&connected, probe.peer());
    tokio::time::sleep(Duration::from_millis(arguments.settle)).await;
    operate(arguments, &mut probe, &report).await
}

/// Runs the operations, and ends the connection.
async fn operate(arguments: &Arguments, probe: &mut Probe, report: &Report) -> anyhow::Result<()> {
    let mut failed = None;
    for op in &arguments.operations {
        let done = perform(arguments, probe, report, *op).await;
        report.done(*op, &done);
        if let Err(error) = done {
            failed = Some(rnic::workload_error(error));
            break;
        }
    }
    report.arrived(probe.arrivals());
    let ended = if arguments.side.server {
        serve(probe, report).await
    } else if failed.is_some() {
        finish_in_time(probe, arguments.max_wait()).await
    } else {
        probe.finish().await
    };
    let ended = ended.map_err(rnic::workload_error)?;
    report.ended(&ended);
    match failed {
        Some(failed) => Err(failed),
        None if ended.graceful => Ok(()),
        None => {
            let text = how(&ended);
            Err(CommandFailure { code: UNEXPECTED, text: format!("the connection ended by {text}") }.into())
        }
    }
}

/// Runs an operation. Limits the time of the operations that wait for the peer.
async fn perform(arguments: &Arguments, probe: &mut Probe, report: &Report, op: Op) -> Result<Done, WorkloadError> {
    if !matches!(op, Op::End | Op::Receive) {
        return probe.run(op).await;
    }
    if let Ok(done) = tokio::time::timeout(arguments.max_wait(), probe.run(op)).await {
        return done;
    }
    let arrived: Vec<Arrived> = probe.arrivals().collect();
    let is_sent = |length| matches!(op, Op::End) && arguments.operations.iter().any(|op| has_sent(*op, length));
    let is_echo = arrived.iter().any(|message| is_sent(message.octets) && probe.is_like_own(message));
    report.arrived(arrived);
    let seconds = arguments.wait;
    Err(WorkloadError::TimedOut(match op {
        Op::Receive => format!("no message arrived within {seconds} s; --wait changes this limit"),
        _ if is_echo => format!(
            "the peer sent the same bytes back, and did not end the connection within {seconds} s; \
             an echo server waits until this side closes, so use disc instead of end"
        ),
        _ => format!("the peer did not end the connection within {seconds} s; --wait changes this limit"),
    }))
}

/// Returns whether the operation is a Send of this length.
fn has_sent(op: Op, length: u32) -> bool {
    matches!(op, Op::Send { octets, .. } if octets == length && length > 0)
}

/// Ends the connection. If the peer does not close the connection in time, resets it.
async fn finish_in_time(probe: &mut Probe, most: Duration) -> Result<Ended, WorkloadError> {
    if let Ok(ended) = tokio::time::timeout(most, probe.finish()).await {
        return ended;
    }
    probe.run(Op::Abort).await?;
    probe.finish().await
}

/// Prints received messages until the peer ends the connection.
async fn serve(probe: &mut Probe, report: &Report) -> Result<Ended, WorkloadError> {
    while let Some(arrived) = probe.next().await? {
        report.arrived([arrived]);
    }
    probe.finish().await
}

/// The event that the server waits for. If a signal stops the server before this event, the error
/// message names the event.
const ALL_SERVED: &str = "all connections were served";

/// Serves `--connections` connections, one after the other.
async fn server(arguments: &Arguments, traffic: Option<TrafficLog>) -> anyhow::Result<()> {
    let address = arguments.side.resolve().await?;
    let device = arguments.rnic.open(traffic)?;
    let listener = rnic::listen(&device, address, arguments.rnic.mpa.settings())?;
    let mut interrupted = signals::interrupted();
    note(&format!("listening on {}", listener.local_addr()));
    let mut done = Ok(());
    for _ in 0..arguments.connections {
        let request = tokio::select! {
            request = arrived(&listener) => request,
            stop = &mut interrupted => return done.and(Err(stop.before(ALL_SERVED))),
        };
        let served = tokio::select! {
            served = served(arguments, &device, request) => served,
            stop = &mut interrupted => return done.and(Err(stop.before(ALL_SERVED))),
        };
        done = done.and(served);
    }
    done
}

/// Returns the next valid MPA Request of a peer.
async fn arrived(listener: &Listener) -> ConnectRequest {
    loop {
        match listener.next().await {
            Ok(request) => return request,
            // The client did not use RDMA, so wait for the next client.
            Err(error) => note(&format!("a connection failed: {error}")),
        }
    }
}

/// Serves one connection, or rejects it with `--reject`.
async fn served(arguments: &Arguments, device: &Device, request: ConnectRequest) -> anyhow::Result<()> {
    let report = Report::new(arguments.json);
    if arguments.reject {
        let reason = PrivateData::new(arguments.text.clone()).map_err(|error| BadInput(error.to_string()))?;
        report.rejection("requested", "request rejected", request.peer().private_data.as_octets());
        return request.reject(&reason).await.map_err(|error| rnic::workload_error(error.into()));
    }
    let made = or_reject(request, Probe::new(device, arguments.probe())).await;
    let (mut probe, request) = made.map_err(rnic::workload_error)?;
    let connected = probe.accept(request).map_err(|error| rnic::workload_error(error.into()))?;
    report.connected(&connected, probe.peer());
    operate(arguments, &mut probe, &report).await
}
