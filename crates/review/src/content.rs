//! Decides how much of each file goes into prompts, and finds languages and related tests by file name.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::{Deserialize, Serialize};

use super::change::{FilePromptTier, ReviewChange, ReviewedFile};
use crate::limits::{
    REVIEW_FILE_LINES_MAX, REVIEW_PREVIEW_LINES, REVIEW_TEST_CHARS_MAX, REVIEW_TESTS_EACH_MAX,
    REVIEW_TESTS_MAX,
};

/// A test that belongs to a file of the change, judging by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelatedTest {
    pub path: Utf8PathBuf,
    /// The changed file that it tests.
    pub of: Utf8PathBuf,
    /// The text, with a note at the end if it was truncated.
    pub text: String,
}

/// File extensions and their languages.
const LANGUAGES: &[(&[&str], &str)] = &[
    (&["rs"], "rust"),
    (&["go"], "go"),
    (&["py", "pyi"], "python"),
    (&["js", "mjs", "cjs", "jsx"], "javascript"),
    (&["ts", "mts", "cts", "tsx"], "typescript"),
    (&["java"], "java"),
    (&["kt", "kts"], "kotlin"),
    (&["scala", "sc"], "scala"),
    (&["groovy", "gradle"], "groovy"),
    (&["c", "h"], "c"),
    (&["cc", "cpp", "cxx", "hh", "hpp", "hxx"], "c++"),
    (&["cs"], "c#"),
    (&["fs", "fsx"], "f#"),
    (&["rb", "rake"], "ruby"),
    (&["php"], "php"),
    (&["swift"], "swift"),
    (&["m", "mm"], "objective-c"),
    (&["ex", "exs"], "elixir"),
    (&["erl", "hrl"], "erlang"),
    (&["hs"], "haskell"),
    (&["ml", "mli"], "ocaml"),
    (&["clj", "cljs", "cljc"], "clojure"),
    (&["dart"], "dart"),
    (&["lua"], "lua"),
    (&["pl", "pm"], "perl"),
    (&["r"], "r"),
    (&["jl"], "julia"),
    (&["zig"], "zig"),
    (&["sh", "bash", "zsh"], "shell"),
    (&["ps1", "psm1"], "powershell"),
    (&["sql"], "sql"),
    (&["html", "htm"], "html"),
    (&["css"], "css"),
    (&["scss", "sass"], "scss"),
    (&["vue"], "vue"),
    (&["svelte"], "svelte"),
    (&["tf", "hcl"], "terraform"),
    (&["proto"], "protobuf"),
    (&["graphql", "gql"], "graphql"),
    (&["yaml", "yml"], "yaml"),
    (&["toml"], "toml"),
    (&["json", "jsonc"], "json"),
    (&["xml"], "xml"),
    (&["md", "mdx", "markdown"], "markdown"),
    (&["rst"], "restructuredtext"),
];

/// Languages of files that are recognised by their whole name.
const LANGUAGES_BY_NAME: &[(&str, &str)] =
    &[("Dockerfile", "dockerfile"), ("Makefile", "makefile"), ("Rakefile", "ruby")];

/// Naming schemes of tests by file extension. `{}` stands for the stem of the tested file.
const TESTS: &[(&[&str], &[&str])] = &[
    (&["rs"], &["{}_test", "{}_tests", "test_{}", "tests_{}"]),
    (&["go"], &["{}_test"]),
    (&["py"], &["test_{}", "{}_test", "{}_tests"]),
    (
        &["js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "vue", "svelte"],
        &["{}.test", "{}.spec", "{}-test", "{}_test"],
    ),
    (&["java", "kt", "scala", "groovy"], &["{}Test", "{}Tests", "{}IT", "{}Spec", "Test{}"]),
    (&["cs", "fs"], &["{}Test", "{}Tests"]),
    (&["rb"], &["{}_spec", "{}_test", "test_{}"]),
    (&["php"], &["{}Test"]),
    (&["swift"], &["{}Tests", "{}Test"]),
    (
        &["c", "cc", "cpp", "cxx", "h", "hh", "hpp"],
        &["test_{}", "{}_test", "{}_tests", "{}_unittest", "{}Test"],
    ),
    (&["ex", "exs"], &["{}_test"]),
    (&["dart"], &["{}_test"]),
    (&["sh", "bash", "bats"], &["test_{}", "{}_test", "{}"]),
];

/// Test folders: a file in one of them tests the file with the same name.
const TEST_FOLDERS: &[&str] = &["tests", "test", "__tests__", "spec", "specs"];

/// File stems that carry no meaning; the name of the folder is used instead.
const PLAIN_NAMES: &[&str] = &["mod", "lib", "main", "index", "__init__"];

/// Returns the language of a file, judging by its name.
pub fn language_of(path: &Utf8Path) -> Option<&'static str> {
    let by_name = LANGUAGES_BY_NAME.iter().find(|(name, _)| path.file_name() == Some(name));
    if let Some((_, language)) = by_name {
        return Some(language);
    }
    let ending = path.extension()?.to_ascii_lowercase();
    let of = LANGUAGES.iter().find(|(endings, _)| endings.contains(&ending.as_str()));
    of.map(|(_, language)| *language)
}

/// Compiles globs into a set. Also returns the globs that are invalid; they are left out of the set.
pub fn compile_globs(globs: &[String]) -> (GlobSet, Vec<String>) {
    let mut set = GlobSetBuilder::new();
    let mut wrong = Vec::new();
    for text in globs {
        // As in `.gitignore`, a glob without a slash matches in every folder.
        let anywhere = if text.contains('/') {
            text.trim_start_matches("./").trim_start_matches('/').to_owned()
        } else {
            format!("**/{text}")
        };
        match GlobBuilder::new(&anywhere).literal_separator(true).build() {
            Ok(glob) => drop(set.add(glob)),
            Err(_) => wrong.push(text.clone()),
        }
    }
    (set.build().unwrap_or_default(), wrong)
}

/// Decides which files go into prompts as a whole: files that match `first`, then smaller files, up to `full_chars_max`
/// characters in total. Files of more than [`REVIEW_FILE_LINES_MAX`] lines are always shown as a preview.
pub fn assign_tiers(change: &mut ReviewChange, first: &GlobSet, full_chars_max: usize) {
    let mut order: Vec<usize> = (0..change.files.len()).collect();
    let key = |file: &ReviewedFile| (!first.is_match(&file.path), file.text.len());
    order.sort_by_key(|at| key(&change.files[*at]));
    let mut left = full_chars_max;
    for at in order {
        let file = &mut change.files[at];
        let chars = file.text.chars().count();
        let fits = chars <= left && file.text.lines().count() <= REVIEW_FILE_LINES_MAX;
        file.tier = if fits { FilePromptTier::Full } else { FilePromptTier::Preview };
        left -= if fits { chars } else { 0 };
    }
}

/// The first [`REVIEW_PREVIEW_LINES`] lines of a text.
pub fn take_preview(text: &str) -> &str {
    let end = text.split_inclusive('\n').take(REVIEW_PREVIEW_LINES).map(str::len).sum();
    &text[..end]
}

/// Truncates a text to `chars_max` characters, with a note that says how many were cut.
pub fn truncate_text(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((end, _)) => {
            let left = text[end..].chars().count();
            format!("{}\n[cut here: {left} characters more]\n", &text[..end])
        }
    }
}

/// Truncates the text of a test to [`REVIEW_TEST_CHARS_MAX`] characters.
pub(super) fn truncate_test(text: &str) -> String {
    truncate_text(text, REVIEW_TEST_CHARS_MAX)
}

/// Finds the tests of changed files among the files `there`, and pairs each with its changed file. Tests in the nearest
/// folders come first. Tests that the change shows as a whole are left out.
pub fn related_tests<'a>(
    change: &ReviewChange,
    there: impl Iterator<Item = &'a Utf8Path>,
) -> Vec<(&'a Utf8Path, Utf8PathBuf)> {
    let shown = |path: &Utf8Path| {
        change.find_file(path).is_some_and(|file| file.tier == FilePromptTier::Full)
    };
    // A repository may have hundreds of thousands of files, so index them by stem instead of testing every pair.
    let mut by_stem: BTreeMap<&str, Vec<&Utf8Path>> = BTreeMap::new();
    for path in there.filter(|path| language_of(path).is_some()) {
        by_stem.entry(path.file_stem().unwrap_or_default()).or_default().push(path);
    }
    let mut found: Vec<(&Utf8Path, Utf8PathBuf)> = Vec::new();
    for file in &change.files {
        let Some(wanted) = RelatedTestNames::for_file(&file.path) else { continue };
        let named = wanted.possible_stems().filter_map(|stem| by_stem.get(stem)).flatten().copied();
        let mut of_file: Vec<&Utf8Path> = named
            .filter(|path| **path != *file.path && wanted.matches_path(path) && !shown(path))
            .filter(|path| found.iter().all(|(known, _)| known != path))
            .collect();
        of_file.sort_by_key(|path| (std::cmp::Reverse(shared_folders(path, &file.path)), *path));
        of_file.dedup();
        let of_file = of_file.into_iter().take(REVIEW_TESTS_EACH_MAX);
        found.extend(of_file.map(|path| (path, file.path.clone())));
    }
    found.truncate(REVIEW_TESTS_MAX);
    found
}

/// The file names that tests of one file may have.
struct RelatedTestNames<'a> {
    stem: &'a str,
    endings: &'static [&'static str],
    names: Vec<String>,
}

impl<'a> RelatedTestNames<'a> {
    fn for_file(path: &'a Utf8Path) -> Option<Self> {
        let (endings, templates) = {
            let ending = path.extension()?;
            TESTS.iter().find(|(endings, _)| endings.contains(&ending))?
        };
        let stem = match path.file_stem()? {
            plain if PLAIN_NAMES.contains(&plain) => path.parent()?.file_name()?,
            stem => stem,
        };
        let telling = stem != "src" && !TEST_FOLDERS.contains(&stem);
        let names = templates.iter().map(|template| template.replace("{}", stem)).collect();
        telling.then_some(RelatedTestNames { stem, endings, names })
    }

    /// The possible file stems of a test.
    fn possible_stems(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str).chain([self.stem, "tests"])
    }

    fn matches_path(&self, path: &Utf8Path) -> bool {
        let (Some(stem), Some(ending)) = (path.file_stem(), path.extension()) else {
            return false;
        };
        if !self.endings.contains(&ending) {
            return false;
        }
        let folders = || path.parent().into_iter().flat_map(Utf8Path::components);
        let in_tests = || folders().any(|folder| TEST_FOLDERS.contains(&folder.as_str()));
        // `foo/tests.rs` holds the tests of `foo.rs`.
        let beside =
            stem == "tests" && path.parent().and_then(Utf8Path::file_name) == Some(self.stem);
        self.names.iter().any(|name| name == stem) || beside || (stem == self.stem && in_tests())
    }
}

fn shared_folders(one: &Utf8Path, other: &Utf8Path) -> usize {
    one.components().zip(other.components()).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::FileStatus;

    fn file(path: &str, text: &str) -> ReviewedFile {
        ReviewedFile {
            path: path.into(),
            old_path: None,
            status: FileStatus::Whole,
            hunks: Vec::new(),
            text: text.to_owned(),
            language: None,
            tier: FilePromptTier::Full,
        }
    }

    fn tests_of(path: &str, there: &[&str]) -> Vec<String> {
        let change = ReviewChange { files: vec![file(path, "")], skipped: Vec::new() };
        let there = there.iter().map(|path| Utf8Path::new(*path));
        related_tests(&change, there).into_iter().map(|(path, _)| path.to_string()).collect()
    }

    #[test]
    fn tests_are_found_by_the_names_of_their_language() {
        for (path, test) in [
            ("src/foo.rs", "tests/foo.rs"),
            ("src/foo.rs", "src/foo_tests.rs"),
            ("src/foo.rs", "src/foo/tests.rs"),
            ("src/foo/mod.rs", "tests/foo.rs"),
            ("pkg/foo.go", "pkg/foo_test.go"),
            ("app/foo.py", "tests/unit/test_foo.py"),
            ("src/foo.ts", "src/foo.test.ts"),
            ("src/foo.tsx", "src/__tests__/foo.tsx"),
            ("src/main/java/a/Foo.java", "src/test/java/a/FooTest.java"),
            ("lib/foo.rb", "spec/lib/foo_spec.rb"),
            ("src/foo.cc", "test/foo_unittest.cc"),
        ] {
            assert_eq!(tests_of(path, &[test, path, "README.md"]), [test], "{path}");
        }
        assert!(tests_of("src/foo.rs", &["src/bar_tests.rs", "tests/foo.py"]).is_empty());
        assert!(tests_of("src/main.rs", &["tests/src.rs"]).is_empty());
    }

    #[test]
    fn the_nearest_tests_come_first_and_there_are_few() {
        let there = ["a/foo_test.go", "b/foo_test.go", "c/foo_test.go", "d/foo_test.go"];
        assert_eq!(
            tests_of("c/foo.go", &there),
            ["c/foo_test.go", "a/foo_test.go", "b/foo_test.go"]
        );
    }

    #[test]
    fn what_comes_first_is_whole_and_then_the_smaller_ones() {
        let mut change = ReviewChange {
            files: vec![
                file("big.sql", &"x".repeat(60)),
                file("m.rs", &"x".repeat(30)),
                file("s.rs", "xx"),
            ],
            skipped: Vec::new(),
        };
        let (first, wrong) = compile_globs(&["*.sql".to_owned(), "a{".to_owned()]);
        assert_eq!(wrong, ["a{"]);
        assign_tiers(&mut change, &first, 70);
        let tiers: Vec<FilePromptTier> = change.files.iter().map(|file| file.tier).collect();
        assert_eq!(tiers, [FilePromptTier::Full, FilePromptTier::Preview, FilePromptTier::Full]);
    }

    #[test]
    fn cuts_are_seen() {
        assert_eq!(truncate_text("äöü", 3), "äöü");
        assert_eq!(truncate_text("äöü", 1), "ä\n[cut here: 2 characters more]\n");
        let text = "line\n".repeat(60);
        assert_eq!(take_preview(&text).lines().count(), REVIEW_PREVIEW_LINES);
        assert_eq!(take_preview("one"), "one");
    }

    #[test]
    fn languages_are_told_by_endings() {
        assert_eq!(language_of("a/b.RS".into()), Some("rust"));
        assert_eq!(language_of("Dockerfile".into()), Some("dockerfile"));
        assert_eq!(language_of("a.unknown".into()), None);
    }
}
