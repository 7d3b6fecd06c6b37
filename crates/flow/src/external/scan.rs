//! Finds tags and command lines in unescaped text that an XML parser would reject.

/// A tag with its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScriptTag<'a> {
    pub(super) name: &'a str,
    attributes: &'a str,
    pub(super) inner: &'a str,
    /// Byte offset of the `<`.
    pub(super) start: usize,
    /// Byte offset just past the closing tag.
    pub(super) end: usize,
}

impl ScriptTag<'_> {
    pub(super) fn attribute(&self, name: &str) -> Option<String> {
        let mut rest = self.attributes;
        while let Some(at) = rest.find(name) {
            let is_whole = rest[..at].chars().next_back().is_none_or(char::is_whitespace);
            rest = &rest[at + name.len()..];
            let value = rest.trim_start().strip_prefix('=').map(str::trim_start);
            if let (true, Some(value)) = (is_whole, value) {
                let quote = value.chars().next().filter(|char| matches!(char, '"' | '\''));
                return match quote {
                    Some(quote) => value[1..].split(quote).next().map(str::to_owned),
                    None => value.split_whitespace().next().map(str::to_owned),
                };
            }
        }
        None
    }
}

/// The closing tag to look for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ClosingTag {
    /// The matching one.
    Own,
    /// The last one: for tags that occur once and may contain anything.
    Last,
}

/// The maximum number of unclosed tags to try before the rest is taken as text: each costs a scan of the whole text.
const OPEN_TAGS_MAX: usize = 100;

/// The maximum length of an opening tag with its attributes.
const HEAD_BYTES_MAX: usize = 8 * 1024;

/// Returns the first tag with one of these names.
pub(super) fn find_tag<'a>(
    text: &'a str,
    names: &[&str],
    close: ClosingTag,
) -> Option<ScriptTag<'a>> {
    scan_tags(text, names, close).next()
}

/// Returns all tags with one of these names, without nested ones.
pub(super) fn find_tags<'a>(text: &'a str, names: &[&str]) -> Vec<ScriptTag<'a>> {
    scan_tags(text, names, ClosingTag::Own).collect()
}

fn scan_tags<'a>(
    text: &'a str,
    names: &[&str],
    close: ClosingTag,
) -> impl Iterator<Item = ScriptTag<'a>> {
    let (mut from, mut left) = (0, OPEN_TAGS_MAX);
    std::iter::from_fn(move || {
        while let Some(at) = text[from..].find('<').map(|at| from + at) {
            from = at + 1;
            let Some(name) = tag_name(&text[from..]).filter(|name| names.contains(name)) else {
                continue;
            };
            if let Some(tag) = parse_tag(text, at, name, close) {
                from = tag.end;
                return Some(tag);
            }
            left -= 1;
            if left == 0 {
                from = text.len();
            }
        }
        None
    })
}

/// Parses the name of a tag after its `<`.
fn tag_name(after: &str) -> Option<&str> {
    let name = &after[..after.find(|char| !is_name_char(char)).unwrap_or(after.len())];
    let is_tag = after[name.len()..].starts_with(['>', '/', ' ', '\t', '\n', '\r']);
    (is_tag && !name.is_empty()).then_some(name)
}

fn is_name_char(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_' || char == '-'
}

fn parse_tag<'a>(
    text: &'a str,
    at: usize,
    name: &'a str,
    close: ClosingTag,
) -> Option<ScriptTag<'a>> {
    let rest = &text[at + 1 + name.len()..];
    let window = &rest[..rest.floor_char_boundary(HEAD_BYTES_MAX)];
    let head = window.find(end_of_head(window))?;
    let attributes = rest[..head].trim_end();
    let content = at + 1 + name.len() + head + 1;
    if let Some(attributes) = attributes.strip_suffix('/') {
        return Some(ScriptTag { name, attributes, inner: "", start: at, end: content });
    }
    let ending = format!("</{name}>");
    let length = match close {
        ClosingTag::Last => text[content..].rfind(&ending)?,
        ClosingTag::Own => matching_end(&text[content..], name, &ending)?,
    };
    let inner = &text[content..content + length];
    Some(ScriptTag { name, attributes, inner, start: at, end: content + length + ending.len() })
}

/// Matches the `>` that ends an opening tag, skipping those in quoted values.
fn end_of_head(rest: &str) -> impl FnMut(char) -> bool + use<> {
    // Ignore a quote character that is never closed.
    let is_balanced = |quote: char| {
        let head = rest.split('\n').next().unwrap_or_default();
        head.matches(quote).count().is_multiple_of(2)
    };
    let quotes: Vec<char> = ['"', '\''].into_iter().filter(|quote| is_balanced(*quote)).collect();
    let mut open = None;
    move |char| {
        match open {
            Some(quote) if char == quote => open = None,
            None if quotes.contains(&char) => open = Some(char),
            _ => {}
        }
        open.is_none() && char == '>'
    }
}

/// Returns the offset of the matching closing tag, skipping nested tags of the same name.
fn matching_end(content: &str, name: &str, ending: &str) -> Option<usize> {
    let beginning = format!("<{name}");
    let mut from = 0;
    let mut depth = 0_usize;
    loop {
        let end = from + content[from..].find(ending)?;
        let is_tag =
            |at: usize| content[at + beginning.len()..].starts_with([' ', '>', '\n', '\t']);
        let inside = content[from..end].match_indices(&beginning);
        depth += inside.filter(|(at, _)| is_tag(from + at)).count();
        if depth == 0 {
            return Some(end);
        }
        depth -= 1;
        from = end + ending.len();
    }
}

/// Finds the Python command lines in a text that name a step, each with its working directory if one is given.
pub(super) fn find_invocations(text: &str) -> Vec<(String, Option<String>)> {
    let joined = text.replace("\\\r\n", " ").replace("\\\n", " ");
    let mut found = Vec::new();
    for line in joined.lines() {
        let tags = find_tags(line, &["invoke"]);
        for tag in &tags {
            let command = tag.attribute("cmd").unwrap_or_else(|| tag.inner.to_owned());
            found.extend(
                find_calls(&command)
                    .into_iter()
                    .map(|call| (call.to_owned(), tag.attribute("working-dir"))),
            );
        }
        if tags.is_empty() {
            found.extend(find_calls(line).into_iter().map(|call| (call.to_owned(), None)));
        }
    }
    found
}

/// Finds the calls in a line: from `python` to a backquote, a pipe, a closing tag or the end of the line.
pub(super) fn find_calls(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = line[from..].find("python").map(|at| from + at) {
        let before = line[..at].chars().next_back();
        let is_word = before.is_none_or(|char| !char.is_alphanumeric() && !"_-./".contains(char));
        let end = line[at..].find(['`', '|']).map_or(line.len(), |end| at + end);
        let end = line[at..end].find("</").map_or(end, |tag| at + tag);
        let call = line[at..end].trim().trim_end_matches("/>").trim_end();
        let call = call.strip_suffix('"').filter(|_| before == Some('"')).unwrap_or(call);
        if is_word
            && (call.contains("--step ")
                || call.contains("--step=")
                || call.contains("--step-number"))
        {
            found.push(call);
        }
        from = end.max(at + 1);
    }
    found
}
