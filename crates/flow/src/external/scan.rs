//! Finding tags and command lines in text that is not escaped, so that no XML parser would read it.

/// A tag with what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tag<'a> {
    pub(super) name: &'a str,
    attributes: &'a str,
    pub(super) inner: &'a str,
    /// Where it starts.
    pub(super) start: usize,
    /// Where what follows it starts.
    pub(super) end: usize,
}

impl Tag<'_> {
    /// The value of an attribute.
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

/// Where the end of a tag is looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Close {
    /// The one that belongs to it.
    Own,
    /// The last one: for tags that are there once, whatever is written in them.
    Last,
}

/// How many tags without an end are tried before the rest is taken as text: each costs a look through all of it.
const OPEN_TAGS_MAX: usize = 100;

/// How long a tag may be, with its attributes.
const HEAD_BYTES_MAX: usize = 8 * 1024;

/// The first tag of one of these names.
pub(super) fn find<'a>(text: &'a str, names: &[&str], close: Close) -> Option<Tag<'a>> {
    tags(text, names, close).next()
}

/// All tags of one of these names, none of them inside another.
pub(super) fn find_all<'a>(text: &'a str, names: &[&str]) -> Vec<Tag<'a>> {
    tags(text, names, Close::Own).collect()
}

fn tags<'a>(text: &'a str, names: &[&str], close: Close) -> impl Iterator<Item = Tag<'a>> {
    let (mut from, mut left) = (0, OPEN_TAGS_MAX);
    std::iter::from_fn(move || {
        while let Some(at) = text[from..].find('<').map(|at| from + at) {
            from = at + 1;
            let Some(name) = name_at(&text[from..]).filter(|name| names.contains(name)) else {
                continue;
            };
            if let Some(tag) = tag_at(text, at, name, close) {
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

/// The name of a tag, after its `<`.
fn name_at(after: &str) -> Option<&str> {
    let is_name = |char: char| char.is_ascii_alphanumeric() || char == '_' || char == '-';
    let name = &after[..after.find(|char| !is_name(char)).unwrap_or(after.len())];
    let is_tag = after[name.len()..].starts_with(['>', '/', ' ', '\t', '\n', '\r']);
    (is_tag && !name.is_empty()).then_some(name)
}

fn tag_at<'a>(text: &'a str, at: usize, name: &'a str, close: Close) -> Option<Tag<'a>> {
    let rest = &text[at + 1 + name.len()..];
    let window = &rest[..rest.floor_char_boundary(HEAD_BYTES_MAX)];
    let head = window.find(end_of_head(window))?;
    let attributes = rest[..head].trim_end();
    let content = at + 1 + name.len() + head + 1;
    if let Some(attributes) = attributes.strip_suffix('/') {
        return Some(Tag { name, attributes, inner: "", start: at, end: content });
    }
    let ending = format!("</{name}>");
    let length = match close {
        Close::Last => text[content..].rfind(&ending)?,
        Close::Own => own_end(&text[content..], name, &ending)?,
    };
    let inner = &text[content..content + length];
    Some(Tag { name, attributes, inner, start: at, end: content + length + ending.len() })
}

/// The `>` that ends a tag, and not one in a quoted value.
fn end_of_head(rest: &str) -> impl FnMut(char) -> bool + use<> {
    // A quote that is never closed quotes nothing.
    let is_balanced = |quote: char| {
        let head = rest.split('\n').next().unwrap_or_default();
        head.matches(quote).count() % 2 == 0
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

/// Where the end that belongs to a tag is, with others of the same name inside it passed over.
fn own_end(content: &str, name: &str, ending: &str) -> Option<usize> {
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

/// The python command lines in a text that name a step, with the folder that they say they run in.
pub(super) fn invocations(text: &str) -> Vec<(String, Option<String>)> {
    let joined = text.replace("\\\r\n", " ").replace("\\\n", " ");
    let mut found = Vec::new();
    for line in joined.lines() {
        let tags = find_all(line, &["invoke"]);
        for tag in &tags {
            let command = tag.attribute("cmd").unwrap_or_else(|| tag.inner.to_owned());
            found.extend(
                calls(&command)
                    .into_iter()
                    .map(|call| (call.to_owned(), tag.attribute("working-dir"))),
            );
        }
        if tags.is_empty() {
            found.extend(calls(line).into_iter().map(|call| (call.to_owned(), None)));
        }
    }
    found
}

/// The calls in a line: from `python` to a backquote, a tag or the end.
pub(super) fn calls(line: &str) -> Vec<&str> {
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
