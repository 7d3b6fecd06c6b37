//! What the patterns of `reviewing-compliance` find, and what they leave alone.

use super::Row;

pub(super) const COMPLIANCE: &[Row] = &[
    (
        "blanket_suppression",
        &[
            "/* eslint-disable */",
            "// @ts-nocheck",
            "# flake8: noqa",
            "#![allow(warnings)]",
            "# type: ignore",
            "@SuppressWarnings(\"all\")",
        ],
        &[
            "/* eslint-disable no-console */",
            "// eslint-disable-next-line no-console",
            "x = 1  # noqa: F401",
            "#[allow(clippy::too_many_lines)]",
            "x = f()  # type: ignore",
            "@SuppressWarnings(\"unchecked\")",
        ],
    ),
    (
        "ts_ignore_unexplained",
        &["  // @ts-ignore", "// @ts-expect-error"],
        &["// @ts-expect-error the types of v2 lack this field", "// see @ts-ignore"],
    ),
    (
        "skipped_test_unexplained",
        &["    #[ignore]", "@pytest.mark.skip", "@Disabled"],
        &[
            "#[ignore = \"needs a database\"]",
            "@pytest.mark.skip(reason=\"x\")",
            "@Disabled(\"until #12\")",
            "@pytest.mark.skipif(WINDOWS, reason=\"x\")",
        ],
    ),
    (
        "hook_bypass",
        &["git commit -m x --no-verify", "\"release\": \"git push --no-verify\""],
        &["git commit -m x", "# never use git commit --no-verifying", "npm publish --no-verify"],
    ),
    (
        "unpinned_dependency",
        &["    \"react\": \"latest\",", "serde = \"*\""],
        &[
            "\"react\": \"^18.2.0\",",
            "\"tag\": \"latest-stable\"",
            "serde = \"1\"",
            "\"react\": \"*\"",
        ],
    ),
    (
        "unpinned_action",
        &["      - uses: actions/checkout@main", "uses: a/b/c@master # pinned later"],
        &[
            "- uses: actions/checkout@v4",
            "- uses: ./local@main",
            "uses: a/b@8f4b7f84864484a7bf31766abe9204da3cbe65b3",
        ],
    ),
    (
        "docker_latest_image",
        &["FROM node:latest", "FROM --platform=linux/amd64 ghcr.io/a/b:latest AS build"],
        &["FROM node:22-slim", "# FROM node:latest", "FROM scratch"],
    ),
];
