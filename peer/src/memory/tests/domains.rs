//! Tests Protection Domains (section 5.2 of draft-hilland-rddp-verbs).

use weft_core::coverage::{Coverage, CoverageKind};

use super::*;

#[test]
fn domains_come_from_the_rnic_alone_and_have_names_of_their_own() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut memory = Memory::new(MemorySettings { max_pds: 3, ..MemorySettings::default() });
    let pds: Vec<PdId> = (0..3).map(|_| memory.allocate_pd().unwrap()).collect();
    shows! { proof:
        "VERBS-5.2.1-2" => pds[0] != pds[1] && pds[1] != pds[2];
        "VERBS-9.5.1.2-1" => memory.allocate_pd() == Err(MemoryError::InsufficientResources);
    }
    memory.deallocate_pd(pds[1]).unwrap();
    let next = memory.allocate_pd().unwrap();
    shows! { proof:
        "VERBS-5.2.1-3" => !pds.contains(&next);
        "VERBS-5.2.2-1" => {
            let count = |pds: Vec<PdId>| pds.len();
            // A dropped copy of the IDs does not change the domains.
            count(pds.clone()) == 3 && memory.allocate_stag(pds[0], 1, false).is_ok()
        };
        "VERBS-9.5.1.2-4" => memory.deallocate_pd(pds[1]) == Err(MemoryError::InvalidPdId);
        "VERBS-9.2.2.1-3" => memory.allocate_stag(next, 1, false).is_ok();
    }
}

#[test]
fn a_domain_in_use_stays() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut setup = Setup::new();
    let pd = setup.pd;
    let region = setup.region(10);
    let window = setup.memory.allocate_window(pd).unwrap();
    proof.verify(weft_core::requirement!("VERBS-5.2.2-2"), || {
        assert!(setup.memory.deallocate_pd(pd).is_err());
        let another = setup.memory.allocate_window(pd);
        assert!(another.is_ok_and(|window| setup.memory.deallocate_stag(window).is_ok()), "the domain is still there");
    });
    shows! { proof: "VERBS-5.2.2-3" => setup.memory.deallocate_pd(pd) == Err(MemoryError::PdInUse); }
    setup.memory.deallocate_stag(region.index).unwrap();
    shows! { proof: "VERBS-9.2.2.2-3" => setup.memory.deallocate_pd(pd) == Err(MemoryError::PdInUse); }
    setup.memory.deallocate_stag(window).unwrap();
    shows! { proof: "VERBS-9.2.2.2-5" => setup.memory.deallocate_pd(pd) == Ok(()); }
    shows! { proof: "VERBS-5.2.1-5" => setup.memory.allocate_window(pd) == Err(MemoryError::InvalidPdId); }
}

#[test]
fn several_things_share_a_domain() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut setup = Setup::new();
    let (a, b) = (setup.region(10), setup.region(20));
    let windows = [setup.memory.allocate_window(setup.pd).unwrap(), setup.memory.allocate_window(setup.pd).unwrap()];
    let pd = setup.pd;
    shows! { proof:
        "VERBS-5.2-3" => setup.memory.query_region(a.index).unwrap().pd == pd;
        "VERBS-5.2-4" => setup.memory.query_region(b.index).unwrap().pd == pd;
        "VERBS-5.2-5" => setup.memory.query_window(windows[0]).unwrap().pd == pd;
        "VERBS-5.2-6" => setup.memory.query_window(windows[1]).unwrap().pd == pd;
        "VERBS-5.2-7" => setup.memory.allocate_stag(pd, 1, true).is_ok();
        "VERBS-5.2-12" => setup.memory.locate(setup.other_pd_qp, a.to_bits(), VA, 1, Right::LocalRead)
            == Err(AccessError::NotAssociated);
    }
}
