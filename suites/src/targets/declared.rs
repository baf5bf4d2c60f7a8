//! Compares a target file's declarations with the report of its agent's device. It does not decide
//! which of the two is right.
//!
//! Left out are capabilities that no device reports (CRCs, markers, revisions of MPA).

use std::sync::Arc;

use weft_agent::protocol::{Action, Device, Done};

use super::{Live, OpenError, Service, Target};
use crate::model::{Capability, CaseKey, Event};
use crate::stage::Stage;

/// Where the two differ, in words.
pub(crate) fn differences(declared: &[Capability], device: &Device) -> Vec<String> {
    let reported = [(Capability::Atomics, "Atomic Operations", device.atomics)];
    let differ =
        reported.into_iter().filter_map(|(capability, what, has)| match (declared.contains(&capability), has) {
            (true, false) => Some(format!("{capability} is declared, and the device {} has no {what}", device.name)),
            (false, true) => Some(format!("the device {} has {what}, and {capability} is not declared", device.name)),
            _ => None,
        });
    differ.collect()
}

/// The same of a target as it is now. Nothing where it has no agent, or none that answers: cases
/// report that.
pub(crate) async fn differences_of(live: &Live, target: &Target) -> Result<Vec<String>, OpenError> {
    if target.remote().is_none_or(|remote| remote.agent.is_none()) {
        return Ok(Vec::new());
    }
    let target = Arc::new(target.with_service(Service::Agent));
    let reached = live.link(&target)?;
    let mut stage = Stage::new(target.clone(), reached, CaseKey::new("target/device"), Arc::new(|_: &Event| {}));
    let device = stage.agent().perform(Action::Device, None).await;
    stage.leave().await;
    Ok(match device {
        Ok(Done::Device(device)) => differences(target.capabilities(), &device),
        _ => Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_what_only_one_of_them_has() {
        let device = |atomics| Device { name: "siw0".to_owned(), atomics, ..Device::default() };
        let declared = [Capability::Atomics, Capability::Crc];
        assert_eq!(
            differences(&declared, &device(false)),
            ["atomics is declared, and the device siw0 has no Atomic Operations"]
        );
        assert_eq!(
            differences(&[], &device(true)),
            ["the device siw0 has Atomic Operations, and atomics is not declared"]
        );
        assert!(differences(&declared, &device(true)).is_empty() && differences(&[], &device(false)).is_empty());
    }
}
