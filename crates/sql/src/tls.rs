//! The certificates accepted for encrypted connections to PostgreSQL.

use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::encryption::EncryptionMode;

type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

/// The TLS configuration for a mode; `roots` is a file with certificates of further authorities.
///
/// # Errors
/// If the file cannot be read or contains no certificates.
pub(crate) fn config(mode: EncryptionMode, roots: Option<&Path>) -> Result<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let trusted = Arc::new(trusted(roots)?);
    let strict = WebPkiServerVerifier::builder_with_provider(trusted, Arc::clone(&provider)).build()?;
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?.dangerous();
    let verifier = Arc::new(Verifier { strict, mode });
    Ok(builder.with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// The authorities that browsers trust, and those in the file.
fn trusted(roots: Option<&Path>) -> Result<RootCertStore> {
    let mut trusted = RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    let Some(path) = roots else { return Ok(trusted) };
    let about = |what: String| format!("{what} ({})", path.display());
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| about(error.to_string()))?;
    let mut added = 0;
    for certificate in certificates {
        trusted.add(certificate.map_err(|error| about(error.to_string()))?)?;
        added += 1;
    }
    match added {
        0 => Err(about("expected certificates in PEM, found none".to_owned()).into()),
        _ => Ok(trusted),
    }
}

/// Verifies certificates as far as the mode requires.
#[derive(Debug)]
struct Verifier {
    strict: Arc<WebPkiServerVerifier>,
    mode: EncryptionMode,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if !matches!(self.mode, EncryptionMode::VerifyCa | EncryptionMode::VerifyFull) {
            return Ok(ServerCertVerified::assertion());
        }
        let found =
            self.strict.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match found {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.mode == EncryptionMode::VerifyCa => Ok(ServerCertVerified::assertion()),
            found => found,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.strict.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.strict.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.strict.supported_verify_schemes()
    }
}
