//! `weft agent`: executes the requests of testers through the verbs (the programming interface) of
//! this host's RDMA device.
//!
//! A tester is a `weft test` whose target has an agent.

use std::fs::File;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::ExitCode;
use std::time::Instant;

use weft_agent::protocol::{Action, Device, Event, Failure, Success};
use weft_agent::rdma::{Nic, OpenError, OpenOptions};
use weft_agent::serve::Backend;
use weft_agent::soft::SoftAgent;
use weft_agent::{Limits, listen, serve};
use weft_core::text::Visible;
use weft_peer::Settings;

use crate::exit::{self, BadInput, reject};
use crate::{linkage, rnic, signals};

/// The command line.
#[derive(clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "The agent needs libibverbs, librdmacm and an RDMA device. With --soft, it needs no library and no\n\
    device. docs/agent.md describes the requests that testers send.\n\n\
    Examples:\n  \
    weft agent --report                    print the device and its limits\n  \
    weft agent                             serve testers on this host\n  \
    weft agent --listen 192.0.2.17:7471    serve other hosts; set WEFT_AGENT_TOKEN first\n  \
    ssh nic-host weft agent --stdio        serve one tester through ssh\n  \
    weft agent --soft                      use weft's software RNIC instead of a device"
)]
pub(crate) struct Arguments {
    /// Listen for testers on this address
    ///
    /// Addresses other than loopback require --token.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7471")]
    listen: SocketAddr,

    /// Serve one tester on standard input and output, for example through ssh
    #[arg(long, conflicts_with = "listen")]
    stdio: bool,

    /// Use the device with this name or address (default: the first iWARP device)
    #[arg(long, value_name = "NAME|ADDRESS")]
    device: Option<String>,

    /// Use weft's software RNIC over this host's TCP instead of a device
    ///
    /// The software RNIC needs no hardware, no libraries and no privileges.
    #[arg(long, conflicts_with = "device")]
    soft: bool,

    /// Require this token of at least 16 bytes from testers
    ///
    /// `openssl rand -hex 16` prints a random token.
    #[arg(long, value_name = "TOKEN", env = "WEFT_AGENT_TOKEN", hide_env_values = true)]
    token: Option<String>,

    /// Limit the memory that each tester may register
    #[arg(long, value_name = "MIB", default_value_t = 64)]
    memory: u32,

    /// Print the properties of the device and exit
    #[arg(long)]
    report: bool,

    /// With --report: print JSON
    ///
    /// The JSON has the same fields as the agent's answer to the request named `device`.
    #[arg(long, requires = "report")]
    json: bool,
}

/// The minimum length of a token. Sixteen random letters and digits cannot be guessed over a
/// network.
const SHORTEST_TOKEN: usize = 16;

/// Serves testers.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let token = arguments.token.clone().filter(|token| !token.is_empty());
    if !arguments.stdio && !arguments.report && !arguments.listen.ip().is_loopback() && token.is_none() {
        reject!(
            "{} is reachable from other hosts, so the agent needs a token: use --token, or set WEFT_AGENT_TOKEN",
            arguments.listen
        );
    }
    if let Some(token) = &token
        && token.len() < SHORTEST_TOKEN
    {
        reject!(
            "the token has {} bytes, but needs at least {SHORTEST_TOKEN}; for a random token: openssl rand -hex 16",
            token.len()
        );
    }
    let limits = Limits { memory: u64::from(arguments.memory) << 20, ..Limits::default() };
    if arguments.soft {
        let backend = move || SoftAgent::new(Settings::default(), limits).map(Software);
        return with(arguments, token.as_deref(), backend);
    }
    linkage::device()?;
    let opened = OpenOptions { device: arguments.device.clone(), limits };
    let backend = move || Nic::open(opened.clone()).map_err(|why: OpenError| Failure::of(why.to_string()));
    with(arguments, token.as_deref(), backend)
}

/// Serves testers with the device that `open` returns.
fn with<C: Backend>(
    arguments: &Arguments,
    token: Option<&str>,
    open: impl Fn() -> Result<C, Failure> + Send + Sync + 'static,
) -> anyhow::Result<ExitCode> {
    // Report a missing library or device before a tester connects.
    let mut device = open().map_err(|why| BadInput(why.to_string()))?;
    if arguments.report {
        let Success::Device(report) = device.perform(Action::Device)? else {
            anyhow::bail!("the device returned no report")
        };
        let text = if arguments.json { serde_json::to_string_pretty(&report)? + "\n" } else { in_words(&report) };
        write!(Visible(io::stdout().lock()), "{text}")?;
        return Ok(ExitCode::SUCCESS);
    }
    drop(device);
    if arguments.stdio {
        // Read without a buffer, because poll(2) does not report buffered bytes.
        let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        serve::serve(input, io::stdout().lock(), token, Instant::now(), open)?;
        return Ok(ExitCode::SUCCESS);
    }
    let listener =
        TcpListener::bind(arguments.listen).map_err(|error| rnic::cannot_listen(arguments.listen, &error))?;
    // An exit needs no cleanup: the kernel releases the objects that testers did not destroy.
    signals::on_interrupt(|| std::process::exit(0))?;
    exit::note(&format!("listening on {}", listener.local_addr()?));
    let note_testers = |peer: &str, ended: Option<Result<(), serve::ServeError>>| match ended {
        None => exit::note(&format!("{peer} connected")),
        Some(Ok(())) => exit::note(&format!("{peer} disconnected")),
        Some(Err(why)) => exit::note(&format!("the connection of {peer} failed: {why}")),
    };
    Err(listen::listen(&listener, token, open, note_testers).into())
}

/// Executes a tester's requests with the software RNIC in this process.
struct Software(SoftAgent);

impl Backend for Software {
    fn perform(&mut self, action: Action) -> Result<Success, Failure> {
        match action {
            Action::Exit => std::process::abort(),
            action => self.0.perform(action),
        }
    }

    fn events(&mut self) -> Vec<Event> {
        self.0.events()
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.0.descriptors()
    }

    fn write_descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.0.write_descriptors()
    }

    fn deadline(&self) -> Option<Instant> {
        self.0.deadline()
    }
}

/// Describes the device, with one line for each property.
fn in_words(device: &Device) -> String {
    let or = |text: &str, otherwise: &str| if text.is_empty() { otherwise.to_owned() } else { text.to_owned() };
    let ports: Vec<String> =
        device.ports.iter().enumerate().map(|(index, state)| format!("{} {state}", index + 1)).collect();
    let or_none = |most: u32| if most == 0 { "none".to_owned() } else { most.to_string() };
    let capabilities: Vec<String> = device.capabilities.iter().map(|name| name.replace('_', " ")).collect();
    let lines = [
        ("driver", device.driver.clone().unwrap_or_else(|| "not reported by the kernel".to_owned())),
        ("firmware", or(&device.firmware, "unknown")),
        ("kernel", device.kernel.clone().unwrap_or_else(|| "unknown".to_owned())),
        ("vendor, part", format!("{:#06x}, {:#06x}", device.vendor, device.part)),
        ("ports", or(&ports.join(", "), "none")),
        ("Queue Pairs", device.max_queue_pairs.to_string()),
        ("work requests", format!("{} per queue", device.max_work_requests)),
        ("parts", format!("{} per work request, {} per Read", device.max_parts, device.max_read_parts)),
        ("IRD, ORD", format!("{}, {}", device.max_ird, device.max_ord)),
        ("shared queues", or_none(device.max_shared)),
        ("windows", or_none(device.max_windows)),
        ("a region", format!("{} bytes", device.max_region)),
        ("atomics", if device.atomics { "supported" } else { "none" }.to_owned()),
        ("can", or(&capabilities.join(", "), "no optional features")),
    ];
    let lines = lines.iter().map(|(name, value)| format!("  {name:<14} {value}\n"));
    format!("{}\n", device.name) + &lines.collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn describes_a_device() {
        let siw = Device {
            name: "siw0".to_owned(),
            kernel: Some("Linux 6.12.9".to_owned()),
            vendor: 0x62_6d74,
            ports: vec!["active".to_owned()],
            max_region: u64::MAX,
            max_queue_pairs: 102_400,
            max_work_requests: 32_768,
            max_parts: 6,
            max_read_parts: 1,
            max_ird: 128,
            max_ord: 128,
            max_shared: 102_400,
            capabilities: vec!["memory_management_extensions".to_owned()],
            ..Device::default()
        };
        let text = in_words(&siw);
        let expected = "siw0
  driver         not reported by the kernel
  firmware       unknown
  kernel         Linux 6.12.9
  vendor, part   0x626d74, 0x0000
  ports          1 active
  Queue Pairs    102400
  work requests  32768 per queue
  parts          6 per work request, 1 per Read
  IRD, ORD       128, 128
  shared queues  102400
  windows        none
  a region       18446744073709551615 bytes
  atomics        none
  can            memory management extensions
";
        assert_eq!(text, expected);
    }
}
