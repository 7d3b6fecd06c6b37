//! The comment in which people follow a run.
//!
//! The bot recognises its own comment by a hidden marker, and only in comments of its own account,
//! since anyone can write the marker. The newest answer is on top, earlier ones are folded below.
//! Nothing here uses the network.

use crate::client::types::IssueComment;

mod neutralise;

pub use neutralise::{NeutraliseRules, neutralise_text};

/// Identifies one of the bot's comments: there is one per subject, such as a mode or a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommentMarker(String);

impl CommentMarker {
    /// Creates the marker of a subject. Characters that could end an HTML comment are left out.
    pub fn new(subject: &str) -> Self {
        let fine = |c: &char| c.is_ascii_alphanumeric() || "-_.:/".contains(*c);
        let subject: String = subject.chars().filter(fine).take(SUBJECT_CHARS_MAX).collect();
        CommentMarker(subject.replace("--", "-"))
    }

    /// Returns the marker as written in the comment.
    pub fn to_html(&self) -> String {
        format!("{BEGINNING}{} -->", self.0)
    }
}

/// The prefix of every marker.
const BEGINNING: &str = "<!-- repertoire:";

/// Returns true if a text begins like the bot's comments. Anyone can write that, so it must not
/// grant any rights.
pub fn begins_like_own(text: &str) -> bool {
    text.trim_start().starts_with(BEGINNING)
}

/// The maximum length of the subject of a marker.
const SUBJECT_CHARS_MAX: usize = 100;

/// The separator between the newest answer and the earlier ones.
const EARLIER: &str = "<!-- repertoire-earlier -->";
/// The separator before each earlier answer.
const ANSWER: &str = "<!-- repertoire-answer -->";

/// Returns the bot's comment with a marker; the first one, if there are two by mistake.
pub fn find_own_comment<'a>(
    comments: &'a [IssueComment],
    own_login: &str,
    marker: &CommentMarker,
) -> Option<&'a IssueComment> {
    let marker = marker.to_html();
    comments.iter().find(|comment| is_own_marked(comment, own_login, &marker))
}

fn is_own_marked(comment: &IssueComment, own_login: &str, marker: &str) -> bool {
    let is_own = comment.user.as_ref().is_some_and(|user| user.has_login(own_login));
    // Only at the very beginning: a marker further down may be a quotation.
    is_own && comment.body.as_deref().is_some_and(|body| body.starts_with(marker))
}

/// Returns a comment with one answer. The answer must already be neutralised.
pub fn new_body(marker: &CommentMarker, answer: &str, chars_max: usize) -> String {
    format!("{}\n{}", marker.to_html(), truncate_markdown(answer.trim(), chars_max))
}

/// Returns the comment with a new answer on top, and the previous ones folded below, as far as
/// there is room.
///
/// `title` describes the previous answer: it is the summary of its fold.
pub fn with_answer(
    marker: &CommentMarker,
    before: &str,
    title: &str,
    answer: &str,
    chars_max: usize,
) -> String {
    let marker = marker.to_html();
    let before = before.strip_prefix(&marker).unwrap_or(before).trim();
    let (newest, folded) = match before.split_once(EARLIER) {
        Some((newest, folded)) => (newest.trim(), folded.trim()),
        None => (before, ""),
    };
    let answer = truncate_markdown(answer.trim(), chars_max);
    let mut earlier = Vec::new();
    if !newest.is_empty() {
        earlier.push(fold_answer(title, newest));
    }
    let parts = folded.split(ANSWER).map(str::trim).filter(|part| !part.is_empty());
    earlier.extend(parts.filter(|part| !part.starts_with(LEFT_OUT)).map(str::to_owned));
    let mut out = format!("{marker}\n{answer}");
    let mut room = chars_max.saturating_sub(out.chars().count() + ROOM_FOR_NOTE);
    let (mut kept, all) = (0, earlier.len());
    for part in &earlier {
        let block = match kept {
            0 => format!("\n\n{EARLIER}\n{ANSWER}\n{part}"),
            _ => format!("\n{ANSWER}\n{part}"),
        };
        let chars = block.chars().count();
        if chars > room {
            break;
        }
        room -= chars;
        out.push_str(&block);
        kept += 1;
    }
    if kept < all {
        let left = all - kept;
        let head = if kept == 0 { format!("\n\n{EARLIER}\n") } else { "\n".to_owned() };
        out.push_str(&format!("{head}{ANSWER}\n{LEFT_OUT}{left})*"));
    }
    out
}

const LEFT_OUT: &str = "*(earlier answers left out: ";
const ROOM_FOR_NOTE: usize = 120;

/// Returns the newest answer of one of the bot's comments.
pub fn newest_answer<'a>(marker: &CommentMarker, body: &'a str) -> &'a str {
    let body = body.strip_prefix(&marker.to_html()).unwrap_or(body);
    body.split_once(EARLIER).map_or(body, |(newest, _)| newest).trim()
}

/// Returns one of the bot's comments with only its earlier answers, for [`with_answer`].
pub fn without_newest(marker: &CommentMarker, body: &str) -> String {
    let earlier = body.split_once(EARLIER).map(|(_, folded)| folded).unwrap_or_default();
    format!("{}\n{EARLIER}{earlier}", marker.to_html())
}

fn fold_answer(title: &str, answer: &str) -> String {
    let title = neutralise::one_line(title);
    // An answer must not close its own fold, or the rest of it would be shown outside.
    let answer = neutralise::without_folds(answer);
    format!("<details><summary>{title}</summary>\n\n{answer}\n\n</details>")
}

/// Truncates a text to a number of characters, with a note. A truncated code block is closed.
pub fn truncate_markdown(text: &str, chars_max: usize) -> String {
    let all = text.chars().count();
    if all <= chars_max {
        return text.to_owned();
    }
    let note = format!("\n\n*(cut: {all} characters in all)*");
    let room = chars_max.saturating_sub(note.chars().count() + 5);
    let mut kept: String = text.chars().take(room).collect();
    if let Some(fence) = open_fence(&kept) {
        kept.push_str(&format!("\n{fence}"));
    }
    kept.push_str(&note);
    kept.chars().take(chars_max).collect()
}

/// Returns the code fence that is still open at the end of a text.
fn open_fence(text: &str) -> Option<String> {
    let mut open: Option<String> = None;
    for line in text.lines() {
        let line = line.trim_start();
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'));
        let run: String = line.chars().take_while(|c| Some(*c) == mark).collect();
        open = match open {
            Some(fence) if run.starts_with(&fence) && line.trim() == run => None,
            Some(fence) => Some(fence),
            None if run.len() >= 3 => Some(run),
            None => None,
        };
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::types::GitHubUser;

    fn comment(id: u64, login: &str, body: &str) -> IssueComment {
        IssueComment {
            id,
            body: Some(body.to_owned()),
            user: Some(GitHubUser { login: login.to_owned(), kind: String::new() }),
            created_at: String::new(),
            updated_at: String::new(),
            html_url: String::new(),
        }
    }

    #[test]
    fn a_marker_counts_only_in_what_we_wrote_and_only_at_the_top() {
        let marker = CommentMarker::new("tag");
        let comments = [
            comment(1, "mallory", &format!("{}\nhello", marker.to_html())),
            comment(2, "bot", &format!("quoted: {}", marker.to_html())),
            comment(3, "bot", &CommentMarker::new("other").to_html()),
            comment(4, "Bot", &format!("{}\nours", marker.to_html())),
        ];
        assert_eq!(find_own_comment(&comments, "bot", &marker).map(|comment| comment.id), Some(4));
        assert_eq!(find_own_comment(&comments[..3], "bot", &marker), None);
    }

    #[test]
    fn a_subject_cannot_end_its_marker() {
        assert_eq!(CommentMarker::new("a --> <b> @c").to_html(), "<!-- repertoire:a-bc -->");
        assert_eq!(CommentMarker::new("a----b").to_html().matches("--").count(), 3);
    }

    #[test]
    fn the_newest_answer_stands_on_top_and_the_others_are_folded_below() {
        let marker = CommentMarker::new("tag");
        let one = new_body(&marker, "First answer.", 1000);
        let two = with_answer(&marker, &one, "Run 1", "Second answer.", 1000);
        let three = with_answer(&marker, &two, "Run 2", "Third answer.", 1000);
        insta::assert_snapshot!(three, @r"
        <!-- repertoire:tag -->
        Third answer.

        <!-- repertoire-earlier -->
        <!-- repertoire-answer -->
        <details><summary>Run 2</summary>

        Second answer.

        </details>
        <!-- repertoire-answer -->
        <details><summary>Run 1</summary>

        First answer.

        </details>
        ");
    }

    #[test]
    fn the_newest_answer_can_be_taken_away_again() {
        let marker = CommentMarker::new("tag");
        let one = new_body(&marker, "First.", 1000);
        let two = with_answer(&marker, &one, "Run 1", "Second.", 1000);
        assert_eq!(newest_answer(&marker, &two), "Second.");
        let three = with_answer(&marker, &without_newest(&marker, &two), "Run 2", "Third.", 1000);
        assert!(three.contains("Third.") && three.contains("First.") && !three.contains("Second."));
        let only = with_answer(&marker, &without_newest(&marker, &one), "Run 1", "Third.", 1000);
        assert_eq!(only, new_body(&marker, "Third.", 1000));
    }

    #[test]
    fn what_has_no_room_is_left_out_and_counted() {
        let marker = CommentMarker::new("tag");
        let mut body = new_body(&marker, "answer 0", 600);
        for at in 1..20 {
            let answer = format!("answer {at} {}", "x".repeat(60));
            body = with_answer(&marker, &body, &format!("Run {at}"), &answer, 600);
            assert!(body.chars().count() <= 600, "{}", body.chars().count());
            assert!(body.starts_with(&format!("{}\nanswer {at} ", marker.to_html())), "{body}");
        }
        assert!(body.contains("earlier answers left out"), "{body}");
        assert_eq!(body.matches("earlier answers left out").count(), 1, "{body}");
    }

    #[test]
    fn an_answer_cannot_close_the_fold_that_it_is_put_into() {
        let marker = CommentMarker::new("tag");
        let one = new_body(&marker, "bad </details> <DETAILS open>", 1000);
        let two = with_answer(&marker, &one, "Run <b>1", "Second.", 1000);
        assert_eq!(two.matches("</details>").count(), 1, "{two}");
        assert_eq!(two.to_lowercase().matches("<details").count(), 1, "{two}");
        assert!(!two.contains("<b>"), "{two}");
    }

    #[test]
    fn a_cut_says_so_and_closes_its_code() {
        let text = format!("```rust\n{}", "let x = 1;\n".repeat(50));
        let cut = truncate_markdown(&text, 200);
        assert!(cut.chars().count() <= 200);
        assert!(cut.contains("\n```\n\n*(cut: 558 characters in all)*"), "{cut}");
        assert_eq!(super::truncate_markdown("short", 10), "short");
        assert!(super::truncate_markdown(&"ä".repeat(100), 3).chars().count() <= 3);
    }
}
