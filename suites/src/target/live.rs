//! A target while a run lasts.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use weft_peer::Settings;
use weft_peer::driver::serve::{Server, ServerSettings, StopHandle};
use weft_peer::driver::{Link, TcpLink, VirtualLink};

use super::{Target, TargetKind};

/// Seconds that a connection attempt may take.
const CONNECT_SECONDS: f64 = 5.0;

/// Why a target is not there.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Its address means nothing.
    #[error("target unreachable: {address}: {}", unresolved(.error))]
    Resolve {
        /// As the target file has it.
        address: String,
        /// Why.
        error: std::io::Error,
    },
    /// The builtin responder does not start.
    #[error("the builtin responder does not start: {0}")]
    Builtin(std::io::Error),
}

/// The resolver's own words, without those of the library in front of them.
fn unresolved(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.rsplit_once("lookup address information: ").map_or(text.clone(), |(_, why)| why.to_owned())
}

/// A target that can be connected to.
pub struct Live {
    reach: Reach,
    connect_timeout: Duration,
    server: Option<StopHandle>,
}

enum Reach {
    Virtual(Settings),
    Tcp(SocketAddr),
}

impl Live {
    /// Starts a builtin target; resolves the address of any other. Nothing is sent to it.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn open(target: &Target) -> Result<Self, OpenError> {
        let settings = Settings { deviations: target.deviations.clone(), ..Settings::default() };
        let mut stop = None;
        let reach = match target.kind {
            TargetKind::Builtin => Reach::Virtual(settings),
            TargetKind::BuiltinTcp => {
                let settings = ServerSettings { connection: settings, ..ServerSettings::default() };
                let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
                let server = Server::bind(loopback, settings).map_err(OpenError::Builtin)?;
                stop = Some(server.stop_handle());
                let address = server.local_addr();
                tokio::spawn(async move {
                    if let Err(error) = server.run().await {
                        tracing::warn!(%error, "the builtin responder ended");
                    }
                });
                Reach::Tcp(address)
            }
            TargetKind::Tcp => Reach::Tcp(resolve(target.address.as_deref().unwrap_or_default()).await?),
        };
        Ok(Live { reach, connect_timeout: target.scaled(CONNECT_SECONDS), server: stop })
    }

    /// Time costs nothing on its links, and cases do not disturb each other.
    pub(crate) fn is_virtual(&self) -> bool {
        matches!(self.reach, Reach::Virtual(_))
    }

    /// A link of its own for one case; its clock begins now.
    #[must_use]
    pub fn link(&self) -> Link {
        match &self.reach {
            Reach::Virtual(settings) => Link::Virtual(VirtualLink::echo(settings.clone())),
            Reach::Tcp(address) => Link::Tcp(TcpLink::new(*address).with_connect_timeout(self.connect_timeout)),
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(server) = &self.server {
            server.stop();
        }
    }
}

async fn resolve(address: &str) -> Result<SocketAddr, OpenError> {
    let failed = |error| OpenError::Resolve { address: address.to_owned(), error };
    let mut found = tokio::net::lookup_host(address).await.map_err(failed)?;
    found.next().ok_or_else(|| failed(std::io::Error::other("the name has no address")))
}
