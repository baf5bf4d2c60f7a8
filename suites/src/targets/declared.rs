//! Compares the capabilities that a target file declares with those that the agent's device
//! reports. Differences are reported, but not judged: either side may be wrong.
//!
//! CRCs, markers and MPA revisions are not compared, because no device reports them.

use weft_agent::protocol::Device;

use crate::model::Capability;

/// Lists the differences between the declared capabilities and those of the device, one text each.
pub(crate) fn differences(declared: &[Capability], device: &Device) -> Vec<String> {
    let reported = [(Capability::Atomics, "Atomic Operations", device.atomics)];
    let differ =
        reported.into_iter().filter_map(|(capability, what, has)| match (declared.contains(&capability), has) {
            (true, false) => {
                Some(format!("the target file declares {capability}, but the device {} has no {what}", device.name))
            }
            (false, true) => Some(format!(
                "the device {} has {what}, but the target file does not declare {capability}",
                device.name
            )),
            _ => None,
        });
    differ.collect()
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
            ["the target file declares atomics, but the device siw0 has no Atomic Operations"]
        );
        assert_eq!(
            differences(&[], &device(true)),
            ["the device siw0 has Atomic Operations, but the target file does not declare atomics"]
        );
        assert!(differences(&declared, &device(true)).is_empty() && differences(&[], &device(false)).is_empty());
    }
}
