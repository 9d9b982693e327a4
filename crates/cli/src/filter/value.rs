//! The option that chooses a value type.

use std::fmt::Display;

use borehole::model::{Sampled, Tee, Weigher};
use borehole_analysis::{HeatMapSink, ProfileBuilder};
use borehole_text::printable;
use clap::Args;

/// The option that chooses a value type.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ValueArgs {
    /// Value type to add up, such as cpu or alloc_space/bytes; `samples` counts samples [default: the profile's default, or
    /// its last]
    #[arg(long, value_name = "NAME")]
    pub(crate) value: Option<String>,
}

impl ValueArgs {
    /// A sink that builds a profile and a heat map with the chosen value type.
    pub(crate) fn profile(&self) -> Tee<ProfileBuilder, HeatMapSink> {
        let weigher = self.weigher(Sampled::Count);
        Tee::new(ProfileBuilder::new(weigher.clone()), HeatMapSink::new(weigher))
    }

    /// A weigher for the chosen value type. `sampled` is the value of samples of a profile without values.
    pub(crate) fn weigher(&self, sampled: Sampled) -> Weigher {
        Weigher::new(self.value.as_deref(), sampled)
    }
}

/// A text that names the value types that are not shown; `None` if there are none.
pub(crate) fn other_value_types(others: impl IntoIterator<Item = impl Display>) -> Option<String> {
    let names: Vec<_> = others.into_iter().map(|kind| printable(kind.to_string().as_bytes())).collect();
    (!names.is_empty())
        .then(|| format!("other value types: {}; select one with --value NAME", names.join(", ")))
}

/// Fails if no input has the value type asked for. The error lists those there are.
pub(crate) fn check_value(weigher: &Weigher) -> anyhow::Result<()> {
    Ok(weigher.check()?)
}

#[cfg(test)]
mod tests {
    use borehole::model::{Segment, ValueType};

    use super::*;

    #[test]
    fn an_unknown_value_type_is_answered_by_those_there_are() {
        let heap = Segment {
            value_types: vec![ValueType::new("objects", "count"), ValueType::new("space", "bytes")],
            is_uncounted: true,
            ..Segment::default()
        };
        let checked = |name: &str| {
            let mut weigher = ValueArgs { value: Some(name.to_owned()) }.weigher(Sampled::Count);
            weigher.segment(&heap);
            check_value(&weigher).map_err(|error| error.to_string())
        };
        assert_eq!([checked("space"), checked("objects/count")], [Ok(()), Ok(())]);
        let expected = "unknown value type: expected one of objects/count, space/bytes, found cpu";
        assert_eq!(checked("cpu"), Err(expected.to_owned()));
    }
}
