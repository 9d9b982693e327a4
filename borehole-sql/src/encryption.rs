//! Whether the way to a server is encrypted, and whom it has to lead to.

use std::net::IpAddr;
use std::path::PathBuf;

/// What an address asks of the connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Encryption {
    /// What `sslmode` said; `None` if it said nothing.
    mode: Option<String>,
    /// The file of `sslrootcert`: who may vouch for the server, beside those whom everybody trusts.
    pub(crate) roots: Option<PathBuf>,
}

/// How much is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// None.
    Disable,
    /// If the server can.
    Prefer,
    /// With whoever answers.
    Require,
    /// With one who has a certificate that somebody trusted has signed.
    VerifyCa,
    /// With one whose certificate is for the name in the address as well.
    VerifyFull,
}

/// The names of the modes: PostgreSQL's, and what MySQL calls the same.
///
/// Source: PostgreSQL's documentation of libpq, "SSL Support"; MySQL's reference manual, `--ssl-mode`.
const MODES: [(&str, Mode); 10] = [
    ("disable", Mode::Disable),
    ("disabled", Mode::Disable),
    ("allow", Mode::Prefer),
    ("prefer", Mode::Prefer),
    ("preferred", Mode::Prefer),
    ("require", Mode::Require),
    ("required", Mode::Require),
    ("verify-ca", Mode::VerifyCa),
    ("verify-full", Mode::VerifyFull),
    ("verify-identity", Mode::VerifyFull),
];

/// The parameters of an address that are about encryption, in PostgreSQL's words and MySQL's.
const MODE_KEYS: [&str; 2] = ["sslmode", "ssl-mode"];
const ROOTS_KEYS: [&str; 2] = ["sslrootcert", "ssl-ca"];

impl Encryption {
    /// Whether a parameter of an address is about encryption: then it is heeded. Drivers know some of them only.
    pub(crate) fn takes(&mut self, key: &str, value: &str) -> bool {
        if MODE_KEYS.contains(&key) {
            self.mode = Some(value.to_owned());
        } else if ROOTS_KEYS.contains(&key) {
            self.roots = Some(value.into());
        } else {
            return false;
        }
        true
    }

    /// The mode for a server: if nothing is said, none where nobody stands between, else if the server can.
    ///
    /// # Errors
    /// The names of the modes, if another was given.
    pub(crate) fn mode(&self, is_near: bool) -> Result<Mode, String> {
        let Some(said) = &self.mode else {
            return Ok(if is_near { Mode::Disable } else { Mode::Prefer });
        };
        // MySQL writes an underscore.
        let name = said.to_ascii_lowercase().replace('_', "-");
        let mode = MODES.into_iter().find(|(known, _)| *known == name).map(|(_, mode)| mode);
        let mode = mode.ok_or_else(|| {
            format!("expected sslmode disable, prefer, require, verify-ca or verify-full, found {said}")
        })?;
        // Who names those who may vouch wants it to be one of them.
        Ok(if mode == Mode::Require && self.roots.is_some() { Mode::VerifyCa } else { mode })
    }
}

/// Why a connection that has to be encrypted is not.
#[cfg(not(feature = "tls"))]
pub(crate) const MISSING: &str = "this program was built without encryption";

/// Whether a host is this one, so that nobody stands between.
pub(crate) fn is_near(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || host.starts_with('/')
        || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::percent::take_parameters;

    fn taken(url: &str) -> (String, Encryption) {
        let (mut url, mut encryption) = (url.to_owned(), Encryption::default());
        take_parameters(&mut url, |key, value| encryption.takes(key, &value));
        (url, encryption)
    }

    #[test]
    fn what_is_said_of_encryption_is_taken_from_an_address() {
        let (url, said) =
            taken("mysql://u@h/d?a=1&ssl-mode=VERIFY_IDENTITY&b=sslmode&sslrootcert=%2Fetc%2Fca.pem");
        assert_eq!(url, "mysql://u@h/d?a=1&b=sslmode");
        assert_eq!((said.mode(true), said.roots), (Ok(Mode::VerifyFull), Some(PathBuf::from("/etc/ca.pem"))));
        let (url, said) = taken("postgresql://u@h/d?sslmode=require");
        assert_eq!((url.as_str(), said.mode(true)), ("postgresql://u@h/d", Ok(Mode::Require)));
    }

    #[test]
    fn where_nothing_is_said_it_is_asked_for_with_those_who_are_far() {
        let (_, said) = taken("postgresql://u@h/d");
        assert_eq!((said.mode(true), said.mode(false)), (Ok(Mode::Disable), Ok(Mode::Prefer)));
    }

    #[test]
    fn who_is_named_has_to_vouch() {
        let (_, said) = taken("postgresql://u@h/d?sslmode=require&sslrootcert=ca.pem");
        assert_eq!(said.mode(true), Ok(Mode::VerifyCa));
        let (_, said) = taken("postgresql://u@h/d?sslmode=always");
        assert!(said.mode(true).unwrap_err().ends_with("found always"));
    }
}
