//! Skips text that cannot contain invisible characters, by its bytes.

/// The number of bytes tested together. Blocks of plain ASCII are skipped as a whole.
const BLOCK_BYTES: usize = 32;

/// The position of the next character at or after `from` that may be in the table. Line breaks and tabs are skipped.
pub(super) fn next_suspicious(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = from;
    loop {
        while let Some(block) = bytes.get(at..at + BLOCK_BYTES) {
            if !block.iter().fold(true, |plain, byte| plain & is_plain(*byte)) {
                break;
            }
            at += BLOCK_BYTES;
        }
        let end = bytes.len().min(at + BLOCK_BYTES);
        for position in at..end {
            let byte = bytes[position];
            if !is_plain(byte) && may_start(byte, bytes.get(position + 1).copied()) {
                return Some(position);
            }
        }
        if end == bytes.len() {
            return None;
        }
        at = end;
    }
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, 0x20..=0x7e | b'\n' | b'\t')
}

/// Returns true if a character that begins with these two bytes may be in the table. Continuation bytes never are.
fn may_start(first: u8, second: Option<u8>) -> bool {
    let second = second.unwrap_or(0);
    match first {
        0x00..=0x1f | 0x7f => true,
        0xc2 => second < 0xa0 || second == 0xad,
        0xcd => second == 0x8f,
        0xd8 => second == 0x9c,
        0xe1 => matches!(second, 0x85 | 0x9e | 0xa0),
        0xe2 => matches!(second, 0x80 | 0x81 | 0xa0),
        0xe3 => second == 0x85,
        0xee => true,
        0xef => second <= 0xa3 || matches!(second, 0xb7 | 0xb8 | 0xbb | 0xbe | 0xbf),
        0xf0 => matches!(second, 0x93 | 0x9b | 0x9d) || second & 0x0f == 0x0f,
        0xf1..=0xf4 => true,
        _ => false,
    }
}
