//! Which cases of a plan apply to a target.

use std::collections::BTreeMap;

use super::Plan;
use crate::model::skip::{Remedy, remedy};
use crate::model::{Capability, CaseInfo, skip};
use crate::stage::service::Protocol;
use crate::targets::{Service, Target};

/// What a run of a plan tests on a target, and what it does not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Forecast {
    /// Number of cases that apply to the target.
    pub cases: u64,
    /// Number of variants of these cases.
    pub variants: u64,
    /// The reasons why other cases do not apply, each with the number of variants. The reason with
    /// the most variants is first.
    pub not_applicable: Vec<(String, u64)>,
    /// Number of variants for another kind of target: another role, or another protocol. The list
    /// `not_applicable` does not have them.
    pub for_others: u64,
}

impl Plan {
    /// Returns which cases of the plan apply to the target.
    #[must_use]
    pub fn forecast(&self, target: &Target) -> Forecast {
        let mut variants: BTreeMap<&str, u64> = BTreeMap::new();
        for key in &self.keys {
            *variants.entry(key.case.as_str()).or_default() += 1;
        }
        let mut forecast = Forecast::default();
        let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
        for case in &self.cases {
            let count = variants.get(case.id.as_str()).copied().unwrap_or_default();
            match not_applicable(target, case) {
                Some(why) => *reasons.entry(why).or_default() += count,
                None => {
                    forecast.cases += 1;
                    forecast.variants += count;
                }
            }
        }
        let is_for_others = |why: &str| remedy(why, target.service().as_str()) == Remedy::OtherTarget;
        let (others, own): (Vec<_>, Vec<_>) = reasons.into_iter().partition(|(why, _)| is_for_others(why));
        forecast.for_others = others.iter().map(|(_, count)| count).sum();
        forecast.not_applicable = own;
        forecast.not_applicable.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        forecast
    }
}

/// Returns the reason why a case cannot judge the target, if there is one.
pub(super) fn not_applicable(target: &Target, case: &CaseInfo) -> Option<String> {
    if !case.roles.iter().any(|role| target.role().plays(*role)) {
        return Some(skip::of_role(target.role(), &case.roles));
    }
    let of_sdp = case.capabilities.iter().any(|capability| capability.is_of_sdp());
    let service = target.service();
    if !of_sdp && service.driver().facts().protocol != Protocol::Iwarp {
        return Some(skip::of_service(service.as_str()));
    }
    let has = |capability: &Capability| match capability {
        Capability::PortMapperV6 => target.offers(Service::PortMapper) && target.maps_v6(),
        Capability::PmConnect => target.connects(),
        Capability::Sdp => service.driver().facts().accepts_sdp || target.offers(Service::SdpEcho),
        Capability::Operation => service.driver().facts().operates,
        Capability::Segments => target.segments_advice().is_none(),
        other => match Service::of_capability(*other) {
            Some(service) => target.offers(service),
            None => target.capabilities().contains(other),
        },
    };
    let missing = case.capabilities.iter().find(|capability| !has(capability))?;
    Some(skip::of_capability(*missing, target.segments_advice().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Filter;
    use crate::script::Suites;

    #[test]
    fn a_forecast_counts_each_variant_once() {
        let suites = Suites::embedded().unwrap();
        let plan = Plan::of(&suites, &Filter::everything(), 7);
        let forecast = |text: &str| {
            let text = format!("name = \"t\"\nkind = \"tcp\"\naddress = \"192.0.2.7:7174\"\n{text}");
            let forecast = plan.forecast(&Target::from_toml("t.toml", &text).unwrap());
            let skipped: u64 = forecast.not_applicable.iter().map(|(_, count)| count).sum();
            assert_eq!(forecast.variants + skipped + forecast.for_others, plan.keys.len() as u64);
            assert!(forecast.not_applicable.is_sorted_by(|(_, one), (_, other)| one >= other));
            forecast
        };
        let (bare, echo) = (forecast(""), forecast("service = \"echo\"\ncapabilities = [\"crc\", \"revision-1\"]"));
        assert!(0 < bare.cases && bare.cases < echo.cases && bare.variants < echo.variants);
        let has = |forecast: &Forecast, why: &str| forecast.not_applicable.iter().any(|(reason, _)| reason == why);
        let undeclared = "The target does not declare the capability crc.";
        assert!(has(&bare, undeclared) && !has(&echo, undeclared));
    }
}
