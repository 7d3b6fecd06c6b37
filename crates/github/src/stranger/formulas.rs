//! Formulas in TeX that hide what is in them: phantoms, white and tiny text, definitions.

use std::sync::LazyLock;

use regex::Regex;

use super::{Counts, Hidden, part};

/// Commands whose argument is not drawn, or drawn so that nobody can read it.
static HIDES: LazyLock<Regex> = LazyLock::new(|| {
    let commands = concat!(
        r"\\(?:[hv]?phantom|color|textcolor|definecolor|colorbox|fcolorbox|pagecolor|tiny|scriptscriptstyle|smash",
        r"|math[lrc]?lap|[lrc]lap|raise|lower|raisebox|kern|mkern|hskip|hspace|mspace|hfil|newcommand|renewcommand",
        r"|providecommand|def|gdef|edef|xdef|let|label|href|url|class|cssId|style|data|htmlData|htmlId|htmlClass",
        r"|htmlStyle|mathtip|texttip|toggle|bbox|require|unicode|special|iffalse|if|begingroup|resizebox|scalebox",
        r"|transparent|opacity|hidden|invisible)",
    );
    Regex::new(&format!(r"(?i){commands}(?:[^A-Za-z]|\z)")).expect("the pattern is a constant")
});

/// Whether a block of math hides something.
pub(super) fn hides_in_block(block: &str) -> bool {
    HIDES.is_match(block) || has_comment(block)
}

/// A `%` begins a comment, unless a backslash stands before it.
fn has_comment(block: &str) -> bool {
    block.split('\\').enumerate().any(|(at, piece)| {
        let piece = if at > 0 { piece.get(1..).unwrap_or_default() } else { piece };
        piece.contains('%')
    })
}

/// Removes formulas between dollar signs that hide something.
pub(super) fn without_hidden_text(text: &str, counts: &mut Counts) -> String {
    let mut out = String::with_capacity(text.len());
    let mut last = 0;
    while let Some(found) = HIDES.find_at(text, last) {
        let Some((start, end)) = formula_around(text, last, found.start()) else {
            out.push_str(&text[last..found.start() + 1]);
            last = found.start() + 1;
            continue;
        };
        counts.add(Hidden::Formula);
        out.push_str(&text[last..start]);
        last = end;
        part(&mut out, &text[last..]);
    }
    out.push_str(&text[last..]);
    out
}

/// The nearest dollar signs around a place, within a paragraph, with those right beside them.
fn formula_around(text: &str, from: usize, at: usize) -> Option<(usize, usize)> {
    let start = text[from..at].rfind('$').map(|start| from + start)?;
    let is_apart = |text: &str| text.contains("\n\n");
    let end = text[at..].find('$').map(|end| at + end + 1)?;
    if is_apart(&text[start..at]) && !text[from..=start].ends_with("$$") {
        return None;
    }
    let more = text[end..].bytes().take_while(|byte| *byte == b'$').count();
    let less = text[from..start].bytes().rev().take_while(|byte| *byte == b'$').count();
    Some((start - less, end + more))
}
