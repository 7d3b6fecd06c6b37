//! What people and tools see of a review.

mod hostile;
mod made_up;

use repertoire_review::change::ReviewChange;
use repertoire_review::finding::FindingFix;
use repertoire_review::record::ReviewRecord;
use repertoire_review::report::{
    ReportFormat, ReportTextLayout, Styles, json, render_review, sarif,
};
use serde_json::Value;

use hostile::hostile;
use made_up::{change, clean, review};

fn shown(format: ReportFormat, review: &ReviewRecord, change: &ReviewChange) -> String {
    render_review(format, review, change, &ReportTextLayout::default())
}

fn snapshot(name: &str, text: &str) {
    let text = text.replace(env!("CARGO_PKG_VERSION"), "[version]");
    insta::with_settings!({
        snapshot_path => "../fixtures/review_report",
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::assert_snapshot!(name, text);
    });
}

#[test]
fn a_review_as_text() {
    snapshot("text", &shown(ReportFormat::Text, &review(), &change()));
    let narrow = ReportTextLayout { width: 60, styles: Styles::ansi() };
    snapshot("text-ansi", &render_review(ReportFormat::Text, &review(), &change(), &narrow));
}

#[test]
fn a_clean_review_is_one_line() {
    let text = shown(ReportFormat::Text, &clean(), &change());
    assert_eq!(
        text,
        "No findings in 4 files (quick review, 4 agents; bugs, error handling, security, test coverage).\n"
    );
}

#[test]
fn hostile_text_neither_moves_the_cursor_nor_commands_the_build_log() {
    let (review, change) = hostile();
    for styles in [Styles::plain(), Styles::ansi()] {
        let text = render_review(
            ReportFormat::Text,
            &review,
            &change,
            &ReportTextLayout { width: 80, styles },
        );
        for line in text.lines() {
            assert!(!line.trim_start().starts_with("::"), "{line}");
            assert!(!line.contains("##["), "{line}");
            // What starts an escape is ours: it is a colour.
            for escape in line.split('\u{1b}').skip(1) {
                let end = escape.find('m').unwrap();
                let colour = &escape[1..end];
                assert!(colour.bytes().all(|byte| byte.is_ascii_digit() || byte == b';'), "{line}");
            }
            let rest = line.replace('\u{1b}', "");
            assert!(repertoire_text::invisible::is_clean(&rest), "{rest}");
        }
        assert!(text.len() < 2_000_000, "{}", text.len());
    }
}

#[test]
fn the_record_fits_its_schema_and_comes_back_as_it_was() {
    let schema = json::record_schema().to_value();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for review in [review(), clean(), hostile().0] {
        let text = shown(ReportFormat::Json, &review, &change());
        let value: Value = serde_json::from_str(&text).unwrap();
        let problems: Vec<String> =
            validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(serde_json::from_str::<ReviewRecord>(&text).unwrap(), review);
    }
    snapshot("json", &shown(ReportFormat::Json, &review(), &change()));
}

#[test]
fn sarif_fits_the_schema_of_its_committee() {
    // One of its patterns has a bracket that only JavaScript takes for itself.
    let schema = include_str!("../fixtures/sarif-schema-2.1.0.json")
        .replace("-[a-zA-Z]{2}]?$", "-[a-zA-Z]{2}\\\\]?$");
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    let mut wrong = sarif::build_report(&review(), &change());
    wrong["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] =
        0.into();
    assert!(!validator.is_valid(&wrong), "the schema is at work");
    let (bad, bad_change) = hostile();
    let empty = ReviewChange::default();
    let change = change();
    let all = [
        (review(), &change),
        (clean(), &change),
        (bad.clone(), &bad_change),
        (bad, &empty),
        (many(20), &change),
    ];
    for (review, change) in all {
        let value: Value =
            serde_json::from_str(&shown(ReportFormat::Sarif, &review, change)).unwrap();
        let problems: Vec<String> =
            validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert_eq!(problems, Vec::<String>::new());
        for result in value["runs"][0]["results"].as_array().unwrap() {
            let rule = result["ruleIndex"].as_u64().unwrap() as usize;
            assert_eq!(value["runs"][0]["tool"]["driver"]["rules"][rule]["id"], result["ruleId"]);
        }
    }
    snapshot("sarif", &shown(ReportFormat::Sarif, &review(), &change));
}

/// A review with so many findings.
fn many(number: usize) -> ReviewRecord {
    let mut review = review();
    let one = review.findings[3].clone();
    review.findings = vec![one; number];
    review
}

#[test]
fn sarif_has_no_more_results_than_are_kept_and_says_so() {
    let text = shown(ReportFormat::Sarif, &many(6_000), &ReviewChange::default());
    let value: Value = serde_json::from_str(&text).unwrap();
    let run = &value["runs"][0];
    assert_eq!(run["results"].as_array().unwrap().len(), 5_000);
    let note = &run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"];
    assert_eq!(
        note,
        "1,001 results more than 5,000 are left out here: code scanning keeps no more"
    );
}

#[test]
fn annotations_are_one_command_a_line_and_no_more_than_github_shows() {
    snapshot("github", &shown(ReportFormat::Github, &review(), &change()));
    let (bad, bad_change) = hostile();
    for (review, change) in [(bad, bad_change), (many(30), change()), (clean(), change())] {
        let text = shown(ReportFormat::Github, &review, &change);
        for kind in ["error", "warning", "notice"] {
            let start = format!("::{kind} ");
            let number = text.lines().filter(|line| line.starts_with(&start)).count();
            assert!(number <= 10, "{number} of {kind}");
        }
        for line in text.lines() {
            let (properties, _) = line[2..].split_once("::").unwrap();
            let (_, properties) = properties.split_once(' ').unwrap();
            for property in properties.split(',') {
                let (name, value) = property.split_once('=').unwrap();
                assert!(["file", "line", "endLine", "title"].contains(&name), "{line}");
                assert!(!value.contains(':'), "{line}");
            }
            assert!(!line.contains("##["), "{line}");
        }
    }
    let last = shown(ReportFormat::Github, &many(30), &change());
    assert!(last.trim_end().ends_with("GitHub has no room for 22 annotations more of this step."));
}

#[test]
fn reviewdog_gets_places_and_suggestions() {
    snapshot("rdjson", &shown(ReportFormat::Rdjson, &review(), &change()));
    let (bad, bad_change) = hostile();
    for (review, change) in [(bad, bad_change), (clean(), change())] {
        let value: Value =
            serde_json::from_str(&shown(ReportFormat::Rdjson, &review, &change)).unwrap();
        for diagnostic in value["diagnostics"].as_array().unwrap() {
            assert!(diagnostic["location"]["range"]["start"]["line"].as_u64().unwrap() > 0);
            assert!(
                ["ERROR", "WARNING", "INFO"].contains(&diagnostic["severity"].as_str().unwrap())
            );
        }
    }
}

/// What Markdown is made of, as a reader of it sees it.
#[derive(Debug, Default, PartialEq)]
struct Made {
    headings: Vec<String>,
    rows: Vec<usize>,
    links: usize,
    html: Vec<String>,
    quotes: usize,
    /// Words outside code that readers make links, mentions or references of.
    active: Vec<String>,
}

fn made(markdown: &str) -> Made {
    use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
    let mut made = Made::default();
    let mut heading = None;
    let (mut cells, mut in_code) = (0, false);
    for event in Parser::new_ext(markdown, Options::all()) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => made.headings.extend(heading.take()),
            Event::Start(Tag::TableRow | Tag::TableHead) => cells = 0,
            Event::Start(Tag::TableCell) => cells += 1,
            Event::End(TagEnd::TableRow | TagEnd::TableHead) => made.rows.push(cells),
            Event::Start(Tag::Link { .. } | Tag::Image { .. }) => made.links += 1,
            Event::Start(Tag::BlockQuote(_)) => made.quotes += 1,
            Event::Html(html) | Event::InlineHtml(html) => made.html.push(html.to_string()),
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Text(text)
                if !in_code
                    && ["://", "@", "#1", "www."].iter().any(|mark| text.contains(mark)) =>
            {
                made.active.push(text.to_string());
            }
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            _ => {}
        }
    }
    made
}

#[test]
fn a_review_in_markdown() {
    let text = shown(ReportFormat::Markdown, &review(), &change());
    snapshot("markdown", &text);
    let made = made(&text);
    assert_eq!((made.links, made.html.len(), made.quotes), (0, 0, 3));
    assert_eq!(
        made.headings.iter().filter(|heading| !heading.starts_with(['R', 'I'])).collect::<Vec<_>>(),
        [
            "Code Review",
            "Summary",
            "Critical",
            "Major",
            "Minor",
            "Suggestions",
            "Cross-Cutting Insights",
            "Test Recommendations",
            "Left Out",
            "Agent Calls",
        ]
    );
}

#[test]
fn a_clean_review_in_markdown_is_short() {
    let text = shown(ReportFormat::Markdown, &clean(), &change());
    assert_eq!(
        text,
        "No findings in 4 files (quick review, 4 agents; bugs, error handling, security, test coverage).\n"
    );
    let mut warned = clean();
    warned.warnings.push("AGENTS.md was cut".into());
    let text = shown(ReportFormat::Markdown, &warned, &change());
    assert!(
        text.starts_with("> **Warning:** AGENTS.md was cut\n\nNo findings in 4 files"),
        "{text}"
    );
}

#[test]
fn hostile_markdown_has_the_structure_of_any_other() {
    let (bad, bad_change) = hostile();
    let text = shown(ReportFormat::Markdown, &bad, &bad_change);
    let (bad, good) = (made(&text), made(&shown(ReportFormat::Markdown, &review(), &change())));
    assert_eq!(bad.headings.len(), good.headings.len());
    assert_eq!((bad.links, &bad.html, &bad.active), (0, &Vec::new(), &Vec::new()));
    // It has one category more.
    assert_eq!(bad.rows.len(), good.rows.len() + 1);
    assert!(bad.rows.iter().all(|cells| good.rows.contains(cells)));
    assert!(repertoire_text::invisible::is_clean(&text));
}

/// The page as XML, which it is but for its first line: how many there are of each element.
fn elements(page: &str) -> std::collections::BTreeMap<String, usize> {
    use quick_xml::events::Event;
    let body = page.strip_prefix("<!DOCTYPE html>\n").unwrap();
    let mut reader = quick_xml::Reader::from_str(body);
    let mut found = std::collections::BTreeMap::new();
    loop {
        match reader.read_event().unwrap() {
            Event::Start(tag) | Event::Empty(tag) => {
                for attribute in tag.attributes() {
                    let key = attribute.unwrap().key.as_ref().to_owned();
                    assert!(!key.starts_with("on") && key != "style", "{tag:?}");
                }
                let name = tag.name().as_ref().to_owned();
                *found.entry(name).or_default() += 1;
            }
            Event::Comment(_) | Event::CData(_) | Event::PI(_) => panic!("nobody wrote that"),
            Event::Eof => return found,
            _ => {}
        }
    }
}

/// The page without its style and its script, which change for other reasons.
fn without_looks(page: &str) -> String {
    let mut page = page.to_owned();
    for (from, to) in
        [("<style>", "</style>"), ("<script>", "</script>"), ("content=\"default", "\"/>")]
    {
        let start = page.find(from).unwrap() + from.len();
        let end = start + page[start..].find(to).unwrap();
        page.replace_range(start..end, "[…]");
    }
    page
}

#[test]
fn a_review_as_a_page() {
    let page = shown(ReportFormat::Html, &review(), &change());
    snapshot("html", &without_looks(&page));
    let elements = elements(&page);
    assert_eq!((elements["script"], elements["style"], elements["article"]), (1, 1, 7));
    for outside in ["http://", "https://", "src=", "url(", "@import"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn a_page_without_the_files_shows_excerpts() {
    let page = shown(ReportFormat::Html, &review(), &ReviewChange::default());
    assert_eq!(elements(&page)["article"], 7);
    assert!(page.contains("s3cr3t-for-now"));
}

#[test]
fn a_clean_page_says_so() {
    let page = shown(ReportFormat::Html, &clean(), &change());
    assert!(page.contains("<h1>No findings</h1>"));
    assert!(!elements(&page).contains_key("article"));
}

#[test]
fn hostile_text_adds_no_element_to_the_page() {
    let (bad, bad_change) = hostile();
    for change in [bad_change, ReviewChange::default()] {
        let page = shown(ReportFormat::Html, &bad, &change);
        let elements = elements(&page);
        assert_eq!((elements["script"], elements["style"], elements["article"]), (1, 1, 7));
        for absent in ["img", "iframe", "object", "link", "form"] {
            assert!(!elements.contains_key(absent), "{absent}");
        }
        assert!(repertoire_text::invisible::is_clean(&page));
        assert!(page.len() < 3_000_000, "{}", page.len());
    }
}

#[test]
fn every_link_of_a_page_leads_somewhere() {
    let page = shown(ReportFormat::Html, &review(), &change());
    for link in page.split("href=\"#").skip(1) {
        let target = link.split('"').next().unwrap();
        assert!(page.contains(&format!("id=\"{target}\"")), "{target}");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config {
        cases: 24,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn no_text_and_no_number_breaks_a_report(
        text in "(?s).{0,120}",
        mark in "[-+ @`|<>\\\\:#\n]{0,12}",
        first: u32,
        last: u32,
        ms: u64,
    ) {
        let text = format!("{mark}{text}{mark}");
        let mut review = review();
        let change = change();
        (review.started_ms, review.duration_ms) = (ms, ms);
        review.insights[0].line = first;
        review.insights[0].insight = text.clone();
        for finding in &mut review.findings {
            finding.title = text.clone();
            finding.description = text.clone();
            finding.lines.first = first;
            finding.lines.last = last;
            finding.fix = Some(FindingFix::Diff(text.clone()));
            finding.excerpt[0].number = last;
            finding.excerpt[0].text = text.clone();
        }
        for change in [&change, &ReviewChange::default()] {
            for format in [ReportFormat::Json, ReportFormat::Sarif, ReportFormat::Rdjson] {
                serde_json::from_str::<Value>(&shown(format, &review, change)).unwrap();
            }
            let elements = elements(&shown(ReportFormat::Html, &review, change));
            assert_eq!((elements["script"], elements["article"]), (1, 7));
        }
        let made = made(&shown(ReportFormat::Markdown, &review, &change));
        assert_eq!((made.headings.len(), made.links, made.html.len()), (17, 0, 0));
        shown(ReportFormat::Text, &review, &change);
        for line in shown(ReportFormat::Github, &review, &change).lines() {
            assert!(line.starts_with("::"), "{line}");
        }
    }
}
