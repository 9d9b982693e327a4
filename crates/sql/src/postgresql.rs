//! PostgreSQL servers.

mod link;

use std::error::Error as _;
use std::io::Cursor;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::mpsc::Receiver;

use futures::{SinkExt as _, TryStreamExt as _};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{FromSql, Type};

use crate::backend::{Backend, Fill, ResultField, ResultRows, TURN_PATIENCE_S};
use crate::dialect::SqlDialect;
use crate::encryption::{self, EncryptionMode};
use crate::error::{Error, ErrorKind, LOCKED};
use crate::number::{decimal, numeric};
use crate::pipe::{self, RowBatch};
use crate::rows::{self, CellValue};
use crate::schema::SchemaTable;
use crate::server::{Access, Server};
use crate::time_limits::{self, beginning};
use link::{Link, NotLinked, Route, RouteEncryption};

/// A connection to a server.
pub(crate) struct Postgresql(Link);

/// The oldest supported version: it has 64-bit ids and recursive views.
const OLDEST: i64 = 100_000;

/// The maximum time to wait for a lock, as long as with SQLite.
const LOCK_PATIENCE: &str = "lock_timeout = '5s'";

/// Gives more memory than the default to the sorting of indexes.
const SETTINGS: &str = "SET maintenance_work_mem = '256MB'; SET client_min_messages = warning;";

/// The number of the lock by which writers of one database take turns: `borehole` in ASCII.
const TURN: i64 = i64::from_be_bytes(*b"borehole");

impl Postgresql {
    pub(crate) fn connect(server: &Server, access: Access) -> Result<Self, Error> {
        let mut connection = Self(link(server)?);
        connection.check_server()?;
        connection.execute(SETTINGS)?;
        connection.execute(&format!("SET {LOCK_PATIENCE}"))?;
        if access == Access::Read {
            connection.execute("SET default_transaction_read_only = on")?;
        }
        Ok(connection)
    }

    fn check_server(&mut self) -> Result<(), Error> {
        let statement = "SELECT current_setting('server_version_num')::BIGINT, current_setting('server_version'), current_setting('server_encoding')";
        let row = self.0.wait("its version", async |client| client.query_one(statement, &[]).await)?;
        let (number, version, encoding): (i64, String, String) = (row.get(0), row.get(1), row.get(2));
        check_version(number, &version)?;
        if encoding == "UTF8" {
            return Ok(());
        }
        let message = format!(
            "unsupported database encoding: expected UTF8, found {encoding}; create a database with createdb --encoding=UTF8 --template=template0"
        );
        Err(Error::new(ErrorKind::Unsupported, message))
    }
}

/// Whether all servers in the configuration are this machine. If there are addresses, the driver uses them and ignores
/// the hosts.
fn is_near(config: &Config) -> bool {
    let mut hosts = config.get_hosts().iter();
    hosts.all(|host| match host {
        Host::Tcp(name) => encryption::is_near(name),
        Host::Unix(_) => true,
    }) && config.get_hostaddrs().iter().all(IpAddr::is_loopback)
}

/// Connects to a server.
fn link(server: &Server) -> Result<Link, Error> {
    let unreached = |why| server.unreached(why);
    let mut config: Config = server.url().parse().map_err(|error| not_connected(server, error))?;
    if let Some(password) = server.password() {
        config.password(password);
    }
    config.application_name("borehole");
    let most = server.limits().connect().map_err(unreached)?;
    // A host that does not answer must not take the time of the next one.
    if let Some(most) = most {
        config.connect_timeout(most);
    }
    config.keepalives_idle(time_limits::KEEPALIVE_IDLE).keepalives_interval(time_limits::KEEPALIVE_INTERVAL);
    config.keepalives_retries(time_limits::KEEPALIVE_TESTS);
    let mode = server.encryption().mode(is_near(&config)).map_err(unreached)?;
    let encryption = encryption(server, &mut config, mode)?;
    Link::new(Route { config, encryption }, most, server.limits().answer()).map_err(|error| match error {
        NotLinked::TooSlow => server.too_slow(most.unwrap_or_default(), WAITED_FOR),
        NotLinked::Refused(error) => not_connected(server, error),
        NotLinked::Local(error) => server.unreached(error),
    })
}

/// The missing answer of a program that accepts connections but is silent.
const WAITED_FOR: &str = "the answer of a PostgreSQL server";

/// The encryption in a mode. If encryption is preferred, the driver connects without it if the server has none.
fn encryption(server: &Server, config: &mut Config, mode: EncryptionMode) -> Result<RouteEncryption, Error> {
    config.ssl_mode(match mode {
        EncryptionMode::Disable => SslMode::Disable,
        EncryptionMode::Prefer => SslMode::Prefer,
        EncryptionMode::Require | EncryptionMode::VerifyCa | EncryptionMode::VerifyFull => SslMode::Require,
    });
    if mode == EncryptionMode::Disable {
        return Ok(RouteEncryption::None);
    }
    #[cfg(feature = "tls")]
    {
        let tls = crate::tls::config(mode, server.encryption().roots.as_deref());
        let tls = tls.map_err(|why| server.unreached(why))?;
        Ok(RouteEncryption::Tls(tokio_postgres_rustls::MakeRustlsConnect::new(tls)))
    }
    #[cfg(not(feature = "tls"))]
    match mode {
        EncryptionMode::Prefer => Ok(RouteEncryption::None),
        _ => Err(server.unreached(encryption::MISSING)),
    }
}

fn check_version(number: i64, version: &str) -> Result<(), Error> {
    if number >= OLDEST {
        return Ok(());
    }
    let message = format!("unsupported server: expected PostgreSQL 10 or newer, found {version}");
    Err(Error::new(ErrorKind::Unsupported, message))
}

impl Backend for Postgresql {
    fn dialect(&self) -> SqlDialect {
        SqlDialect::Postgresql
    }

    fn execute(&mut self, statement: &str) -> Result<(), Error> {
        self.0.wait(&beginning(statement), async |client| client.batch_execute(statement).await)
    }

    fn answer(
        &mut self,
        statement: &str,
        numbers: &[Option<i64>],
        rows: &mut dyn ResultRows,
    ) -> Result<(), Error> {
        let waited_for = beginning(statement);
        let (client, waiter) = self.0.parts();
        let statement = waiter.wait(&waited_for, client.prepare(statement))?;
        let columns: Vec<String> =
            statement.columns().iter().map(|column| column.name().to_owned()).collect();
        rows.columns(&columns)?;
        let mut found = pin!(waiter.wait(&waited_for, client.query_raw(&statement, numbers))?);
        while let Some(row) = waiter.wait(&waited_for, found.try_next())? {
            let fields = (0..columns.len()).map(|index| row.try_get::<_, Answered<'_>>(index));
            let fields =
                fields.map(|field| field.map(|Answered(field)| field)).collect::<Result<Vec<_>, _>>();
            rows.row(&fields.map_err(refused)?)?;
        }
        Ok(())
    }

    fn insert_run(&mut self, created_at: &str) -> Result<i64, Error> {
        let statement = "INSERT INTO runs (created_at) VALUES ($1) RETURNING run_id";
        let row = self
            .0
            .wait(&beginning(statement), async |client| client.query_one(statement, &[&created_at]).await)?;
        row.try_get(0).map_err(refused)
    }

    fn take_turn(&mut self) -> Result<(), Error> {
        self.execute(&format!(
            "SET LOCAL lock_timeout = '{TURN_PATIENCE_S}s'; SELECT pg_advisory_xact_lock({TURN}); \
             SET LOCAL {LOCK_PATIENCE}"
        ))
    }

    fn load(&mut self, fill: &mut Fill<'_>) -> Result<(), Error> {
        let link = &mut self.0;
        pipe::run(encode, fill, |table, batches| copy(link, table, batches))
    }
}

/// The start of a binary COPY: its signature, no flags, no header extension.
///
/// Source: PostgreSQL's documentation of COPY, "Binary Format".
const COPY_HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// The end of a binary COPY, in the place of a row's field count.
const COPY_TRAILER: [u8; 2] = (-1_i16).to_be_bytes();

/// Encodes fields for a binary COPY; all numbers have 64 bits.
fn encode(cells: &[CellValue<'_>], bytes: &mut Vec<u8>) {
    let count = i16::try_from(cells.len()).expect("tables have few columns");
    bytes.extend_from_slice(&count.to_be_bytes());
    for cell in cells {
        match cell {
            CellValue::Null => bytes.extend_from_slice(&(-1_i32).to_be_bytes()),
            CellValue::Integer(number) => {
                bytes.extend_from_slice(&8_i32.to_be_bytes());
                bytes.extend_from_slice(&number.to_be_bytes());
            }
            CellValue::Text(text) => {
                // The server rejects this length, as it rejects everything above 1 GiB.
                let length = i32::try_from(text.len()).unwrap_or(i32::MAX);
                bytes.extend_from_slice(&length.to_be_bytes());
                bytes.extend_from_slice(text.as_bytes());
            }
        }
    }
}

fn copy(link: &mut Link, table: &'static SchemaTable, batches: Receiver<RowBatch>) -> Result<(), Error> {
    let columns: Vec<_> = rows::given(table).collect();
    let statement = format!("COPY {} ({}) FROM STDIN BINARY", table.name, columns.join(", "));
    let waited_for = format!("the rows of {} to be taken", table.name);
    let (client, waiter) = link.parts();
    let mut copy = pin!(waiter.wait(&beginning(&statement), client.copy_in(&statement))?);
    let batches = batches.into_iter().map(|batch| batch.bytes);
    for bytes in [COPY_HEADER.to_vec()].into_iter().chain(batches).chain([COPY_TRAILER.to_vec()]) {
        waiter.wait(&waited_for, copy.send(Cursor::new(bytes)))?;
    }
    waiter.wait(&waited_for, copy.finish()).map(drop)
}

/// A value as returned by a server.
struct Answered<'r>(ResultField<'r>);

impl<'r> FromSql<'r> for Answered<'r> {
    fn from_sql(kind: &Type, raw: &'r [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        let field = match *kind {
            Type::BOOL => ResultField::Integer((raw == [1]).into()),
            Type::INT2 => ResultField::Integer(i16::from_sql(kind, raw)?.into()),
            Type::INT4 => ResultField::Integer(i32::from_sql(kind, raw)?.into()),
            Type::OID => ResultField::Integer(u32::from_sql(kind, raw)?.into()),
            Type::INT8 => ResultField::Integer(i64::from_sql(kind, raw)?),
            Type::FLOAT4 => ResultField::Real(f32::from_sql(kind, raw)?.into()),
            Type::FLOAT8 => ResultField::Real(f64::from_sql(kind, raw)?),
            Type::NUMERIC => decimal(&numeric(raw).ok_or("invalid number")?),
            Type::TEXT
            | Type::VARCHAR
            | Type::BPCHAR
            | Type::NAME
            | Type::UNKNOWN
            | Type::BYTEA
            | Type::JSON
            | Type::XML
            | Type::CHAR => ResultField::Text(raw),
            ref other => {
                return Err(format!("unsupported column type {other}: cast the column to TEXT").into());
            }
        };
        Ok(Self(field))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(ResultField::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// Converts the error of a failed connection, and adds a remedy.
#[cold]
fn not_connected(server: &Server, error: tokio_postgres::Error) -> Error {
    let code = error.code();
    if code == Some(&SqlState::INVALID_CATALOG_NAME) {
        let message = format!("missing database: {}; create it with createdb", said(&error));
        return Error::caused(ErrorKind::Missing, message, error);
    }
    // The driver's text is only `invalid configuration`; the cause states the problem.
    let is_asked_for = error.source().is_some_and(|cause| cause.to_string() == "password missing");
    let is_refused = matches!(code, Some(code) if [SqlState::INVALID_PASSWORD, SqlState::INVALID_AUTHORIZATION_SPECIFICATION].contains(code));
    if is_asked_for || is_refused {
        return server.denied(&said(&error), error);
    }
    #[cfg(feature = "tls")]
    if let Some(advice) = encryption::advice(&error, "name it in sslrootcert to trust it") {
        return server.unreached(advice);
    }
    let said = said(&error);
    if OF_STRANGERS.iter().any(|complaint| said.starts_with(complaint)) {
        return server.unreached("expected a PostgreSQL server, found a program that speaks otherwise");
    }
    let message = format!("no connection to {}: {said}", server.name());
    Error::caused(ErrorKind::Connection, message, error)
}

/// The complaints of the driver about the answers of a program that is not PostgreSQL.
///
/// Source: tokio-postgres 0.7, `error/mod.rs`, the kinds `UnexpectedMessage` and `Parse`.
const OF_STRANGERS: [&str; 2] = ["unexpected message from server", "error parsing response from server"];

/// Converts an error of PostgreSQL, and adds a remedy.
#[cold]
fn refused(error: tokio_postgres::Error) -> Error {
    let (kind, message) = kind_and_message(&error);
    // The message includes what a server reports, but not the cause of a driver's error.
    if error.as_db_error().is_some() {
        return Error::new(kind, message);
    }
    Error::caused(kind, message, error)
}

fn kind_and_message(error: &tokio_postgres::Error) -> (ErrorKind, String) {
    let said = said(error);
    let Some(code) = error.code() else {
        return match error.is_closed()
            || error.source().is_some_and(<dyn std::error::Error>::is::<std::io::Error>)
        {
            true => (ErrorKind::Connection, format!("lost connection to the server: {said}")),
            false => (ErrorKind::Statement, said),
        };
    };
    if [SqlState::LOCK_NOT_AVAILABLE, SqlState::T_R_DEADLOCK_DETECTED].contains(code) {
        return (ErrorKind::Locked, LOCKED.to_owned());
    }
    if *code == SqlState::PROGRAM_LIMIT_EXCEEDED {
        return (ErrorKind::TooLong, said);
    }
    if *code == SqlState::DISK_FULL {
        return (ErrorKind::Io, format!("the server's disk is full: {said}"));
    }
    if code.code().starts_with("57P") || code.code().starts_with("08") {
        return (ErrorKind::Connection, format!("lost connection to the server: {said}"));
    }
    (ErrorKind::Statement, said)
}

/// The message of the server or of the driver.
fn said(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(answer) => match answer.detail() {
            Some(detail) => format!("{} ({detail})", answer.message()),
            None => answer.message().to_owned(),
        },
        // The cause is reported separately.
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_local_if_all_its_hosts_are() {
        let is_near = |url: &str| is_near(&url.parse().unwrap());
        for near in ["localhost/d", "%2Frun/d", "[::1]/d?hostaddr=127.0.0.1", "/d?hostaddr=::1"] {
            assert!(is_near(&format!("postgresql://{near}")), "{near}");
        }
        let far = [
            "h/d",
            "localhost,h/d",
            "/d?hostaddr=10.0.0.5",
            "localhost/d?hostaddr=10.0.0.5",
            "%2Frun/d?hostaddr=10.0.0.5",
        ];
        for far in far {
            assert!(!is_near(&format!("postgresql://{far}")), "{far}");
        }
    }

    #[test]
    fn old_servers_are_refused() {
        assert!(check_version(150_018, "15.18").is_ok());
        let error = check_version(90_624, "9.6.24").unwrap_err();
        assert_eq!(error.to_string(), "unsupported server: expected PostgreSQL 10 or newer, found 9.6.24");
    }
}
