//! Bounds output that is too long for a conversation: the model gets its beginning and end, and a file has the whole.
//!
//! Pieces are joined only if they are short, so a large output is in memory only once.

use std::fs::File;
use std::io::{self, Write};

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs::FolderHandle;
use repertoire_text::invisible;

use crate::tool::ToolOutput;
use repertoire_sandbox::workplace::RunWorkplace;

/// The maximum length of a call's id in a file name.
const ID_BYTES_MAX: usize = 64;
/// The number of file names to try before giving up.
const NAMES_MAX: usize = 1000;
/// The number of bytes inspected for each character kept: a character has at most four bytes.
const BYTES_PER_CHAR: usize = 4;

/// Builds an answer from consecutive pieces. Output that is longer than the limit is cut in the middle, and the whole
/// is written to a file.
pub fn bound_output(pieces: &[&[u8]], workplace: &RunWorkplace, call_id: &str) -> ToolOutput {
    let chars_max = workplace.limits.output_chars_max;
    let bytes_total: usize = pieces.iter().map(|piece| piece.len()).sum();
    if bytes_total <= chars_max.saturating_mul(BYTES_PER_CHAR) {
        let text = strip_controls(&String::from_utf8_lossy(&pieces.concat()));
        if text.chars().count() <= chars_max {
            return ToolOutput::ok(text);
        }
    }
    let kept = write_spill(pieces, workplace, call_id);
    let (head, tail) = (head_of(pieces, chars_max / 2), tail_of(pieces, chars_max - chars_max / 2));
    let shown = head.len() + tail.len();
    let left_out = bytes_total.saturating_sub(shown);
    let (place, spilled) = match kept {
        Ok(kept) if kept.bytes < bytes_total as u64 => {
            let place = format!("its first {} bytes are in {}", kept.bytes, kept.path);
            (place, Some(kept.path))
        }
        Ok(kept) => (format!("the whole is in {}", kept.path), Some(kept.path)),
        Err(error) => (format!("the whole could not be kept: {error}"), None),
    };
    let text = format!(
        "{head}\n[… about {left_out} of {bytes_total} bytes left out here; {place} …]\n{tail}"
    );
    ToolOutput { text, is_error: false, spilled }
}

/// Like [`bound_output`], for one text.
pub fn bound_text(text: &str, workplace: &RunWorkplace, call_id: &str) -> ToolOutput {
    bound_output(&[text.as_bytes()], workplace, call_id)
}

/// Strips escape sequences and control characters; line breaks and tabs stay.
pub fn strip_controls(text: &str) -> String {
    invisible::without_terminal_control(text)
}

fn head_of(pieces: &[&[u8]], chars_max: usize) -> String {
    let mut room = chars_max.saturating_mul(BYTES_PER_CHAR);
    let mut bytes = Vec::new();
    for piece in pieces {
        let taken = piece.len().min(room);
        bytes.extend_from_slice(&piece[..taken]);
        room -= taken;
    }
    strip_controls(&String::from_utf8_lossy(&bytes)).chars().take(chars_max).collect()
}

fn tail_of(pieces: &[&[u8]], chars_max: usize) -> String {
    let mut room = chars_max.saturating_mul(BYTES_PER_CHAR);
    let mut ends = Vec::new();
    for piece in pieces.iter().rev() {
        let taken = piece.len().min(room);
        ends.push(&piece[piece.len() - taken..]);
        room -= taken;
    }
    ends.reverse();
    let bytes = ends.concat();
    // The cut may go through a character; skip its remaining bytes.
    let start = bytes.iter().take(3).take_while(|byte| (0x80..0xc0).contains(*byte)).count();
    let text = strip_controls(&String::from_utf8_lossy(&bytes[start..]));
    let skipped = text.chars().count().saturating_sub(chars_max);
    text.chars().skip(skipped).collect()
}

struct SpilledOutput {
    path: Utf8PathBuf,
    bytes: u64,
}

fn write_spill(
    pieces: &[&[u8]],
    workplace: &RunWorkplace,
    call_id: &str,
) -> io::Result<SpilledOutput> {
    let folder = workplace.open_spill_folder()?;
    let (mut file, path) = create_new(&folder, &workplace.spill_dir, &file_name(call_id))?;
    let mut room = workplace.limits.spill_bytes_max;
    let mut bytes = 0;
    for piece in pieces {
        let taken = piece.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        file.write_all(&piece[..taken])?;
        room -= taken as u64;
        bytes += taken as u64;
    }
    Ok(SpilledOutput { path, bytes })
}

/// Creates a new file, so that no link is followed and no other output is overwritten.
fn create_new(
    folder: &FolderHandle,
    dir: &Utf8Path,
    name: &str,
) -> io::Result<(File, Utf8PathBuf)> {
    for number in 1..=NAMES_MAX {
        let file_name = match number {
            1 => format!("{name}.txt"),
            _ => format!("{name}-{number}.txt"),
        };
        match folder.create_new(&file_name, 0o600) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created.map(|file| (file, dir.join(file_name))),
        }
    }
    Err(io::Error::other(format!("{dir} has {NAMES_MAX} files named {name}")))
}

/// Sanitises an id for use as a file name: ids come from model servers and may contain anything.
fn file_name(call_id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = call_id.chars().take(ID_BYTES_MAX).map(plain).collect();
    if name.is_empty() { "output".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::Bench;

    #[test]
    fn what_is_short_comes_back_whole_and_makes_no_file() {
        let bench = Bench::new();
        let output = bound_text("all of it", &bench.workplace(), "c1");
        assert_eq!(output, ToolOutput::ok("all of it"));
        assert!(!bench.workplace().spill_dir.exists());
    }

    #[test]
    fn what_is_long_keeps_both_ends_and_the_file_has_all() {
        let bench = Bench::new();
        let mut workplace = bench.workplace();
        workplace.limits.output_chars_max = 100;
        let long = format!("START{}END", "é".repeat(5000));
        let output = bound_text(&long, &workplace, "c1");
        assert!(output.text.starts_with("START"), "{}", output.text);
        assert!(output.text.ends_with("éEND"), "{}", output.text);
        assert!(!output.text.contains('\u{fffd}'));
        assert!(output.text.chars().count() < 100 + 300);
        let path = output.spilled.expect("the whole is kept");
        assert!(output.text.contains(path.as_str()));
        assert_eq!(repertoire_text::fs::read_text(&path, 1 << 20).unwrap(), long);
    }

    #[cfg(unix)]
    #[test]
    fn the_file_is_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let bench = Bench::new();
        let mut workplace = bench.workplace();
        workplace.limits.output_chars_max = 10;
        let output = bound_text(&"x".repeat(100), &workplace, "c1");
        let path = output.spilled.unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn the_file_has_a_cap_and_the_text_says_so() {
        let bench = Bench::new();
        let mut workplace = bench.workplace();
        workplace.limits.output_chars_max = 10;
        workplace.limits.spill_bytes_max = 50;
        let output = bound_output(&[&[b'a'; 40], &[b'b'; 40]], &workplace, "c1");
        assert!(output.text.contains("its first 50 bytes are in"), "{}", output.text);
        assert_eq!(std::fs::metadata(output.spilled.unwrap()).unwrap().len(), 50);
    }

    #[test]
    fn an_id_cannot_name_another_folder_and_does_not_overwrite() {
        let bench = Bench::new();
        let mut workplace = bench.workplace();
        workplace.limits.output_chars_max = 10;
        let first = bound_text(&"x".repeat(100), &workplace, "../../etc/passwd").spilled.unwrap();
        let second = bound_text(&"y".repeat(100), &workplace, "../../etc/passwd").spilled.unwrap();
        assert_eq!(first.parent(), Some(workplace.spill_dir.as_path()));
        assert_ne!(first, second);
    }

    #[test]
    fn colours_and_control_characters_are_kept_out() {
        assert_eq!(strip_controls("\u{1b}[31mred\u{1b}[0m\u{7}\u{0}\ttab\r\n"), "red\ttab\n");
        assert_eq!(strip_controls("\u{1b}]0;title\u{7}text"), "text");
        assert_eq!(strip_controls("10%\r20%"), "10%\n20%");
        assert_eq!(strip_controls("\u{1b}"), "");
    }

    #[test]
    fn wrong_bytes_become_the_replacement_character() {
        let bench = Bench::new();
        let output = bound_output(&[b"a\xffb"], &bench.workplace(), "c1");
        assert_eq!(output.text, "a\u{fffd}b");
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_for_output_that_is_a_link_is_not_written_to() {
        let bench = Bench::new();
        let mut workplace = bench.workplace();
        workplace.spill_dir = workplace.dir.join(".repertoire/output");
        std::fs::create_dir(workplace.dir.join(".repertoire")).unwrap();
        std::os::unix::fs::symlink("/", &workplace.spill_dir).unwrap();
        let spilled = bound_text(&"x".repeat(100_000), &workplace, "c1");
        assert!(spilled.spilled.is_none() && spilled.text.contains("could not be kept"));
    }
}
