//! `weft sdp serve`: runs an SDP server for tests.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;
use weft_peer::driver::sdp::{Incoming, SdpListener, SdpStream};
use weft_peer::driver::{Device, TrafficLog};

use super::actions::{Action, Actions, check_positions};
use super::settings::SdpArguments;
use crate::exit::{CommandFailure, UNEXPECTED, note, print_line, reject};
use crate::rnic::{cannot_listen, host_and_port};
use crate::runtime;
use crate::signals;
use crate::watch::WatchArguments;

/// The command line.
#[derive(clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "Exit codes with --once:\n  \
    0        both sides closed the connection\n  \
    1        the connection was reset, or a rule was violated\n  \
    128 + N  signal N stopped weft\n\n\
    Examples:\n  \
    weft sdp serve                               send the received bytes back\n  \
    weft sdp serve sink --listen 0.0.0.0:7174    receive and discard bytes from other hosts\n  \
    weft sdp serve source --octets 1000000000    send 1 GB on each connection"
)]
pub(crate) struct Arguments {
    /// Choose what to do with each connection
    #[arg(value_enum, default_value_t = ServiceKind::Echo)]
    what: ServiceKind,
    /// Listen on this address; port 0 means a free port, which weft prints
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7174")]
    listen: String,
    /// With source: send this many bytes on each connection
    #[arg(long, value_name = "COUNT", default_value_t = 1 << 30)]
    octets: u64,
    /// Run an action after BYTES written bytes; repeatable
    ///
    /// `urgent` sends an urgent byte. `resize=SIZE` requests that the peer change the size of its
    /// receive buffers. `move` moves the connection to another listener of this side.
    #[arg(long, value_name = "BYTES:urgent|resize=SIZE|move")]
    at: Vec<Action>,
    /// Serve one connection, and exit with its result
    #[arg(long)]
    once: bool,
    /// Serve at most this many connections at a time; further connections wait
    #[arg(long, value_name = "COUNT", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    most: u32,
    /// Print only the listening address
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    sdp: SdpArguments,
    #[command(flatten)]
    watch: WatchArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ServiceKind {
    /// Send the received bytes back
    Echo,
    /// Discard the received bytes
    Sink,
    /// Send bytes, and close the connection
    Source,
}

/// Serves connections until a signal stops the command.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match arguments.what {
        // The number of echoed bytes depends on the peer, so an action can have any position.
        ServiceKind::Echo => {}
        ServiceKind::Sink if arguments.at.is_empty() => {}
        ServiceKind::Sink => reject!("--at needs a service that writes: echo or source"),
        ServiceKind::Source => check_positions(&arguments.at, arguments.octets)?,
    }
    runtime::block_on(arguments.watch.around(async |traffic| {
        let served = tokio::select! {
            served = serve(arguments, traffic) => served,
            stop = signals::interrupted() => match arguments.once {
                true => Err(stop.before("both sides closed")),
                false => Ok(()),
            },
        };
        served.map(|()| ExitCode::SUCCESS)
    }))
}

async fn serve(arguments: &Arguments, traffic: Option<TrafficLog>) -> anyhow::Result<()> {
    let address = host_and_port(&arguments.listen, None).await?;
    let device = arguments.sdp.open(traffic)?;
    let listener = SdpListener::bind(&device, address, arguments.sdp.settings())
        .map_err(|error| cannot_listen(address, &error))?;
    print_line!("listening on {}", listener.local_addr()?);
    let service = Service {
        kind: arguments.what,
        octets: arguments.octets,
        at: arguments.at.clone(),
        device,
        sdp: arguments.sdp.clone(),
    };
    if arguments.once {
        let incoming = listener.incoming().await?;
        drop(listener);
        let done = service.serve(incoming).await;
        let text = done.map_err(|error| CommandFailure { code: UNEXPECTED, text: format!("{error:#}") })?;
        if !arguments.quiet {
            print_line!("{text}");
        }
        return Ok(());
    }
    let (service, quiet) = (Arc::new(service), arguments.quiet);
    let room = Arc::new(Semaphore::new(arguments.most as usize));
    loop {
        // Acquiring cannot fail, because nothing closes the semaphore.
        let permit = Arc::clone(&room).acquire_owned().await.ok();
        let incoming = match listener.incoming().await {
            Ok(incoming) => incoming,
            Err(error) => {
                note(&format!("cannot accept a connection: {error}"));
                tokio::time::sleep(runtime::ACCEPT_AGAIN).await;
                continue;
            }
        };
        let service = Arc::clone(&service);
        tokio::spawn(async move {
            let from: SocketAddr = incoming.peer_addr();
            match service.serve(incoming).await {
                Ok(done) if !quiet => print_line!("{from}: {done}"),
                Err(error) if !quiet => print_line!("{from}: {error:#}"),
                _ => {}
            }
            drop(permit);
        });
    }
}

/// Serves connections. All connections have the same settings.
struct Service {
    kind: ServiceKind,
    octets: u64,
    at: Vec<Action>,
    device: Device,
    sdp: SdpArguments,
}

impl Service {
    /// Serves a connection until it ends. Returns a text about it for the output.
    async fn serve(&self, incoming: Incoming) -> anyhow::Result<String> {
        let mut stream = incoming.start().await?;
        self.sdp.set_mode(&stream)?;
        let mut actions = Actions::new(&self.device, self.sdp.settings(), &self.at);
        actions.run_due(&stream).await?;
        let done = match self.kind {
            ServiceKind::Echo => format!("echoed {}", receive(&mut stream, Some(&mut actions)).await?),
            ServiceKind::Sink => format!("received {}", receive(&mut stream, None).await?),
            ServiceKind::Source => {
                send_pattern(&stream, self.octets, &mut actions).await?;
                format!("sent {}", self.octets)
            }
        };
        stream.shutdown().await?;
        stream.ended().await?;
        if let Some(unreached) = actions.unreached() {
            note(&unreached);
        }
        Ok(done)
    }
}

/// Reads until the peer closes, and returns the number of bytes. With `back`, sends the bytes back.
async fn receive(stream: &mut SdpStream, mut back: Option<&mut Actions<'_>>) -> std::io::Result<u64> {
    let (mut buffer, mut all) = (vec![0; 64 << 10], 0);
    loop {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            return Ok(all);
        }
        all += read as u64;
        if let Some(actions) = &mut back {
            actions.write_all(stream, buffer.get(..read).unwrap_or_default()).await?;
        }
    }
}

/// Sends this many bytes.
async fn send_pattern(stream: &SdpStream, octets: u64, actions: &mut Actions<'_>) -> std::io::Result<()> {
    let (buffer, mut left) = (vec![0x5a; 1 << 20], octets);
    while left > 0 {
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        actions.write_all(stream, buffer.get(..len).unwrap_or_default()).await?;
        left -= len as u64;
    }
    Ok(())
}
