//! Which runs stay.

use super::Database;
use crate::error::Error;
use crate::schema::TABLES;

/// Which runs stay when old ones are deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The last so many.
    Last(u64),
    /// Those whose heaps were captured at this time or later, in ISO 8601 and UTC. Of what says no such time, it cannot be
    /// told: it stays.
    Since(String),
}

impl Database {
    /// Deletes a run and all its rows, or nothing.
    ///
    /// # Errors
    /// When there is no such run, or the database cannot be written.
    pub fn delete_run(&mut self, run: i64) -> Result<(), Error> {
        self.run(Some(run))?;
        self.delete(&[run])
    }

    /// Deletes the runs that are not to be kept, all or none, and answers their numbers.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn delete_old_runs(&mut self, keep: &Keep) -> Result<Vec<i64>, Error> {
        let runs = self.runs()?;
        let old: Vec<i64> = match keep {
            Keep::Last(count) => {
                let count = usize::try_from(*count).unwrap_or(usize::MAX);
                runs[..runs.len().saturating_sub(count)].iter().map(|run| run.id).collect()
            }
            Keep::Since(moment) => {
                let is_old = |written: &str| is_moment(written) && written < moment.as_str();
                runs.iter().filter(|run| is_old(&run.created_at)).map(|run| run.id).collect()
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

/// Whether `text` is a time as we write it, so that texts are in the order of times.
fn is_moment(text: &str) -> bool {
    let shape = b"dddd-dd-ddTdd:dd:dd";
    let fits =
        |(byte, &wanted): (u8, &u8)| if wanted == b'd' { byte.is_ascii_digit() } else { byte == wanted };
    text.len() >= shape.len() && text.ends_with('Z') && text.bytes().zip(shape).all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_from_other_texts() {
        assert!(is_moment("2026-11-21T12:00:00Z") && is_moment("2026-11-21T12:00:00.5Z"));
        for other in ["now", "", "2026-11-21T12:00:00+01:00", "2026-11-21 12:00:00Z", "21.11.2026T12:00:00Z"]
        {
            assert!(!is_moment(other), "{other}");
        }
    }
}
