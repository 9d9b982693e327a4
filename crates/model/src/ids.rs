//! Row numbers of the tables: dense and starting at 1, so that an `Option` of one takes no extra space.

use std::num::NonZeroU32;

/// The number of a row in one of the tables.
pub(crate) trait Id: Copy {
    fn from_row(row: usize) -> Option<Self>;
    fn row(self) -> usize;
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(NonZeroU32);

        impl $name {
            /// The 0-based position in its table: the index of columns that a sink keeps beside the table.
            #[inline]
            #[must_use]
            pub const fn index(self) -> usize {
                (self.0.get() - 1) as usize
            }

            /// The id as it is printed: 1-based, in order of first appearance.
            #[inline]
            #[must_use]
            pub const fn get(self) -> u32 {
                self.0.get()
            }
        }

        impl Id for $name {
            #[inline]
            fn from_row(row: usize) -> Option<Self> {
                u32::try_from(row).ok()?.checked_add(1).and_then(NonZeroU32::new).map(Self)
            }

            #[inline]
            fn row(self) -> usize {
                self.index()
            }
        }
    };
}

id! {
    /// A string of [`Tables`](crate::Tables).
    StringId
}
id! {
    /// A frame of [`Tables`](crate::Tables).
    FrameId
}
id! {
    /// A stack of [`Tables`](crate::Tables): its leaf frame and, through its parent, all callers.
    StackId
}
id! {
    /// An event type of [`Tables`](crate::Tables).
    ShapeId
}
id! {
    /// An ordered label set of [`Tables`](crate::Tables).
    LabelsId
}
