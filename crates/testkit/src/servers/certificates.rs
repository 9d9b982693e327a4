//! Certificates for `localhost`, made with the command `openssl`, which servers depend on.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::succeed;

/// The certificate of the authority.
pub(super) const AUTHORITY: &str = "authority.pem";
/// The server's certificate.
pub(super) const CERTIFICATE: &str = "server.pem";
/// Its key.
pub(super) const KEY: &str = "server.key";

/// An elliptic curve, whose keys are made quickly.
const NEW_KEY: [&str; 5] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

/// Writes a certificate that `openssl req -x509` makes with further `arguments`, in the places of the server's certificate
/// and key, and in that of the authority.
pub(super) fn write_self_signed(folder: &Path, arguments: &[&str]) {
    let command = ["req", "-x509", "-keyout", KEY, "-out", CERTIFICATE];
    succeed(Command::new("openssl").current_dir(folder).args(command).args(NEW_KEY).args(arguments));
    fs::copy(folder.join(CERTIFICATE), folder.join(AUTHORITY)).expect("the folder takes a file");
}

/// Writes all three into `folder`.
pub(super) fn write(folder: &Path) {
    let run = |arguments: &[&str], key: &[&str]| {
        succeed(Command::new("openssl").current_dir(folder).args(arguments).args(key));
    };
    run(
        &["req", "-x509", "-subj", "/CN=authority of a test", "-keyout", "authority.key", "-out", AUTHORITY],
        &NEW_KEY,
    );
    let for_name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
    run(&[&["req", "-keyout", KEY, "-out", "server.request"][..], &for_name].concat(), &NEW_KEY);
    let by_authority = ["-CA", AUTHORITY, "-CAkey", "authority.key", "-copy_extensions", "copy"];
    run(&[&["x509", "-req", "-in", "server.request", "-out", CERTIFICATE][..], &by_authority].concat(), &[]);
}
