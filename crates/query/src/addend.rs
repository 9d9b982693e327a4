//! The numbers that queries add up: all of one kind, as in reports.

use borehole_model::{Context, Mode, Sample, Sampled, Segment, Tables, ValueType, Weigher, nanoseconds_per};

use crate::error::Error;
use crate::journal::ListedNumber;
use crate::literal::text;

/// The duration of a row of `samples`, including rows from builds that did not write it.
const TIME_NS: &str = "CASE WHEN mode IS NULL THEN value * period_ns ELSE time_ns END";

/// The type of sums: the nanoseconds of a fleet do not fit in 64 bits.
const WIDE: &str = "DECIMAL(30, 0)";

/// The numbers that a query adds up. The default is the number of observations of any mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addend {
    value_type: ValueType,
    /// The mode of the observations, or for a time the sampled clock; `None` for all.
    mode: Option<Mode>,
    /// Whether there are observations of other modes.
    has_other_modes: bool,
    /// Its units in `measures`.
    units: Vec<String>,
    others: Vec<ValueType>,
    /// The time of the first of its numbers, in microseconds since 1970 (UTC), as far as files list it.
    first_us: Option<i64>,
}

impl Default for Addend {
    fn default() -> Self {
        Self {
            value_type: ValueType::samples(),
            mode: None,
            has_other_modes: false,
            units: Vec::new(),
            others: Vec::new(),
            first_us: None,
        }
    }
}

impl Addend {
    /// Picks the numbers to add up on all sides, given the kinds of numbers on each: the `asked` ones, or else the earliest
    /// default.
    pub(crate) fn of_sides(sides: Vec<Vec<ListedNumber>>, asked: Option<&str>) -> Result<Self, Error> {
        let all = ListedNumber::merged(sides.iter().flatten().cloned());
        let addend = addend_of(kinds_of(all.clone()), asked)?;
        check_sides(&addend, sides.into_iter().map(kinds_of))?;
        let own = all.iter().filter(|number| addend.is_of(&NumberKind::of(number)));
        let first_us = own.map(|number| number.first_us).min().filter(|&first_us| first_us < i64::MAX);
        Ok(Self { first_us, ..addend })
    }

    /// Its value type. Times are in nanoseconds.
    #[must_use]
    pub const fn value_type(&self) -> &ValueType {
        &self.value_type
    }

    /// The value types that could be added up instead.
    #[must_use]
    pub fn others(&self) -> &[ValueType] {
        &self.others
    }

    /// The quantity of its numbers, as in [`Weigher::tells_of`].
    fn tells_of(&self) -> &str {
        match self.mode.filter(|_| self.value_type.is_samples()) {
            Some(mode) => mode.name(),
            None => &self.value_type.kind,
        }
    }

    /// Whether numbers of a kind include it.
    fn is_of(&self, kind: &NumberKind) -> bool {
        if self.value_type.is_samples() {
            return kind.value_type.is_samples() && self.mode.is_none_or(|mode| mode == kind.mode);
        }
        let is_time = kind.has_time && ValueType::time(kind.mode) == self.value_type;
        is_time || kind.value_type.shown().0 == self.value_type
    }

    /// When its numbers begin, in nanoseconds since 1970 (UTC), as far as files list that.
    pub(crate) fn start_unix_ns(&self) -> Option<i64> {
        self.first_us?.checked_mul(1000)
    }

    /// A segment of samples that have it.
    pub(crate) fn segment(&self) -> Segment {
        let segment = Segment { format: "lake", mode: self.mode.unwrap_or_default(), ..Segment::default() };
        if self.value_type.is_samples() {
            return segment;
        }
        Segment { value_types: vec![self.value_type.clone()], is_uncounted: true, ..segment }
    }

    /// SQL for `stack_id`, `time` and `value` of the rows that match `condition`, and for more columns of `samples` and `measures`.
    pub(crate) fn rows(&self, condition: &str, more: &str) -> String {
        let of_mode = |mode: Mode| format!(" AND coalesce(mode, 'wall') = '{}'", mode.name());
        let of_mode = self.mode.filter(|_| self.has_other_modes).map_or_else(String::new, of_mode);
        if self.value_type.is_samples() {
            return format!("SELECT stack_id, time, value{more} FROM samples WHERE {condition}{of_mode}");
        }
        let mut all = Vec::new();
        if self.mode.is_some() {
            all.push(format!(
                "SELECT stack_id, time, CAST({TIME_NS} AS {WIDE}) AS value{more} FROM samples \
                 WHERE {condition}{of_mode} AND {TIME_NS} > 0"
            ));
        }
        let kind = text(&self.value_type.kind);
        all.extend(self.units.iter().map(|unit| {
            let factor = nanoseconds_per(unit).unwrap_or(1);
            let unit = text(unit);
            format!(
                "SELECT stack_id, time, CAST(CAST(value AS {WIDE}) * {factor} AS {WIDE}) AS value{more} \
                 FROM measures WHERE {condition} AND kind = {kind} AND unit = {unit}"
            )
        }));
        all.join(" UNION ALL ")
    }

    /// SQL for a sum as a 64-bit integer. Larger sums become the largest one.
    pub(crate) fn whole(&self, sum: &str) -> String {
        if self.value_type.is_samples() {
            return sum.to_owned();
        }
        format!("coalesce(TRY_CAST({sum} AS BIGINT), {})", i64::MAX)
    }
}

/// Numbers of one kind.
#[derive(Clone, Debug)]
struct NumberKind {
    value_type: ValueType,
    mode: Mode,
    /// Whether it is the default of the inputs that have it.
    is_default: bool,
    /// Whether samples have a time too.
    has_time: bool,
}

impl NumberKind {
    fn of(number: &ListedNumber) -> Self {
        Self {
            value_type: ValueType::new(&number.kind, &number.unit),
            mode: Mode::named(&number.mode).unwrap_or_default(),
            is_default: number.is_default,
            has_time: number.has_time,
        }
    }

    /// A segment of samples that have such numbers.
    fn segment(&self) -> Segment {
        if self.value_type.is_samples() {
            return Segment { mode: self.mode, period_ns: self.has_time.then_some(1), ..Segment::default() };
        }
        Segment { value_types: vec![self.value_type.clone()], is_uncounted: true, ..Segment::default() }
    }
}

/// Sorts kinds by time, then by name.
fn kinds_of(mut numbers: Vec<ListedNumber>) -> Vec<NumberKind> {
    numbers.sort_by_key(|number| number.first_us);
    numbers.iter().map(NumberKind::of).collect()
}

/// Checks that no side has numbers only of other kinds.
fn check_sides(addend: &Addend, sides: impl IntoIterator<Item = Vec<NumberKind>>) -> Result<(), Error> {
    for (kinds, place) in sides.into_iter().zip(["first", "second"]) {
        if !kinds.is_empty() && !kinds.iter().any(|kind| addend.is_of(kind)) {
            let (expected, found) = (addend.tells_of(), addend_of(kinds, None)?);
            return Err(Error::question(format!(
                "different value types: expected {expected} on both sides, found {} on the {place}",
                found.tells_of()
            )));
        }
    }
    Ok(())
}

fn addend_of(mut kinds: Vec<NumberKind>, asked: Option<&str>) -> Result<Addend, Error> {
    if asked.is_none() {
        // Without a request the default of reports is used.
        kinds.sort_by_key(|kind| !kind.is_default);
    }
    let mut weigher = Weigher::new(asked, Sampled::Count);
    let tables = Tables::default();
    for kind in &kinds {
        let segment = kind.segment();
        weigher.segment(&segment);
        let sample = Sample { count: 1, values: &[1], ..Sample::default() };
        weigher.weigh(Context { tables: &tables, segment: &segment }, &sample);
    }
    weigher.check().map_err(|error| Error::question(error.to_string()))?;
    let Some(value_type) = weigher.value_type().cloned() else { return Ok(Addend::default()) };
    let mode = match asked {
        None if value_type.is_samples() => weigher.tells_of().and_then(Mode::named),
        _ => sampled_time(&kinds, &value_type),
    };
    let has_unit =
        |kind: &&NumberKind| !kind.value_type.is_samples() && kind.value_type.shown().0 == value_type;
    let mut units: Vec<_> = kinds.iter().filter(has_unit).map(|kind| kind.value_type.unit.clone()).collect();
    units.sort_unstable();
    units.dedup();
    let is_of_other =
        |kind: &NumberKind| kind.value_type.is_samples() && mode.is_some_and(|mode| mode != kind.mode);
    let has_other_modes = kinds.iter().any(is_of_other);
    let is_other = |kind: &&ValueType| {
        let shown = kind.shown().0;
        if !value_type.is_samples() {
            return shown != value_type;
        }
        // The time that samples stand for is not listed as another kind.
        let is_their_time = mode.is_some_and(|mode| ValueType::time(mode) == shown);
        !is_their_time && (!shown.is_samples() || has_other_modes)
    };
    let others = weigher.kinds().iter().filter(is_other).cloned().collect();
    Ok(Addend { value_type, mode, has_other_modes, units, others, first_us: None })
}

/// The sampled clock whose times have the value type.
fn sampled_time(kinds: &[NumberKind], value_type: &ValueType) -> Option<Mode> {
    let is_it = |kind: &&NumberKind| kind.has_time && ValueType::time(kind.mode) == *value_type;
    kinds.iter().find(is_it).map(|kind| kind.mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(mode: Mode, default: bool) -> NumberKind {
        NumberKind { value_type: ValueType::samples(), mode, is_default: default, has_time: true }
    }

    fn measured(kind: &str, unit: &str, is_default: bool) -> NumberKind {
        NumberKind { value_type: ValueType::new(kind, unit), mode: Mode::Wall, is_default, has_time: false }
    }

    fn picked(kinds: &[NumberKind], asked: Option<&str>) -> (String, Option<Mode>, String) {
        let addend = addend_of(kinds.to_vec(), asked).unwrap();
        let others = addend.others.iter().map(ToString::to_string).collect::<Vec<_>>();
        (addend.value_type.to_string(), addend.mode, others.join(" "))
    }

    #[test]
    fn the_earliest_default_is_added_up_unless_another_is_asked_for() {
        let kinds = [
            measured("inuse_objects", "count", false),
            samples(Mode::Cpu, false),
            measured("cpu", "milliseconds", true),
            samples(Mode::Cpu, true),
            measured("inuse_space", "bytes", true),
        ];
        let cpu = "cpu/nanoseconds".to_owned();
        let others = "samples/count inuse_space/bytes inuse_objects/count".to_owned();
        assert_eq!(picked(&kinds, None), (cpu.clone(), Some(Mode::Cpu), others));
        let (value_type, mode, _) = picked(&kinds, Some("inuse_space"));
        assert_eq!((value_type.as_str(), mode), ("inuse_space/bytes", None));
        assert_eq!(picked(&kinds, Some("samples")).1, None);
        let (value_type, _, others) = picked(&kinds[3..4], None);
        assert_eq!((value_type.as_str(), others.as_str()), ("samples/count", ""));
        assert_eq!(picked(&[], Some("cpu")).0, "samples/count");
        let error = addend_of(kinds[..2].to_vec(), Some("wall")).unwrap_err().to_string();
        let known = "inuse_objects/count, samples/count, cpu/nanoseconds";
        assert_eq!(error, format!("unknown value type: expected one of {known}, found wall"));
    }

    #[test]
    fn samples_of_other_clocks_are_among_the_others() {
        let kinds = [samples(Mode::Wall, true), samples(Mode::Cpu, true)];
        let expected =
            ("samples/count".to_owned(), Some(Mode::Wall), "samples/count cpu/nanoseconds".to_owned());
        assert_eq!(picked(&kinds, None), expected);
        let sides = |second: &[NumberKind]| {
            let addend = addend_of(kinds.to_vec(), None).unwrap();
            check_sides(&addend, [kinds[..1].to_vec(), second.to_vec()]).map_err(|error| error.to_string())
        };
        assert_eq!([sides(&kinds), sides(&[])], [Ok(()), Ok(())]);
        let error = "different value types: expected wall on both sides, found cpu on the second";
        assert_eq!(sides(&kinds[1..]), Err(error.to_owned()));
        let rows = addend_of(kinds.to_vec(), Some("cpu")).unwrap().rows("true", "");
        assert!(rows.contains("= 'cpu'") && !rows.contains("measures"), "{rows}");
    }
}
