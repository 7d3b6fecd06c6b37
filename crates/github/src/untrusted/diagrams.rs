//! Mermaid diagrams: statements that are known to be drawn stay, known others are removed, and a diagram with anything
//! else is not understood.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::diagram_styles::is_legible_style;

/// A replacement of a part of a diagram's source.
pub(super) type DiagramEdit = (Range<usize>, String);

/// The kinds of diagrams that are understood, by their first statements.
const KINDS: &[(&str, Kind)] = &[
    (r"^(?:graph|flowchart)(?:\s+(?:TB|TD|BT|RL|LR))?$", Kind::Flowchart),
    (r"^sequenceDiagram$", Kind::Sequence),
    (r"^stateDiagram(?:-v2)?$", Kind::State),
    (r"^classDiagram(?:-v2)?$", Kind::Class),
    (r"^erDiagram$", Kind::Entities),
    (r"^pie(?:\s+showData)?(?:\s+title\s+(?P<t1>.+))?$", Kind::Pie),
    (r"^journey$", Kind::Journey),
    (r"^timeline$", Kind::Timeline),
];

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Flowchart,
    Sequence,
    State,
    Class,
    Entities,
    Pie,
    Journey,
    Timeline,
}

/// The effect of a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// It draws all of its texts, and its names unless they have a label.
    Drawn,
    /// Like `Drawn`, and members follow up to a closing brace.
    Opens,
    /// It draws nothing, and hides nothing.
    Unseen,
    /// It changes the style of something.
    Styles,
}

/// A name in a flowchart, a state diagram or an entity diagram.
const NAME: &str = r"[\w]+(?:[.-][\w]+)*";
/// A name in a sequence diagram.
const PARTICIPANT: &str = r"\w+(?:[ .]\w+)*";
/// A name in a class diagram.
const CLASS: &str = r"\w+(?:~[\w,]+~)?";

const STYLES: &str = r"^(?:style|classDef|linkStyle)\s+[\w,.-]+\s+(?P<style>.+)$";
const CLASSES: &str = r"^class\s+[\w,. -]+$";
const DIRECTION: &str = r"^direction\s+(?:TB|TD|BT|RL|LR)$";
const TITLE: &str = r"^title:?\s+(?P<title>.+)$";

impl Kind {
    /// Returns the statements of a kind. In the groups, `i` is a name, `l` a name with a label or without a drawing of its own,
    /// and `t` a text. `N`, `P` and `C` stand for names.
    fn statements(self) -> Vec<(&'static str, Effect)> {
        use Effect::{Drawn, Opens, Styles, Unseen};
        match self {
            Kind::Flowchart => vec![
                (r"^subgraph\s+(?P<l1>N)\s*\[(?P<t1>[^\[\]]*)\]$", Drawn),
                (r"^subgraph\s+(?P<s1>[^\[\]]+)$", Drawn),
                (r"^(?:subgraph|end)$", Drawn),
                (DIRECTION, Drawn),
                (STYLES, Styles),
                (CLASSES, Unseen),
                (r"^click\s.+$", Unseen),
            ],
            Kind::Sequence => vec![
                (r"^(?:create\s+)?(?:participant|actor)\s+(?P<l1>P)\s+as\s+(?P<t1>.+)$", Drawn),
                (r"^(?:create\s+)?(?:participant|actor)\s+(?P<i1>P)$", Drawn),
                (r"^(?:destroy|activate|deactivate)\s+(?P<i1>P)$", Drawn),
                (
                    r"^(?i:note)\s+(?i:(?:left|right)\s+of|over)\s+(?P<i1>P)(?:\s*,\s*(?P<i2>P))?\s*:(?P<t1>.*)$",
                    Drawn,
                ),
                (r"^(?P<i1>P)\s*(?:<<)?--?(?:>>|>|x|\))\s*[+-]?\s*(?P<i2>P)\s*:(?P<t1>.*)$", Drawn),
                (r"^(?:loop|alt|else|opt|par|and|critical|option|break)(?:\s+(?P<t1>.*))?$", Drawn),
                (r"^(?:end|autonumber)$", Drawn),
                (TITLE, Drawn),
                (r"^(?:links?|properties|details)\s.+$", Unseen),
            ],
            Kind::State => vec![
                (r#"^state\s+"(?P<t1>[^"]*)"\s+as\s+(?P<l1>N)(?:\s*\{)?$"#, Drawn),
                (r"^state\s+(?P<l1>N)\s+<<(?:choice|fork|join)>>$", Drawn),
                (r"^state\s+(?P<i1>N)(?:\s*\{)?$", Drawn),
                (r"^(?:\[\*\]|(?P<i1>N))\s*-->\s*(?:\[\*\]|(?P<i2>N))(?:\s*:(?P<t1>.*))?$", Drawn),
                (r"^note\s+(?:left|right)\s+of\s+(?P<i1>N)\s*:(?P<t1>.+)$", Drawn),
                (r"^(?P<l1>N)\s*:(?P<t1>.+)$", Drawn),
                (r"^(?:\}|--)$", Drawn),
                (DIRECTION, Drawn),
                (STYLES, Styles),
                (CLASSES, Unseen),
                (r"^click\s.+$", Unseen),
                (r"^(?P<i1>N)$", Drawn),
            ],
            Kind::Class => vec![
                (r#"^class\s+(?P<l1>C)\s*\[(?P<t1>"[^"]*")\]$"#, Drawn),
                (r"^class\s+(?P<i1>C)$", Drawn),
                (r"^class\s+(?P<i1>C)\s*\{$", Opens),
                (
                    r#"^(?P<i1>C)\s*(?:"(?P<t1>[^"]*)"\s*)?(?:<\||[*o<])?(?:--|\.\.)(?:\|>|[*o>])?\s*(?:"(?P<t2>[^"]*)"\s*)?(?P<i2>C)(?:\s*:(?P<t3>.+))?$"#,
                    Drawn,
                ),
                (r#"^note\s+(?:for\s+(?P<i1>C)\s+)?"(?P<t1>[^"]*)"$"#, Drawn),
                (r"^<<\w+>>\s+(?P<i1>C)$", Drawn),
                (r"^(?P<i1>C)\s*:(?P<t1>.+)$", Drawn),
                (DIRECTION, Drawn),
                (STYLES, Styles),
                (r"^(?:click|link|callback|cssClass)\s.+$", Unseen),
            ],
            Kind::Entities => vec![
                (
                    r"^(?P<i1>N)\s*(?:\|o|\|\||\}o|\}\|)(?:--|\.\.)(?:o\||\|\||o\{|\|\{)\s*(?P<i2>N)\s*:(?P<t1>.+)$",
                    Drawn,
                ),
                (r"^(?P<i1>N)$", Drawn),
                (r"^(?P<i1>N)\s*\{$", Opens),
                (r"^(?P<l1>N)\s*\[(?P<t1>[^\[\]]+)\]$", Drawn),
                (r"^(?P<l1>N)\s*\[(?P<t1>[^\[\]]+)\]\s*\{$", Opens),
            ],
            Kind::Pie => vec![
                (TITLE, Drawn),
                (r#"^"(?P<t1>[^"]+)"\s*:\s*(?P<number>\d{1,9}(?:\.\d{1,9})?)$"#, Drawn),
            ],
            Kind::Journey => vec![
                (TITLE, Drawn),
                (r"^section\s+(?P<t1>.+)$", Drawn),
                (r"^(?P<t1>[^:]+):\s*[1-5]\s*(?::(?P<t2>[^:]*))?$", Drawn),
            ],
            Kind::Timeline => vec![(TITLE, Drawn), (r"^(?P<t1>.+)$", Drawn)],
        }
    }
}

/// The statements of each kind, compiled.
static STATEMENTS: LazyLock<BTreeMap<Kind, Vec<(Regex, Effect)>>> = LazyLock::new(|| {
    let compile = |(pattern, effect): &(&str, Effect)| {
        let names = [("N)", NAME), ("P)", PARTICIPANT), ("C)", CLASS)];
        let pattern = names.iter().fold((*pattern).to_owned(), |pattern, (short, name)| {
            pattern.replace(&format!(">{short}"), &format!(">{name})"))
        });
        (compile_regex(&pattern), *effect)
    };
    let of_kind = |kind: Kind| (kind, kind.statements().iter().map(compile).collect());
    KINDS.iter().map(|(_, kind)| of_kind(*kind)).collect()
});

static HEADERS: LazyLock<Vec<(Regex, Kind)>> =
    LazyLock::new(|| KINDS.iter().map(|(pattern, kind)| (compile_regex(pattern), *kind)).collect());

/// A node of a flowchart: its name, its shape with the label, and a class.
static NODE: LazyLock<Regex> = LazyLock::new(|| {
    let text = r#"(?:"[^"]*"|[^"\[\](){}|]+)"#;
    let shapes = [
        (r"\(\[", r"\]\)"),
        (r"\[\[", r"\]\]"),
        (r"\[\(", r"\)\]"),
        (r"\(\(\(", r"\)\)\)"),
        (r"\(\(", r"\)\)"),
        (r"\{\{", r"\}\}"),
        (r"\[[/\\]", r"[/\\]\]"),
        (">", r"\]"),
        (r"\[", r"\]"),
        (r"\(", r"\)"),
        (r"\{", r"\}"),
    ];
    let shapes = shapes.map(|(open, close)| format!("{open}{text}{close}")).join("|");
    compile_regex(&format!(r"^(?P<name>{NAME})(?P<shape>{shapes})?(?P<class>:::\w+(?:-\w+)*)?\s*"))
});

/// What joins two nodes of a flowchart.
static LINK: LazyLock<Regex> = LazyLock::new(|| {
    let text = r#"[^-=.>|"\[\](){}][^|"\[\](){}]*?"#;
    compile_regex(&format!(
        r#"^(?:&|(?:<?(?:--+[-xo>]|==+[=xo>]|-\.+-[xo>]?|~~~+)|<?--\s*(?P<t1>{text})\s*--+[-xo>]|<?==\s*(?P<t2>{text})\s*==+[=xo>]|<?-\.\s*(?P<t3>{text})\s*\.+-[xo>]?)(?:\s*\|(?P<t4>[^|]*)\|)?)\s*"#
    ))
});

/// A directive that changes nothing but the colours of everything.
static THEME: LazyLock<Regex> = LazyLock::new(|| {
    compile_regex(
        r#"^%%\{\s*init\s*:\s*\{\s*['"]?theme['"]?\s*:\s*['"](?:default|neutral|forest|base)['"]\s*\}\s*\}%%$"#,
    )
});

/// Names that are too short to say anything.
static SHORT_NAME: LazyLock<Regex> = LazyLock::new(|| compile_regex(r"^[A-Za-z]\d{0,4}$"));

static ICON: LazyLock<Regex> = LazyLock::new(|| compile_regex(r"(?i)\bfa[a-z]?:\S|\bmdi?:\S"));

static TAG: LazyLock<Regex> = LazyLock::new(|| compile_regex(r"(?i)<(?:br\s*/?|/?[bi])>"));

fn compile_regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the patterns of this program are written right")
}

/// Returns the edits that leave only what a diagram draws; `None` if the diagram is not understood.
pub(super) fn edits_of_diagram(source: &str) -> Option<Vec<DiagramEdit>> {
    let mut reader = DiagramReader::new(source);
    for statement in reader.split_statements()? {
        reader.read_statement(statement)?;
    }
    reader.into_edits()
}

struct DiagramReader<'t> {
    source: &'t str,
    kind: Option<Kind>,
    /// True between the braces of a class or an entity.
    is_in_members: bool,
    edits: Vec<DiagramEdit>,
    /// The names that occur.
    names: Vec<Range<usize>>,
    /// The labels of names. What has two is drawn with one of them.
    labels: BTreeMap<String, String>,
    /// The numbers of a pie chart. Small pieces are not drawn.
    numbers: Vec<f64>,
}

impl<'t> DiagramReader<'t> {
    fn new(source: &'t str) -> Self {
        DiagramReader {
            source,
            kind: None,
            is_in_members: false,
            edits: Vec::new(),
            names: Vec::new(),
            labels: BTreeMap::new(),
            numbers: Vec::new(),
        }
    }

    fn remove(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            self.edits.push((range, String::new()));
        }
    }

    /// Returns the ranges of the statements, and removes settings, comments and descriptions.
    fn split_statements(&mut self) -> Option<Vec<Range<usize>>> {
        let mut statements = Vec::new();
        let (mut is_front, mut is_description) = (false, false);
        let mut end = 0;
        for (number, line) in self.source.split_inclusive('\n').enumerate() {
            let start = end + line.len() - line.trim_start().len();
            end += line.len();
            let plain = line.trim();
            let range = start..start + plain.len();
            let lower = plain.to_lowercase();
            let is_ruler = plain == "---" && (number == 0 || is_front);
            let is_accessible = lower.starts_with("acctitle") || lower.starts_with("accdescr");
            if is_ruler {
                is_front = number == 0;
                self.remove(range);
            } else if is_front {
                if !plain.is_empty() && !lower.starts_with("title:") {
                    return None;
                }
                self.remove(range);
            } else if is_description || is_accessible {
                let opens = is_accessible && plain.contains('{') && !plain.contains(':');
                is_description = (is_description || opens) && !plain.contains('}');
                self.remove(range);
            } else if plain.starts_with("%%") {
                if lower.contains('{') && !THEME.is_match(plain) {
                    return None;
                }
                self.remove(range);
            } else {
                let shown = plain.find("%%").unwrap_or(plain.len());
                let shown = plain[..shown].trim_end().len();
                self.remove(start + shown..range.end);
                statements.extend(split_line(self.source, start..start + shown));
            }
        }
        (!is_front && !is_description).then_some(statements)
    }

    fn read_statement(&mut self, range: Range<usize>) -> Option<()> {
        let statement = &self.source[range.clone()];
        let Some(kind) = self.kind else {
            let (found, kind) = HEADERS
                .iter()
                .find_map(|(pattern, kind)| Some((pattern.captures(statement)?, *kind)))?;
            self.kind = Some(kind);
            return self.read_groups(&found, range.start);
        };
        if self.is_in_members {
            self.is_in_members = statement != "}";
            return (!self.is_in_members
                || is_drawn_text(statement) && !statement.contains(['{', '}']))
            .then_some(());
        }
        let known = STATEMENTS
            .get(&kind)?
            .iter()
            .find_map(|(pattern, effect)| Some((pattern.captures(statement)?, *effect)));
        match known {
            Some((found, effect @ (Effect::Drawn | Effect::Opens))) => {
                self.is_in_members = effect == Effect::Opens;
                self.read_groups(&found, range.start)
            }
            Some((_, Effect::Unseen)) => {
                self.remove(range);
                Some(())
            }
            Some((found, Effect::Styles)) => {
                is_legible_style(&found["style"]).then(|| self.remove(range))
            }
            None if kind == Kind::Flowchart => self.read_chain(range),
            None => None,
        }
    }

    /// Notes the names and checks the texts of a statement.
    fn read_groups(&mut self, found: &Captures<'_>, start: usize) -> Option<()> {
        let texts = ["t1", "t2", "t3", "s1", "title"].map(|name| found.name(name));
        if texts.iter().flatten().any(|text| !is_drawn_text(text.as_str())) {
            return None;
        }
        for name in ["i1", "i2", "l1"].into_iter().filter_map(|name| found.name(name)) {
            self.names.push(start + name.start()..start + name.end());
        }
        let text = texts[0].map_or("", |text| text.as_str());
        if let Some(name) = found.name("l1") {
            self.label(name.as_str(), text)?;
        }
        if let Some(name) = found.name("s1") {
            self.label(name.as_str(), name.as_str())?;
        }
        if let Some(title) = found.name("title") {
            self.label("\0title", title.as_str())?;
        }
        if let Some(number) = found.name("number") {
            self.numbers.push(number.as_str().parse().ok()?);
        }
        Some(())
    }

    /// Notes the label of a name; `None` if it has another one already.
    fn label(&mut self, name: &str, label: &str) -> Option<()> {
        let known = self.labels.entry(name.to_owned()).or_insert_with(|| label.to_owned());
        (known == label).then_some(())
    }

    /// Reads nodes of a flowchart with the links between them.
    fn read_chain(&mut self, range: Range<usize>) -> Option<()> {
        let mut at = range.start;
        loop {
            let node = NODE.captures(&self.source[at..range.end])?;
            let name = &node["name"];
            self.names.push(at..at + name.len());
            if let Some(shape) = node.name("shape") {
                if !is_drawn_text(shape.as_str()) {
                    return None;
                }
                self.label(name, shape.as_str())?;
            }
            if let Some(class) = node.name("class") {
                self.remove(at + class.start()..at + class.end());
            }
            at += node[0].len();
            if at == range.end {
                return Some(());
            }
            let link = LINK.captures(&self.source[at..range.end])?;
            let texts = ["t1", "t2", "t3", "t4"].into_iter().filter_map(|name| link.name(name));
            if texts.into_iter().any(|text| !is_drawn_text(text.as_str())) {
                return None;
            }
            at += link[0].len();
        }
    }

    fn into_edits(mut self) -> Option<Vec<DiagramEdit>> {
        let total: f64 = self.numbers.iter().sum();
        let has_slivers = self.numbers.iter().any(|number| *number < total / 50.0);
        if self.kind.is_none() || self.is_in_members || has_slivers {
            return None;
        }
        self.rename();
        Some(self.edits)
    }

    /// Gives short names to what is drawn with a label: the names are not drawn.
    fn rename(&mut self) {
        let known: BTreeSet<&str> =
            self.names.iter().map(|name| &self.source[name.clone()]).collect();
        let mut free =
            (1..).map(|at| format!("n{at}")).filter(|name| !known.contains(name.as_str()));
        let mut renamed: BTreeMap<&str, String> = BTreeMap::new();
        for range in &self.names {
            let name = &self.source[range.clone()];
            if !self.labels.contains_key(name) || SHORT_NAME.is_match(name) {
                continue;
            }
            let short = renamed.entry(name).or_insert_with(|| free.next().unwrap_or_default());
            self.edits.push((range.clone(), short.clone()));
        }
    }
}

/// Returns the statements of a line: the parts between semicolons that are not in quotation marks.
fn split_line(source: &str, line: Range<usize>) -> Vec<Range<usize>> {
    let mut statements = Vec::new();
    let mut is_quoted = false;
    let mut start = line.start;
    for (at, c) in source[line.clone()].char_indices().chain([(line.len(), ';')]) {
        let is_end = at == line.len();
        is_quoted ^= c == '"';
        if c == ';' && (!is_quoted || is_end) {
            let part = &source[start..line.start + at];
            let blank = part.len() - part.trim_start().len();
            let length = part.trim().len();
            if length > 0 {
                statements.push(start + blank..start + blank + length);
            }
            start = line.start + at + 1;
        }
    }
    statements
}

/// Returns true if a diagram draws a text as it stands: no tags, no icons, no formulas and no Markdown.
fn is_drawn_text(text: &str) -> bool {
    let rest = TAG.replace_all(text, " ");
    let has_tag = rest.match_indices('<').any(|(at, _)| {
        rest[at + 1..].starts_with(|c: char| c.is_alphabetic() || matches!(c, '/' | '!' | '?'))
    });
    !has_tag
        && !rest.contains('`')
        && !rest.contains("$$")
        && !rest.contains("@{")
        && !rest.contains(":::")
        && !ICON.is_match(&rest)
}
