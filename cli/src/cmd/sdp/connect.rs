//! `weft sdp connect`: transfers standard input and output over SDP, or tests an echo server.

use std::process::ExitCode;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use weft_core::wire::portmap::UDP_PORT;
use weft_peer::driver::TrafficLog;
use weft_peer::driver::sdp::{SdpStream, Side};

use super::actions::{Action, Actions, check_positions};
use super::outgoing::{Connector, mapper_of};
use super::settings::SdpArguments;
use crate::exit::{CommandFailure, UNEXPECTED, UNREACHABLE, note};
use crate::rnic::host_and_port;
use crate::signals;
use crate::watch::WatchArguments;

/// The command line.
#[derive(clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "Without --octets, weft sends standard input, and writes the received bytes to standard output. It\n\
    exits when both sides have closed the connection.\n\n\
    Exit codes:\n  \
    0        both sides closed the connection\n  \
    1        the returned bytes differ, or the connection was reset\n  \
    3        no connection\n  \
    128 + N  signal N stopped weft\n\n\
    Examples:\n  \
    weft sdp connect 192.0.2.17:7174 < file > copy      send a file, and save the answer\n  \
    weft sdp connect 192.0.2.17:7174 --octets 100000    test an echo server\n  \
    weft sdp connect 192.0.2.17:7174 --octets 100000 --at 5000:urgent --at 60000:move\n  \
    weft sdp connect 192.0.2.17:80 --pm                 query a port mapper first"
)]
pub(crate) struct Arguments {
    /// Connect to this HOST:PORT; with --pm, this is the TCP address of the service
    #[arg(value_name = "PEER")]
    peer: String,
    /// Query a port mapper for the SDP Address of the service PEER
    ///
    /// SERVER is the HOST or HOST:PORT of the port mapper (default: port 3935 of the service's
    /// host). If the service has no SDP Address, weft uses plain TCP.
    #[arg(long, value_name = "SERVER", num_args = 0..=1, default_missing_value = "")]
    pm: Option<String>,
    /// With --pm: never use plain TCP
    #[arg(long, requires = "pm")]
    sdp_only: bool,
    /// Send this many bytes, and compare the bytes that the peer returns
    #[arg(long, value_name = "COUNT")]
    octets: Option<usize>,
    /// With --octets: write this many bytes at a time
    #[arg(long, value_name = "COUNT", default_value_t = 5000, value_parser = clap::value_parser!(u32).range(1..=1 << 26))]
    piece: u32,
    /// Run an action after BYTES written bytes; repeatable
    ///
    /// `urgent` sends an urgent byte. `resize=SIZE` requests that the peer change the size of its
    /// receive buffers. `move` moves the connection to another listener of this side.
    #[arg(long, value_name = "BYTES:urgent|resize=SIZE|move", requires = "octets", conflicts_with = "pm")]
    at: Vec<Action>,
    #[command(flatten)]
    sdp: SdpArguments,
    #[command(flatten)]
    watch: WatchArguments,
}

/// Connects and transfers data until both sides have closed.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    check_positions(&arguments.at, arguments.octets.map_or(0, |octets| octets as u64))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let done = runtime.block_on(arguments.watch.around(async |traffic| {
        let done = tokio::select! {
            done = transfer(arguments, traffic) => done,
            stop = signals::interrupted() => Err(stop.before("both sides closed")),
        };
        done.map(|()| ExitCode::SUCCESS)
    }));
    // Do not wait for a pending read of standard input.
    runtime.shutdown_background();
    done
}

/// Connects, directly or with a port mapper, and transfers data.
async fn transfer(arguments: &Arguments, traffic: Option<TrafficLog>) -> anyhow::Result<()> {
    let address = host_and_port(&arguments.peer, None).await?;
    let device = arguments.sdp.open(traffic.clone())?;
    let connector = Connector::new(&device, arguments.sdp.settings(), traffic.as_ref())?;
    let may_be_plain = !arguments.sdp_only;
    let connected = match arguments.pm.as_deref() {
        None => connector.connect_directly(address).await.map(Side::Sdp),
        Some("") => connector.connect_mapped(mapper_of(address), address, may_be_plain).await,
        Some(mapper) => {
            connector.connect_mapped(host_and_port(mapper, Some(UDP_PORT)).await?, address, may_be_plain).await
        }
    };
    let connected =
        connected.map_err(|error| CommandFailure { code: UNREACHABLE, text: format!("cannot connect: {error}") })?;
    match connected {
        Side::Sdp(stream) => {
            arguments.sdp.set_mode(&stream)?;
            let actions = Actions::new(&device, arguments.sdp.settings(), &arguments.at);
            let (mut reader, mut writer) = (&stream, &stream);
            arguments.exchange(&mut reader, &mut writer, Some((&stream, actions))).await?;
            stream.ended().await.map_err(broken)?;
        }
        Side::Tcp(mut stream) => {
            note(&format!("{address}: using plain TCP, because the port mapper has no SDP Address"));
            let (mut reader, mut writer) = stream.split();
            arguments.exchange(&mut reader, &mut writer, None).await?;
        }
    }
    Ok(())
}

impl Arguments {
    /// Transfers the data. If there are `actions`, `writer` is the SDP stream.
    async fn exchange(
        &self,
        reader: &mut (impl AsyncRead + Unpin),
        writer: &mut (impl AsyncWrite + Unpin),
        mut actions: Option<(&SdpStream, Actions<'_>)>,
    ) -> anyhow::Result<()> {
        let Some(octets) = self.octets else { return cat(reader, writer).await };
        let sent = pattern(octets);
        let up = async {
            if let Some((stream, actions)) = &mut actions {
                actions.run_due(stream).await?;
            }
            for piece in sent.chunks(self.piece as usize) {
                match &mut actions {
                    Some((stream, actions)) => actions.write_all(stream, piece).await?,
                    None => writer.write_all(piece).await?,
                }
            }
            writer.shutdown().await
        };
        compare(reader, up, &sent).await
    }
}

/// Sends standard input to the peer, and writes received bytes to standard output.
async fn cat(reader: &mut (impl AsyncRead + Unpin), writer: &mut (impl AsyncWrite + Unpin)) -> anyhow::Result<()> {
    let up = async {
        copy_stream(&mut tokio::io::stdin(), stdio_error, writer, connection_error).await?;
        writer.shutdown().await.map_err(connection_error)
    };
    let mut out = tokio::io::stdout();
    let down = copy_stream(reader, connection_error, &mut out, stdio_error);
    tokio::try_join!(up, down)?;
    Ok(())
}

/// Copies one stream into another. `unread` converts errors of `from`. `unwritten` converts errors
/// of `to`.
async fn copy_stream(
    from: &mut (impl AsyncRead + Unpin),
    unread: fn(std::io::Error) -> anyhow::Error,
    to: &mut (impl AsyncWrite + Unpin),
    unwritten: fn(std::io::Error) -> anyhow::Error,
) -> anyhow::Result<()> {
    let mut room = vec![0; 1 << 16];
    loop {
        let count = from.read(&mut room).await.map_err(unread)?;
        if count == 0 {
            return Ok(());
        }
        to.write_all(&room[..count]).await.map_err(unwritten)?;
        // Flush, because the reader can be a person who waits for the data.
        to.flush().await.map_err(unwritten)?;
    }
}

/// Converts an error of this side's standard input or output.
fn stdio_error(error: std::io::Error) -> anyhow::Error {
    error.into()
}

/// Converts an error of the connection.
fn connection_error(error: std::io::Error) -> anyhow::Error {
    broken(error).into()
}

/// Returns this many bytes of a test pattern.
fn pattern(octets: usize) -> Vec<u8> {
    (0..octets).map(|n| (n ^ (n >> 8) ^ (n >> 16)) as u8).collect()
}

/// Runs `up`, which sends the bytes `sent`. At the same time, reads until the peer closes. Then
/// compares `sent` with the bytes that the echo returned.
async fn compare(
    reader: &mut (impl AsyncRead + Unpin),
    up: impl Future<Output = std::io::Result<()>>,
    sent: &[u8],
) -> anyhow::Result<()> {
    let mut got = Vec::new();
    tokio::try_join!(up, reader.read_to_end(&mut got)).map_err(broken)?;
    if got != sent {
        let same = got.iter().zip(sent).take_while(|(got, sent)| got == sent).count();
        let (got, sent) = (got.len(), sent.len());
        let text = format!("the peer returned {got} of {sent} bytes; only the first {same} bytes are correct");
        return Err(CommandFailure { code: UNEXPECTED, text }.into());
    }
    note(&format!("sent and received {} bytes", sent.len()));
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes the error by value")]
fn broken(error: std::io::Error) -> CommandFailure {
    CommandFailure { code: UNEXPECTED, text: format!("the connection broke: {error}") }
}
