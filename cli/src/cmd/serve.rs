//! `weft serve`: the builtin responder, for others to test against.

use std::net::SocketAddr;
use std::process::ExitCode;

use weft_peer::driver::serve::{Server, ServerSettings};
use weft_peer::{Deviations, Settings};

use crate::exit::BadInput;
use crate::runtime;

/// The command line.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  weft serve                                        a correct responder on 127.0.0.1:7174\n  \
    weft serve --deviate mpa.accepts-wrong-key        one that breaks a rule on purpose\n\n\
    It accepts every MPA Request and sends each Send back. Ctrl-C stops it."
)]
pub(crate) struct Arguments {
    /// Address and port; port 0 takes a free one, which is printed
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7174")]
    listen: SocketAddr,
    /// Break a rule on purpose (may be given several times); `weft deviations` lists the names
    #[arg(long, value_name = "NAME")]
    deviate: Vec<String>,
}

/// Serves until it is interrupted.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let deviations = Deviations::from_names(arguments.deviate.iter().map(String::as_str))
        .map_err(|error| BadInput(error.to_string()))?;
    let connection = Settings { deviations, ..Settings::default() };
    runtime::block_on(async {
        let settings = ServerSettings { connection, ..ServerSettings::default() };
        let server = Server::bind(arguments.listen, settings)
            .map_err(|error| anyhow::anyhow!("cannot listen on {}: {error}", arguments.listen))?;
        println!("listening on {}", server.local_addr());
        let stop = server.stop_handle();
        let interrupted = tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                stop.stop();
            }
        });
        let served = server.run().await;
        interrupted.abort();
        served?;
        Ok(ExitCode::SUCCESS)
    })
}
