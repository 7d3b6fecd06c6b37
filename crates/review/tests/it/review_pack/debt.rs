//! What the patterns of `reviewing-technical-debt` find, and what they leave alone.

use super::Row;

pub(super) const DEBT: &[Row] = &[
    (
        "todo_without_issue",
        &[
            "// TODO: handle the other case",
            "    # FIXME this is slow",
            "x = 1  # TODO clean up",
            "-- TODO",
        ],
        &[
            "// TODO(anna): handle the other case",
            "// TODO: see #123",
            "# TODO PROJ-12 clean up",
            "// TODO https://example.com/issues",
            "let url = \"http://TODO\";",
            "// todos are listed below",
            "println!(\"# TODO\");",
        ],
    ),
    (
        "hack_comment",
        &["// HACK: the server sends it twice", "# KLUDGE"],
        &["// hackathon code", "HACK = 1", "// no HACK needed"],
    ),
    (
        "temporary_fix_comment",
        &["// temporary fix until the API is back", "# quick and dirty workaround"],
        &["// temporary fix for #88", "// a temporary file", "fix = temporary"],
    ),
    (
        "must_not_ship_marker",
        &[
            "// DO NOT MERGE",
            "# remove this before release",
            "/* NOCOMMIT */",
            "x = 1  # TODO: remove before merging",
            "// DO NOT COMMIT!",
        ],
        &[
            "// do not merge these two lists",
            "DO NOT MERGE",
            "// removed before the loop",
            "# DO NOT COMMIT secrets to this file",
            "// DO NOT COMMIT CHANGES TO THIS LINE",
            "# DO NOT MERGE without a review",
        ],
    ),
    (
        "commented_out_code",
        &["// let a = 1;\n// if (a) {\n// }\n", "  //foo();\n  //bar();\n  //baz();\n"],
        &[
            "// First the names;\n// then the rest.\n// And so on;\n",
            "/// let a = 1;\n/// let b = 2;\n/// let c = 3;\n",
            "// a;\n// b;\ncode();\n",
        ],
    ),
    (
        "todo_panic",
        &["    todo!()", "None => todo!(\"later\"),"],
        &["// todo!()", "my_todo!(x)", "\"todo!()\""],
    ),
    (
        "console_log_leftover",
        &["console.log('here');", "console.log(\"DEBUG:\", x)", "console.debug('xxx')"],
        &["console.log('Server is listening')", "console.error('here')", "console.log(here)"],
    ),
    (
        "deprecated_api",
        &[
            "new Buffer(10)",
            "datetime.utcnow()",
            "from distutils.core import setup",
            "ioutil.ReadAll(r)",
        ],
        &["Buffer.from('a')", "datetime.now(timezone.utc)", "import important", "io.ReadAll(r)"],
    ),
    (
        "deprecated_npm_package",
        &["    \"request\": \"^2.88.2\",", "\"node-sass\": \"4.14.1\""],
        &["\"request\": \"node request.js\"", "\"requests\": \"^1.0.0\"", "\"sass\": \"^1.0.0\""],
    ),
    (
        "end_of_life_runtime",
        &[
            "FROM python:3.8-slim",
            "FROM python:3.10",
            "FROM node:16",
            "FROM node:20-alpine",
            "FROM docker.io/library/ubuntu:18.04 AS x",
            "FROM ubuntu:20.04",
            "FROM python:2.7",
            "FROM golang:1.20",
            "FROM golang:1.24-bookworm",
            "FROM ruby:3.2",
            "FROM php:8.1-fpm",
            "FROM debian:bullseye-slim",
            "FROM alpine:3.18",
        ],
        &[
            "FROM python:3.12-slim",
            "FROM python:3.11",
            "FROM node:22",
            "FROM node:24",
            "FROM ubuntu:24.04",
            "FROM ubuntu:22.04",
            "FROM golang:1.26",
            "FROM ruby:3.3",
            "FROM php:8.3",
            "FROM debian:12",
            "FROM alpine:3.22",
        ],
    ),
];
