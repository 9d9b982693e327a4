//! The address of a server, and its user.

use std::fmt;
use std::time::Duration;

use crate::encryption::Encryption;
#[cfg(any(feature = "postgresql", feature = "mysql"))]
use crate::error::{Error, ErrorKind, SpentLimit};
use crate::percent::{decoded, encoded, take_parameters};
use crate::time_limits::TimeLimits;
#[cfg(any(feature = "postgresql", feature = "mysql"))]
use crate::time_limits::duration;

/// A server and one of its databases: `postgresql://user:password@host:port/database`, or `mysql://…`.
#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    kind: ServerSoftware,
    /// The address with the scheme that the driver knows, without the password and the parameters about
    /// encryption and time limits.
    url: String,
    password: Option<String>,
    encryption: Encryption,
    limits: TimeLimits,
}

/// A kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerSoftware {
    /// PostgreSQL.
    Postgresql,
    /// MySQL or MariaDB: the server's version tells which.
    Mysql,
}

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only reading.
    Read,
    /// Adding, changing and deleting.
    Write,
}

const SCHEMES: [(&str, ServerSoftware); 4] = [
    ("postgresql://", ServerSoftware::Postgresql),
    ("postgres://", ServerSoftware::Postgresql),
    ("mysql://", ServerSoftware::Mysql),
    ("mariadb://", ServerSoftware::Mysql),
];

impl ServerSoftware {
    const fn scheme(self) -> &'static str {
        match self {
            Self::Postgresql => "postgresql://",
            Self::Mysql => "mysql://",
        }
    }

    /// The default port.
    #[must_use]
    pub const fn port(self) -> u16 {
        match self {
            Self::Postgresql => 5432,
            Self::Mysql => 3306,
        }
    }
}

impl Server {
    /// Parses an address; `None` if it is not the address of a server.
    #[must_use]
    pub fn parse(address: &str) -> Option<Self> {
        let is_scheme = |scheme: &str| {
            address.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
        };
        let (scheme, kind) = SCHEMES.into_iter().find(|(scheme, _)| is_scheme(scheme))?;
        let rest = &address[scheme.len()..];
        let split = credentials_end(rest).and_then(|at| Some((at, rest[..at].find(':')?)));
        let (without, mut password) = match split {
            Some((at, colon)) => {
                (format!("{}{}", &rest[..colon], &rest[at..]), Some(decoded(&rest[colon + 1..at])))
            }
            None => (rest.to_owned(), None),
        };
        let mut url = format!("{}{without}", kind.scheme());
        let (mut encryption, mut limits) = (Encryption::default(), TimeLimits::default());
        take_parameters(&mut url, |key, value| {
            if key != "password" {
                return encryption.takes(key, &value) || limits.takes(key, &value);
            }
            password = Some(value);
            true
        });
        Some(Self { kind, url, password, encryption, limits })
    }

    /// The address of `database` on the server at `host` and `port`.
    #[must_use]
    pub fn new(kind: ServerSoftware, host: &str, port: Option<u16>, database: &str, user: &str) -> Self {
        let port = port.unwrap_or(kind.port());
        let host = if host.contains(':') { format!("[{host}]") } else { encoded(host) };
        let url = format!("{}{}@{host}:{port}/{}", kind.scheme(), encoded(user), encoded(database));
        Self { kind, url, password: None, encryption: Encryption::default(), limits: TimeLimits::default() }
    }

    /// Sets the password.
    #[must_use]
    pub fn with_password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// Sets how long to wait for the connection, unless the address says it, and for any answer.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.limits.set(timeout);
        self
    }

    /// Whether there is a password.
    #[must_use]
    pub const fn has_password(&self) -> bool {
        self.password.is_some()
    }

    /// The kind of server.
    #[must_use]
    pub const fn kind(&self) -> ServerSoftware {
        self.kind
    }

    /// The address without the password.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.url
    }

    #[cfg(any(feature = "postgresql", feature = "mysql"))]
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    #[cfg(any(feature = "postgresql", feature = "mysql"))]
    pub(crate) const fn encryption(&self) -> &Encryption {
        &self.encryption
    }

    #[cfg(any(feature = "postgresql", feature = "mysql"))]
    pub(crate) const fn limits(&self) -> &TimeLimits {
        &self.limits
    }

    #[cfg(any(feature = "postgresql", feature = "mysql"))]
    pub(crate) fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// The error that the server cannot be reached.
    #[cold]
    #[cfg(any(feature = "postgresql", feature = "mysql"))]
    pub(crate) fn unreached(&self, why: impl fmt::Display) -> Error {
        Error::new(ErrorKind::Connection, format!("no connection to {}: {why}", self.name()))
    }

    /// The error that the connection took too long; `waited_for` is what did not come.
    #[cold]
    #[cfg(any(feature = "postgresql", feature = "mysql"))]
    pub(crate) fn too_slow(&self, limit: Duration, waited_for: &str) -> Error {
        let unreached = self.unreached(format_args!("waited {} for {waited_for}", duration(limit)));
        unreached.spending(SpentLimit::Time)
    }

    /// The error that the server rejects the user.
    #[cold]
    #[cfg(any(feature = "postgresql", feature = "mysql"))]
    pub(crate) fn denied(&self, said: &str, source: impl std::error::Error + Send + Sync + 'static) -> Error {
        let what = if self.has_password() {
            "invalid user or password"
        } else {
            "invalid user, or missing password"
        };
        Error::caused(ErrorKind::Denied, format!("{what}: {said}"), source)
    }
}

/// The position of the `@` that ends user and password. A password should encode `/` and `?` as `%2F` and `%3F`.
/// Drivers accept one that does not, and it must not be shown: it is recognised because the part before its `/` would
/// not be a host with a port.
fn credentials_end(rest: &str) -> Option<usize> {
    let end_of_host = |from: usize| rest[from..].find(['/', '?']).map_or(rest.len(), |at| from + at);
    let first = rest.find('@')?;
    if first > end_of_host(0) && is_place(&rest[..first], &rest[first..]) {
        return None;
    }
    rest[..end_of_host(first)].rfind('@')
}

/// Whether the part before an `@` is a host without a user, so that the `@` belongs to the name of the database or to a
/// parameter.
fn is_place(before: &str, behind: &str) -> bool {
    // Parameters may be paths.
    let behind = behind.split('?').next().unwrap_or_default();
    let (host, rest) = before.split_at(before.find(['/', '?']).unwrap_or(before.len()));
    let port = host.rsplit_once(':').map_or("", |(_, port)| port);
    let is_parameter = rest.split_once('?').is_some_and(|(_, parameters)| parameters.contains('='));
    (host.ends_with(']') || port.bytes().all(|byte| byte.is_ascii_digit()))
        && (is_parameter || !behind.contains('/'))
}

/// Omits the password.
impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("kind", &self.kind).field("url", &self.url).finish_non_exhaustive()
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_recognized_and_passwords_separated() {
        for file in ["heaps.sqlite3", "postgresql:heaps", "http://host/db", "", "m", "mysql:/x"] {
            assert_eq!(Server::parse(file), None, "{file}");
        }
        let server =
            Server::parse("postgres://me:s%40c:ret@db.example:5433/heaps?options=x&sslmode=disable").unwrap();
        assert_eq!(server.name(), "postgresql://me@db.example:5433/heaps?options=x");
        assert_eq!(server.password.as_deref(), Some("s@c:ret"));
        assert!(!format!("{server:?} {server}").contains("ret"));
        let server = Server::parse("MariaDB://localhost/heaps?at=a:b@c").unwrap();
        assert_eq!((server.name(), server.has_password()), ("mysql://localhost/heaps?at=a:b@c", false));
        assert_eq!(server.kind(), ServerSoftware::Mysql);
    }

    #[test]
    fn passwords_are_separated_in_every_form() {
        for (address, name, password) in [
            ("postgresql://me@h:1/d?password=se%2Fcret&a=1", "postgresql://me@h:1/d?a=1", "se/cret"),
            ("postgresql://h/d?user=me&password=secret", "postgresql://h/d?user=me", "secret"),
            ("mysql://me:first@h/d?p%61ssword=secret", "mysql://me@h/d", "secret"),
            ("postgresql://me:hunter/2@h:1/d", "postgresql://me@h:1/d", "hunter/2"),
            ("mysql://me:se?cr/et@h/d?a=b@c", "mysql://me@h/d?a=b@c", "se?cr/et"),
            ("postgresql://me:12/34@h/d", "postgresql://me@h/d", "12/34"),
            ("mysql://me:12?34@h/d", "mysql://me@h/d", "12?34"),
            ("mysql://me:s/e@c@h/d", "mysql://me@h/d", "s/e@c"),
            ("mysql://me:a%+1b@h/d", "mysql://me@h/d", "a%+1b"),
        ] {
            let server = Server::parse(address).unwrap();
            assert_eq!((server.name(), server.password.as_deref()), (name, Some(password)), "{address}");
        }
        for address in [
            "mysql://localhost:3306/heaps?socket=/run/a@b/s",
            "mysql://[::1]:3306/heaps?socket=/run/a@b/s",
            "mysql://localhost:3306/he@ps",
            "postgresql://127.0.0.1:1/he@ps?options=/x",
            "postgresql://me@h/d?a=b:c@d",
        ] {
            let server = Server::parse(address).unwrap();
            assert_eq!((server.name(), server.has_password()), (address, false));
        }
    }

    #[test]
    fn parts_are_put_together() {
        let server = Server::new(ServerSoftware::Mysql, "127.0.0.1", None, "re/li", "a@b").with_password("x");
        assert_eq!(server.name(), "mysql://a%40b@127.0.0.1:3306/re%2Fli");
        let server = Server::new(ServerSoftware::Postgresql, "::1", Some(5), "d", "u");
        assert_eq!(server.name(), "postgresql://u@[::1]:5/d");
    }
}
