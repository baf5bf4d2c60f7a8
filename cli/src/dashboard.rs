//! Messages about the dashboard's start and stop.

use std::net::SocketAddr;

use weft_web::WebError;

use crate::exit::{BadInput, print_line};
use crate::rnic;

/// Prints the address of the pages.
pub(crate) fn announce(address: SocketAddr) {
    print_line!("dashboard: http://{address}/");
}

/// Turns an error of the dashboard into an error of the command. Errors that the user can fix
/// become usage errors.
pub(crate) fn explain(error: WebError) -> anyhow::Error {
    match error {
        WebError::NotLoopback(_) | WebError::TargetName(_) | WebError::Schedule(_) => {
            BadInput(error.to_string()).into()
        }
        WebError::Listen { address, error } => rnic::cannot_listen(address, &error).into(),
        WebError::Store(error) => error.into(),
        WebError::Random(_) => error.into(),
    }
}
