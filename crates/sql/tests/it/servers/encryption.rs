//! Encrypted connections to real servers.

use std::path::Path;

use borehole_sql::dialect::SqlDialect;
use borehole_sql::{Access, Database, Error, ErrorKind, Server, SqlValue};
use borehole_testkit::servers::{DATABASE, DatabaseServer, ServerKind};

use super::rows;

/// Connects with a name of the server's host and with parameters.
fn connect(started: &DatabaseServer, host: &str, parameters: &str) -> Result<Database, Error> {
    let address = started.address(DATABASE).replace("127.0.0.1", host);
    Database::connect(&Server::parse(&format!("{address}?{parameters}")).unwrap(), Access::Read)
}

/// Whether the server confirms it.
fn is_encrypted(database: &mut Database) -> bool {
    if database.dialect() == SqlDialect::Postgresql {
        let statement = "SELECT CAST(ssl AS INT) FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        return rows(database, statement) == [[SqlValue::Integer(1)]];
    }
    let cipher = rows(database, "SHOW SESSION STATUS LIKE 'Ssl_cipher'");
    cipher[0][1] != SqlValue::Text(String::new())
}

fn refused(started: &DatabaseServer, host: &str, parameters: &str) -> String {
    let error = connect(started, host, parameters).err().expect(parameters);
    assert_eq!(error.kind(), ErrorKind::Connection, "{parameters}: {error}");
    let message = error.to_string();
    assert!(message.starts_with("no connection to "), "{parameters}: {message}");
    let mut causes = vec![message];
    let mut next = std::error::Error::source(&error);
    while let Some(cause) = next {
        causes.push(cause.to_string());
        next = cause.source();
    }
    causes.join(": ")
}

pub(super) fn a_connection_is_as_safe_as_asked(started: &DatabaseServer) {
    let authority = format!("sslrootcert={}", started.authority().display());
    for (host, parameters, expected) in [
        ("127.0.0.1", String::new(), false),
        ("127.0.0.1", "sslmode=disable".to_owned(), false),
        ("127.0.0.1", "sslmode=prefer".to_owned(), true),
        ("127.0.0.1", "ssl-mode=REQUIRED".to_owned(), true),
        ("127.0.0.1", format!("sslmode=verify-ca&{authority}"), true),
        ("localhost", format!("sslmode=verify-full&{authority}"), true),
    ] {
        let mut database = connect(started, host, &parameters).expect(&parameters);
        assert_eq!(is_encrypted(&mut database), expected, "{parameters}");
    }
    let complaint = refused(started, "127.0.0.1", &format!("sslmode=verify-full&{authority}"));
    assert!(complaint.contains("not valid for name"), "{complaint}");
    for mode in ["verify-ca", "verify-full"] {
        let complaint = refused(started, "localhost", &format!("sslmode={mode}"));
        assert!(complaint.contains("UnknownIssuer"), "{complaint}");
    }
    let complaint = refused(started, "localhost", "sslmode=always");
    assert!(complaint.ends_with("verify-ca or verify-full, found always"), "{complaint}");
    let complaint = refused(started, "localhost", "sslmode=verify-full&sslrootcert=/nowhere/ca.pem");
    assert!(complaint.contains("No such file"), "{complaint}");
    assert!(!Path::new("/nowhere/ca.pem").exists());
}

#[test]
fn required_encryption_is_enforced() {
    for kind in [ServerKind::Postgresql, ServerKind::Mariadb] {
        let Some(started) = DatabaseServer::start_without_tls(kind) else { continue };
        let mut database = connect(&started, "127.0.0.1", "sslmode=prefer").unwrap();
        assert!(!is_encrypted(&mut database), "{kind:?}");
        for mode in ["require", "verify-ca", "verify-full"] {
            let complaint = refused(&started, "localhost", &format!("sslmode={mode}"));
            assert!(complaint.to_lowercase().contains("tls"), "{complaint}");
        }
    }
}

/// For a name, and for none.
const OF_OPENSSL: [&[&str]; 2] =
    [&["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], &["-subj", "/CN=localhost"]];

const NO_AUTHORITY: &[&str] = &[
    "-subj",
    "/CN=localhost",
    "-addext",
    "subjectAltName=DNS:localhost",
    "-addext",
    "basicConstraints=critical,CA:FALSE",
];

const NAMELESS: &str =
    "the certificate of the server names no host; make it with `-addext subjectAltName=DNS:HOST`";

#[test]
fn postgresql_s_certificate_of_openssl_is_its_own_authority() {
    for (arguments, has_name) in OF_OPENSSL.into_iter().zip([true, false]) {
        let Some(started) = DatabaseServer::start_self_signed(ServerKind::Postgresql, arguments) else {
            return;
        };
        let authority = format!("sslrootcert={}", started.authority().display());
        for mode in ["require", "verify-ca", "verify-full"] {
            let parameters = format!("sslmode={mode}&{authority}");
            if mode == "verify-full" && !has_name {
                let complaint = refused(&started, "localhost", &parameters);
                assert!(complaint.contains(NAMELESS), "{complaint}");
                continue;
            }
            let mut database = connect(&started, "localhost", &parameters).expect(&parameters);
            assert!(is_encrypted(&mut database), "{parameters}");
        }
        // Another name, another certificate, or none.
        if has_name {
            let complaint = refused(&started, "127.0.0.1", &format!("sslmode=verify-full&{authority}"));
            assert!(complaint.contains("not valid for name"), "{complaint}");
        }
        let Some(other) = DatabaseServer::start_self_signed(ServerKind::Postgresql, arguments) else {
            return;
        };
        let others = format!("sslmode=verify-ca&sslrootcert={}", other.authority().display());
        for parameters in [&*others, "sslmode=verify-ca"] {
            let complaint = refused(&started, "localhost", parameters);
            let expected = "the certificate of an authority, as `openssl req -x509` makes it; name it in sslrootcert to trust it";
            assert!(complaint.contains(expected), "{complaint}");
        }
    }
}

/// Its driver verifies certificates itself.
#[test]
fn mariadb_s_certificate_is_accepted_or_the_error_says_how_to_make_one_that_is() {
    for (arguments, is_accepted) in [(OF_OPENSSL[0], false), (NO_AUTHORITY, true)] {
        let Some(started) = DatabaseServer::start_self_signed(ServerKind::Mariadb, arguments) else { return };
        for mode in ["verify-ca", "verify-identity"] {
            let parameters = format!("ssl-mode={mode}&ssl-ca={}", started.authority().display());
            if is_accepted {
                let mut database = connect(&started, "localhost", &parameters).expect(&parameters);
                assert!(is_encrypted(&mut database), "{parameters}");
            } else {
                let complaint = refused(&started, "localhost", &parameters);
                let expected =
                    "; make it with `-addext basicConstraints=critical,CA:FALSE`, and name it in ssl-ca";
                assert!(complaint.ends_with(expected), "{complaint}");
            }
        }
    }
}
