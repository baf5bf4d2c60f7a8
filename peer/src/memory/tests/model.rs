//! Compares random registrations and accesses with a simple model. The model is a list of
//! addresses.

use proptest::prelude::*;

use super::*;

proptest! {
    /// The pages, their order, First Byte Offset and the length are random. Byte n of the region
    /// must be byte n of the list of pages. A write must change only the addressed bytes. An access
    /// beyond the end of the region must be rejected.
    #[test]
    fn a_region_is_its_list_walked(
        pages in proptest::collection::vec(0u64..8, 1..6), fbo in 0u32..4096, cut in 0u64..9000,
        accesses in proptest::collection::vec((0u64..25_000, 0usize..9000), 1..8),
    ) {
        let mut setup = Setup::new();
        let room = pages.len() as u64 * PAGE - u64::from(fbo);
        let length = room.saturating_sub(cut).max(1);
        let entries = pages.iter().map(|page| PhysicalAddress(setup.buffer.address().0 + page * PAGE)).collect();
        let list = PhysicalBufferList { entry_size: 4096, entries, first_byte_offset: fbo, length };
        let stag = setup.memory.register(&Registration { list, ..setup.registration(0, 1) }).unwrap().stag;
        let walk: Vec<usize> = (0..length)
            .map(|n| (pages[((n + u64::from(fbo)) / PAGE) as usize] * PAGE + (n + u64::from(fbo)) % PAGE) as usize)
            .collect();
        let mut model = vec![0u8; setup.buffer.len()];
        for (round, (to, len)) in accesses.into_iter().enumerate() {
            let located = setup.locate(stag, to, len, Right::RemoteWrite);
            prop_assert_eq!(located.is_ok(), len == 0 || to + len as u64 <= length);
            let Ok(place) = located else { continue };
            let octets: Vec<u8> = (0..len).map(|n| (n * 7 + round * 31 + 1) as u8).collect();
            setup.memory.put(place, &octets);
            for (n, octet) in octets.iter().enumerate() {
                model[walk[to as usize + n]] = *octet;
            }
            prop_assert_eq!(setup.memory.buffer(setup.buffer).unwrap(), &model[..]);
            let read: Vec<u8> = setup.memory.slices(place).flatten().copied().collect();
            let expected: Vec<u8> = (0..len).map(|n| model[walk[to as usize + n]]).collect();
            prop_assert_eq!(read, expected);
        }
    }

    /// A random STag gives no access to memory. The only exception is the STag of the region.
    #[test]
    fn arbitrary_names_reach_nothing(stag: u32, to: u64, len in 1usize..100_000) {
        let mut setup = Setup::new();
        let region = setup.region(100);
        prop_assume!(stag != region.to_bits());
        for right in [Right::LocalRead, Right::LocalWrite, Right::RemoteRead, Right::RemoteWrite] {
            prop_assert!(setup.memory.locate(setup.qp, stag, to, len, right).is_err());
        }
    }
}
