//! TLS to a server whose URL says https, by the certificates that the system trusts
//! (`SSL_CERT_FILE` names others).

use std::io;
use std::sync::Arc;

use hyper::Uri;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// What is needed to open connections to one server.
#[derive(Debug)]
pub(super) struct Tls {
    name: ServerName<'static>,
    config: Arc<ClientConfig>,
}

impl Tls {
    /// For the host of a URL.
    ///
    /// # Errors
    /// When it is no name that a certificate can have, or there is no TLS to be had.
    pub(super) fn new(uri: &Uri) -> io::Result<Tls> {
        let name = ServerName::try_from(host(uri).to_owned()).map_err(io::Error::other)?;
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::warn!(%error, "a certificate of the system cannot be read");
        }
        roots.add_parsable_certificates(found.certs);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Tls { name, config: Arc::new(config) })
    }

    /// Greets the server on a connection.
    pub(super) async fn greet(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        TlsConnector::from(self.config.clone()).connect(self.name.clone(), stream).await
    }
}

/// The host of a URL, an IPv6 address without its brackets.
pub(super) fn host(uri: &Uri) -> &str {
    uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
}
