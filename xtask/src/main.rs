//! `cargo xtask`: the automation of this repository, in Rust so that it runs wherever the project does.
//!
//! `cargo xtask codegen` writes the files that are generated from the code; `--check` only reports what is out of date.

use std::process::ExitCode;

use camino::Utf8Path;

mod agents;
mod check;
mod cli;
mod codegen;
mod configuration;
mod diagnostics;
mod eval;
mod events;
mod markdown;
mod model;
mod pictures;
mod profiles;
mod schemas;
mod steps;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  codegen          write the generated pages and schemas of docs/reference/ from the code
  codegen --check  write nothing; exit with 1 if one of them is out of date
  pictures         draw docs/images/terminal-light.svg and -dark.svg from the output of real commands
  model DIR        pack the word vectors and background frequencies in DIR into the program
  eval DIR         measure selection on every set of labelled queries in DIR
  eval DIR --dump OUT
                   also write, a file a set, how the best five of every query fit
  agents [BIN]     measure what `rep run` costs beside `claude -p` and `codex exec` (found in BIN or on the
                   PATH), all against the same scripted model; build `rep` with --release first
  steps            measure what a step of a workflow costs as a whole process, beside a python3 script of the old
                   kind; build `rep` with --release first";

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "this is the one place that prints")]
fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["codegen"] => codegen::write_files(),
        ["codegen", "--check"] => codegen::check_files(),
        ["pictures"] => pictures::draw_pictures(),
        ["model", dir] => model::pack_model(Utf8Path::new(dir)),
        ["eval", dir] => eval::run(Utf8Path::new(dir), None),
        ["eval", dir, "--dump", to] => eval::run(Utf8Path::new(dir), Some(Utf8Path::new(to))),
        ["agents"] => agents::measure_agents(None),
        ["agents", bin] => agents::measure_agents(Some(Utf8Path::new(bin))),
        ["steps"] => steps::measure_steps(),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(message) => {
            println!("{message}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
