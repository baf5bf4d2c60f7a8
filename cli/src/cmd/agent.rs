//! `weft agent`: a NIC's own verbs, for a tester on another host.

use std::fs::File;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use weft_agent::protocol::{Action, Done, Failure};
use weft_agent::rdma::{Nic, NoDevice, Opened};
use weft_agent::{listen, serve};

use crate::exit::{self, BadInput};

/// The command line.
#[derive(clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "What it is told to do, and by what lines, stands in docs/agent.md. It needs libibverbs and librdmacm, and a device.\n\n\
    Examples:\n  weft agent --report                              which device is it, and what does it hold?\n  \
    weft agent                                       for testers on this host\n  \
    weft agent --listen 192.0.2.17:7471              for others: WEFT_AGENT_TOKEN has to be set\n  \
    ssh nic-host weft agent --stdio                  the lines go through ssh"
)]
pub(crate) struct Arguments {
    /// Where testers come to. Beyond loopback they need a token
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7471")]
    listen: SocketAddr,

    /// One tester, on standard input and output
    #[arg(long, conflicts_with = "listen")]
    stdio: bool,

    /// By its name or an address that it has (default: the first that speaks iWARP)
    #[arg(long, value_name = "NAME|ADDRESS")]
    device: Option<String>,

    /// What testers have to know
    #[arg(long, value_name = "TOKEN", env = "WEFT_AGENT_TOKEN", hide_env_values = true)]
    token: Option<String>,

    /// MiB that one tester may register
    #[arg(long, value_name = "MIB", default_value_t = 64)]
    memory: u32,

    /// Prints what is known of the device as JSON, and ends
    #[arg(long)]
    report: bool,
}

/// Objects of one tester.
const OBJECTS: usize = 1024;

/// Serves testers.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let token = arguments.token.clone().filter(|token| !token.is_empty());
    if !arguments.stdio && !arguments.report && !arguments.listen.ip().is_loopback() && token.is_none() {
        let why = format!("{} is not of this host alone: say --token, or set WEFT_AGENT_TOKEN", arguments.listen);
        return Err(BadInput(why).into());
    }
    let opened =
        Opened { device: arguments.device.clone(), memory: u64::from(arguments.memory) << 20, objects: OBJECTS };
    // Whatever is missing is told before anybody comes.
    let mut device = Nic::open(opened.clone()).map_err(|why| BadInput(why.to_string()))?;
    if arguments.report {
        let Done::Device(report) = device.perform(Action::Device)? else { anyhow::bail!("the device tells nothing") };
        writeln!(io::stdout().lock(), "{}", serde_json::to_string_pretty(&report)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    drop(device);
    let carrier = move || Nic::open(opened.clone()).map_err(|why: NoDevice| Failure::of(why.to_string()));
    if arguments.stdio {
        // Not through a buffer, whose octets poll(2) does not see.
        let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        serve::serve(input, io::stdout().lock(), token.as_deref(), Instant::now(), carrier)?;
        return Ok(ExitCode::SUCCESS);
    }
    let listener =
        TcpListener::bind(arguments.listen).with_context(|| format!("cannot listen on {}", arguments.listen))?;
    exit::note(&format!("listening on {}", listener.local_addr()?));
    let told = |peer: &str, ended: Option<Result<(), serve::Ended>>| match ended {
        None => exit::note(&format!("{peer} is there")),
        Some(Ok(())) => exit::note(&format!("{peer} has gone")),
        Some(Err(why)) => exit::note(&format!("{peer}: {why}")),
    };
    Err(listen::listen(&listener, token.as_deref(), carrier, told).into())
}
