//! MySQL and MariaDB servers.

mod link;
mod load;

use std::error::Error as _;
use std::time::Duration;

#[cfg(feature = "tls")]
use mysql::SslOpts;
use mysql::consts::ColumnType;
use mysql::prelude::Queryable as _;
use mysql::{DriverError, Opts, OptsBuilder, Params, Value};
#[cfg(feature = "tls")]
use rustls::crypto::{CryptoProvider, ring};

use crate::backend::{Backend, Fill, ResultField, ResultRows, TURN_PATIENCE_S};
use crate::dialect::SqlDialect;
use crate::encryption::{self, EncryptionMode};
use crate::error::{Error, ErrorKind, LOCKED};
use crate::number::decimal;
use crate::server::{Access, Server};
use crate::time_limits::{self, beginning};
use link::{Link, NotLinked};

/// A connection to a server.
pub(crate) struct Mysql {
    link: Link,
    dialect: SqlDialect,
    /// Whether the server accepts rows as a local file: MySQL disables this by default.
    takes_files: bool,
    /// The maximum length of a statement in bytes: the server closes the connection at a longer one.
    longest_statement: usize,
}

/// The maximum length of a result row: the limit of the protocol. By default the driver rejects rows longer than the
/// server's limit for a statement, but a server sends such rows, and `LOAD DATA` accepts them.
const LONGEST_PACKET: usize = 1 << 30;

/// A server may be configured to ignore the character set that clients state when they connect.
const NAMES: &str = "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci";

/// Rejects values that do not fit instead of truncating them, and waits for locks as long as with SQLite.
const SETTINGS: &str = "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', \
                        SESSION innodb_lock_wait_timeout = 5, SESSION lock_wait_timeout = 5";

/// The name of the lock by which writers of one database take turns. The lock is global to the server, and its name has
/// at most 64 characters.
const TURN: &str = "LEFT(CONCAT('borehole ', DATABASE()), 64)";

/// The first versions with recursive queries, and with collations that distinguish trailing spaces.
const OLDEST_MYSQL: (u16, u16, u16) = (8, 0, 17);
const OLDEST_MARIADB: (u16, u16, u16) = (10, 3, 0);

impl Mysql {
    pub(crate) fn connect(server: &Server, access: Access) -> Result<Self, Error> {
        let opts = Opts::from_url(server.url()).map_err(|error| not_connected(server, error.into()))?;
        let has_socket = opts.get_socket().is_some();
        let is_near = has_socket || encryption::is_near(&opts.get_ip_or_hostname());
        let mode = server.encryption().mode(is_near).map_err(|why| server.unreached(why))?;
        let password = server.password().or(opts.get_pass()).map(str::to_owned);
        let longest = opts.get_max_allowed_packet().unwrap_or(LONGEST_PACKET);
        let opts = OptsBuilder::from_opts(opts)
            .pass(password)
            .prefer_socket(has_socket)
            .max_allowed_packet(Some(longest))
            .tcp_keepalive_time_ms(milliseconds(time_limits::KEEPALIVE_IDLE))
            .tcp_keepalive_probe_interval_secs(u32::try_from(time_limits::KEEPALIVE_INTERVAL.as_secs()).ok())
            .tcp_keepalive_probe_count(Some(time_limits::KEEPALIVE_TESTS));
        let mut link = connect(server, opts, mode)?;
        let mut ask = |statement: &str| link.ask(&beginning(statement), |link| link.query_first(statement));
        let version: Option<String> = ask("SELECT VERSION()")?;
        let dialect = dialect_of(&version.unwrap_or_default())?;
        let settings = settings(dialect, access);
        settings
            .iter()
            .try_for_each(|setting| link.ask(&beginning(setting), |link| link.query_drop(setting)))?;
        let statement = "SELECT @@local_infile, @@max_allowed_packet";
        let said = link.ask(&beginning(statement), |link| link.query_first(statement))?;
        let (takes_files, most): (bool, usize) = said.unwrap_or((false, longest));
        Ok(Self { link, dialect, takes_files, longest_statement: most.min(longest) })
    }
}

/// The statements that begin a session.
fn settings(dialect: SqlDialect, access: Access) -> Vec<String> {
    // Paths are as long as PHP's references are deep.
    let limit =
        if dialect == SqlDialect::Mariadb { "max_recursive_iterations" } else { "cte_max_recursion_depth" };
    let mut settings =
        vec![NAMES.to_owned(), SETTINGS.to_owned(), format!("SET SESSION {limit} = 4294967295")];
    if access == Access::Read {
        settings.push("SET SESSION TRANSACTION READ ONLY".to_owned());
    }
    settings
}

fn milliseconds(time: Duration) -> Option<u32> {
    u32::try_from(time.as_millis()).ok()
}

/// Connects in a mode.
fn connect(server: &Server, opts: OptsBuilder, mode: EncryptionMode) -> Result<Link, Error> {
    let most = server.limits().connect().map_err(|why| server.unreached(why))?;
    let link = |opts: OptsBuilder| Link::new(opts, most, server.limits().answer());
    // The driver has its own parameters for no encryption.
    let linked = match encrypted(server, &opts, mode)? {
        None => link(opts),
        Some(encrypted) => match link(encrypted) {
            Err(NotLinked::Refused(mysql::Error::DriverError(DriverError::TlsNotSupported)))
                if mode == EncryptionMode::Prefer =>
            {
                link(opts)
            }
            linked => linked,
        },
    };
    linked.map_err(|error| match error {
        NotLinked::TooSlow => server.too_slow(most.unwrap_or_default(), WAITED_FOR),
        NotLinked::Refused(error) => not_connected(server, error),
    })
}

/// The missing answer of a program that accepts connections but is silent, as a PostgreSQL server is.
const WAITED_FOR: &str = "the greeting of a MySQL or MariaDB server";

/// The options for an encrypted connection; `None` for one without encryption.
#[cfg(feature = "tls")]
fn encrypted(
    server: &Server,
    opts: &OptsBuilder,
    mode: EncryptionMode,
) -> Result<Option<OptsBuilder>, Error> {
    if mode == EncryptionMode::Disable {
        return Ok(None);
    }
    choose_provider();
    let encrypted = SslOpts::default()
        .with_root_cert_path(server.encryption().roots.clone())
        .with_danger_accept_invalid_certs(matches!(mode, EncryptionMode::Prefer | EncryptionMode::Require))
        .with_danger_skip_domain_validation(mode != EncryptionMode::VerifyFull);
    Ok(Some(opts.clone().ssl_opts(encrypted)))
}

/// The options for an encrypted connection; `None` for one without encryption.
#[cfg(not(feature = "tls"))]
fn encrypted(
    server: &Server,
    _opts: &OptsBuilder,
    mode: EncryptionMode,
) -> Result<Option<OptsBuilder>, Error> {
    match mode {
        EncryptionMode::Disable | EncryptionMode::Prefer => Ok(None),
        EncryptionMode::Require | EncryptionMode::VerifyCa | EncryptionMode::VerifyFull => {
            Err(server.unreached(encryption::MISSING))
        }
    }
}

/// Selects the cryptography, as the driver requires for the process. The first selection wins.
#[cfg(feature = "tls")]
fn choose_provider() {
    if CryptoProvider::get_default().is_none() {
        // Another thread may have selected one meanwhile.
        let _ = ring::default_provider().install_default();
    }
}

/// The dialect of a server of this version.
fn dialect_of(version: &str) -> Result<SqlDialect, Error> {
    let is_mariadb = version.contains("MariaDB");
    // For old programs, some servers state 5.5.5 first.
    let plain = version.strip_prefix("5.5.5-").filter(|_| is_mariadb).unwrap_or(version);
    let mut numbers =
        plain.split(|sign: char| !sign.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    let mut number = || numbers.next().unwrap_or(0);
    let found = (number(), number(), number());
    match is_mariadb {
        true if found >= OLDEST_MARIADB => Ok(SqlDialect::Mariadb),
        false if found >= OLDEST_MYSQL => Ok(SqlDialect::Mysql),
        _ => {
            let message =
                format!("unsupported server: expected MySQL 8.0.17, MariaDB 10.3 or newer, found {version}");
            Err(Error::new(ErrorKind::Unsupported, message))
        }
    }
}

impl Backend for Mysql {
    fn dialect(&self) -> SqlDialect {
        self.dialect
    }

    fn execute(&mut self, statement: &str) -> Result<(), Error> {
        self.link.ask(&beginning(statement), |link| link.query_drop(statement))
    }

    fn answer(
        &mut self,
        statement: &str,
        numbers: &[Option<i64>],
        rows: &mut dyn ResultRows,
    ) -> Result<(), Error> {
        let values = numbers.iter().map(|number| number.map_or(Value::NULL, Value::Int)).collect::<Vec<_>>();
        let parameters = if values.is_empty() { Params::Empty } else { Params::Positional(values) };
        self.link.wait(&beginning(statement), |link, watch| {
            let mut answer = link.exec_iter(statement, parameters).map_err(refused)?;
            let columns = answer.columns();
            let columns = columns.as_ref();
            let names: Vec<_> = columns.iter().map(|column| column.name_str().into_owned()).collect();
            let kinds: Vec<ColumnType> = columns.iter().map(mysql::Column::column_type).collect();
            rows.columns(&names)?;
            for row in answer.by_ref() {
                watch.goes_on();
                let values = row.map_err(refused)?.unwrap_raw();
                let fields = values.iter().zip(&kinds).map(|(value, &kind)| field(value.as_ref(), kind));
                rows.row(&fields.collect::<Result<Vec<_>, _>>()?)?;
            }
            Ok(())
        })
    }

    fn insert_run(&mut self, created_at: &str) -> Result<i64, Error> {
        let statement = "INSERT INTO runs (created_at) VALUES (?)";
        self.link.ask(&beginning(statement), |link| link.exec_drop(statement, (created_at,)))?;
        i64::try_from(self.link.connection().last_insert_id())
            .map_err(|error| Error::caused(ErrorKind::Unsupported, "too many runs", error))
    }

    fn take_turn(&mut self) -> Result<(), Error> {
        let statement = format!("SELECT GET_LOCK({TURN}, {TURN_PATIENCE_S})");
        match self.link.ask("its turn to write", |link| link.query_first(statement))? {
            Some(Some(1_i64)) => Ok(()),
            _ => Err(Error::new(ErrorKind::Locked, LOCKED)),
        }
    }

    fn end_turn(&mut self) {
        // The end of the connection releases the lock too.
        drop(self.execute(&format!("DO RELEASE_LOCK({TURN})")));
    }

    fn load(&mut self, fill: &mut Fill<'_>) -> Result<(), Error> {
        match self.takes_files {
            true => load::files(&mut self.link, fill),
            false => load::inserts(&mut self.link, self.longest_statement, fill),
        }
    }
}

fn field(value: Option<&Value>, kind: ColumnType) -> Result<ResultField<'_>, Error> {
    let is_decimal = matches!(kind, ColumnType::MYSQL_TYPE_NEWDECIMAL | ColumnType::MYSQL_TYPE_DECIMAL);
    Ok(match value {
        None | Some(Value::NULL) => ResultField::Null,
        Some(Value::Bytes(bytes)) if is_decimal => decimal(&String::from_utf8_lossy(bytes)),
        Some(Value::Bytes(bytes)) => ResultField::Text(bytes),
        Some(Value::Int(number)) => ResultField::Integer(*number),
        Some(Value::UInt(number)) => decimal(&number.to_string()),
        Some(Value::Float(number)) => ResultField::Real((*number).into()),
        Some(Value::Double(number)) => ResultField::Real(*number),
        Some(Value::Date(..) | Value::Time(..)) => {
            let message = "unsupported column type: cast the column to CHAR";
            return Err(Error::new(ErrorKind::Statement, message));
        }
    })
}

/// The database does not exist.
///
/// Source of the numbers: MySQL's error reference; MariaDB has the same.
const ER_BAD_DB: u16 = 1049;
/// The user does not exist or has another password, or may not use the database.
const ER_ACCESS_DENIED: [u16; 3] = [1045, 1044, 1698];
/// A lock is held by another writer, there was a deadlock, or the lock of the next number was not available.
const ER_LOCKED: [u16; 4] = [1205, 1213, 3572, 1467];
const ER_DISK_FULL: [u16; 3] = [1021, 1114, 3];
/// The server is shutting down, or has closed the connection.
const ER_SHUTDOWN: [u16; 4] = [1053, 1927, 1080, 3169];
const ER_PACKET_TOO_LARGE: u16 = 1153;

/// The driver does not let us accept such a certificate.
#[cfg(feature = "tls")]
const REMADE: &str = "make it with `-addext basicConstraints=critical,CA:FALSE`, and name it in ssl-ca";

/// Converts the error of a failed connection, and adds a remedy.
#[cold]
fn not_connected(server: &Server, error: mysql::Error) -> Error {
    let said = said(&error);
    match &error {
        mysql::Error::MySqlError(answer) if answer.code == ER_BAD_DB => {
            let message = format!("missing database: {said}; create it with CREATE DATABASE");
            Error::caused(ErrorKind::Missing, message, error)
        }
        mysql::Error::MySqlError(answer) if ER_ACCESS_DENIED.contains(&answer.code) => {
            server.denied(&said, error)
        }
        _ => {
            #[cfg(feature = "tls")]
            if let Some(advice) = encryption::advice(&error, REMADE) {
                return server.unreached(advice);
            }
            let message = format!("no connection to {}: {said}", server.name());
            Error::caused(ErrorKind::Connection, message, error)
        }
    }
}

/// Converts an error of MySQL, and adds a remedy.
#[cold]
fn refused(error: mysql::Error) -> Error {
    let said = said(&error);
    let (kind, message) = match &error {
        mysql::Error::MySqlError(answer) => match answer.code {
            code if ER_LOCKED.contains(&code) => (ErrorKind::Locked, LOCKED.to_owned()),
            code if ER_DISK_FULL.contains(&code) => {
                (ErrorKind::Io, format!("the server's disk is full: {said}"))
            }
            code if ER_SHUTDOWN.contains(&code) => {
                (ErrorKind::Connection, format!("lost connection to the server: {said}"))
            }
            ER_PACKET_TOO_LARGE => (ErrorKind::Io, format!("{said}; raise the server's max_allowed_packet")),
            _ => (ErrorKind::Statement, said),
        },
        // An error that the connection did not cause, such as a packet that is too long, will happen again.
        mysql::Error::CodecError(cause) if cause.source().is_none() => (ErrorKind::Io, said),
        _ if error.is_connectivity_error() => {
            (ErrorKind::Connection, format!("lost connection to the server: {said}"))
        }
        _ => (ErrorKind::Statement, said),
    };
    Error::caused(kind, message, error)
}

/// The message of the server or of the driver.
fn said(error: &mysql::Error) -> String {
    match error {
        mysql::Error::MySqlError(answer) => answer.message.clone(),
        mysql::Error::IoError(error) => error.to_string(),
        mysql::Error::DriverError(DriverError::TlsNotSupported) => {
            "the server does not support TLS".to_owned()
        }
        mysql::Error::DriverError(error) => error.to_string(),
        mysql::Error::CodecError(error) => error.to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_tells_the_dialect() {
        for version in ["10.11.19-MariaDB-0+deb12u1", "5.5.5-10.3.0-MariaDB", "11.8.2-MariaDB"] {
            assert_eq!(dialect_of(version).ok(), Some(SqlDialect::Mariadb), "{version}");
        }
        for version in ["8.0.17", "9.7.4-2", "8.4.0-log"] {
            assert_eq!(dialect_of(version).ok(), Some(SqlDialect::Mysql), "{version}");
        }
        for version in ["5.7.44", "8.0.16", "5.5.5-10.2.44-MariaDB", "", "x"] {
            let error = dialect_of(version).unwrap_err();
            assert!(error.to_string().ends_with(&format!("newer, found {version}")), "{error}");
        }
    }
}
