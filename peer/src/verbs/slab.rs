//! A table of objects. The key of a removed object never refers to a later object at the same
//! index.

/// Identifies an object in a [`Slab`]: its index, and a generation that changes with each removal
/// at that index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    index: u32,
    generation: u32,
}

#[derive(Debug)]
pub(super) struct Slab<T> {
    slots: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
    limit: usize,
}

impl<T> Slab<T> {
    /// Creates an empty table for at most `limit` objects.
    pub(super) fn new(limit: usize) -> Self {
        Slab { slots: Vec::new(), free: Vec::new(), limit }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Adds an object. Returns `None` if the table is full.
    pub(super) fn insert(&mut self, object: T) -> Option<Key> {
        if self.len() >= self.limit {
            return None;
        }
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.slots.push((0, None));
                u32::try_from(self.slots.len() - 1).ok()?
            }
        };
        let slot = &mut self.slots[index as usize];
        slot.1 = Some(object);
        Some(Key { index, generation: slot.0 })
    }

    pub(super) fn get(&self, key: Key) -> Option<&T> {
        self.slots.get(key.index as usize).filter(|slot| slot.0 == key.generation)?.1.as_ref()
    }

    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.slots.get_mut(key.index as usize).filter(|slot| slot.0 == key.generation)?.1.as_mut()
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<T> {
        let slot = self.slots.get_mut(key.index as usize).filter(|slot| slot.0 == key.generation)?;
        let object = slot.1.take()?;
        slot.0 = slot.0.wrapping_add(1);
        self.free.push(key.index);
        Some(object)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(|slot| slot.1.as_mut())
    }

    pub(super) fn keys(&self) -> Vec<Key> {
        let key = |(index, (generation, object)): (usize, &(u32, Option<T>))| {
            object.as_ref()?;
            Some(Key { index: u32::try_from(index).ok()?, generation: *generation })
        };
        self.slots.iter().enumerate().filter_map(key).collect()
    }

    pub(super) fn clear(&mut self) {
        for key in self.keys() {
            self.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_outlives_its_object_without_harm() {
        let mut slab = Slab::new(2);
        let first = slab.insert('a').unwrap();
        assert_eq!(slab.remove(first), Some('a'));
        let second = slab.insert('b').unwrap();
        assert_ne!(first, second);
        assert_eq!(slab.remove(first), None);
        assert_eq!((slab.get(first), slab.get(second)), (None, Some(&'b')));
        slab.insert('c').unwrap();
        assert_eq!((slab.insert('d'), slab.len()), (None, 2));
        slab.clear();
        assert_eq!((slab.len(), slab.get(second)), (0, None));
    }
}
