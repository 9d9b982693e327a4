//! Where a server is, and who asks it.

use std::fmt;

use crate::encryption::Encryption;
#[cfg(any(feature = "postgresql", feature = "mysql"))]
use crate::error::{Error, ErrorKind};
use crate::percent::{decoded, encoded};

/// A server and a database of it: `postgresql://user:password@host:port/database`, or `mysql://…`.
#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    kind: ServerKind,
    /// With the scheme that the driver knows, without the password and without what is said of encryption.
    url: String,
    password: Option<String>,
    encryption: Encryption,
}

/// A kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerKind {
    /// PostgreSQL.
    Postgresql,
    /// MySQL or MariaDB: which of them, the server says.
    Mysql,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only to ask.
    Read,
    /// To add, change and delete.
    Write,
}

const SCHEMES: [(&str, ServerKind); 4] = [
    ("postgresql://", ServerKind::Postgresql),
    ("postgres://", ServerKind::Postgresql),
    ("mysql://", ServerKind::Mysql),
    ("mariadb://", ServerKind::Mysql),
];

impl ServerKind {
    const fn scheme(self) -> &'static str {
        match self {
            Self::Postgresql => "postgresql://",
            Self::Mysql => "mysql://",
        }
    }

    /// The port that its servers listen at if nobody says otherwise.
    #[must_use]
    pub const fn port(self) -> u16 {
        match self {
            Self::Postgresql => 5432,
            Self::Mysql => 3306,
        }
    }
}

impl Server {
    /// The server that `address` names; `None` if it is no address of a server.
    #[must_use]
    pub fn parse(address: &str) -> Option<Self> {
        let is_scheme = |scheme: &str| {
            address.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
        };
        let (scheme, kind) = SCHEMES.into_iter().find(|(scheme, _)| is_scheme(scheme))?;
        let rest = &address[scheme.len()..];
        let authority = &rest[..rest.find(['/', '?']).unwrap_or(rest.len())];
        let split = authority.rfind('@').and_then(|at| Some((at, authority[..at].find(':')?)));
        let (without, password) = match split {
            Some((at, colon)) => {
                let password = decoded(&rest[colon + 1..at]);
                (format!("{}{}", &rest[..colon], &rest[at..]), Some(password))
            }
            None => (rest.to_owned(), None),
        };
        let mut url = format!("{}{without}", kind.scheme());
        let encryption = Encryption::taken_from(&mut url);
        Some(Self { kind, url, password, encryption })
    }

    /// The database called `database` of the server at `host` and `port`.
    #[must_use]
    pub fn new(kind: ServerKind, host: &str, port: Option<u16>, database: &str, user: &str) -> Self {
        let port = port.unwrap_or(kind.port());
        let host = if host.contains(':') { format!("[{host}]") } else { encoded(host) };
        let url = format!("{}{}@{host}:{port}/{}", kind.scheme(), encoded(user), encoded(database));
        Self { kind, url, password: None, encryption: Encryption::default() }
    }

    /// The same with a password.
    #[must_use]
    pub fn with_password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// Whether a password is known.
    #[must_use]
    pub const fn has_password(&self) -> bool {
        self.password.is_some()
    }

    /// What kind of server it is.
    #[must_use]
    pub const fn kind(&self) -> ServerKind {
        self.kind
    }

    /// Its address without the password.
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
    pub(crate) fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// There is no way to the server.
    #[cold]
    #[cfg(any(feature = "postgresql", feature = "mysql"))]
    pub(crate) fn unreached(&self, why: impl fmt::Display) -> Error {
        Error::new(ErrorKind::Connection, format!("no connection to {}: {why}", self.name()))
    }

    /// The server does not let us in.
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

/// Without the password.
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
    fn an_address_is_told_from_a_file_and_its_password_kept_apart() {
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
        assert_eq!(server.kind(), ServerKind::Mysql);
    }

    #[test]
    fn parts_are_put_together() {
        let server = Server::new(ServerKind::Mysql, "127.0.0.1", None, "re/li", "a@b").with_password("x");
        assert_eq!(server.name(), "mysql://a%40b@127.0.0.1:3306/re%2Fli");
        let server = Server::new(ServerKind::Postgresql, "::1", Some(5), "d", "u");
        assert_eq!(server.name(), "postgresql://u@[::1]:5/d");
    }
}
