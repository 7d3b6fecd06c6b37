//! Validation of declared checks, before any of them runs.

use crate::limits::{
    CHECK_COMMAND_BYTES_MAX, CHECK_NAME_BYTES_MAX, CHECK_RETRIES_MAX, CHECK_TIMEOUT_MAX, CHECKS_MAX,
};

use super::CheckDefinition;
use super::variables::{VariableRefusal, refusal_for_everyone};

/// The reason why declared checks are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    #[error("there are {count} checks, and {CHECKS_MAX} are the most")]
    TooMany { count: usize },
    #[error("check number {number} has no name")]
    NoName {
        /// Counted from one.
        number: usize,
    },
    #[error("two checks are called `{name}`; give one of them another name")]
    Duplicate { name: String },
    #[error("check `{name}` has no command")]
    NoCommand { name: String },
    #[error("check `{name}` depends on `{missing}`, and there is no such check")]
    Unknown { name: String, missing: String },
    #[error("these checks wait for each other: {}", names.join(" → "))]
    Cycle {
        /// The names along the cycle; the first one is also the last.
        names: Vec<String>,
    },
    #[error("check `{name}`: `env.{variable}`: {refusal}")]
    Variable { name: String, variable: String, refusal: VariableRefusal },
    /// A value that is out of range, or that cannot be passed to a program.
    #[error("check `{name}`: {why}")]
    BadValue { name: String, why: String },
}

/// Returns an error if the checks are invalid.
pub fn validate_checks(checks: &[CheckDefinition]) -> Result<(), CheckError> {
    if checks.len() > CHECKS_MAX {
        return Err(CheckError::TooMany { count: checks.len() });
    }
    for (at, check) in checks.iter().enumerate() {
        validate_check(at, check)?;
        if checks[..at].iter().any(|other| other.name == check.name) {
            return Err(CheckError::Duplicate { name: check.name.clone() });
        }
        let mut depends_on = check.depends_on.iter();
        let unknown = depends_on.find(|name| checks.iter().all(|other| other.name != **name));
        if let Some(missing) = unknown {
            let (name, missing) = (check.name.clone(), missing.clone());
            return Err(CheckError::Unknown { name, missing });
        }
    }
    match find_cycle(checks) {
        Some(names) => Err(CheckError::Cycle { names }),
        None => Ok(()),
    }
}

fn validate_check(at: usize, check: &CheckDefinition) -> Result<(), CheckError> {
    let name = check.name.clone();
    if name.trim().is_empty() {
        return Err(CheckError::NoName { number: at + 1 });
    }
    if check.command.trim().is_empty() {
        return Err(CheckError::NoCommand { name });
    }
    if name.contains(|c: char| c.is_control() || c == '`') || name.len() > CHECK_NAME_BYTES_MAX {
        let why = format!(
            "a name has at most {CHECK_NAME_BYTES_MAX} bytes, on one line, without backticks"
        );
        return Err(CheckError::BadValue { name: name.escape_debug().take(100).collect(), why });
    }
    for variable in check.env.keys() {
        if let Some(refusal) = refusal_for_everyone(variable) {
            let variable = variable.escape_debug().take(100).collect();
            return Err(CheckError::Variable { name, variable, refusal });
        }
    }
    let why = if check.command.contains('\0') {
        "its command has a NUL byte".to_owned()
    } else if check.command.len() > CHECK_COMMAND_BYTES_MAX {
        format!("its command has more than {CHECK_COMMAND_BYTES_MAX} bytes; write a script")
    } else if check.retries > CHECK_RETRIES_MAX {
        format!("{} retries are more than {CHECK_RETRIES_MAX}", check.retries)
    } else if check.timeout.is_zero() || check.timeout > CHECK_TIMEOUT_MAX {
        format!(
            "its timeout must be more than nothing, and at most {}",
            repertoire_text::duration::format_duration(CHECK_TIMEOUT_MAX)
        )
    } else if check.env.values().any(|value| value.contains('\0')) {
        "a value in its `env` has a NUL byte".to_owned()
    } else {
        return Ok(());
    };
    Err(CheckError::BadValue { name, why })
}

/// Finds a dependency cycle by depth-first search.
fn find_cycle(checks: &[CheckDefinition]) -> Option<Vec<String>> {
    let mut fine = vec![false; checks.len()];
    (0..checks.len()).find_map(|at| walk_dependencies(checks, at, &mut Vec::new(), &mut fine))
}

/// `path` is the chain of dependencies down to `at`; `fine` marks checks that lead to no cycle.
fn walk_dependencies(
    checks: &[CheckDefinition],
    at: usize,
    path: &mut Vec<usize>,
    fine: &mut [bool],
) -> Option<Vec<String>> {
    if fine[at] {
        return None;
    }
    if let Some(start) = path.iter().position(|before| *before == at) {
        let circle = path[start..].iter().chain([&at]);
        return Some(circle.map(|at| checks[*at].name.clone()).collect());
    }
    path.push(at);
    for name in &checks[at].depends_on {
        let next = checks.iter().position(|check| check.name == *name);
        if let Some(found) = next.and_then(|next| walk_dependencies(checks, next, path, fine)) {
            return Some(found);
        }
    }
    path.pop();
    fine[at] = true;
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, depends_on: &[&str]) -> CheckDefinition {
        let depends_on = depends_on.iter().map(|name| (*name).to_owned()).collect();
        CheckDefinition { depends_on, ..CheckDefinition::new(name, "true") }
    }

    #[track_caller]
    fn refused(checks: &[CheckDefinition], message: &str) {
        assert_eq!(validate_checks(checks).unwrap_err().to_string(), message);
    }

    #[test]
    fn checks_that_make_no_sense_are_refused_by_name() {
        refused(
            &[check("a", &[]), check("a", &[])],
            "two checks are called `a`; give one of them another name",
        );
        refused(&[check("a", &["b"])], "check `a` depends on `b`, and there is no such check");
        refused(&[check("a", &["a"])], "these checks wait for each other: a → a");
        let circle =
            [check("start", &["a"]), check("a", &["b"]), check("b", &["c"]), check("c", &["a"])];
        refused(&circle, "these checks wait for each other: a → b → c → a");
        refused(&[CheckDefinition::new("a", " \n")], "check `a` has no command");
        refused(&[check("a", &[]), check(" ", &[])], "check number 2 has no name");
        for name in ["a\nb", "`a`", &"x".repeat(1000)] {
            assert!(validate_checks(&[check(name, &[])]).is_err(), "{name}");
        }
        let nul = CheckDefinition::new("a", "echo \0");
        refused(&[nul], "check `a`: its command has a NUL byte");
        let many = CheckDefinition { retries: 1000, ..CheckDefinition::new("a", "true") };
        assert!(validate_checks(&[many]).is_err());
        let ages = CheckDefinition {
            timeout: std::time::Duration::MAX,
            ..CheckDefinition::new("a", "true")
        };
        assert!(validate_checks(&[ages]).is_err());
    }

    #[test]
    fn a_variable_that_loads_a_library_is_refused_wherever_the_check_comes_from() {
        let mut loads = CheckDefinition::new("a", "true");
        loads.env.insert("LD_PRELOAD".into(), "./evil.so".into());
        refused(
            &[loads],
            "check `a`: `env.LD_PRELOAD`: it changes how programs are found, loaded or configured, so no check may set it",
        );
        for (variable, value) in [("A=B", "c"), ("", "c"), ("CI", "\0")] {
            let mut wrong = CheckDefinition::new("a", "true");
            wrong.env.insert(variable.into(), value.into());
            assert!(validate_checks(&[wrong]).is_err(), "{variable}");
        }
    }

    #[test]
    fn a_web_without_a_circle_is_fine_and_quickly_so() {
        let names: Vec<String> = (0..CHECKS_MAX).map(|n| format!("c{n}")).collect();
        let checks: Vec<CheckDefinition> = (0..CHECKS_MAX)
            .map(|n| CheckDefinition {
                depends_on: names[..n].to_vec(),
                ..CheckDefinition::new(&names[n], "true")
            })
            .collect();
        assert_eq!(validate_checks(&checks), Ok(()));
        assert!(
            validate_checks(
                &[checks.as_slice(), &[CheckDefinition::new("one-more", "true")]].concat()
            )
            .is_err()
        );
    }
}
