//! How long to wait for servers.

use std::time::Duration;

use crate::error::{Error, ErrorKind, SpentLimit};

/// The time limits of connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimeLimits {
    /// The value of `connect_timeout` in the address; `None` if it is absent.
    connect: Option<String>,
    /// The limit for everything, if one is set.
    timeout: Option<Duration>,
}

/// The default limit.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The names of the parameter, in seconds.
///
/// Source: PostgreSQL's documentation of libpq, `connect_timeout`; MySQL's reference manual, `--connect-timeout`, and its
/// clients for Python and PHP, which use an underscore.
const CONNECT_KEYS: [&str; 2] = ["connect_timeout", "connect-timeout"];

/// The time after which a silent connection is tested, between tests, and the number of tests that may fail: a host that
/// is gone is noticed within half a minute.
pub(crate) const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
pub(crate) const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
pub(crate) const KEEPALIVE_TESTS: u32 = 3;

impl TimeLimits {
    /// Takes a parameter of an address if it is about time.
    pub(crate) fn takes(&mut self, key: &str, value: &str) -> bool {
        let is_mine = CONNECT_KEYS.contains(&key);
        if is_mine {
            self.connect = Some(value.to_owned());
        }
        is_mine
    }

    pub(crate) const fn set(&mut self, timeout: Duration) {
        self.timeout = Some(timeout);
    }

    /// The limit for a connection with everything that comes before the first statement; `None` for no limit, which 0 in
    /// the address means, as in libpq.
    ///
    /// # Errors
    /// If the value in the address is not a number of seconds.
    pub(crate) fn connect(&self) -> Result<Option<Duration>, String> {
        let Some(said) = &self.connect else { return Ok(Some(self.answer())) };
        let seconds: i64 =
            said.parse().map_err(|_| format!("expected connect_timeout in whole seconds, found {said}"))?;
        Ok(u64::try_from(seconds).ok().filter(|&seconds| seconds > 0).map(Duration::from_secs))
    }

    /// The limit for the silence of a server that is to answer.
    pub(crate) fn answer(&self) -> Duration {
        self.timeout.unwrap_or(TIMEOUT)
    }
}

/// The error that a server stays silent, and that it does not answer a new connection either.
#[cold]
pub(crate) fn silent(limit: Duration, waited_for: &str) -> Error {
    let message = format!(
        "lost connection to the server: waited {} for {waited_for}, and it does not answer a new connection",
        duration(limit)
    );
    Error::new(ErrorKind::Connection, message).spending(SpentLimit::Time)
}

/// A limit as text, such as `30 s`.
pub(crate) fn duration(limit: Duration) -> String {
    format!("{} s", limit.as_secs_f64())
}

/// The beginning of a statement, for messages.
pub(crate) fn beginning(statement: &str) -> String {
    const MOST_CHARACTERS: usize = 60;
    let line = statement.lines().next().unwrap_or_default().trim_end_matches([' ', '(']);
    match line.char_indices().nth(MOST_CHARACTERS) {
        Some((end, _)) => format!("the answer to {}…", &line[..end]),
        None => format!("the answer to {line}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_come_from_the_address_and_the_option() {
        let mut limits = TimeLimits::default();
        assert_eq!((limits.connect(), limits.answer()), (Ok(Some(TIMEOUT)), TIMEOUT));
        limits.set(Duration::from_secs(2));
        assert_eq!(limits.connect(), Ok(Some(Duration::from_secs(2))));
        assert!(limits.takes("connect-timeout", "7") && !limits.takes("timeout", "8"));
        assert_eq!(limits.connect(), Ok(Some(Duration::from_secs(7))));
        assert_eq!(limits.answer(), Duration::from_secs(2));
        for (without, limit) in [("0", None), ("-1", None), ("10", Some(Duration::from_secs(10)))] {
            assert!(limits.takes("connect_timeout", without));
            assert_eq!(limits.connect(), Ok(limit), "{without}");
        }
        limits.takes("connect_timeout", "1.5");
        assert!(limits.connect().unwrap_err().ends_with("found 1.5"));
    }

    #[test]
    fn only_the_beginning_of_a_statement_is_said() {
        assert_eq!(beginning("CREATE TABLE a (\n    b INT\n)"), "the answer to CREATE TABLE a");
        assert_eq!(beginning(&"é".repeat(61)), format!("the answer to {}…", "é".repeat(60)));
        assert_eq!(beginning(""), "the answer to ");
    }
}
