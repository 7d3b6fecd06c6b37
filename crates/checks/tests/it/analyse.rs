//! The error analyser on what real tools have said. Beside each recording, `NAME.txt`, stands what is wrong in the project
//! that it was made from, `NAME.expect`, written by hand; a recording with colours, `NAME.colour.txt`, has to say the same.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use proptest::prelude::*;
use repertoire_checks::analyse::{OutputAnalysis, analyse_output, find_errors};
use repertoire_checks::error::{ErrorCategory, ParsedError};

/// A recording.
struct Recording {
    name: String,
    output: String,
    expected: Expected,
}

/// What is wrong in a project.
struct Expected {
    exit_code: i32,
    warnings: Option<u64>,
    errors: Vec<String>,
}

fn folder() -> Utf8PathBuf {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/analyse")
}

fn text(path: &Utf8Path) -> String {
    repertoire_text::fs::read_text(path, 1 << 20).unwrap()
}

fn files(folder: &Utf8Path) -> Vec<Utf8PathBuf> {
    let mut paths: Vec<Utf8PathBuf> =
        folder.read_dir_utf8().unwrap().map(|entry| entry.unwrap().into_path()).collect();
    paths.sort();
    paths
}

fn recordings() -> Vec<Recording> {
    let all = files(&folder()).into_iter().flat_map(|folder| files(&folder));
    let outputs = all.filter(|path| path.extension() == Some("txt"));
    let recording = |path: Utf8PathBuf| {
        let stem = path.file_stem().unwrap();
        let expect = path.with_file_name(format!("{}.expect", stem.trim_end_matches(".colour")));
        Recording {
            name: path.strip_prefix(folder()).unwrap().to_string(),
            output: text(&path),
            expected: expected(&text(&expect)),
        }
    };
    outputs.map(recording).collect()
}

fn expected(text: &str) -> Expected {
    let (head, errors) = text.split_once('\n').unwrap();
    let (exit, warnings) = head.split_once(", ").unwrap();
    Expected {
        exit_code: exit.trim_start_matches("exit ").parse().unwrap(),
        warnings: warnings.trim_start_matches("warnings ").parse().ok(),
        errors: errors.lines().map(str::to_owned).collect(),
    }
}

/// An error as the files of expectations write it, but for the end of its message.
fn written(error: &ParsedError) -> String {
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let place = or_none(&error.location());
    let message = error.message.replace('\n', "\\n");
    let (code, test) = (or_none(&error.code), or_none(&error.test));
    format!("{} | {} | {place} | {code} | {test} | {message}", error.source, error.category)
}

/// What was missed and what was invented.
fn difference(analysis: &OutputAnalysis, expected: &[String]) -> Vec<String> {
    let mut told: Vec<String> = analysis.errors.iter().map(written).collect();
    let mut wrong = Vec::new();
    for line in expected {
        match told.iter().position(|told| told.starts_with(line.as_str())) {
            Some(at) => drop(told.remove(at)),
            None => wrong.push(format!("  missed   {line}")),
        }
    }
    wrong.extend(told.iter().map(|line| format!("  invented {line}")));
    wrong
}

#[test]
fn every_error_of_every_recording_is_found_and_none_is_invented() {
    let mut wrong = Vec::new();
    let recordings = recordings();
    for Recording { name, output, expected } in &recordings {
        let analysis = analyse_output(output, Some(expected.exit_code), &|_| None);
        let mut lines = difference(&analysis, &expected.errors);
        if expected.warnings.is_some_and(|warnings| warnings != analysis.warnings) {
            lines.push(format!("  {} warnings, not {:?}", analysis.warnings, expected.warnings));
        }
        if !lines.is_empty() {
            wrong.push(format!("{name}\n{}", lines.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), recordings.len(), wrong.join("\n"));
    assert!(recordings.len() > 100, "{} recordings", recordings.len());
}

#[test]
fn line_endings_of_windows_and_progress_bars_change_nothing() {
    for Recording { name, output, expected } in recordings() {
        let windows = output.replace("\r\n", "\n").replace('\n', "\r\n");
        let analysis = analyse_output(&windows, Some(expected.exit_code), &|_| None);
        assert_eq!(difference(&analysis, &expected.errors), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn what_is_said_by_the_way_adds_no_error_to_any_recording() {
    let noise = "warning: unable to access '/root/.config/git/attributes': Permission denied\n\
                 WARNING: Retrying after connection broken by 'Connection refused'\n\
                 INFO: connection refused, retrying\n\
                 2024/01/01 10:00:00 main.go:12: listening\n";
    // A list of files is one only if nothing else was said, and of what nobody understands the last lines are shown.
    let is_whole = |recording: &Recording| {
        let errors = &recording.expected.errors;
        recording.name == "go/gofmt.txt" || errors.iter().any(|line| line.contains("| unknown |"))
    };
    let others = recordings().into_iter().filter(|recording| !is_whole(recording));
    for Recording { name, output, expected } in others {
        let analysis =
            analyse_output(&format!("{noise}{output}"), Some(expected.exit_code), &|_| None);
        assert_eq!(difference(&analysis, &expected.errors), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_command_that_went_well_has_no_errors_whatever_it_said() {
    for Recording { name, output, .. } in recordings() {
        let analysis = analyse_output(&output, Some(0), &|_| None);
        assert!(analysis.errors.is_empty() && analysis.groups.is_empty(), "{name}");
    }
}

#[test]
fn every_error_is_in_one_group_and_groups_have_an_order() {
    for Recording { name, output, expected } in recordings() {
        let analysis = analyse_output(&output, Some(expected.exit_code), &|_| None);
        let mut seen: BTreeMap<usize, usize> = BTreeMap::new();
        for group in &analysis.groups {
            group.errors.iter().for_each(|at| *seen.entry(*at).or_default() += 1);
        }
        let all = (0..analysis.errors.len()).map(|at| (at, 1)).collect();
        assert_eq!(seen, all, "{name}");
        assert_eq!(analysis.fix_first, (!analysis.errors.is_empty()).then_some(0), "{name}");
    }
}

#[test]
fn a_failed_command_is_never_without_an_error() {
    for output in ["", "\n\n", "all good", "0 errors", "\u{1b}[31m\u{1b}[0m"] {
        for code in [Some(1), Some(-1), None] {
            let analysis = analyse_output(output, code, &|_| None);
            assert_eq!(analysis.errors.len(), 1, "{output:?}");
            assert_eq!(analysis.errors[0].category, ErrorCategory::Unknown);
            assert!(!analysis.errors[0].message.is_empty());
        }
    }
    let long: String = (0..50).map(|n| format!("step {n}\n")).collect();
    let message = &analyse_output(&long, Some(1), &|_| None).errors[0].message;
    assert!(message.starts_with("step 30\n") && message.ends_with("step 49"), "{message}");
}

#[test]
fn two_tools_in_one_output_are_both_understood_in_any_order() {
    let plain: Vec<Recording> =
        recordings().into_iter().filter(|one| one.expected.exit_code != 0).collect();
    let pick = |name: &str| plain.iter().find(|one| one.name == name).unwrap();
    let names = [
        "rust/rustc-types.txt",
        "rust/cargo-test.txt",
        "rust/cargo-fmt.txt",
        "tsc/tsc-types-5.txt",
        "eslint/eslint-9.txt",
        "biome/biome-check-2.txt",
        "tsc/tsc-types-5.colour.txt",
        "pytest/pytest-failures-9.txt",
        "go/go-test.txt",
        "go/go-build.txt",
        "jest/jest-30.txt",
        "vitest/vitest-3.txt",
        "generic/node-undefined.txt",
        "generic/shell-not-found.txt",
    ];
    let next = names.iter().cycle().skip(1);
    let pairs = names.iter().zip(next).flat_map(|(one, other)| [(one, other), (other, one)]);
    for (one, other) in pairs {
        let (one, other) = (pick(one), pick(other));
        let both = format!("{}\n{}", one.output, other.output);
        let expected = [one.expected.errors.clone(), other.expected.errors.clone()].concat();
        let wrong = difference(&analyse_output(&both, Some(1), &|_| None), &expected);
        assert_eq!(wrong, Vec::<String>::new(), "{} then {}", one.name, other.name);
    }
}

#[test]
fn lines_around_an_error_come_from_the_projects_file() {
    let output =
        "src/app.ts(2,7): error TS2322: Type 'string' is not assignable to type 'number'.\n";
    let read = |path: &str| (path == "src/app.ts").then(|| "one\ntwo\nthree\n".to_owned());
    let analysis = analyse_output(output, Some(2), &read);
    assert_eq!(analysis.errors[0].context, ["  1 | one", "> 2 | two", "  3 | three"]);
}

#[test]
fn windows_paths_are_kept_whole() {
    let output =
        "C:\\my code\\app.ts(2,7): error TS2322: no.\r\nC:\\my code\\b.c:3:4: error: wrong\r\n";
    let analysis = find_errors(output, &|_| None);
    let places: Vec<_> = analysis.errors.iter().filter_map(ParsedError::location).collect();
    assert_eq!(places, ["C:\\my code\\app.ts:2:7", "C:\\my code\\b.c:3:4"]);
}

#[test]
fn output_without_end_is_cut_and_says_so() {
    let noise = format!("{}\n", "a line that says nothing. ".repeat(100)).repeat(1_800);
    let output = format!("a.c:1:2: error: first\n{noise}b.c:3:4: error: last\n");
    let analysis = find_errors(&output, &|_| None);
    assert!(analysis.truncated);
    assert_eq!(analysis.errors.len(), 2);
    let many: String = (1..5_000).map(|n| format!("a.c:{n}:2: error: wrong {n}\n")).collect();
    let analysis = find_errors(&many, &|_| None);
    assert!(analysis.truncated && analysis.errors.len() == 1_000);
    let kept = "[… 12 bytes left out …]\na.c:1:2: error: x\n";
    assert!(find_errors(kept, &|_| None).truncated);
}

/// Pieces of real output in any order: beginnings without ends, ends without beginnings.
fn shuffled() -> impl Strategy<Value = String> {
    let lines: Vec<String> = recordings()
        .into_iter()
        .flat_map(|one| one.output.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    prop::collection::vec(prop::sample::select(lines), 0..60).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_is_survived(text in "(?s).{0,400}") {
        analyse_output(&text, Some(1), &|_| Some("x".to_owned()));
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        analyse_output(&String::from_utf8_lossy(&bytes), Some(1), &|_| None);
    }

    #[test]
    fn pieces_of_output_are_survived_and_the_same_twice(text in shuffled()) {
        let once = analyse_output(&text, Some(1), &|_| None);
        prop_assert!(!once.errors.is_empty());
        prop_assert_eq!(&once, &analyse_output(&text, Some(1), &|_| None));
        prop_assert!(analyse_output(&text, Some(0), &|_| None).errors.is_empty());
    }
}
