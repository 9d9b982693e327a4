//! Which number of samples is added up.

use borehole::model::{Sampled, Tee, Weigher};
use borehole_analysis::{HeatMapSink, ProfileBuilder};
use clap::Args;

/// Which number of samples is added up.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ValueArgs {
    /// The value type to add up, such as cpu or alloc_space/bytes; `samples` counts samples [default: the one that the
    /// profile names, or its last]
    #[arg(long, value_name = "NAME")]
    pub(crate) value: Option<String>,
}

impl ValueArgs {
    /// What a view of a profile is made of, weighed by it: the profile, and when its samples were taken.
    pub(crate) fn profile(&self) -> Tee<ProfileBuilder, HeatMapSink> {
        let weigher = self.weigher(Sampled::Count);
        Tee::new(ProfileBuilder::new(weigher.clone()), HeatMapSink::new(weigher))
    }

    /// Weighs samples by it. `sampled` says what is taken of a profile without values of its own.
    pub(crate) fn weigher(&self, sampled: Sampled) -> Weigher {
        Weigher::new(self.value.as_deref(), sampled)
    }
}

/// Fails if a value type was asked for that none of the inputs has. Says which ones there are.
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
