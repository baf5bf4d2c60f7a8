//! Finds a fault by the endpoints of its segment and by a frame, without a search of all faults.

use std::collections::HashMap;
use std::net::SocketAddr;

use weft_dissector::FrameNumber;

/// Two endpoints. Whether their order matters depends on the index.
pub(crate) type Endpoints = (SocketAddr, SocketAddr);

/// The faults of each pair of endpoints, by their frames. To find a fault among n faults takes time
/// proportional to log n.
#[derive(Debug)]
pub(crate) struct FaultIndex {
    /// The frames of the faults in ascending order. With each frame, the number of the chosen fault
    /// among the faults up to this frame.
    frames: HashMap<Endpoints, Vec<(FrameNumber, u32)>>,
}

impl FaultIndex {
    /// Makes an index. `choose` chooses one of the numbers of two faults.
    pub(crate) fn new(
        faults: impl IntoIterator<Item = (Endpoints, FrameNumber, u32)>,
        choose: impl Fn(u32, u32) -> u32,
    ) -> Self {
        let mut frames: HashMap<Endpoints, Vec<(FrameNumber, u32)>> = HashMap::new();
        for (endpoints, frame, number) in faults {
            frames.entry(endpoints).or_default().push((frame, number));
        }
        for of_pair in frames.values_mut() {
            of_pair.sort_unstable();
            let mut chosen = None;
            for (_, number) in of_pair {
                *number = chosen.map_or(*number, |chosen| choose(chosen, *number));
                chosen = Some(*number);
            }
        }
        FaultIndex { frames }
    }

    /// The number of the chosen fault among the faults with these endpoints in frames before `end`.
    pub(crate) fn before(&self, endpoints: Endpoints, end: FrameNumber) -> Option<u32> {
        let frames = self.frames.get(&endpoints)?;
        let count = frames.partition_point(|(frame, _)| *frame < end);
        Some(frames.get(count.checked_sub(1)?)?.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{A, B};

    #[test]
    fn finds_the_same_fault_as_a_search_of_all() {
        let mut random = fastrand::Rng::with_seed(1);
        let faults: Vec<(Endpoints, FrameNumber, u32)> = (1..=500)
            .map(|number| (if random.bool() { (A, B) } else { (B, A) }, random.u64(1..400).into(), number))
            .collect();
        let [first, last] = [FaultIndex::new(faults.clone(), u32::min), FaultIndex::new(faults.clone(), u32::max)];
        for end in (0..=401).map(FrameNumber::from) {
            for endpoints in [(A, B), (B, A), (A, A)] {
                let is_before = |fault: &&(Endpoints, FrameNumber, u32)| fault.0 == endpoints && fault.1 < end;
                let numbers = || faults.iter().filter(is_before).map(|(_, _, number)| *number);
                assert_eq!(first.before(endpoints, end), numbers().min(), "{end}");
                assert_eq!(last.before(endpoints, end), numbers().max(), "{end}");
            }
        }
    }
}
