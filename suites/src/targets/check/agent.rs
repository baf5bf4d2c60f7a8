//! Probes the agent of a target: its device, and whether a good exchange through the agent works.

use std::sync::Arc;

use weft_agent::protocol::{Action, Device, Success};

use super::Observer;
use crate::model::CaseKey;
use crate::stage::Stage;
use crate::targets::declared::differences;
use crate::targets::{OpenError, Service};

impl Observer {
    /// Probes the agent, if the target has one.
    pub(super) async fn agent(&mut self) -> Result<(), OpenError> {
        if !self.target.offers(Service::Agent) {
            return Ok(());
        }
        let target = Arc::new(self.target.with_service(Service::Agent));
        let reached = self.live.link(&target)?;
        let mut stage = Stage::new(target, reached, CaseKey::new("target/check"), self.sink.clone());
        let device = stage.agent().perform(Action::Device).await;
        let exchanged = match &device {
            Ok(Success::Device(_)) => Some(stage.good_exchange(Vec::new()).await),
            _ => None,
        };
        stage.leave().await;
        let decision = stage.log().decision.as_ref();
        let why = decision.map(|it| it.actual.clone().unwrap_or_else(|| it.explanation.clone())).unwrap_or_default();
        match &device {
            Ok(Success::Device(device)) => {
                self.add("its agent", Some(true), text_of(device));
                for line in differences(self.target.capabilities(), device) {
                    self.add("device differs", None, line);
                }
            }
            _ => self.add("its agent", Some(false), why.clone()),
        }
        if let Some(exchanged) = exchanged {
            let text = if exchanged.is_ok() { "works".to_owned() } else { why };
            self.add("a good exchange by its agent", Some(exchanged.is_ok()), text);
        }
        Ok(())
    }
}

/// Describes a device in one line, with the properties that cases use.
fn text_of(device: &Device) -> String {
    let Device { name, driver, firmware, max_ird, max_ord, max_shared, max_windows, max_parts, .. } = device;
    let driver = driver.as_deref().unwrap_or("an unknown driver");
    let has = |count: u32, what: &str| if count == 0 { format!("no {what}") } else { what.to_owned() };
    format!(
        "{name} ({driver}, firmware {firmware}): IRD {max_ird}, ORD {max_ord}, \
         {max_parts} parts in a work request, {}, {}",
        has(*max_shared, "shared receive queues"),
        has(*max_windows, "windows")
    )
}
