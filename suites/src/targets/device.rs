//! Queries the device of a target's agent, and selects the facts that identify the device.

use std::collections::BTreeMap;
use std::sync::Arc;

use weft_agent::protocol::{Action, Device, Success};

use super::{OpenError, OpenTarget, Service, Target};
use crate::model::{CaseKey, Event};
use crate::stage::Stage;

/// Maximum length of a fact in characters.
const MAX_FACT_CHARS: usize = 200;

/// Queries the device of a target's agent. Returns `None` if the target is builtin or has no agent,
/// or if the agent does not answer. Cases report an agent that does not answer.
pub(crate) async fn device_of(live: &OpenTarget, target: &Target) -> Result<Option<Box<Device>>, OpenError> {
    if target.remote().is_none_or(|remote| remote.agent.is_none()) {
        return Ok(None);
    }
    let target = Arc::new(target.with_service(Service::Agent));
    let reached = live.link(&target)?;
    let mut stage = Stage::new(target.clone(), reached, CaseKey::new("target/device"), Arc::new(|_: &Event| {}));
    let device = stage.agent().perform(Action::Device).await;
    stage.leave().await;
    Ok(match device {
        Ok(Success::Device(device)) => Some(device),
        _ => None,
    })
}

/// Returns the facts that identify a device: its name, driver and firmware, and the kernel of its
/// host. Omits facts that the agent does not know.
pub(crate) fn device_facts(device: &Device) -> BTreeMap<String, String> {
    let facts = [
        ("device", Some(&device.name)),
        ("driver", device.driver.as_ref()),
        ("firmware", Some(&device.firmware)),
        ("kernel", device.kernel.as_ref()),
    ];
    let known = facts.into_iter().filter_map(|(name, value)| Some((name, value.filter(|value| !value.is_empty())?)));
    known.map(|(name, value)| (name.to_owned(), value.chars().take(MAX_FACT_CHARS).collect())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_facts_are_omitted() {
        let siw = Device { name: "siw0".to_owned(), kernel: Some("k".repeat(1000)), ..Device::default() };
        let facts: Vec<(String, String)> = device_facts(&siw).into_iter().collect();
        assert_eq!(facts, [("device", "siw0".to_owned()), ("kernel", "k".repeat(200))].map(|(a, b)| (a.to_owned(), b)));
    }
}
