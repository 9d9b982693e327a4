//! Asks Linux for the listening TCP sockets of the network namespace.
//!
//! Source of requests and answers: Linux, `include/uapi/linux/netlink.h`, `sock_diag.h` and `inet_diag.h`; of the meaning
//! of the queues of a listening socket, `net/ipv4/tcp_diag.c`, `tcp_diag_get_info`.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, setsockopt, socket,
    sockopt::ReceiveTimeout,
};
use nix::sys::time::{TimeVal, TimeValLike as _};

/// A socket that listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listener {
    pub(crate) cookie: u64,
    pub(crate) inode: u32,
    pub(crate) is_v6: bool,
    pub(crate) address: [u8; 16],
    pub(crate) port: u16,
    /// The number of connections that wait to be accepted.
    pub(crate) pending: u32,
    /// The number that may wait.
    pub(crate) limit: u32,
}

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;
/// `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST | NLM_F_ROOT | NLM_F_MATCH`.
const DUMP_FLAGS: u16 = 0x301;
/// `1 << TCP_LISTEN`.
const LISTENING: u32 = 1 << 10;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// `struct nlmsghdr`.
const HEADER_BYTES: usize = 16;
/// `struct inet_diag_req_v2`.
const REQUEST_BYTES: usize = 56;
/// Both together.
const MESSAGE_BYTES: u32 = 72;
/// `struct inet_diag_msg`.
const ANSWER_BYTES: usize = 72;

/// The listening sockets of both versions of IP.
pub(crate) fn listeners() -> io::Result<Vec<Listener>> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Netlink, SockType::Datagram, flags, SockProtocol::NetlinkSockDiag)?;
    // The kernel answers at once; this is for one that does not.
    setsockopt(&socket, ReceiveTimeout, &TimeVal::milliseconds(500))?;
    let mut found = Vec::new();
    for family in [AF_INET, AF_INET6] {
        ask(&socket, family, &mut found)?;
    }
    Ok(found)
}

fn ask(socket: &OwnedFd, family: u8, found: &mut Vec<Listener>) -> io::Result<()> {
    sendto(socket.as_raw_fd(), &request(family), &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
    let mut bytes = vec![0; 32 << 10];
    loop {
        let len = recv(socket.as_raw_fd(), &mut bytes, MsgFlags::empty())?;
        if len == 0 || read(&bytes[..len], found)? {
            return Ok(());
        }
    }
}

fn request(family: u8) -> [u8; HEADER_BYTES + REQUEST_BYTES] {
    let mut bytes = [0; HEADER_BYTES + REQUEST_BYTES];
    bytes[..4].copy_from_slice(&MESSAGE_BYTES.to_ne_bytes());
    bytes[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&DUMP_FLAGS.to_ne_bytes());
    bytes[HEADER_BYTES] = family;
    bytes[HEADER_BYTES + 1] = IPPROTO_TCP;
    bytes[HEADER_BYTES + 4..HEADER_BYTES + 8].copy_from_slice(&LISTENING.to_ne_bytes());
    bytes
}

/// Reads the messages of a datagram. Returns whether the last one was the end.
fn read(mut bytes: &[u8], found: &mut Vec<Listener>) -> io::Result<bool> {
    while let Some(header) = bytes.first_chunk::<HEADER_BYTES>() {
        let len = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let kind = u16::from_ne_bytes([header[4], header[5]]);
        let Some(message) = bytes.get(HEADER_BYTES..len.max(HEADER_BYTES)) else { return Ok(true) };
        match kind {
            NLMSG_DONE => return Ok(true),
            NLMSG_ERROR => return Err(io::Error::other("the kernel does not list sockets")),
            _ => found.extend(listener(message)),
        }
        // Messages begin at multiples of 4.
        bytes = bytes.get(len.max(HEADER_BYTES).next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

fn listener(message: &[u8]) -> Option<Listener> {
    let message = message.first_chunk::<ANSWER_BYTES>()?;
    let number =
        |at: usize| u32::from_ne_bytes([message[at], message[at + 1], message[at + 2], message[at + 3]]);
    let mut address = [0; 16];
    address.copy_from_slice(&message[8..24]);
    Some(Listener {
        is_v6: message[0] == AF_INET6,
        port: u16::from_be_bytes([message[4], message[5]]),
        address,
        cookie: u64::from(number(44)) | u64::from(number(48)) << 32,
        pending: number(56),
        limit: number(60),
        inode: number(68),
    })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn connections_that_nobody_accepts_are_counted() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let waiting = [(); 3].map(|()| TcpStream::connect(address).unwrap());
        let found = listeners().unwrap();
        let found = found.iter().find(|listener| listener.port == address.port()).unwrap();
        assert_eq!((found.pending, found.is_v6, &found.address[..4]), (3, false, &[127, 0, 0, 1][..]));
        assert!(found.limit >= 128 && found.inode > 0 && found.cookie > 0, "{found:?}");
        drop(waiting);
    }

    #[test]
    fn a_cut_answer_is_no_panic() {
        let mut whole = request(AF_INET).to_vec();
        whole.extend([0; 100]);
        (0..whole.len()).for_each(|len| drop(read(&whole[..len], &mut Vec::new())));
    }
}
