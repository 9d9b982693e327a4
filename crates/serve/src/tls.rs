//! Encrypted connections, by a certificate and its key in files.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// The files that show who the server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate and those that lead to its issuer, in PEM.
    pub certificate: PathBuf,
    /// Its private key, in PEM.
    pub key: PathBuf,
}

/// Reads the files, and makes connections of what they say.
pub(crate) fn acceptor(files: &TlsFiles) -> io::Result<TlsAcceptor> {
    let TlsFiles { certificate, key } = files;
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| invalid(certificate, &error))?;
    if chain.is_empty() {
        return Err(invalid(certificate, &"expected a certificate in PEM, found none"));
    }
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| invalid(key, &error))?;
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, secret));
    let mut config = config.map_err(|error| invalid(key, &error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn invalid(path: &Path, error: &dyn std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display()))
}
