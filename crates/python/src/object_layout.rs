//! The layouts of objects: texts, numbers, containers, instances and coroutines.
//!
//! Source of the tables: `offsetof` and the objects of running interpreters, as of [`layout`](crate::layout). What follows the
//! header of an object is as far from it in builds with and without a global lock.

/// Objects of all types.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObjectLayout {
    pub(crate) kind: usize,
    /// The size of `PyObject`, behind which each type has its own fields.
    pub(crate) header: usize,
    /// `PyVarObject.ob_size`.
    pub(crate) length: usize,
    pub(crate) types: TypeLayout,
    /// `PyBytesObject.ob_sval`.
    pub(crate) bytes: usize,
    pub(crate) text_length: usize,
    pub(crate) text_state: usize,
    /// The first bit of the width of characters in the state of a text.
    pub(crate) text_kind_bit: u32,
    /// The size of `PyASCIIObject`, behind which the characters are.
    pub(crate) ascii: usize,
    /// The size of `PyCompactUnicodeObject`.
    pub(crate) compact: usize,
    pub(crate) integers: IntegerFormat,
    /// `PyTupleObject.ob_item`.
    pub(crate) tuple_items: usize,
    pub(crate) dicts: DictFormat,
    pub(crate) attributes: AttributesPlace,
    pub(crate) coroutine_frame: CoroutineFrame,
    pub(crate) coroutine_states: CoroutineStates,
}

/// How coroutines and generators state whether they wait: in the byte that is [`STATE_BEFORE_FRAME`] before their frame.
///
/// Source: the objects of running interpreters, 3.11.7 to 3.15.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CoroutineStates {
    /// Not at all. Up to 3.10.
    Unstated,
    /// Below zero while they wait, zero while they run. 3.11 to 3.14.
    Signed,
    /// Up to 3 while they wait, 4 while they run. From 3.15 on.
    Numbered,
}

/// The distance of `gi_frame_state` from `gi_iframe`.
pub(crate) const STATE_BEFORE_FRAME: u64 = 5;

/// `PyTypeObject`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TypeLayout {
    /// `tp_name`, and eight bytes behind it `tp_basicsize`.
    pub(crate) name: usize,
    /// `tp_flags`.
    pub(crate) flags: usize,
    /// `PyHeapTypeObject.ht_cached_keys`.
    pub(crate) cached_keys: usize,
}

/// How integers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IntegerFormat {
    /// The number of digits, negative for a negative number. Up to 3.11.
    SignedLength,
    /// The number of digits times eight, and the sign in the lowest bits: 0 is plus, 1 zero, 2 minus.
    Tagged,
}

/// `PyDictKeysObject`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DictFormat {
    /// The number of indices is stated. Up to 3.10.
    Sized,
    /// Its logarithm is; keys that are all texts have no hashes.
    Logarithmic,
    /// Like `Logarithmic`, and the values of an instance have a header of eight bytes. From 3.13 on.
    LogarithmicWithHeader,
}

/// Where instances keep their attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttributesPlace {
    /// In a dict, at the place that the type states.
    Dict,
    /// In values, to which the fourth word before the object points; else in the dict of the third. 3.11.
    ValuesBefore,
    /// In values or a dict, to which the third word before the object points: the lowest bit says which. 3.12.
    Tagged,
    /// In the dict to which the word this far before the object points, else in values behind the object. From 3.13 on.
    Inline(usize),
}

/// Where coroutines and generators keep their frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CoroutineFrame {
    /// A pointer to it.
    Pointer(usize),
    /// The frame itself.
    Within(usize),
}

impl ObjectLayout {
    /// Objects of all releases with a global lock that do not state their layout; `wide` is the size of `wstr`, which 3.12
    /// removed.
    const fn tabled(wide: usize) -> Self {
        Self {
            kind: 8,
            header: 16,
            length: 16,
            types: TypeLayout { name: 24, flags: 168, cached_keys: 872 },
            bytes: 32,
            text_length: 16,
            text_state: 32,
            text_kind_bit: 2,
            ascii: 40 + wide,
            compact: 56 + 2 * wide,
            integers: IntegerFormat::SignedLength,
            tuple_items: 24,
            dicts: DictFormat::Sized,
            attributes: AttributesPlace::Dict,
            coroutine_frame: CoroutineFrame::Pointer(16),
            coroutine_states: CoroutineStates::Unstated,
        }
    }

    pub(crate) const OF_3_8: Self = Self::tabled(8);

    pub(crate) const OF_3_11: Self = Self {
        dicts: DictFormat::Logarithmic,
        attributes: AttributesPlace::ValuesBefore,
        coroutine_frame: CoroutineFrame::Within(80),
        coroutine_states: CoroutineStates::Signed,
        ..Self::tabled(8)
    };

    pub(crate) const OF_3_12: Self = Self {
        types: TypeLayout { name: 24, flags: 168, cached_keys: 880 },
        integers: IntegerFormat::Tagged,
        dicts: DictFormat::Logarithmic,
        attributes: AttributesPlace::Tagged,
        coroutine_frame: CoroutineFrame::Within(72),
        coroutine_states: CoroutineStates::Signed,
        ..Self::tabled(0)
    };

    /// `PyTypeObject.tp_basicsize`.
    pub(crate) const fn type_size(&self) -> usize {
        self.types.name + 8
    }

    /// `PyTypeObject.tp_dictoffset`.
    pub(crate) const fn type_dict(&self) -> usize {
        self.types.flags + 120
    }

    /// `PySetObject.mask`, and eight bytes behind it `table`.
    pub(crate) const fn set_mask(&self) -> usize {
        self.header + 16
    }

    /// `PyDictObject.ma_keys`, and eight bytes behind it `ma_values`.
    pub(crate) const fn dict_keys(&self) -> usize {
        self.header + 16
    }
}
