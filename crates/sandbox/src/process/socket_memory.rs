//! The memory in Unix socket buffers, queried from the kernel (`NETLINK_SOCK_DIAG`).
//!
//! It is not charged to any process and cannot be found through descriptors. The kernel answers for this process's
//! network namespace, including sockets that are in transit through other sockets.

use std::io::Read;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

const NETLINK: i32 = 16;
const NETLINK_SOCK_DIAG: i32 = 4;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const UNIX_FAMILY: u8 = 1;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const REQUEST_ALL: u16 = 0x301;
/// `UDIAG_SHOW_MEMINFO`.
const SHOW_MEMORY: u32 = 0x20;
/// `UNIX_DIAG_MEMINFO`.
const MEMORY_ATTRIBUTE: u16 = 5;
const MESSAGE_ERROR: u16 = 2;
const MESSAGE_DONE: u16 = 3;
/// The size of a message header.
const HEADER_BYTES: usize = 16;
/// The size of the socket description that precedes the attributes.
const SOCKET_BYTES: usize = 16;
/// The indexes of `SK_MEMINFO_RMEM_ALLOC` and `SK_MEMINFO_WMEM_ALLOC` in the attribute. A Unix socket charges the
/// sender.
const CHARGED: [usize; 2] = [0, 2];
/// A generous timeout: the kernel answers immediately.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(1);
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// The bytes in the buffers of all Unix sockets in the network namespace. `None` if the kernel does not answer.
pub(super) fn unix_socket_bytes() -> Option<u64> {
    let protocol = Protocol::from(NETLINK_SOCK_DIAG);
    let mut socket = Socket::new(Domain::from(NETLINK), Type::RAW, Some(protocol)).ok()?;
    socket.set_read_timeout(Some(ANSWER_TIME_MAX)).ok()?;
    socket.send(&build_request()).ok()?;
    let (mut bytes, mut sum) = (vec![0; ANSWER_BYTES_MAX], 0_u64);
    loop {
        let count = socket.read(&mut bytes).ok()?;
        let answer = sum_response(&bytes[..count])?;
        sum = sum.saturating_add(answer.bytes);
        if answer.is_last {
            return Some(sum);
        }
    }
}

/// Builds a request for the memory of all Unix sockets in every state.
fn build_request() -> Vec<u8> {
    let mut body = vec![UNIX_FAMILY, 0, 0, 0];
    for number in [u32::MAX, 0, SHOW_MEMORY, 0, 0] {
        body.extend(number.to_ne_bytes());
    }
    let length = u32::try_from(HEADER_BYTES + body.len()).unwrap_or(0);
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    message.extend(REQUEST_ALL.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    message
}

#[derive(Debug, Default, PartialEq, Eq)]
struct SocketAnswer {
    bytes: u64,
    is_last: bool,
}

/// Adds up the sockets of one response, which holds several messages. Returns `None` if it is an error or malformed.
fn sum_response(mut bytes: &[u8]) -> Option<SocketAnswer> {
    let mut answer = SocketAnswer::default();
    // An empty response would cause an endless loop.
    if bytes.is_empty() {
        return None;
    }
    while bytes.len() >= HEADER_BYTES {
        let length = usize::try_from(u32_at(bytes, 0)?).ok()?;
        let message = bytes.get(HEADER_BYTES..length)?;
        match u16_at(bytes, 4)? {
            MESSAGE_DONE => return Some(SocketAnswer { is_last: true, ..answer }),
            MESSAGE_ERROR => return None,
            _ => answer.bytes = answer.bytes.saturating_add(charged_bytes(message)),
        }
        bytes = bytes.get(align_length(length)..).unwrap_or_default();
    }
    Some(answer)
}

fn charged_bytes(message: &[u8]) -> u64 {
    let mut attributes = message.get(SOCKET_BYTES..).unwrap_or_default();
    while let (Some(length), Some(kind)) = (u16_at(attributes, 0), u16_at(attributes, 2)) {
        if kind == MEMORY_ATTRIBUTE {
            let value = |place: usize| u32_at(attributes, 4 + 4 * place).unwrap_or(0);
            return CHARGED.iter().map(|place| u64::from(value(*place))).sum();
        }
        let next = align_length(usize::from(length).max(4));
        attributes = attributes.get(next..).unwrap_or_default();
    }
    0
}

fn align_length(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn bytes_that_wait_in_socket_pairs_are_counted() {
        let Some(before) = unix_socket_bytes() else { return };
        let (mut near, _far) = std::os::unix::net::UnixStream::pair().unwrap();
        near.write_all(&[1; 100_000]).unwrap();
        let grown = unix_socket_bytes().unwrap().saturating_sub(before);
        assert!(grown >= 80_000, "{grown}");
    }

    #[test]
    fn malformed_answers_end() {
        assert_eq!(sum_response(&[]), None);
        assert_eq!(sum_response(&[0; 16]), None);
        assert_eq!(sum_response(&[255; 64]), None);
        assert_eq!(charged_bytes(&[0; 64]), 0);
        assert_eq!(charged_bytes(&[1; 3]), 0);
    }
}
