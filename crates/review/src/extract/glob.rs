//! Extracts globs from prose: code spans, bare file names, quoted parts of names, and names of languages.

use globset::Glob;

use super::limits::{REVIEW_GLOB_CHARS_MAX, REVIEW_GLOBS_MAX};

use super::inline::{InlineMarkdown, InlineStyle, contains_words, join_plain, normalise_words};

/// Names of languages, and the extensions of their files.
const LANGUAGES: &[(&[&str], &[&str])] = &[
    (&["c"], &["c", "h"]),
    (&["c++", "cpp"], &["cc", "cpp", "cxx", "h", "hpp"]),
    (&["c#", "csharp", ".net", "dotnet", "asp.net"], &["cs"]),
    (&["css"], &["css", "scss", "less"]),
    (&["dart"], &["dart"]),
    (&["elixir"], &["ex", "exs"]),
    (&["go", "golang"], &["go"]),
    (&["html"], &["html", "htm"]),
    (&["java"], &["java"]),
    (&["javascript", "js", "node", "nodejs", "node.js"], &["js", "jsx", "mjs", "cjs"]),
    (&["json"], &["json"]),
    (&["kotlin"], &["kt", "kts"]),
    (&["markdown", "docs"], &["md"]),
    (&["php"], &["php"]),
    (&["python", "py"], &["py"]),
    (&["react"], &["jsx", "tsx"]),
    (&["ruby"], &["rb"]),
    (&["rust"], &["rs"]),
    (&["scala"], &["scala"]),
    (&["shell", "bash", "sh"], &["sh", "bash"]),
    (&["sql"], &["sql"]),
    (&["svelte"], &["svelte"]),
    (&["swift"], &["swift"]),
    (&["terraform"], &["tf"]),
    (&["toml"], &["toml"]),
    (&["typescript", "ts"], &["ts", "tsx", "mts", "cts"]),
    (&["vue"], &["vue"]),
    (&["yaml", "yml"], &["yaml", "yml"]),
];

/// Words that stand for all files.
const EVERY: &[&str] = &["all", "any", "every", "*", "-", "–", "—", "n/a", "all languages"];

/// Returns the globs of a table cell, and the parts that are neither a glob nor a language.
pub(super) fn globs_of_cell(inline: &InlineMarkdown) -> (Vec<String>, Vec<String>) {
    let (mut globs, mut unknown) = (Vec::new(), Vec::new());
    // Code is taken as a whole: `*.{js,ts}` is one glob.
    let parts = inline.runs.iter().flat_map(|run| match run.style {
        InlineStyle::Code => vec![run.text.trim().to_owned()],
        InlineStyle::Plain | InlineStyle::Strong => split_list(&run.text),
    });
    for part in parts.take(REVIEW_GLOBS_MAX) {
        if part.is_empty() || EVERY.iter().any(|word| part.eq_ignore_ascii_case(word)) {
            continue;
        }
        match globs_of_part(&part) {
            Some(found) => globs.extend(found),
            None => unknown.push(part),
        }
    }
    (unique_globs(globs), unknown)
}

fn split_list(text: &str) -> Vec<String> {
    let parts = text.split([',', ';']).flat_map(|part| part.split(" and "));
    parts.map(|part| part.trim().to_owned()).collect()
}

fn globs_of_part(part: &str) -> Option<Vec<String>> {
    if let Some(found) = globs_of_language(part) {
        return Some(found);
    }
    // `JS/TS` is two languages, `src/*.ts` is a glob.
    let languages: Option<Vec<Vec<String>>> =
        part.split('/').map(|word| globs_of_language(word.trim())).collect();
    if let Some(found) = languages {
        return Some(found.concat());
    }
    let ending = part.strip_prefix('.').filter(|rest| rest.chars().all(char::is_alphanumeric));
    let glob = ending.map_or_else(|| part.to_owned(), |ending| format!("*.{ending}"));
    looks_like_file(&glob).then(|| normalise_glob(&glob)).flatten().map(|glob| vec![glob])
}

fn globs_of_language(word: &str) -> Option<Vec<String>> {
    let word = word.to_lowercase();
    let (_, endings) = LANGUAGES.iter().find(|(names, _)| names.contains(&word.as_str()))?;
    Some(endings.iter().map(|ending| format!("**/*.{ending}")).collect())
}

/// Returns the globs of an item in a section of priority files, and the texts that look like a glob but are invalid.
/// `written` is the Markdown source of the item, since the parser takes `**` for emphasis.
pub(super) fn globs_of_item(inline: &InlineMarkdown, written: &str) -> (Vec<String>, Vec<String>) {
    let (mut globs, mut broken) = (Vec::new(), Vec::new());
    let mut take = |text: &str| match normalise_glob(text) {
        Some(glob) => globs.push(glob),
        None => broken.push(text.to_owned()),
    };
    let mut codes =
        inline.code_texts().map(str::trim).filter(|code| looks_like_file(code)).peekable();
    if codes.peek().is_some() {
        codes.for_each(&mut take);
        return (unique_globs(globs), broken);
    }
    let plain = join_plain(std::iter::once(without_marker(written)));
    if says_names(&plain) {
        quoted_name_parts(&plain).for_each(|word| take(&format!("*{word}*")));
        return (unique_globs(globs), broken);
    }
    // `README.md (the entry point)`, `docs/*.md or similar`, `a.toml, b.toml`.
    let end =
        [" (", " - ", " – ", " — ", ": ", " or "].iter().filter_map(|mark| plain.find(mark)).min();
    let head = &plain[..end.unwrap_or(plain.len())];
    let parts: Vec<&str> = head.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    if parts.iter().all(|part| looks_like_file(part)) {
        parts.into_iter().for_each(take);
    } else {
        // `Files in **/login/**`: no ordinary word contains both an asterisk and a slash or a dot.
        let words = plain.split(|c: char| c.is_whitespace() || "`,;:()\"'".contains(c));
        let words = words.map(|word| word.trim_end_matches('.'));
        words.filter(|word| word.contains('*') && word.contains(['/', '.'])).for_each(take);
    }
    (unique_globs(globs), broken)
}

/// Removes the list marker, and the box of a task.
fn without_marker(written: &str) -> &str {
    let text = written.trim_start();
    let number = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let after = if number.len() < text.len() {
        number.strip_prefix(['.', ')'])
    } else {
        text.strip_prefix(['-', '*', '+'])
    };
    let text = after.filter(|after| after.starts_with([' ', '\t'])).unwrap_or(text).trim_start();
    ["[ ]", "[x]", "[X]"]
        .iter()
        .find_map(|mark| text.strip_prefix(mark))
        .unwrap_or(text)
        .trim_start()
}

/// Returns true for a text such as `Files with "auth" in their names`.
fn says_names(plain: &str) -> bool {
    let words = normalise_words(plain);
    ["name", "names", "named", "filename", "filenames"]
        .iter()
        .any(|word| contains_words(&words, word))
}

/// The quoted parts of file names. Quotations that cannot be part of a file name are ignored.
fn quoted_name_parts(plain: &str) -> impl Iterator<Item = &str> {
    plain.split(['"', '“', '”']).skip(1).step_by(2).filter(|word| is_name_part(word))
}

fn is_name_part(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

/// Returns true if the text looks like a path, a file name or a glob.
fn looks_like_file(text: &str) -> bool {
    let is_word = !text.is_empty()
        && !text.contains("://")
        && !text.chars().any(|c| c.is_whitespace() || "()\"'`<>|=;$".contains(c));
    let is_short_form = matches!(text, "e.g" | "i.e");
    let is_bold = text.starts_with("**") && !text.contains('/');
    is_word
        && !is_short_form
        && !is_bold
        && (text.contains('*') || text.ends_with('/') || has_extension(text))
}

fn has_extension(text: &str) -> bool {
    let name = text.rsplit('/').next().unwrap_or(text);
    name.rsplit_once('.').is_some_and(|(_, ending)| {
        (1..=12).contains(&ending.len()) && ending.chars().all(|c| c.is_ascii_alphanumeric())
    })
}

/// Normalises a glob: a bare name matches in any folder, a folder matches everything below it. Returns `None` if it is
/// invalid.
fn normalise_glob(text: &str) -> Option<String> {
    let text = text.trim_start_matches("./").trim_start_matches('/');
    let is_deep = text.contains('/');
    let mut glob = if text.ends_with('/') { format!("{text}**") } else { text.to_owned() };
    let is_folder =
        text.trim_end_matches('/').len() < text.len() && !text.trim_end_matches('/').contains('/');
    if !is_deep || is_folder {
        glob = format!("**/{glob}");
    }
    let fits = glob.chars().count() <= REVIEW_GLOB_CHARS_MAX;
    (fits && Glob::new(&glob).is_ok()).then_some(glob)
}

fn unique_globs(list: Vec<String>) -> Vec<String> {
    let mut out: Vec<String> = Vec::with_capacity(list.len());
    for glob in list {
        if out.len() <= REVIEW_GLOBS_MAX && !out.contains(&glob) {
            out.push(glob);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inline(text: &str) -> InlineMarkdown {
        let mut out = InlineMarkdown::default();
        for (at, piece) in text.split('`').enumerate() {
            out.push(if at % 2 == 1 { InlineStyle::Code } else { InlineStyle::Plain }, piece);
        }
        out
    }

    #[track_caller]
    fn check_item(text: &str, globs: &[&str]) {
        assert_eq!(globs_of_item(&inline(text), &format!("- {text}")).0, globs, "{text}");
    }

    #[track_caller]
    fn check_cell(text: &str, globs: &[&str], unknown: &[&str]) {
        let (found, left) = globs_of_cell(&inline(text));
        assert_eq!(
            (found, left),
            (
                globs.iter().map(|s| s.to_string()).collect(),
                unknown.iter().map(|s| s.to_string()).collect()
            ),
            "{text}"
        );
    }

    #[test]
    fn globs_come_from_code_bare_names_and_quoted_parts() {
        check_item("Auth code (`**/auth/**`, `src/login/*.ts`)", &["**/auth/**", "src/login/*.ts"]);
        check_item("Manifests (`package.json`, `*.csproj`)", &["**/package.json", "**/*.csproj"]);
        check_item("README.md (the entry point)", &["**/README.md"]);
        check_item("docs/getting-started.md or similar", &["docs/getting-started.md"]);
        check_item("**/api/**", &["**/api/**"]);
        check_item("**Entry points**", &[]);
        check_item("migrations/", &["**/migrations/**"]);
        check_item("Files with \"auth\", \"login\" in names", &["**/*auth*", "**/*login*"]);
        check_item("Service/business logic files", &[]);
        check_item("Node.js entry points", &[]);
        check_item("Files that call `eval()`", &[]);
    }

    #[test]
    fn a_cell_names_globs_or_languages() {
        check_cell("Python", &["**/*.py"], &[]);
        check_cell("C#, Go", &["**/*.cs", "**/*.go"], &[]);
        check_cell("Rust/Go", &["**/*.rs", "**/*.go"], &[]);
        check_cell("`src/**/*.ts`, `.vue`", &["src/**/*.ts", "**/*.vue"], &[]);
        check_cell("all", &[], &[]);
        check_cell("Klingon", &[], &["Klingon"]);
    }
}
