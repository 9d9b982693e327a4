//! The document, read from JSON as a stream.
//!
//! Stacks are shared as they are read: a sample is the number of a node in a tree of frames. Memory is proportional to
//! the document, and much smaller if stacks repeat.

use std::fmt;

use borehole_memory::HeldBytes as _;
use hashbrown::HashMap;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::layout::{Unit, WeightMeaning};
use crate::documents::json::JsonMemory;

/// A frame.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct SharedFrame {
    pub(super) name: String,
    pub(super) file: Option<String>,
    pub(super) line: Option<JsonNumber>,
    pub(super) col: Option<JsonNumber>,
}

/// A number, kept as an integer if it is written as one: times since 1970 in nanoseconds do not fit a float.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum JsonNumber {
    Whole(i64),
    Float(f64),
}

/// The exporter's additions to a profile, described in `docs/formats/speedscope.md`.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ProfileExtras {
    pub(super) weights: WeightMeaning,
    pub(super) process: Option<i64>,
    pub(super) thread: Option<u64>,
    pub(super) interpreter: Option<u64>,
    pub(super) thread_name: Option<String>,
    pub(super) mode: Option<String>,
    pub(super) period_ns: Option<u64>,
    pub(super) start_unix_ns: Option<i64>,
    pub(super) value_type: Option<(String, String)>,
    pub(super) uncounted: Option<bool>,
    #[serde(default)]
    pub(super) timed: bool,
    #[serde(default)]
    pub(super) named: bool,
    pub(super) counts: Option<Vec<u64>>,
    pub(super) late: Option<Vec<i64>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ProfileType {
    #[default]
    Sampled,
    Evented,
}

#[derive(Clone, Copy, Debug, Deserialize)]
enum EventKind {
    O,
    C,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct ProfileEvent {
    #[serde(rename = "type")]
    kind: EventKind,
    frame: u32,
    at: JsonNumber,
}

/// A profile. Events are already converted to entries: one for each interval between two of them.
#[derive(Clone, Debug, Default)]
pub(super) struct ParsedProfile {
    /// The index of the profile in the document, 0-based.
    pub(super) index: u64,
    pub(super) kind: ProfileType,
    pub(super) name: String,
    pub(super) unit: Unit,
    /// A unit unknown to the format.
    pub(super) other_unit: Option<String>,
    pub(super) start: Option<JsonNumber>,
    pub(super) end: Option<JsonNumber>,
    /// The times of the first and last event.
    pub(super) first_event: Option<JsonNumber>,
    pub(super) last_event: Option<JsonNumber>,
    /// The stack open after the last event: the node, and the number of its frames.
    pub(super) open_node: u32,
    pub(super) open_frames: usize,
    /// The node of each entry.
    pub(super) samples: Vec<u32>,
    /// The weight of each entry; for events, the end of its interval, so that rounding errors do not add up.
    pub(super) weights: Vec<JsonNumber>,
    pub(super) own: Option<Box<ProfileExtras>>,
}

impl ParsedProfile {
    /// Whether it is empty. Millions of such profiles would cost more than the document.
    fn is_blank(&self) -> bool {
        self.name.is_empty()
            && self.samples.is_empty()
            && self.weights.is_empty()
            && self.last_event.is_none()
    }
}

/// The part of a document read so far. It can be used after an error: it then ends at the error.
#[derive(Debug, Default)]
pub(super) struct ParsedDocument {
    pub(super) frames: Option<Vec<SharedFrame>>,
    /// The non-empty profiles.
    pub(super) profiles: Vec<ParsedProfile>,
    /// The number of all profiles, including the empty ones.
    pub(super) profile_count: u64,
    pub(super) nodes: Nodes,
    pub(super) oddities: Oddities,
}

/// The faults of a document after which reading can continue.
#[derive(Debug, Default)]
pub(super) struct Oddities {
    /// Whether to continue after them.
    pub(super) is_lenient: bool,
    pub(super) messages: Vec<String>,
    pub(super) more: u64,
}

impl Oddities {
    /// The maximum number kept in full.
    const MOST: usize = 1000;

    fn meet<E: Error>(&mut self, error: E) -> Result<(), E> {
        if !self.is_lenient {
            return Err(error);
        }
        if self.messages.len() < Self::MOST {
            self.messages.push(error.to_string());
        } else {
            self.more = self.more.saturating_add(1);
        }
        Ok(())
    }
}

/// A tree of frame numbers. Node 0 is the empty stack; a parent comes before its children.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    /// Parent and frame of each node except the first.
    rows: Vec<(u32, u32)>,
    index: HashMap<(u32, u32), u32>,
}

impl Nodes {
    /// Parent and frame of each node, from node 1 on.
    pub(super) fn rows(&self) -> &[(u32, u32)] {
        &self.rows
    }

    fn held_bytes(&self) -> usize {
        self.rows.held_bytes() + self.index.allocation_size()
    }

    fn child<E: Error>(&mut self, parent: u32, frame: u32) -> Result<u32, E> {
        if let Some(&node) = self.index.get(&(parent, frame)) {
            return Ok(node);
        }
        self.rows.push((parent, frame));
        let node = u32::try_from(self.rows.len())
            .map_err(|_| E::custom(format_args!("too many stacks: expected at most {}", u32::MAX)))?;
        self.index.insert((parent, frame), node);
        Ok(node)
    }
}

impl<'de> Deserialize<'de> for JsonNumber {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberVisitor;
        impl Visitor<'_> for NumberVisitor {
            type Value = JsonNumber;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }

            fn visit_i64<E>(self, value: i64) -> Result<JsonNumber, E> {
                Ok(JsonNumber::Whole(value))
            }

            fn visit_u64<E>(self, value: u64) -> Result<JsonNumber, E> {
                // Only sums get that large, and no calculation uses them.
                #[expect(clippy::cast_precision_loss, reason = "the nearest float will do")]
                Ok(i64::try_from(value).map_or(JsonNumber::Float(value as f64), JsonNumber::Whole))
            }

            fn visit_f64<E>(self, value: f64) -> Result<JsonNumber, E> {
                Ok(JsonNumber::Float(value))
            }
        }
        deserializer.deserialize_any(NumberVisitor)
    }
}

impl fmt::Display for JsonNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
        }
    }
}

impl JsonNumber {
    #[expect(clippy::cast_precision_loss, reason = "a float is what the caller asks for")]
    pub(super) const fn float(self) -> f64 {
        match self {
            Self::Whole(value) => value as f64,
            Self::Float(value) => value,
        }
    }

    /// The number times `factor`, rounded; saturates.
    #[expect(clippy::cast_possible_truncation, reason = "a float that is too large saturates")]
    pub(super) fn scaled(self, factor: i64) -> i64 {
        match self {
            Self::Whole(value) => value.saturating_mul(factor),
            Self::Float(_) => (self.float() * Self::Whole(factor).float()).round() as i64,
        }
    }

    /// Whether it has no fraction.
    pub(super) fn is_whole(self) -> bool {
        self.float().fract() == 0.0
    }

    /// `self` − `earlier`.
    pub(super) fn since(self, earlier: Self) -> Self {
        match (self, earlier) {
            (Self::Whole(later), Self::Whole(earlier)) => Self::Whole(later.saturating_sub(earlier)),
            _ => Self::Float(self.float() - earlier.float()),
        }
    }
}

/// Deserializes a document into the part read so far.
pub(super) struct DocumentSeed<'a> {
    pub(super) document: &'a mut ParsedDocument,
    pub(super) memory: &'a JsonMemory,
}

impl<'de> DeserializeSeed<'de> for DocumentSeed<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for DocumentSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a speedscope document")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { document, memory } = self;
        let mut has_profiles = false;
        while let Some(key) = map.next_key::<String>()? {
            match &*key {
                "shared" => document.frames = Some(map.next_value_seed(SharedSeed(memory))?),
                "profiles" => {
                    has_profiles = true;
                    map.next_value_seed(Each(Profiles(&mut *document, memory)))?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        if has_profiles { Ok(()) } else { Err(A::Error::missing_field("profiles")) }
    }
}

/// Deserializes the frames of the object `shared`.
struct SharedSeed<'a>(&'a JsonMemory);

impl<'de> DeserializeSeed<'de> for SharedSeed<'_> {
    type Value = Vec<SharedFrame>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Vec<SharedFrame>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for SharedSeed<'_> {
    type Value = Vec<SharedFrame>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("struct Shared")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<SharedFrame>, A::Error> {
        let mut frames = None;
        while let Some(key) = map.next_key::<String>()? {
            if key == "frames" {
                let elements = FrameElements { memory: self.0, into: Vec::new() };
                frames = Some(map.next_value_seed(Each(elements))?.into);
            } else {
                let IgnoredAny = map.next_value()?;
            }
        }
        frames.ok_or_else(|| A::Error::missing_field("frames"))
    }
}

struct FrameElements<'a> {
    memory: &'a JsonMemory,
    into: Vec<SharedFrame>,
}

impl ArrayElements for FrameElements<'_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, array: &mut A) -> Result<bool, A::Error> {
        let Some(frame) = array.next_element::<SharedFrame>()? else { return Ok(false) };
        let texts = frame.name.held_bytes() + frame.file.as_ref().map_or(0, String::held_bytes);
        self.memory.add(texts + 2 * size_of::<SharedFrame>());
        self.into.push(frame);
        Ok(true)
    }
}

/// Handles the elements of an array one by one.
trait ArrayElements {
    /// Reads the next element; false at the end.
    fn element<'de, A: SeqAccess<'de>>(&mut self, array: &mut A) -> Result<bool, A::Error>;
}

/// An array whose elements are handled without being collected.
struct Each<T>(T);

impl<'de, T: ArrayElements> DeserializeSeed<'de> for Each<T> {
    type Value = T;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: ArrayElements> Visitor<'de> for Each<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut array: A) -> Result<T, A::Error> {
        while self.0.element(&mut array)? {}
        Ok(self.0)
    }
}

struct Profiles<'a>(&'a mut ParsedDocument, &'a JsonMemory);

impl ArrayElements for Profiles<'_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, array: &mut A) -> Result<bool, A::Error> {
        self.1.add(size_of::<ParsedProfile>());
        Ok(array.next_element_seed(ProfileSeed(self.0, self.1))?.is_some())
    }
}

struct ProfileSeed<'a>(&'a mut ParsedDocument, &'a JsonMemory);

impl<'de> DeserializeSeed<'de> for ProfileSeed<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ProfileSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a profile")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let ParsedDocument { frames, profiles, profile_count, nodes, oddities } = self.0;
        let frame_count = frames.as_ref().map(Vec::len);
        // Stored in place from the start, so that the part read before an error is kept.
        profiles.push(ParsedProfile { index: *profile_count, ..ParsedProfile::default() });
        *profile_count += 1;
        let profile = profiles.last_mut().expect("one was just pushed");
        let mut tree = Tree { nodes, frame_count, memory: self.1 };
        while let Some(key) = map.next_key::<String>()? {
            match &*key {
                "type" => profile.kind = map.next_value()?,
                "name" => profile.name = map.next_value()?,
                "unit" => map.next_value_seed(UnitSeed(profile))?,
                "startValue" => profile.start = Some(map.next_value()?),
                "endValue" => profile.end = Some(map.next_value()?),
                "borehole" => profile.own = Some(map.next_value()?),
                "weights" => {
                    map.next_value_seed(Each(WeightElements(&mut profile.weights, self.1)))?;
                }
                "samples" => {
                    let samples = SampleElements { tree: &mut tree, into: &mut profile.samples };
                    map.next_value_seed(Each(samples))?;
                }
                "events" => {
                    drop(map.next_value_seed(Each(EventElements::new(&mut tree, profile, oddities)))?);
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        if profile.is_blank() {
            profiles.pop();
        }
        Ok(())
    }
}

/// Deserializes a unit of the format, or another one.
struct UnitSeed<'a>(&'a mut ParsedProfile);

impl<'de> DeserializeSeed<'de> for UnitSeed<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for UnitSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a unit")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<(), E> {
        match Unit::named(name) {
            Some(unit) => self.0.unit = unit,
            None => self.0.other_unit = Some(name.to_owned()),
        }
        Ok(())
    }
}

struct WeightElements<'a>(&'a mut Vec<JsonNumber>, &'a JsonMemory);

impl ArrayElements for WeightElements<'_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, array: &mut A) -> Result<bool, A::Error> {
        let number: Option<JsonNumber> = array.next_element()?;
        if let Some(number) = number {
            push(self.0, number, self.1);
        }
        Ok(number.is_some())
    }
}

/// Appends to a column, and counts its memory as it grows.
fn push<T>(column: &mut Vec<T>, value: T, memory: &JsonMemory) {
    let before = column.held_bytes();
    column.push(value);
    memory.add(column.held_bytes() - before);
}

/// The nodes, and the number of frames if it is known already.
struct Tree<'a> {
    memory: &'a JsonMemory,
    nodes: &'a mut Nodes,
    frame_count: Option<usize>,
}

impl Tree<'_> {
    fn child<E: Error>(&mut self, parent: u32, frame: u32) -> Result<u32, E> {
        match self.frame_count {
            Some(count) if frame as usize >= count => Err(no_frame(frame, count)),
            _ => {
                let before = self.nodes.held_bytes();
                let child = self.nodes.child(parent, frame)?;
                self.memory.add(self.nodes.held_bytes() - before);
                Ok(child)
            }
        }
    }
}

fn no_frame<E: Error>(frame: u32, count: usize) -> E {
    E::custom(format_args!("expected a frame below {count}, found {frame}"))
}

struct SampleElements<'a, 't> {
    tree: &'a mut Tree<'t>,
    into: &'a mut Vec<u32>,
}

impl ArrayElements for SampleElements<'_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, array: &mut A) -> Result<bool, A::Error> {
        let stack = array.next_element_seed(Each(StackElements { tree: &mut *self.tree, node: 0 }))?;
        let Some(StackElements { node, .. }) = stack else { return Ok(false) };
        push(self.into, node, self.tree.memory);
        Ok(true)
    }
}

/// The frames of a sample, root first.
struct StackElements<'a, 't> {
    tree: &'a mut Tree<'t>,
    node: u32,
}

impl ArrayElements for StackElements<'_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, array: &mut A) -> Result<bool, A::Error> {
        let Some(frame) = array.next_element()? else { return Ok(false) };
        self.node = self.tree.child(self.node, frame)?;
        Ok(true)
    }
}

/// Opening and closing events, converted to intervals of one stack each.
struct EventElements<'a, 't> {
    tree: &'a mut Tree<'t>,
    profile: &'a mut ParsedProfile,
    oddities: &'a mut Oddities,
    /// The open frames, root first, each with the node below it.
    open: Vec<(u32, u32)>,
}

impl<'a, 't> EventElements<'a, 't> {
    /// The number of open frames searched for one that is closed out of turn.
    const LOOKED_AT: usize = 1024;

    const fn new(tree: &'a mut Tree<'t>, profile: &'a mut ParsedProfile, oddities: &'a mut Oddities) -> Self {
        Self { tree, profile, oddities, open: Vec::new() }
    }

    fn take<E: Error>(&mut self, event: ProfileEvent) -> Result<(), E> {
        self.pass_time(event.at)?;
        match event.kind {
            EventKind::O => {
                let node = self.profile.open_node;
                push(&mut self.open, (event.frame, node), self.tree.memory);
                self.profile.open_node = self.tree.child(node, event.frame)?;
            }
            EventKind::C => self.close(event.frame)?,
        }
        self.profile.open_frames = self.open.len();
        Ok(())
    }

    fn pass_time<E: Error>(&mut self, at: JsonNumber) -> Result<(), E> {
        let profile = &mut *self.profile;
        let last = profile.last_event.unwrap_or(at);
        let passed = at.since(last);
        if passed.float() < 0.0 {
            let (last, at) = (last.float(), at.float());
            let message = format_args!("events out of order: expected at least {last}, found {at}");
            return self.oddities.meet(E::custom(message));
        }
        if passed.float() > 0.0 {
            push(&mut profile.samples, profile.open_node, self.tree.memory);
            push(&mut profile.weights, at, self.tree.memory);
        }
        profile.first_event.get_or_insert(at);
        profile.last_event = Some(at);
        Ok(())
    }

    /// Closes a frame and its callees, which cannot continue without it.
    fn close<E: Error>(&mut self, closed: u32) -> Result<(), E> {
        let top = self.open.last().map(|&(frame, _)| frame);
        if top != Some(closed) {
            let expected =
                top.map_or("a frame to begin".to_owned(), |frame| format!("the end of frame {frame}"));
            let message = format_args!("expected {expected}, found the end of frame {closed}");
            self.oddities.meet(E::custom(message))?;
        }
        let looked_at = self.open.iter().rev().take(Self::LOOKED_AT);
        if let Some(above) = looked_at.map(|&(frame, _)| frame).position(|frame| frame == closed) {
            let place = self.open.len() - 1 - above;
            self.profile.open_node = self.open[place].1;
            self.open.truncate(place);
        }
        Ok(())
    }
}

impl ArrayElements for EventElements<'_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, array: &mut A) -> Result<bool, A::Error> {
        let Some(event) = array.next_element()? else { return Ok(false) };
        self.take(event)?;
        Ok(true)
    }
}
