//! Tests workloads over real TCP. Each test runs both sides of a connection.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

mod bench;
mod cat;
mod endpoint;
mod ping;
mod probe;

use weft_peer::driver::Device;
use weft_peer::driver::cm::{CmSettings, Listener};
use weft_peer::mpa::{EnhancedUse, MpaSettings};
use weft_peer::verbs::{Node, RnicSettings};

fn device() -> Device {
    let (rnic, _) = Node::new(["weft0"]).open("weft0", RnicSettings::default()).unwrap();
    Device::new(rnic)
}

fn settings() -> CmSettings {
    CmSettings {
        mpa: MpaSettings { enhanced: EnhancedUse::Request, ..MpaSettings::default() },
        ..CmSettings::default()
    }
}

fn listener(device: &Device) -> Listener {
    Listener::bind(device, "127.0.0.1:0".parse().unwrap(), settings()).unwrap()
}
