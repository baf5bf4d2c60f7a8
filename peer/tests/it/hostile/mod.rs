//! Tests the hostile endpoint, which commits deviations: named faults with a description. Each
//! deviation matches its description, and the correct endpoint does not deviate.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

mod fpdus;
mod reported;
mod segments;
mod set_up;
mod start_up;

use std::collections::{BTreeMap, BTreeSet};

use weft_core::error::Layer;
use weft_core::requirement::Observe;
use weft_peer::{Deviations, hostile};

use crate::connection::machine;
use crate::mpa::wire;

/// A deviation's name, and whether an endpoint with these deviations behaves as the description
/// states.
type Check = (&'static str, fn(&Deviations) -> bool);

#[test]
fn each_deviation_matches_its_description() {
    let lists = [fpdus::CHECKS, segments::CHECKS, set_up::CHECKS, start_up::CHECKS, reported::CHECKS];
    let checks: Vec<&Check> = lists.into_iter().flatten().collect();
    // This test checks only the deviations of MPA. The deviations of DDP and RDMAP need an RNIC on
    // both sides, so `cli/tests/captures/hostile` checks them.
    let mpa = hostile::all().filter(|deviation| deviation.layer == Layer::Mpa);
    let mut wanting: BTreeMap<&str, ()> = mpa.map(|deviation| (deviation.name, ())).collect();
    let mut wrong = Vec::new();
    for (name, does) in checks {
        let deviation = hostile::by_name(name).unwrap();
        if does(&Deviations::NONE) {
            wrong.push(format!("the correct endpoint does {name}"));
        }
        if !does(&Deviations::from(deviation)) {
            wrong.push(format!("{name} has no effect: {}", deviation.description));
        }
        assert!(wanting.remove(name).is_some(), "{name} twice");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(wanting.is_empty(), "deviations without a check: {wanting:?}");
}

/// A row is one requirement of the six catalogues (MPA, P2P, DDP, RDMAP, PM and SDP). If a tester
/// can observe that an endpoint violates a row, there are two possibilities. Either a deviation
/// violates the row, or the list `rows-without-deviation.csv` has the row and the reason.
#[test]
fn each_row_has_a_deviation_or_a_reason() {
    let list = include_str!("../data/rows-without-deviation.csv");
    let listed: Vec<&str> = list.lines().skip(1).filter_map(|line| line.split_once(',')).map(|(id, _)| id).collect();
    let broken: BTreeSet<String> =
        hostile::all().flat_map(|deviation| deviation.breaks).map(ToString::to_string).collect();
    let (mut rows, mut unknown, mut both_or_neither) = (0, listed.clone(), Vec::new());
    for (id, row) in weft_core::requirement::all() {
        let id = id.as_str().to_owned();
        if !["MPA-", "P2P-", "DDP-", "RDMAP-", "PM-", "SDP-"].iter().any(|catalogue| id.starts_with(catalogue))
            || !matches!(row.observe, Observe::Wire | Observe::Reaction)
        {
            continue;
        }
        rows += 1;
        unknown.retain(|listed| *listed != id);
        if broken.contains(&id) == listed.contains(&id.as_str()) {
            both_or_neither.push(id);
        }
    }
    assert!(both_or_neither.is_empty(), "rows with a deviation and a reason, or with neither: {both_or_neither:?}");
    assert!(unknown.is_empty(), "no such rows: {unknown:?}");
    println!("{} deviations; {} of {rows} rows, {} listed", hostile::all().count(), rows - listed.len(), listed.len());
}

/// An endpoint that commits two deviations does not panic, either as Initiator or as Responder. The
/// test combines every pair of deviations of MPA, and one in 16 of the other pairs.
#[test]
fn deviations_can_be_combined() {
    // The deviations of SDP and its port mapper do not concern an iWARP connection.
    let of_iwarp = |layer| !matches!(layer, Layer::Sdp | Layer::SdpPm);
    let all: Vec<_> = hostile::all().filter(|deviation| of_iwarp(deviation.layer)).collect();
    for (at, one) in all.iter().enumerate() {
        for (number, other) in all.iter().enumerate().skip(at) {
            if (one.layer != Layer::Mpa || other.layer != Layer::Mpa) && (at + number) % 16 != 0 {
                continue;
            }
            let deviations = Deviations::from_names([one.name, other.name]).unwrap();
            let settings = |markers| {
                let mut settings = machine::mpa(|mpa| {
                    mpa.markers = markers;
                    mpa.enhanced = weft_peer::mpa::EnhancedUse::Request;
                    mpa.enhanced_settings.model = weft_peer::mpa::Model::PeerToPeer;
                });
                settings.deviations = deviations.clone();
                settings
            };
            let mut wire = wire::Wire::new(settings(true), settings(false));
            wire.run();
            for machine in [&mut wire.initiator, &mut wire.responder] {
                // The receive is rejected if no connection was established.
                let _ = machine.connection.post_receive(3000);
                let _ = machine.connection.post_send(vec![1; 3000]);
            }
            wire.run();
            wire.initiator.close();
            wire.responder.close();
            wire.run();
            for machine in [&mut wire.initiator, &mut wire.responder] {
                machine.pass(std::time::Duration::from_secs(200));
                assert!(machine.sent.len() < 200, "{} with {}", one.name, other.name);
            }
        }
    }
}
