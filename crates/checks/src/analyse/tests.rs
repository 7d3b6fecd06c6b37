//! Output that is not among the recordings: of older versions, and of tools that are not available
//! everywhere.

use super::*;

#[track_caller]
fn check(output: &str, expected: &[&str]) {
    let analysis = find_errors(output, &|_| None);
    let told: Vec<String> = analysis
        .errors
        .iter()
        .map(|error| {
            let place = error.location().unwrap_or_default();
            let code = error.code.clone().unwrap_or_default();
            format!("{} {} {place} {code} {}", error.source, error.category, error.message)
        })
        .collect();
    assert_eq!(told, expected);
}

#[test]
fn an_old_panic_and_an_old_difference_of_the_formatter() {
    check(
        "thread 'main' panicked at 'no such thing', src/main.rs:3:5\n",
        &["cargo runtime src/main.rs:3:5  no such thing"],
    );
    check(
        "Diff in /a b/src/lib.rs at line 12:\n-x\n+y\n",
        &["cargo format /a b/src/lib.rs:12  rustfmt would change this"],
    );
}

#[test]
fn trouble_with_the_world_is_told_apart() {
    for (line, expected) in [
        (
            "fatal: unable to access 'https://x.example/': Could not resolve host: x.example",
            "generic network   unable to access 'https://x.example/': Could not resolve host: x.example",
        ),
        (
            "Error: API rate limit exceeded for user ID 1.",
            "generic network   API rate limit exceeded for user ID 1.",
        ),
        ("sh: 1: tsc: not found", "generic environment   sh: 1: tsc: not found"),
        (
            "cp: error writing 'x': No space left on device",
            "generic environment   cp: error writing 'x': No space left on device",
        ),
        (
            "error: failed to open lock: Permission denied (os error 13)",
            "generic environment   failed to open lock: Permission denied (os error 13)",
        ),
        (
            "fatal: Unable to create '/x/.git/index.lock': File exists.",
            "generic git   Unable to create '/x/.git/index.lock': File exists.",
        ),
    ] {
        check(line, &[expected]);
    }
}

#[test]
fn npm_is_one_error_and_a_script_that_failed_none() {
    check(
        "npm error code E404\nnpm error 404 Not Found - GET https://registry.example/nope\nnpm error 404\n",
        &["generic dependency  E404 404 Not Found - GET https://registry.example/nope"],
    );
    check(
        "a.c:1:2: error: wrong\nnpm ERR! code ELIFECYCLE\nnpm ERR! errno 1\nnpm ERR! x@1.0.0 build: `cc`\nnpm ERR! Exit status 1\n",
        &["generic build a.c:1:2  wrong"],
    );
    check(
        "a.c:1:2: error: wrong\nnpm error Lifecycle script `test` failed with error:\nnpm error code 1\n",
        &["generic build a.c:1:2  wrong"],
    );
}

#[test]
fn linters_with_codes_and_type_checkers_with_names() {
    check(
        "a/b.py:1:8: F401 [*] `os` imported but unused\n",
        &["generic lint a/b.py:1:8 F401 `os` imported but unused"],
    );
    check(
        "F401 [*] `os` imported but unused\n --> a/b.py:1:8\n  |\n",
        &["generic lint a/b.py:1:8 F401 `os` imported but unused"],
    );
    check(
        "a.py:3: error: Incompatible types in assignment  [assignment]\nFound 1 error in 1 file (checked 1 source file)\n",
        &["generic type_mismatch a.py:3 assignment Incompatible types in assignment"],
    );
}

#[test]
fn a_python_error_that_was_raised_from_another_is_one() {
    let output = "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    g()\nKeyError: 'x'\n\n\
                  During handling of the above exception, another exception occurred:\n\n\
                  Traceback (most recent call last):\n  File \"b.py\", line 2, in g\n    h()\nValueError: bad\n";
    check(output, &["generic runtime b.py:2  ValueError: bad"]);
}

#[test]
fn words_of_any_program_count_only_if_nothing_better_is_there() {
    check(
        "Build failed because the sky fell\n",
        &["generic unknown   Build failed because the sky fell"],
    );
    check("error: the sky fell\n", &["generic runtime   the sky fell"]);
    check("error: the sky fell\na.c:1:2: error: wrong\n", &["generic build a.c:1:2  wrong"]);
    for quiet in [
        "0 errors",
        "3 failed",
        "Errors: 0",
        "compiled error_handler.rs",
        "$ run --on-error stop",
        "make: *** [Makefile:3: all] Error 1",
        "no errors, and 12 problems (0 errors, 12 warnings)",
        "test error_is_returned ... ok",
        "Finished without any errors",
    ] {
        check(quiet, &[]);
    }
}

#[test]
fn a_line_that_says_it_is_no_error_is_none() {
    for quiet in [
        "warning: unable to access '/root/.config/git/attributes': Permission denied",
        "WARNING: Retrying (Retry(total=4)) after connection broken by 'Connection refused'",
        "INFO: connection refused, retrying",
        "[warn] connection reset by peer",
        "remote: warning: failed to connect to the mirror",
        "ld: warning: a.o: No such file or directory",
        "hint: Permission denied would be said otherwise",
        "  warning: it failed to say why",
    ] {
        check(quiet, &[]);
        let both = format!("{quiet}\nerror: the sky fell\n");
        check(&both, &["generic runtime   the sky fell"]);
    }
    check(
        "bash: line 1: info: command not found\n",
        &["generic environment   bash: line 1: info: command not found"],
    );
    assert_eq!(find_errors("warning: Permission denied\n", &|_| None).warnings, 1);
}

#[test]
fn what_a_program_logs_is_no_lint_of_go() {
    let logged = "2024/01/01 10:00:00 main.go:12: listening\nmain.go:14: still listening\n";
    check(logged, &[]);
    check(
        &format!("{logged}main.go:15:2: unreachable code\n"),
        &["go lint main.go:15:2  unreachable code"],
    );
}

#[test]
fn a_panic_in_a_folder_called_internal_keeps_its_place() {
    let output = "panic: oops\n\ngoroutine 1 [running]:\nexample.com/shop/internal/store.Open(...)\n\
                  \t/home/dev/shop/internal/store/store.go:8\nmain.main()\n\t/home/dev/shop/main.go:5 +0x1d\n";
    check(output, &["go runtime /home/dev/shop/internal/store/store.go:8  oops"]);
}

#[test]
fn vet_under_its_own_heading_is_a_linter() {
    check(
        "# example.com/a\n# [example.com/a]\n./a.go:3:2: unreachable code\n",
        &["go lint a.go:3:2  unreachable code"],
    );
}

#[test]
fn a_secret_is_not_repeated_and_that_it_was_printed_is_critical() {
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let output = format!("one\nusing {token}\na.c:1:2: error: no {token}\n");
    let analysis = analyse_output(&output, Some(1), &|_| None);
    assert_eq!(analysis.errors[0].message, "no [redacted]");
    assert!(analysis.errors[1].message.contains("first in its line 2"));
    assert_eq!(analysis.errors[1].severity, ErrorSeverity::Critical);
    let quiet = analyse_output(&format!("using {token}\n"), Some(1), &|_| None);
    assert_eq!(quiet.errors[0].message, "using [redacted]");
    assert_eq!(quiet.errors.len(), 2);
}
