//! Recognises files that people did not write, by their paths or attributes. These are not reviewed.

use camino::Utf8Path;

/// Lock files of package managers.
const LOCK_FILES: &[&str] = &[
    "Cargo.lock",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "bun.lock",
    "bun.lockb",
    "deno.lock",
    "poetry.lock",
    "Pipfile.lock",
    "pdm.lock",
    "uv.lock",
    "Gemfile.lock",
    "composer.lock",
    "go.sum",
    "mix.lock",
    "pubspec.lock",
    "Podfile.lock",
    "Package.resolved",
    "packages.lock.json",
    "gradle.lockfile",
    "flake.lock",
    ".terraform.lock.hcl",
];

/// Endings of the names of generated files.
const GENERATED_ENDINGS: &[&str] = &[
    ".min.js",
    ".min.mjs",
    ".min.css",
    ".js.map",
    ".css.map",
    ".bundle.js",
    ".pb.go",
    ".pb.cc",
    ".pb.h",
    "_pb2.py",
    "_pb2.pyi",
    "_pb2_grpc.py",
    ".g.dart",
    ".freezed.dart",
    ".Designer.cs",
    ".designer.cs",
    ".g.cs",
    "_generated.go",
    ".generated.ts",
    ".generated.cs",
    ".generated.swift",
];

/// Folders of third-party code.
const VENDORED_FOLDERS: &[&str] =
    &["vendor", "vendored", "third_party", "node_modules", "bower_components", ".yarn"];

/// Folders of build output.
const BUILT_FOLDERS: &[&str] = &["dist"];

/// Git attributes that mark generated or third-party files.
pub(super) const ATTRIBUTES: &[&str] = &["linguist-generated", "linguist-vendored"];

/// Returns the reason for skipping a file, judging by its path.
pub(crate) fn skip_reason_by_path(path: &Utf8Path) -> Option<&'static str> {
    let name = path.file_name()?;
    if LOCK_FILES.contains(&name) {
        return Some("lock file");
    }
    if GENERATED_ENDINGS.iter().any(|ending| name.ends_with(ending)) {
        return Some("generated");
    }
    let mut folders = path.parent()?.components().map(|folder| folder.as_str());
    folders.find_map(|folder| match folder {
        folder if VENDORED_FOLDERS.contains(&folder) => Some("vendored"),
        folder if BUILT_FOLDERS.contains(&folder) => Some("built"),
        _ => None,
    })
}

/// Returns the reason for skipping a file, judging by a git attribute.
pub(super) fn skip_reason_by_attribute(name: &str, value: &str) -> Option<String> {
    matches!(value, "set" | "true")
        .then(|| format!("marked as `{name}` in .gitattributes"))
        .filter(|_| ATTRIBUTES.contains(&name))
}

/// Formats a number with thousands separators.
pub(super) fn group_digits(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_did_not_write_is_told_by_its_path() {
        for (path, why) in [
            ("Cargo.lock", Some("lock file")),
            ("web/package-lock.json", Some("lock file")),
            ("static/app.min.js", Some("generated")),
            ("api/v1/thing.pb.go", Some("generated")),
            ("a/vendor/b/c.go", Some("vendored")),
            ("node_modules/x/index.js", Some("vendored")),
            ("dist/main.js", Some("built")),
            ("src/vendor.rs", None),
            ("src/lock.rs", None),
            ("distance/a.rs", None),
        ] {
            assert_eq!(skip_reason_by_path(path.into()), why, "{path}");
        }
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(
            [0, 999, 1_000, 1_234_567].map(group_digits),
            ["0", "999", "1,000", "1,234,567"]
        );
    }
}
