//! Probes a port mapper over UDP. It must map the service that the target file declares as mapped,
//! and must not map the service that the file declares as not mapped.

use std::net::SocketAddr;

use weft_core::wire::portmap::{Message, MessageType};

use super::Observer;
use crate::targets::OpenError;

impl Observer {
    /// Checks the answer for each service that the target file names.
    pub(super) async fn mapper(&mut self) -> Result<(), OpenError> {
        let (mapped, unmapped) = (self.target.description.mapper.mapped, self.target.description.mapper.unmapped);
        self.query("a service that it maps", mapped, true).await?;
        self.query("a service that it does not map", unmapped, false).await?;
        if let Some((_, service)) = self.target.description.mapper.v6 {
            self.query("a service over IPv6", service, true).await?;
        }
        Ok(())
    }

    async fn query(&mut self, what: &'static str, service: SocketAddr, maps: bool) -> Result<(), OpenError> {
        let within = self.answer_time();
        let mut stage = self.stage()?;
        let answer = stage.mapper_server().query(service, within).await;
        stage.leave().await;
        let (works, text) = match answer {
            Err(_) => (false, "was not reached".to_owned()),
            Ok(None) => (false, format!("no answer for {service} within {} s", within.as_secs_f64())),
            Ok(Some(Err(other))) => (false, other),
            Ok(Some(Ok(message))) => text_of(&message, service, maps),
        };
        self.add(what, Some(works), text);
        Ok(())
    }
}

fn text_of(answer: &Message, service: SocketAddr, maps: bool) -> (bool, String) {
    match answer.message_type {
        MessageType::PM_ACCEPT => {
            let address = SocketAddr::new(answer.addresses.accepting(), answer.ap_port);
            let slip = if maps { "" } else { "; set portmap.unmapped to a service that the target does not map" };
            (maps, format!("PMAccept: {service} is at {address}{slip}"))
        }
        MessageType::PM_DENY => {
            let slip = if maps { "; set portmap.service to a service that the target maps" } else { "" };
            (!maps, format!("PMDeny of {service}{slip}"))
        }
        other => (false, format!("{} for {service}", other.name())),
    }
}
