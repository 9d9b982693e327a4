//! Deletes runs.

use super::Database;
use crate::error::Error;
use crate::schema::TABLES;

/// The runs to keep when old ones are deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Keep {
    /// The last runs, this many.
    Last(u64),
    /// The runs whose heaps were captured at this time or later, in ISO 8601 and UTC. Runs without such a time are kept.
    Since(String),
}

impl Database {
    /// Deletes a run and all its rows, or nothing.
    ///
    /// # Errors
    /// If there is no such run, or the database cannot be written.
    pub fn delete_run(&mut self, run: i64) -> Result<(), Error> {
        self.run(Some(run))?;
        self.delete(&[run])
    }

    /// Deletes the runs that are not to be kept, all or none, and returns their numbers.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn delete_old_runs(&mut self, keep: &Keep) -> Result<Vec<i64>, Error> {
        let runs = self.runs()?;
        let old: Vec<i64> = match keep {
            Keep::Last(count) => {
                let count = usize::try_from(*count).unwrap_or(usize::MAX);
                runs[..runs.len().saturating_sub(count)].iter().map(|run| run.id).collect()
            }
            Keep::Since(since) => {
                runs.iter().filter(|run| is_before(&run.created_at, since)).map(|run| run.id).collect()
            }
        };
        self.delete(&old)?;
        Ok(old)
    }

    fn delete(&mut self, runs: &[i64]) -> Result<(), Error> {
        let existing = self.existing()?;
        let of_paths = crate::schema::PATH_TABLES.iter().filter(|table| existing.contains(table.name));
        let tables: Vec<_> = TABLES.iter().chain(of_paths).map(|table| table.name).collect();
        self.change(|database| {
            for run in runs {
                for table in &tables {
                    database.backend.execute(&format!("DELETE FROM {table} WHERE run_id = {run}"))?;
                }
            }
            Ok(())
        })
    }
}

/// Whether both texts are times, and the first is earlier.
fn is_before(text: &str, other: &str) -> bool {
    moment(text).zip(moment(other)).is_some_and(|(one, other)| one < other)
}

/// The time in a text of our format, so that the texts sort in time order: without the `Z`, which sorts after the point
/// of a fraction, and without zeros at the end of the fraction. `None` for other texts.
fn moment(text: &str) -> Option<&str> {
    let shape = b"dddd-dd-ddTdd:dd:dd";
    let fits =
        |(byte, &wanted): (u8, &u8)| if wanted == b'd' { byte.is_ascii_digit() } else { byte == wanted };
    let text = text.strip_suffix('Z')?;
    let (second, fraction) = text.split_at_checked(shape.len())?;
    if !second.bytes().zip(shape).all(fits) {
        return None;
    }
    if fraction.is_empty() {
        return Some(text);
    }
    let is_fraction = fraction.strip_prefix('.')?.bytes().all(|byte| byte.is_ascii_digit());
    is_fraction.then(|| text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_times_are_compared() {
        assert!(moment("2026-11-21T12:00:00Z").is_some() && moment("2026-11-21T12:00:00.5Z").is_some());
        let others = ["now", "", "2026-11-21T12:00:00+01:00", "2026-11-21 12:00:00Z", "21.11.2026T12:00:00Z"];
        for other in others.into_iter().chain(["2026-11-21T12:00:00+01:00Z", "2026-11-21T12:00:0\u{e9}Z"]) {
            assert_eq!(moment(other), None, "{other}");
        }
    }

    #[test]
    fn times_with_and_without_fractions_are_ordered() {
        let before = |one: &str, other: &str| {
            let time = |seconds| format!("2026-11-21T12:00:{seconds}Z");
            is_before(&time(one), &time(other))
        };
        let order = ["00", "00.05", "00.5", "01", "10", "10.25", "10.3"];
        for (index, one) in order.iter().enumerate() {
            for (later, other) in order.iter().enumerate() {
                assert_eq!(before(one, other), index < later, "{one} {other}");
            }
        }
        for (one, other) in [("00.0", "00"), ("00.5", "00.50"), ("10.", "10")] {
            assert!(!before(one, other) && !before(other, one), "{one} {other}");
        }
        assert!(!is_before("2026-11-21T12:00:00Z", "soon") && !is_before("", "2026-11-21T12:00:00Z"));
    }
}
