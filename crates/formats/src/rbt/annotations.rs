//! The keys and values of a sample.

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use super::definitions::Definitions;
use super::event::Varints;
use super::indices::{StringIndex, Undefined};

/// Keys and values, each key once.
pub(super) type Annotations = Vec<(StringIndex, StringIndex)>;

/// Replaces `annotations` by `pairs`. Of two equal keys the later value is kept, at the position of the first.
pub(super) fn replace(
    annotations: &mut Annotations,
    mut pairs: Varints<'_>,
    definitions: &Definitions,
) -> Result<(), Undefined> {
    annotations.clear();
    let mut places = KeyPlaces::default();
    while let (Some(key), Some(value)) = (pairs.next(), pairs.next()) {
        let key = definitions.string_index(key)?;
        let value = definitions.string_index(value)?;
        match places.find(definitions.string(key), annotations, definitions) {
            Some(place) => annotations[place] = (key, value),
            None => annotations.push((key, value)),
        }
    }
    Ok(())
}

/// The positions of an annotation's keys: few keys are searched linearly, many through a map.
#[derive(Default)]
struct KeyPlaces<'a>(HashMap<&'a [u8], usize>);

impl<'a> KeyPlaces<'a> {
    const FEW: usize = 32;

    /// The position of `key` among `annotations`; if there is none, the caller pushes it next.
    fn find(
        &mut self,
        key: &'a [u8],
        annotations: &Annotations,
        definitions: &'a Definitions,
    ) -> Option<usize> {
        if annotations.len() < Self::FEW {
            return annotations.iter().position(|(other, _)| definitions.string(*other) == key);
        }
        if self.0.is_empty() {
            let keys = annotations.iter().map(|(other, _)| definitions.string(*other));
            self.0.extend(keys.zip(0..));
        }
        match self.0.entry(key) {
            Entry::Occupied(place) => Some(*place.get()),
            Entry::Vacant(place) => {
                place.insert(annotations.len());
                None
            }
        }
    }
}
