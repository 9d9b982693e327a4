//! The encryption of connections to servers, and the verification of their certificates.

use std::net::IpAddr;
use std::path::PathBuf;

/// The encryption parameters of an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Encryption {
    /// The value of `sslmode`; `None` if it is absent.
    mode: Option<String>,
    /// The file in `sslrootcert`: certificate authorities to trust, in addition to the public ones.
    pub(crate) roots: Option<PathBuf>,
}

/// The required encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EncryptionMode {
    /// No encryption.
    Disable,
    /// Encryption if the server supports it.
    Prefer,
    /// Encryption, without verification of the server.
    Require,
    /// Encryption, and a certificate signed by a trusted authority.
    VerifyCa,
    /// Encryption, and a trusted certificate for the name in the address.
    VerifyFull,
}

/// The names of the modes: PostgreSQL's, and MySQL's equivalents.
///
/// Source: PostgreSQL's documentation of libpq, "SSL Support"; MySQL's reference manual, `--ssl-mode`.
const MODES: [(&str, EncryptionMode); 10] = [
    ("disable", EncryptionMode::Disable),
    ("disabled", EncryptionMode::Disable),
    ("allow", EncryptionMode::Prefer),
    ("prefer", EncryptionMode::Prefer),
    ("preferred", EncryptionMode::Prefer),
    ("require", EncryptionMode::Require),
    ("required", EncryptionMode::Require),
    ("verify-ca", EncryptionMode::VerifyCa),
    ("verify-full", EncryptionMode::VerifyFull),
    ("verify-identity", EncryptionMode::VerifyFull),
];

/// The names of the mode parameter in PostgreSQL and MySQL.
const MODE_KEYS: [&str; 2] = ["sslmode", "ssl-mode"];
const ROOTS_KEYS: [&str; 2] = ["sslrootcert", "ssl-ca"];

impl Encryption {
    /// Takes a parameter of an address if it is about encryption. The drivers support only some of them.
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

    /// The mode for a server. If none is given: no encryption to this machine, else encryption if the server supports it.
    ///
    /// # Errors
    /// The names of the modes, if an unknown one is given.
    pub(crate) fn mode(&self, is_near: bool) -> Result<EncryptionMode, String> {
        let Some(said) = &self.mode else {
            return Ok(if is_near { EncryptionMode::Disable } else { EncryptionMode::Prefer });
        };
        // MySQL writes underscores.
        let name = said.to_ascii_lowercase().replace('_', "-");
        let mode = MODES.into_iter().find(|(known, _)| *known == name).map(|(_, mode)| mode);
        let mode = mode.ok_or_else(|| {
            format!("expected sslmode disable, prefer, require, verify-ca or verify-full, found {said}")
        })?;
        // A file of authorities implies that the certificate must be verified.
        Ok(if mode == EncryptionMode::Require && self.roots.is_some() {
            EncryptionMode::VerifyCa
        } else {
            mode
        })
    }
}

/// Whether an error says that a server shows the certificate of an authority as its own. The dates of the certificate have
/// been checked before.
///
/// Source: rustls-webpki 0.103, `verify_cert.rs`, `check_issuer_independent_properties`; rustls does not pass the error on as a
/// value.
#[cfg(feature = "tls")]
pub(crate) fn is_of_authority(error: &dyn std::error::Error) -> bool {
    error.to_string().contains("CaUsedAsEndEntity")
}

/// A complaint about a server's certificate, and what helps; `None` for errors that say it themselves. `of_authority` helps if
/// the server shows the certificate of an authority.
#[cfg(feature = "tls")]
pub(crate) fn advice(error: &(dyn std::error::Error + 'static), of_authority: &str) -> Option<String> {
    let mut causes = std::iter::successors(Some(error), |cause| cause.source());
    causes.find_map(|cause| {
        if is_of_authority(cause) {
            return Some(format!(
                "the server shows the certificate of an authority, as `openssl req -x509` makes it; {of_authority}"
            ));
        }
        cause.to_string().contains("not valid for any names").then(|| {
            "the certificate of the server names no host; make it with `-addext subjectAltName=DNS:HOST`, or verify only \
             who signed it with sslmode=verify-ca"
                .to_owned()
        })
    })
}

/// The error for a connection that must be encrypted, in a build without encryption.
#[cfg(not(feature = "tls"))]
pub(crate) const MISSING: &str = "this program was built without encryption";

/// Whether a host is this machine, so that nobody can intercept the connection.
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
    fn encryption_parameters_are_taken_from_an_address() {
        let (url, said) =
            taken("mysql://u@h/d?a=1&ssl-mode=VERIFY_IDENTITY&b=sslmode&sslrootcert=%2Fetc%2Fca.pem");
        assert_eq!(url, "mysql://u@h/d?a=1&b=sslmode");
        assert_eq!(
            (said.mode(true), said.roots),
            (Ok(EncryptionMode::VerifyFull), Some(PathBuf::from("/etc/ca.pem")))
        );
        let (url, said) = taken("postgresql://u@h/d?sslmode=require");
        assert_eq!((url.as_str(), said.mode(true)), ("postgresql://u@h/d", Ok(EncryptionMode::Require)));
    }

    #[test]
    fn remote_servers_are_encrypted_by_default() {
        let (_, said) = taken("postgresql://u@h/d");
        assert_eq!(
            (said.mode(true), said.mode(false)),
            (Ok(EncryptionMode::Disable), Ok(EncryptionMode::Prefer))
        );
    }

    #[test]
    fn naming_an_authority_requires_verification() {
        let (_, said) = taken("postgresql://u@h/d?sslmode=require&sslrootcert=ca.pem");
        assert_eq!(said.mode(true), Ok(EncryptionMode::VerifyCa));
        let (_, said) = taken("postgresql://u@h/d?sslmode=always");
        assert!(said.mode(true).unwrap_err().ends_with("found always"));
    }
}
