//! The certificates accepted for encrypted connections to PostgreSQL.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::encryption::{self, EncryptionMode};

type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

/// The TLS configuration for a mode; `roots` is a file with certificates of further authorities.
///
/// # Errors
/// If the file cannot be read or contains no certificates.
pub(crate) fn config(mode: EncryptionMode, roots: Option<&Path>) -> Result<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let own = roots.map(certificates).transpose()?.unwrap_or_default();
    let trusted = Arc::new(trusted(&own)?);
    let strict = WebPkiServerVerifier::builder_with_provider(trusted, Arc::clone(&provider)).build()?;
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?.dangerous();
    let verifier = Arc::new(Verifier { strict, mode, own });
    Ok(builder.with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// The certificates in a file.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let about = |what: String| format!("{what} ({})", path.display());
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| about(error.to_string()))?;
    let certificates =
        certificates.collect::<Result<Vec<_>, _>>().map_err(|error| about(error.to_string()))?;
    match certificates.is_empty() {
        true => Err(about("expected certificates in PEM, found none".to_owned()).into()),
        false => Ok(certificates),
    }
}

/// The authorities that browsers trust, and the user's `own`.
fn trusted(own: &[CertificateDer<'static>]) -> Result<RootCertStore> {
    let mut trusted = RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    own.iter().try_for_each(|certificate| trusted.add(certificate.clone()))?;
    Ok(trusted)
}

/// Verifies certificates as far as the mode requires.
#[derive(Debug)]
struct Verifier {
    strict: Arc<WebPkiServerVerifier>,
    mode: EncryptionMode,
    /// The certificates that the user trusts.
    own: Vec<CertificateDer<'static>>,
}

impl Verifier {
    /// Verifies that a certificate is signed by a trusted authority, and its name. A certificate that the user trusts may
    /// be the server's itself even if it says that it is an authority's, as those of `openssl req -x509` do; OpenSSL, and so
    /// PostgreSQL's own client, accepts it too.
    fn verify(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.strict.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(error) if encryption::is_of_authority(&error) && self.own.contains(end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            found => found,
        }
    }
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
        match self.verify(end_entity, intermediates, server_name, ocsp_response, now) {
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Made with `openssl req -x509 -days 3650 -subj /CN=localhost -addext subjectAltName=DNS:localhost`, for ten years from
    /// November 2026.
    const OF_OPENSSL: &str = "\
-----BEGIN CERTIFICATE-----
MIIBkzCCATmgAwIBAgIUc7er+TpcstRXvOqrl/Al4FFpQZswCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MB4XDTI2MTEyNjA4NDUyMFoXDTM2MTEyMzA4
NDUyMFowFDESMBAGA1UEAwwJbG9jYWxob3N0MFkwEwYHKoZIzj0CAQYIKoZIzj0D
AQcDQgAEXnW5UBaZcVsJCRKiL4VvcGe1S9xoarsch7PQ8juyslM++7dI1V9tZuik
/aEu1QByozfjzpagApZQavVwr2dLh6NpMGcwHQYDVR0OBBYEFGjHe1G91Iqc5065
ANZJo1rIVZ/TMB8GA1UdIwQYMBaAFGjHe1G91Iqc5065ANZJo1rIVZ/TMA8GA1Ud
EwEB/wQFMAMBAf8wFAYDVR0RBA0wC4IJbG9jYWxob3N0MAoGCCqGSM49BAMCA0gA
MEUCIEmdtrNGKEbXgrnt59VIxFzKlfh7aY9vLm89SWKKRULgAiEA1uXNol3LVh94
QkE/A0EBwz1B5Ki6MxRKiNg1CAssA0Q=
-----END CERTIFICATE-----
";

    fn verified(mode: EncryptionMode, name: &str, unix_s: u64) -> Result<ServerCertVerified, rustls::Error> {
        let provider = Arc::new(ring::default_provider());
        let certificate = CertificateDer::from_pem_slice(OF_OPENSSL.as_bytes()).unwrap();
        let own = vec![certificate.clone()];
        let trusted = Arc::new(trusted(&own).unwrap());
        let strict = WebPkiServerVerifier::builder_with_provider(trusted, provider).build().unwrap();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(unix_s));
        Verifier { strict, mode, own }.verify_server_cert(&certificate, &[], &name, &[], now)
    }

    #[test]
    fn a_certificate_that_is_its_own_authority_is_verified_otherwise() {
        let (in_time, late) = (1_800_000_000, 2_200_000_000);
        assert!(verified(EncryptionMode::VerifyFull, "localhost", in_time).is_ok());
        assert!(verified(EncryptionMode::VerifyCa, "elsewhere", in_time).is_ok());
        let error = verified(EncryptionMode::VerifyFull, "elsewhere", in_time).unwrap_err();
        assert!(error.to_string().contains("not valid for name"), "{error}");
        for mode in [EncryptionMode::VerifyFull, EncryptionMode::VerifyCa] {
            let error = verified(mode, "localhost", late).unwrap_err();
            assert!(error.to_string().contains("expired"), "{error}");
        }
    }
}
