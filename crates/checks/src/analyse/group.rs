//! Grouping of errors by probable cause, and the order in which to fix them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use super::super::error::{ErrorCategory, ParsedError};
use super::super::signature::signature_text;
use super::ErrorGroup;
use super::location::compile_pattern;
use crate::limits::NEIGHBOURING_LINES;

/// Groups errors by the strongest link between them: a missing name, neighbouring locations, or the
/// same wording. The groups are in the order in which they should be fixed.
pub(super) fn group_errors(errors: &[ParsedError]) -> Vec<ErrorGroup> {
    let mut left: Vec<usize> = (0..errors.len()).collect();
    let mut groups = Vec::new();
    for (members, why) in take_by_key(&mut left, |at| missing_name(&errors[at])) {
        let cause = format!("`{why}` is not there");
        groups.push(build_group(errors, members, Some(cause), 0.9));
    }
    for members in take_neighbours(&mut left, errors) {
        let first = errors[members[0]].location().unwrap_or_default();
        let cause = format!("what is wrong at {first}, and goes on from there");
        groups.push(build_group(errors, members, Some(cause), 0.6));
    }
    for (members, _) in take_by_key(&mut left, |at| Some(similarity_key(&errors[at]))) {
        let cause = format!("one mistake, {} times", members.len());
        groups.push(build_group(errors, members, Some(cause), 0.7));
    }
    groups.extend(left.into_iter().map(|at| build_group(errors, vec![at], None, 0.0)));
    groups.sort_by_key(|group| (fix_rank(group.category), group.errors[0]));
    groups
}

/// The order of fixing. Problems that make other errors unreliable come first.
fn fix_rank(category: ErrorCategory) -> u8 {
    match category {
        ErrorCategory::Environment
        | ErrorCategory::Dependency
        | ErrorCategory::MergeConflict
        | ErrorCategory::Network
        | ErrorCategory::Git => 0,
        ErrorCategory::Build => 1,
        ErrorCategory::Type | ErrorCategory::TypeMissing | ErrorCategory::TypeMismatch => 2,
        ErrorCategory::Runtime
        | ErrorCategory::RuntimeReference
        | ErrorCategory::TestFailure
        | ErrorCategory::TestTimeout
        | ErrorCategory::Unknown => 3,
        ErrorCategory::Lint | ErrorCategory::Format => 4,
    }
}

fn build_group(
    errors: &[ParsedError],
    mut members: Vec<usize>,
    cause: Option<String>,
    confidence: f64,
) -> ErrorGroup {
    members.sort_unstable();
    let category = errors[members[0]].category;
    let worst = members.iter().map(|at| errors[*at].severity).max();
    let severity = worst.unwrap_or_else(|| category.default_severity());
    ErrorGroup { cause, confidence, category, severity, errors: members }
}

/// Removes the indices from `left` whose key is shared with another, and groups them.
fn take_by_key(
    left: &mut Vec<usize>,
    key: impl Fn(usize) -> Option<String>,
) -> Vec<(Vec<usize>, String)> {
    let mut found: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for at in left.iter().copied() {
        if let Some(key) = key(at) {
            found.entry(key).or_default().push(at);
        }
    }
    let mut groups: Vec<_> = found.into_iter().filter(|(_, members)| members.len() > 1).collect();
    groups.sort_by_key(|(_, members)| members[0]);
    let mut taken: Vec<usize> = groups.iter().flat_map(|(_, members)| members.clone()).collect();
    taken.sort_unstable();
    left.retain(|at| taken.binary_search(at).is_err());
    groups.into_iter().map(|(key, members)| (members, key)).collect()
}

/// Removes compiler errors from `left` that are close to each other, and groups them: later ones
/// are often caused by the first.
fn take_neighbours(left: &mut Vec<usize>, errors: &[ParsedError]) -> Vec<Vec<usize>> {
    let place = |at: usize| {
        let error = &errors[at];
        let compiled = matches!(fix_rank(error.category), 1 | 2);
        compiled.then_some((error.file.as_ref()?, error.line?)).map(|place| (place, at))
    };
    let mut places: Vec<_> = left.iter().filter_map(|at| place(*at)).collect();
    places.sort();
    let groups: Vec<Vec<usize>> = places
        .chunk_by(|(one, _), (next, _)| are_neighbours(*one, *next))
        .filter(|chunk| chunk.len() > 1)
        .map(|chunk| chunk.iter().map(|(_, at)| *at).collect())
        .collect();
    let mut taken = groups.concat();
    taken.sort_unstable();
    left.retain(|at| taken.binary_search(at).is_err());
    groups
}

/// Two sorted locations, of which `next` is not before `one`.
fn are_neighbours(one: (&String, u32), next: (&String, u32)) -> bool {
    one.0 == next.0 && next.1 - one.1 <= NEIGHBOURING_LINES
}

/// The missing name that an error is about.
fn missing_name(error: &ParsedError) -> Option<String> {
    static QUOTED: LazyLock<Regex> =
        LazyLock::new(|| compile_pattern(r#"[`'"‘]([^`'"’\n]{1,200})[`'"’]|undefined: (\S+)"#));
    let speaks = matches!(error.category, ErrorCategory::Dependency | ErrorCategory::TypeMissing);
    let found = speaks.then(|| QUOTED.captures(&error.message)).flatten()?;
    found.get(1).or_else(|| found.get(2)).map(|name| name.as_str().to_owned())
}

/// The key of errors with the same meaning: a linter rule, or the normalised wording.
fn similarity_key(error: &ParsedError) -> String {
    match (&error.code, error.category) {
        (Some(code), ErrorCategory::Lint | ErrorCategory::Format) => {
            format!("{} {code}", error.source)
        }
        _ => format!("{} {}", error.source, signature_text(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::error::ReportingTool;
    use super::*;

    fn error(category: ErrorCategory, file: &str, line: u32, message: &str) -> ParsedError {
        let error = ParsedError::new(ReportingTool::Rustc, category, message);
        ParsedError { file: Some(file.to_owned()), line: Some(line), ..error }
    }

    fn shown(errors: &[ParsedError]) -> Vec<(String, Vec<usize>)> {
        let say = |group: ErrorGroup| (group.cause.unwrap_or_default(), group.errors);
        group_errors(errors).into_iter().map(say).collect()
    }

    #[test]
    fn errors_that_miss_one_name_have_one_cause() {
        let errors = [
            error(ErrorCategory::TypeMissing, "a.rs", 42, "no field `retries` on type `Policy`"),
            error(ErrorCategory::TypeMissing, "a.rs", 44, "no method `x` on type `Policy`"),
            error(ErrorCategory::TypeMissing, "b.rs", 7, "no field `retries` on type `Run`"),
        ];
        let expected =
            [("`retries` is not there".to_owned(), vec![0, 2]), (String::new(), vec![1])];
        assert_eq!(shown(&errors), expected);
    }

    #[test]
    fn neighbours_in_a_file_may_be_echoes_but_lints_are_not() {
        let errors = [
            error(ErrorCategory::Lint, "a.rs", 1, "unused `x`"),
            error(ErrorCategory::Build, "a.rs", 10, "expected `;`"),
            error(ErrorCategory::Type, "a.rs", 13, "something else"),
            error(ErrorCategory::Lint, "a.rs", 2, "needless return"),
            error(ErrorCategory::Build, "b.rs", 13, "another"),
        ];
        let order: Vec<Vec<usize>> = group_errors(&errors).into_iter().map(|g| g.errors).collect();
        assert_eq!(order, [vec![1, 2], vec![4], vec![0], vec![3]]);
    }

    #[test]
    fn what_must_be_there_first_comes_first() {
        let errors = [
            error(ErrorCategory::Lint, "a.rs", 1, "a"),
            error(ErrorCategory::TestFailure, "a.rs", 100, "b"),
            error(ErrorCategory::TypeMismatch, "a.rs", 200, "c"),
            error(ErrorCategory::Build, "c.rs", 1, "d"),
            error(ErrorCategory::Dependency, "d.rs", 1, "e"),
        ];
        let order: Vec<usize> = group_errors(&errors).into_iter().map(|g| g.errors[0]).collect();
        assert_eq!(order, [4, 3, 2, 1, 0]);
    }
}
