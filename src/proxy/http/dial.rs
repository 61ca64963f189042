//! Connections to the server: TCP, and TLS where its URL says so.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{HttpOptions, Upstream};
use crate::proxy::ProxyError;

/// Receive buffer of a connection to the server. Without a limit the system lets it grow to
/// megabytes, and the tap would take from the server what a slow client does not take.
// ours: measured; a larger one moves no more bytes on one machine.
const RECEIVE_BUFFER_BYTES: u32 = 256 << 10;

/// The version of HTTP that is spoken on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speech {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

/// A connection to the server.
#[derive(Debug)]
pub(super) enum Link {
    /// In the clear.
    Plain(TcpStream),
    /// Over TLS.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Link {
    /// Our address on it.
    pub(super) fn local_addr(&self) -> Option<SocketAddr> {
        let tcp = match self {
            Link::Plain(tcp) => tcp,
            Link::Tls(tls) => tls.get_ref().0,
        };
        tcp.local_addr().ok()
    }
}

/// Opens connections to one server.
#[derive(Debug)]
pub(super) struct Dialer {
    upstream: Upstream,
    tls: Option<Tls>,
    is_http2: bool,
}

/// The settings for each protocol that a client may speak, so that the server is offered that.
#[derive(Debug)]
struct Tls {
    name: ServerName<'static>,
    http1: Arc<ClientConfig>,
    http2: Arc<ClientConfig>,
}

impl Dialer {
    pub(super) fn new(options: &HttpOptions) -> Result<Dialer, ProxyError> {
        let upstream = options.upstream.clone();
        let is_http2 = options.is_upstream_http2;
        let tls = if upstream.is_tls() { Some(Tls::new(&upstream, options)?) } else { None };
        Ok(Dialer { upstream, tls, is_http2 })
    }

    /// Whether the server is spoken to in HTTP/2 whatever the client speaks.
    pub(super) fn is_http2(&self) -> bool {
        self.is_http2
    }

    pub(super) fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// Whether it can be reached, TLS included.
    pub(super) async fn probe(&self) -> io::Result<()> {
        self.connect(Speech::Http1).await.map(|_| ())
    }

    /// A new connection, and what to speak on it; `wanted` is what the client speaks.
    pub(super) async fn connect(&self, wanted: Speech) -> io::Result<(Link, Speech)> {
        let plain = self.connect_tcp().await?;
        let forced = if self.is_http2 { Speech::Http2 } else { wanted };
        let Some(tls) = &self.tls else {
            // In the clear nothing says that the server knows HTTP/2, unless the user does.
            let speech = if self.is_http2 { Speech::Http2 } else { Speech::Http1 };
            return Ok((Link::Plain(plain), speech));
        };
        let config = match forced {
            Speech::Http1 => &tls.http1,
            Speech::Http2 => &tls.http2,
        };
        let stream = TlsConnector::from(config.clone()).connect(tls.name.clone(), plain).await?;
        let speech = match stream.get_ref().1.alpn_protocol() {
            Some(b"h2") => Speech::Http2,
            _ => Speech::Http1,
        };
        Ok((Link::Tls(Box::new(stream)), speech))
    }

    async fn connect_tcp(&self) -> io::Result<TcpStream> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in tokio::net::lookup_host((self.upstream.host(), self.upstream.port())).await? {
            match connect_to(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

async fn connect_to(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES)?;
    socket.set_nodelay(true)?;
    socket.connect(address).await
}

impl Tls {
    fn new(upstream: &Upstream, options: &HttpOptions) -> Result<Tls, ProxyError> {
        let bad_name = |_| ProxyError::BadUpstream {
            url: upstream.origin(),
            why: "its host is not a name that a certificate can have",
        };
        let name = ServerName::try_from(upstream.host().to_owned()).map_err(bad_name)?;
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::warn!(%error, "a certificate of the system cannot be read");
        }
        roots.add_parsable_certificates(found.certs);
        if let Some(path) = &options.extra_ca {
            add_extra_roots(&mut roots, path)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| ProxyError::Tls { source: error })?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let with_protocols = |protocols: &[&[u8]]| {
            let mut config = config.clone();
            config.alpn_protocols = protocols.iter().map(|p| p.to_vec()).collect();
            Arc::new(config)
        };
        let http2: &[&[u8]] = if options.is_upstream_http2 { &[b"h2"] } else { &[b"h2", b"http/1.1"] };
        Ok(Tls { name, http1: with_protocols(&[b"http/1.1"]), http2: with_protocols(http2) })
    }
}

fn add_extra_roots(roots: &mut RootCertStore, path: &Path) -> Result<(), ProxyError> {
    let bad = |why: String| ProxyError::BadCa { path: path.to_owned(), why };
    let mut count = 0;
    for certificate in CertificateDer::pem_file_iter(path).map_err(|e| bad(e.to_string()))? {
        let certificate = certificate.map_err(|e| bad(e.to_string()))?;
        roots.add(certificate).map_err(|e| bad(e.to_string()))?;
        count += 1;
    }
    if count == 0 { Err(bad("it holds no certificate".to_owned())) } else { Ok(()) }
}
