//! Whether a peer that ended its sending side has closed, or only stopped sending.
//!
//! On the wire both are one FIN. The path does not need to know: a FIN is passed on as a FIN, and
//! what the peer does with what still comes shows the rest. The recording does: for a peer on
//! this machine the system knows, because a closed socket belongs to no process any more.

use std::net::SocketAddr;

use crate::event::Close;

/// The manner in which `peer`, connected to our `local`, has ended. `Close::Eof` also where it
/// cannot be known: the peer is on another machine, or the system has no such table.
pub(super) fn of_fin(local: SocketAddr, peer: SocketAddr) -> Close {
    if !peer.ip().is_loopback() {
        return Close::Eof;
    }
    let path = if peer.is_ipv4() { "/proc/self/net/tcp" } else { "/proc/self/net/tcp6" };
    let table = std::fs::read_to_string(path).unwrap_or_default();
    if is_owned(&table, peer, local) { Close::HalfClose } else { Close::Eof }
}

/// Whether the table of sockets (see `proc_net_tcp` in the kernel's documentation) has the one
/// from `own` to `other` in the hands of a process.
fn is_owned(table: &str, own: SocketAddr, other: SocketAddr) -> bool {
    let (own, other) = (in_hex(own), in_hex(other));
    table.lines().skip(1).any(|line| {
        let mut columns = line.split_ascii_whitespace().skip(1);
        let is_it = columns.next() == Some(&own) && columns.next() == Some(&other);
        is_it && columns.nth(6).is_some_and(|inode| inode != "0")
    })
}

/// An address as that table has it: words of four bytes, each in the machine's own order.
fn in_hex(address: SocketAddr) -> String {
    use std::fmt::Write;
    let bytes = match address.ip() {
        std::net::IpAddr::V4(ip) => ip.octets().to_vec(),
        std::net::IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let mut text = String::with_capacity(38);
    for word in bytes.as_chunks::<4>().0 {
        // Writing to a String cannot fail.
        let _ = write!(text, "{:08X}", u32::from_ne_bytes(*word));
    }
    let _ = write!(text, ":{:04X}", address.port());
    text
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{Shutdown, TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_closed_peer_and_one_that_only_stopped_sending_are_told_apart() {
        for listen in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(listen).unwrap();
            let local = listener.local_addr().unwrap();
            let half = TcpStream::connect(local).unwrap();
            let (_server, peer) = listener.accept().unwrap();
            half.shutdown(Shutdown::Write).unwrap();
            assert_eq!(of_fin(local, peer), Close::HalfClose);
            drop(half);
            assert_eq!(of_fin(local, peer), Close::Eof);
        }
    }
}
