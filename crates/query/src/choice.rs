//! The samples that a query is about, and the numbers to add up for it.

use borehole_model::Mode;

use crate::addend::Addend;
use crate::ask::LakeSession;
use crate::error::Error;
use crate::journal::{DataFile, ListedNumber};
use crate::keys::SampleSelector;
use crate::literal::{text, time};
use crate::tables::LakeTable;

/// The maximum number of kinds of measures read from files that do not list theirs.
const MOST_KINDS: usize = 10_000;

/// The samples that a query is about.
#[derive(Clone, Debug, Default)]
pub struct SampleChoice {
    /// Only this service.
    pub service: Option<String>,
    /// Only this host.
    pub host: Option<String>,
    /// From this time on, in microseconds since 1970 (UTC).
    pub since_us: Option<i64>,
    /// Before this time, in microseconds since 1970 (UTC).
    pub until_us: Option<i64>,
    /// Only samples that match all of these.
    pub selectors: Vec<SampleSelector>,
    /// Only stacks with a function whose name matches this regular expression.
    pub focus: Option<String>,
    /// The numbers to add up.
    pub addend: Addend,
}

impl SampleChoice {
    /// The SQL condition for rows of `samples` and `measures`.
    pub(crate) fn condition(&self) -> String {
        let mut all = vec!["true".to_owned()];
        let mut equal = |column: &str, value: &Option<String>| {
            all.extend(value.iter().map(|value| format!("{column} = {}", text(value))));
        };
        equal("service", &self.service);
        equal("host", &self.host);
        all.extend(self.since_us.map(|since| format!("time >= {}", time(since))));
        all.extend(self.until_us.map(|until| format!("time < {}", time(until))));
        all.extend(self.selectors.iter().map(SampleSelector::condition));
        all.join(" AND ")
    }

    /// Whether a file may hold chosen rows, judged without opening it.
    pub(crate) fn may_be_in(&self, file: &DataFile) -> bool {
        let is_of_service = self.service.is_none() || self.service == file.service;
        let is_in_time = file.span_us.is_none_or(|(first, last)| {
            self.since_us.is_none_or(|since| last >= since) && self.until_us.is_none_or(|until| first < until)
        });
        let may_match =
            |selector: &SampleSelector| selector.may_match(file.service.as_deref(), file.labels.as_deref());
        is_of_service && is_in_time && self.selectors.iter().all(may_match)
    }
}

impl LakeSession<'_> {
    /// Picks the numbers to add up for all `choices`: the `asked` ones, or else the default of the earliest input in a file
    /// that may match one of the choices.
    ///
    /// # Errors
    /// If no such file has the numbers asked for, if one of the choices has numbers but none of that kind, or if a query fails.
    pub fn addend(&self, choices: &[&SampleChoice], asked: Option<&str>) -> Result<Addend, Error> {
        let sides = choices.iter().map(|choice| self.numbers_of(choice)).collect::<Result<Vec<_>, _>>()?;
        Addend::of_sides(sides, asked)
    }

    /// The kinds of numbers in files that may match a choice.
    fn numbers_of(&self, choice: &SampleChoice) -> Result<Vec<ListedNumber>, Error> {
        let tables = [LakeTable::Samples, LakeTable::Measures];
        let files = tables.into_iter().flat_map(|table| self.state.files_of(table));
        let listed: Vec<_> = files.filter(|file| choice.may_be_in(file)).map(DataFile::numbers).collect();
        let mut numbers =
            if listed.iter().all(Option::is_some) { Vec::new() } else { self.measured(choice)? };
        let since_us = choice.since_us.unwrap_or(i64::MIN);
        let since = |number: ListedNumber| ListedNumber { first_us: number.first_us.max(since_us), ..number };
        numbers.extend(listed.into_iter().flatten().flatten().map(since));
        Ok(ListedNumber::merged(numbers))
    }

    /// The kinds of the chosen measures in files that do not list them.
    fn measured(&self, choice: &SampleChoice) -> Result<Vec<ListedNumber>, Error> {
        let sql = format!(
            "SELECT DISTINCT kind, unit FROM measures WHERE {} ORDER BY kind, unit LIMIT {MOST_KINDS}",
            choice.condition()
        );
        let mut answer = self.ask(&sql)?;
        let mut numbers = Vec::new();
        while let Some(rows) = answer.next_rows()? {
            numbers.extend(rows.iter().filter_map(|row| {
                let [kind, unit] = &row[..] else { return None };
                let (kind, unit, mode) = (kind.to_text(), unit.to_text(), Mode::Wall.name().to_owned());
                Some(ListedNumber { kind, unit, mode, first_us: i64::MAX, ..ListedNumber::default() })
            }));
        }
        Ok(numbers)
    }
}
