//! Files whose YAML is made to cost time or memory, or to be read as something it is not.

use std::fmt::Write;

/// What must become of a bomb.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expect {
    /// It is not loaded; the finding has this code and these words.
    Refused(&'static str, &'static str),
    /// It is loaded, and a finding of this code has these words.
    Loads(&'static str, &'static str),
    /// It is within every limit and nothing is wrong with it.
    Fine,
}

use Expect::{Fine, Loads, Refused};

pub(crate) struct Bomb {
    pub(crate) name: &'static str,
    pub(crate) text: Vec<u8>,
    pub(crate) expect: Expect,
}

const KIB: usize = 1024;
const ANCHOR: Expect = Refused("RS021", "anchors");
const SYNTAX: &str = "RS020";
const TOO_LARGE: Expect = Refused("RS012", "more than 65536 bytes");
const TOO_DEEP: Expect = Refused("RS025", "16 levels, the limit");
const TOO_MANY: Expect = Refused("RS026", "4000 values, the limit");
const QUOTED: Expect = Loads("RS030", "Quote the value");
const CONTROL: &str = "RS029";
const TWICE: &str = "RS027";

/// Every bomb, by a name that says what it does.
pub(crate) fn all() -> Vec<Bomb> {
    let mut out = Bombs::default();
    expansions(&mut out);
    nesting(&mut out);
    sizes(&mut out);
    floods(&mut out);
    characters(&mut out);
    duplicates(&mut out);
    documents_and_tags(&mut out);
    unclosed(&mut out);
    fences(&mut out);
    repairs(&mut out);
    fields(&mut out);
    out.0
}

#[derive(Default)]
struct Bombs(Vec<Bomb>);

impl Bombs {
    /// A bomb in a field beside a name and a description that are good.
    fn field(&mut self, name: &'static str, yaml: impl AsRef<str>, expect: Expect) {
        let yaml = yaml.as_ref();
        self.file(name, format!("---\nname: bomb\ndescription: d\n{yaml}\n---\nBody.\n"), expect);
    }

    fn file(&mut self, name: &'static str, text: impl Into<Vec<u8>>, expect: Expect) {
        self.0.push(Bomb { name, text: text.into(), expect });
    }
}

/// Lines made from a number.
fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).fold(String::new(), |mut out, number| {
        let _ = writeln!(out, "{}", line(number));
        out
    })
}

fn expansions(out: &mut Bombs) {
    let mut laughs = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for level in 1..10 {
        let below = format!("*a{}", level - 1);
        let _ = writeln!(laughs, "a{level}: &a{level} [{}]", [below.as_str(); 9].join(", "));
    }
    out.field("billion laughs", laughs, ANCHOR);
    let quadratic = format!("a: &a [{}]\nb: [{}]", "x,".repeat(9_000), "*a,".repeat(9_000));
    out.field("quadratic aliases", quadratic, ANCHOR);
    let large = format!("a: &a \"{}\"\nb: [{}]", "x".repeat(30_000), "*a,".repeat(9_000));
    out.field("aliases of a large string", large, ANCHOR);
    out.field("an anchor on itself", "a: &a [*a, *a]", ANCHOR);
    out.field("an alias without an anchor", "a: [*nowhere, *nowhere]", Refused(SYNTAX, "`*`"));
    out.field("thousands of anchors", lines(4_000, |n| format!("k{n}: &a{n} v")), ANCHOR);
    out.field("merge keys", "base: &b {a: 1}\nx:\n  <<: *b\n  c: 2", ANCHOR);
    out.field("merge keys in a circle", "x: &x\n  <<: *x", ANCHOR);
}

fn nesting(out: &mut Bombs) {
    let half = 30 * KIB;
    out.field("deep lists in brackets", format!("x: {}", "[".repeat(half)), TOO_DEEP);
    let closed = format!("x: {}{}", "[".repeat(half), "]".repeat(half));
    out.field("deep lists in brackets, closed", closed, TOO_DEEP);
    out.field("deep mappings in braces", format!("x: {}", "{a: ".repeat(half / 4)), TOO_DEEP);
    let mixed = format!("x: {}{}", "[{a: ".repeat(half / 5), "}]".repeat(half / 5));
    out.field("deep lists and mappings by turns", mixed, TOO_DEEP);
    let block = lines(300, |n| format!("{}k:", " ".repeat(n)));
    out.field("deep mappings by indentation", block, TOO_DEEP);
    out.field("deep lists on one line", format!("x:\n  {}y", "- ".repeat(half)), TOO_DEEP);
    let keys = format!("{}y", "? ".repeat(half));
    out.field("deep explicit keys", keys, TOO_DEEP);
    let by_turns = format!("x:\n  {}y", "- ? ".repeat(half / 2));
    out.field("deep lists of explicit keys", by_turns, TOO_DEEP);
    out.field("a list as a key", "[a, b]: c", Refused("RS028", "cannot be a key"));
    out.field("a mapping as a key", "? {a: b}\n: c", Refused("RS028", "cannot be a key"));
    let at_limit = format!("x: {}1{}", "[".repeat(15), "]".repeat(15));
    out.field("as deep as allowed", at_limit, Fine);
}

fn sizes(out: &mut Bombs) {
    let huge = 100 * KIB;
    out.field("a huge plain value", format!("x: {}", "a".repeat(huge)), TOO_LARGE);
    out.field("a huge quoted value", format!("x: \"{}\"", "a".repeat(huge)), TOO_LARGE);
    let literal = format!("x: |\n{}", "  line\n".repeat(huge / 7));
    out.field("a huge literal block", literal, TOO_LARGE);
    let folded = format!("x: >\n{}", "  line\n".repeat(huge / 7));
    out.field("a huge folded block", folded, TOO_LARGE);
    let rest = 64 * KIB - "name: bomb\ndescription: d\nx: \n".len();
    out.field("one byte over the limit", format!("x: {}", "a".repeat(rest + 1)), TOO_LARGE);
    out.field("exactly the limit", format!("x: {}", "a".repeat(rest)), Fine);
    let large = 60 * KIB;
    out.field("a large literal block", format!("x: |\n{}", "  l\n".repeat(large / 4)), Fine);
    out.field("a large folded block", format!("x: >\n{}", "  l\n".repeat(large / 4)), Fine);
    out.field("a large value on many lines", format!("x: a\n{}", "  b\n".repeat(large / 4)), Fine);
    let escapes = format!("x: \"{}\"", "\\u00e6".repeat(large / 6));
    out.field("a large value of escapes", escapes, Fine);
    let name = format!("---\nname: {}\ndescription: d\n---\n", "ﷺ".repeat(large / 3));
    let long_name = Loads("RS100", "61440 bytes, and the limit is 1024");
    out.file("a name that grows when it is normalised", name, long_name);
    let long = "k".repeat(60 * KIB);
    out.field("a very long key", format!("{long}: v"), Refused(SYNTAX, "neither a `field: value`"));
    out.field("a very long explicit key", format!("? {long}\n: v"), Fine);
}

fn floods(out: &mut Bombs) {
    out.field("many keys", lines(8_000, |n| format!("k{n}:")), TOO_MANY);
    out.field("many items in brackets", format!("x: [{}]", "1,".repeat(30_000)), TOO_MANY);
    out.field("many items on lines", format!("x:\n{}", "- 1\n".repeat(15_000)), TOO_MANY);
    out.field("many empty mappings", format!("x: [{}]", "{},".repeat(20_000)), TOO_MANY);
    out.field("as many values as allowed", lines(1_995, |n| format!("k{n}: v")), Fine);
    out.field("a flood of comments", "# comment\n".repeat(6_000), Fine);
    out.field("a flood of blank lines", "\n".repeat(60_000), Fine);
    let comment = format!("x: 1 {}", "# ".repeat(30_000));
    out.field("a comment of hashes", comment, Fine);
    out.field("a flood of colons", format!("x: {}", ": ".repeat(30_000)), QUOTED);
    out.field("a flood of colons without spaces", ":".repeat(60_000), QUOTED);
    out.field("a flood of question marks", "? ".repeat(30) + &"?\n".repeat(20_000), TOO_DEEP);
    out.field("a flood of tabs", format!("x:\n{}y", "\t".repeat(60_000)), Loads("RS031", "tab"));
    let tabs = lines(6_000, |n| format!("\tk{n}: v"));
    out.field("thousands of lines with tabs", tabs, Refused(SYNTAX, "256 lines, the limit"));
    out.field("quotes by turns", format!("x: {}", "\"'".repeat(30_000)), QUOTED);
    let quotes = format!("x: {}", "'a' \"b\" ".repeat(7_000));
    out.field("quoted words side by side", quotes, QUOTED);
}

fn characters(out: &mut Bombs) {
    out.field("NUL", "x: a\0b", Refused(CONTROL, "U+0000"));
    out.field("a flood of NUL", format!("x: {}", "\0".repeat(60_000)), Refused(CONTROL, "U+0000"));
    out.field("escape", "x: \u{1b}[2J", Refused(CONTROL, "U+001B"));
    out.field("backspace and bell", "x: a\u{8}\u{7}", Refused(CONTROL, "U+0008"));
    out.field("delete", "x: a\u{7f}", Refused(CONTROL, "U+007F"));
    out.field("a C1 control", "x: \u{9b}2J", Refused(CONTROL, "U+009B"));
    out.field("NUL as an escape", "x: \"a\\x00b\"", Refused(CONTROL, "U+0000"));
    out.field("escape as an escape", "x: \"\\e[2J\"", Refused(CONTROL, "U+001B"));
    out.field("half a surrogate pair", "x: \"\\ud800\"", Refused(SYNTAX, "surrogate"));
    out.field(
        "a surrogate pair the wrong way",
        "x: \"\\udc00\\ud800\"",
        Refused(SYNTAX, "surrogate"),
    );
    out.field("an escape beyond Unicode", "x: \"\\U00110000\"", Refused(SYNTAX, "escape"));
    let marks = format!("x: a\u{feff}b\n{}", "\u{feff}y: 1\n".repeat(2));
    out.field("byte order marks in the middle", marks, QUOTED);
    out.field("line separators of Unicode", "x: a\u{2028}name: b\u{2029}c\u{85}d", QUOTED);
    let cr = "---\rname: bomb\rdescription: d\r---\rBody.\r";
    out.file("lines that end in CR alone", cr, Refused("RS010", "`---`"));
    let only_yaml = "---\nname: bomb\rdescription: d\rx: 1\n---\n";
    out.file("CR alone inside the frontmatter", only_yaml, Fine);
    let latin = b"---\nname: bomb\ndescription: caf\xe9\n---\n";
    out.file("bytes that are not UTF-8", latin, Refused("RS004", "byte 31"));
    let overlong = b"---\nname: bomb\ndescription: \xc0\xae\xc0\xae\n---\n";
    out.file("dots in overlong UTF-8", overlong, Refused("RS004", "not UTF-8"));
}

fn duplicates(out: &mut Bombs) {
    let given_twice = |words| Refused(TWICE, words);
    out.field("the name twice", "name: other", given_twice("`name` is given twice"));
    out.field("a key twice below", "x:\n  a: 1\n  a: 2", given_twice("`a` is given twice"));
    out.field("a key twice in braces", "x: [{a: 1, a: 2}]", given_twice("`a` is given twice"));
    let spelled = "x: {a: 1, \"\\x61\": 2, 'a': 3}";
    out.field("a key twice in two spellings", spelled, given_twice("`a` is given twice"));
    let long = "k".repeat(1_000);
    let both = format!("{long}: 1\n{long}: 2");
    out.field("a long key twice", both, given_twice("kkkk…` is given twice"));
    out.field("a merge key twice", "<<: {a: 1}\n<<: {a: 2}", given_twice("`<<` is given twice"));
}

fn documents_and_tags(out: &mut Bombs) {
    let several = Refused("RS024", "more than one YAML document");
    out.field("two documents", "--- # second\nx: 1", several);
    out.field("thousands of documents", "--- a\n".repeat(9_000), several);
    out.field("an end of document and more", "...\nx: 1", several);
    let directive = Refused("RS024", "directives");
    out.file("a version directive", "---\n%YAML 9.9\nname: b\ndescription: d\n---\n", directive);
    let floods = format!("---\n{}name: b\ndescription: d\n---\n", "%TAG ! !x\n".repeat(6_000));
    out.file("a flood of directives", floods, directive);
    let tag = Refused("RS023", "tags");
    out.field("a binary tag", "x: !!binary R0lGODlhDAAMAIQAAP", tag);
    out.field("a Python object", "x: !!python/object/apply:os.system [id]", tag);
    out.field("a tag by address", "x: !<tag:yaml.org,2002:str> y", tag);
    out.field("a tag on the description", "y: !!js/function >\n  function () {}", tag);
    out.field("thousands of tags", format!("x: [{}]", "!!str a,".repeat(7_000)), tag);
}

fn unclosed(out: &mut Bombs) {
    let long = 60 * KIB;
    let quote = Refused(SYNTAX, "a quoted value is never closed");
    out.field("a double quote never closed", format!("x: \"{}", "a ".repeat(long / 2)), quote);
    out.field("a single quote never closed", format!("x: '{}", "a ".repeat(long / 2)), quote);
    let on_lines = format!("x: \"{}", "a\n".repeat(long / 2));
    out.field("a quote never closed on many lines", on_lines, Refused(SYNTAX, ""));
    let bracket = format!("x: [{}", "a ".repeat(long / 2));
    out.field("a bracket never closed", bracket, Refused(SYNTAX, "never closed"));
    let brackets = lines(2_000, |n| format!("k{n}: ["));
    out.field("thousands of brackets never closed", brackets, TOO_DEEP);
    let braces = lines(2_000, |n| format!("k{n}: {{ a: \""));
    out.field("thousands of braces and quotes never closed", braces, Refused(SYNTAX, ""));
    let backslashes = format!("x: \"{}", "\\".repeat(long));
    out.field("backslashes up to the end", backslashes, quote);
}

fn fences(out: &mut Bombs) {
    let open = format!("---\nname: bomb\n{}", "k: v\n".repeat(400_000));
    out.file("frontmatter of 2 MB that is never closed", open, TOO_LARGE);
    let small = "---\nname: bomb\ndescription: d\n";
    out.file("frontmatter that is never closed", small, Refused("RS011", "never closed"));
    let nearly = format!("---\nname: bomb\n{}", "--- x\n".repeat(340_000));
    out.file("2 MB of lines that nearly close it", nearly, TOO_LARGE);
    let dashes = format!("---\nname: b\ndescription: d\n{}", "---\n".repeat(500_000));
    out.file("2 MB of lines that all close it", dashes, Fine);
    let spaces = format!("---{}", " ".repeat(2_000_000));
    out.file("an opening line of 2 MB", spaces, Refused("RS010", "`---`"));
    let closing = format!("---\nname: b\ndescription: d\n---{}", " ".repeat(2_000_000));
    out.file("a closing line of 2 MB", closing, TOO_LARGE);
    out.file("nothing", "", Refused("RS010", "`---`"));
    out.file("a byte order mark and nothing", "\u{feff}", Refused("RS010", "`---`"));
    out.file("a scalar as frontmatter", "---\nhello\n---\n", Refused("RS013", "text, not fields"));
    out.file("a list as frontmatter", "---\n- a\n- b\n---\n", Refused("RS013", "a list"));
}

/// Texts that are made for the repair: to keep it busy, or to have it invent something.
fn repairs(out: &mut Bombs) {
    let many = "256 lines, the limit";
    let colons = lines(1_900, |n| format!("k{n}: a: b: c"));
    out.field("thousands of values to quote", colons, Refused(SYNTAX, many));
    let stars = lines(1_900, |n| format!("k{n}: *b* and &c"));
    out.field("thousands of values with stars", stars, Refused(SYNTAX, many));
    let continued = format!("x: a: b\n{}", "  c: d\n".repeat(8_000));
    out.field("one value of thousands of lines to quote", continued, QUOTED);
    let spilled = format!("x: a: b\n{}", "spilled prose\n".repeat(4_000));
    out.field("one value spilled over the margin", spilled, Refused(SYNTAX, many));
    let few = lines(200, |n| format!("k{n}: a: b"));
    out.field("as many repairs as allowed", few, Loads("RS030", "not valid YAML as written"));
    let depth = 5_000;
    let trailing = format!("x: {}{} text", "[".repeat(depth), "]".repeat(depth));
    out.field("deep brackets with text after them", trailing, TOO_DEEP);
    let shallow = lines(250, |n| format!("k{n}: [a, [b]] [c]"));
    out.field("brackets side by side", shallow, QUOTED);
    let quotes = lines(250, |n| format!("k{n}: \"a\" \\\"b\" 'c'' \"d\\\\\""));
    out.field("quotes inside quotes", quotes, QUOTED);
    let half_open = lines(600, |n| format!("k{n}: [\"a, 'b, {{\"c"));
    out.field("brackets and quotes half open", half_open, Refused(SYNTAX, ""));
    let long = format!("x: a {}", ": b ".repeat(15_000));
    out.field("one long line of colons", long, QUOTED);
    let dashes = format!("x:\n{}", lines(250, |n| format!("{} k{n}: a: b", "- ".repeat(60))));
    out.field("dashes before a value to quote", dashes, TOO_DEEP);
    let blocks = lines(900, |n| format!("k{n}: |\n\ta: b\n  c"));
    out.field("blocks indented with tabs", blocks, Refused(SYNTAX, many));
    let hidden = "x: *y\nname: evil";
    out.field("a repair that would hide a second name", hidden, Refused(SYNTAX, "`*`"));
    let moved = "license: MIT\n  name: evil";
    out.field("a repair that would move a second name", moved, Refused(SYNTAX, "field"));
    let real = "a: &x [1]\nb: c: d\nc: [*x, *x]";
    out.field("an anchor behind a value to quote", real, Refused("RS021", "anchors"));
}

/// Values that are good YAML and bad fields.
fn fields(out: &mut Bombs) {
    let word = |n: usize| format!("{:x}", 0x1000 + n);
    let words =
        |count: usize, separator: &str| (0..count).map(word).collect::<Vec<_>>().join(separator);
    let count = 12_000;
    out.field("thousands of tools", format!("allowed-tools: {}", words(count, " ")), Fine);
    out.field("thousands of tags", format!("tags: {}", words(count, ",")), Fine);
    out.field("thousands of paths", format!("paths: '{}'", words(7_000, "/**,")), Fine);
    let needs = format!("dependencies: {}", words(count, ","));
    out.field(
        "thousands of dependencies",
        needs,
        Loads("RS113", "those after 100, the limit, are left out"),
    );
    let wrong = format!("dependencies: [{}]", "'@ ',".repeat(90));
    out.field("dependencies that are none", wrong, Loads("RS113", "and 89 more"));
    let lists = format!("tags: [{}]", "[],".repeat(3_900));
    out.field("thousands of lists as tags", lists, Loads("RS105", "and 3899 more"));
    let open = format!("allowed-tools: {}", "Bash(".repeat(12_000));
    out.field("tools with brackets never closed", open, Fine);
    let version = format!("version: {}", "1.".repeat(30_000));
    out.field("a version without an end", version, Fine);
    let pattern = format!("triggers:\n  patterns: '{}'", "(a*)*".repeat(12_000));
    out.field("a pattern of 60 KB", pattern, Fine);
    out.field(
        "a number without an end",
        format!("max_retries: {}", "9".repeat(60_000)),
        Loads("RS105", "whole number"),
    );
    let choice = format!("context: {}", "fork".repeat(15_000));
    out.field("a choice of 60 KB", choice, Loads("RS106", "…"));
    out.field("a name that climbs", "x: 1\nlicense: ../../../etc/passwd", Fine);
}
