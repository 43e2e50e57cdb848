//! The trusted certificate authorities: Mozilla's list, the system's, and those of `[network] ca_file`.

use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Largest file of certificates that is read, in bytes.
const MAX_FILE: u64 = 4 << 20;

/// Why a file of certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CaFileError {
    #[error("failed to read it: {0}")]
    Unreadable(std::io::Error),
    #[error("it has more than {} MiB", MAX_FILE >> 20)]
    TooLarge,
    #[error("it has no certificates in PEM format")]
    Empty,
    #[error("certificate {nth} in it is not valid: {why}")]
    Invalid { nth: usize, why: String },
}

struct Trusted {
    /// Certificates from files that the administrator named.
    added: Vec<CertificateDer<'static>>,
    /// Created on first use: most programs need no TLS.
    config: Option<Arc<ClientConfig>>,
    /// The number of authorities in the configuration.
    count: usize,
}

static TRUSTED: Mutex<Trusted> = Mutex::new(Trusted { added: Vec::new(), config: None, count: 0 });

fn trusted() -> MutexGuard<'static, Trusted> {
    TRUSTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Trusts the certificates in a PEM file, until the process ends.
pub fn trust_file(path: &Path) -> Result<(), CaFileError> {
    let certificates = read(path)?;
    let mut trusted = trusted();
    for certificate in certificates {
        if !trusted.added.contains(&certificate) {
            trusted.added.push(certificate);
            trusted.config = None;
        }
    }
    Ok(())
}

/// Reads the certificates in a PEM file. Each must be usable as a certificate authority.
fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>, CaFileError> {
    let file = crate::home::open_file(path).map_err(CaFileError::Unreadable)?;
    let mut text = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut text).map_err(CaFileError::Unreadable)?;
    if text.len() as u64 > MAX_FILE {
        return Err(CaFileError::TooLarge);
    }
    let (mut certificates, mut roots) = (Vec::new(), RootCertStore::empty());
    for (nth, read) in (1..).zip(CertificateDer::pem_slice_iter(&text)) {
        let invalid = |why: String| CaFileError::Invalid { nth, why };
        let certificate = read.map_err(|error| invalid(error.to_string()))?;
        roots.add(certificate.clone()).map_err(|error| invalid(error.to_string()))?;
        certificates.push(certificate);
    }
    if certificates.is_empty() { Err(CaFileError::Empty) } else { Ok(certificates) }
}

/// The TLS configuration, if it exists already.
pub(super) fn ready_config() -> Option<Arc<ClientConfig>> {
    trusted().config.clone()
}

/// The TLS configuration. The first call reads the system's certificates.
pub(super) fn client_config() -> Arc<ClientConfig> {
    let mut trusted = trusted();
    if let Some(config) = &trusted.config {
        return config.clone();
    }
    let added = trusted.added.clone();
    let (config, count) = {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.into() };
        // A system without certificates still has Mozilla's list, and an invalid certificate of the system cannot be repaired
        // here.
        let system = rustls_native_certs::load_native_certs();
        for error in &system.errors {
            tracing::debug!(%error, "a certificate of the system cannot be read");
        }
        roots.add_parsable_certificates(system.certs.into_iter().chain(added));
        let count = roots.len();
        (Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()), count)
    };
    (trusted.config, trusted.count) = (Some(config.clone()), count);
    config
}

/// The number of trusted certificate authorities.
pub fn count_authorities() -> usize {
    client_config();
    trusted().count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{NetError, connect, secure};
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::ServerConfig;
    use tokio_rustls::rustls::pki_types::PrivateKeyDer;

    const CA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/all/network/tls/ca.pem");

    #[tokio::test]
    async fn a_server_is_trusted_by_an_authority_that_was_added() {
        let certificate = include_bytes!("../../../../tests/all/network/tls/cert.der");
        let key = include_bytes!("../../../../tests/all/network/tls/key.der");
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from(certificate.as_slice())],
                PrivateKeyDer::try_from(key.as_slice()).unwrap(),
            )
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(acceptor.accept(stream));
            }
        });
        let open = |host: &'static str| async move {
            let stream = connect("127.0.0.1", port, true).await.unwrap();
            secure(stream, host).await
        };
        assert!(matches!(open("localhost").await, Err(NetError::Tls(_))), "nobody knows its authority");
        trust_file(Path::new(CA)).unwrap();
        trust_file(Path::new(CA)).unwrap();
        assert_eq!(trusted().added.len(), 1);
        assert!(open("localhost").await.is_ok());
        assert!(open("127.0.0.1").await.is_ok());
        assert!(matches!(open("example.org").await, Err(NetError::Tls(_))), "the certificate is for localhost");
    }

    #[test]
    fn a_file_without_authorities_is_refused_with_a_reason() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ca.pem");
        let refused = |text: &[u8]| {
            std::fs::write(&path, text).unwrap();
            read(&path).unwrap_err().to_string()
        };
        assert_eq!(refused(b""), "it has no certificates in PEM format");
        assert_eq!(
            refused(include_bytes!("../../../../tests/all/network/tls/key.der")),
            "it has no certificates in PEM format"
        );
        let good = std::fs::read_to_string(CA).unwrap();
        assert_eq!(read(Path::new(CA)).unwrap().len(), 1);
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(refused((good + broken).as_bytes()).starts_with("certificate 2 in it is not valid: "));
        assert_eq!(refused(&vec![b'\n'; (4 << 20) + 1]), "it has more than 4 MiB");
        let missing = read(&dir.path().join("missing")).unwrap_err().to_string();
        assert!(missing.starts_with("failed to read it: "), "{missing}");
        assert!(read(dir.path()).is_err(), "a directory");
    }
}
