//! Templates: the texts of a workflow, filled in from parameters and state, and conditions over the same.
//!
//! They see nothing else: no files, no environment, no clock. What they may cost is bounded, and the few statements that
//! could build text out of text without end (`set`, macros, includes) are refused.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::OnceLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, Value};
use serde_json::json;

use crate::limits::{TEMPLATE_BYTES_MAX, TEMPLATE_FUEL};
use crate::state::State;

/// The statements that a template may have.
const STATEMENTS: [&str; 6] = ["if", "elif", "else", "endif", "for", "endfor"];

/// A template that cannot be filled in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TemplateError {
    /// What is wrong.
    pub message: String,
    /// The line in the text, which starts at 1.
    pub line: Option<usize>,
}

/// What templates see.
#[derive(Clone, Debug)]
pub struct Scope(Value);

impl Scope {
    /// Parameters by their names, and `state`.
    pub fn new(state: &State) -> Self {
        Scope::with(state, None)
    }

    /// The same, with `item` as one entry of a list.
    pub fn with_item(state: &State, item: &serde_json::Value) -> Self {
        Scope::with(state, Some(item))
    }

    fn with(state: &State, item: Option<&serde_json::Value>) -> Self {
        let mut names: serde_json::Map<_, _> =
            state.parameters.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let answers: serde_json::Map<_, _> = state
            .answers
            .iter()
            .map(|answer| (answer.id.clone(), answer.answer.clone().into()))
            .collect();
        names.insert(
            "state".into(),
            json!({
                "run": state.run,
                "step": state.step,
                "iteration": state.visits.get(&state.step).copied().unwrap_or(1),
                "outputs": state.outputs,
                "answers": answers,
            }),
        );
        if let Some(item) = item {
            names.insert("item".into(), item.clone());
        }
        Scope(Value::from(Serde(names)))
    }
}

/// Fills in a text.
pub fn fill(text: &str, scope: &Scope) -> Result<String, TemplateError> {
    if !text.contains('{') {
        return Ok(text.to_owned());
    }
    refuse_statements(text)?;
    let template = environment().template_from_str(text)?;
    let mut out = Capped(Vec::new());
    template.render_captured_to(scope.0.clone(), &mut out)?;
    String::from_utf8(out.0).map_err(|_| TemplateError::plain("the result is not UTF-8"))
}

/// Whether a condition holds.
pub fn holds(expression: &str, scope: &Scope) -> Result<bool, TemplateError> {
    let value = environment().compile_expression(expression)?.eval(scope.0.clone())?;
    Ok(value.is_true())
}

/// The names that a text uses, with their parts: `task`, `state.outputs.scope`.
pub fn names_in_text(text: &str) -> Result<BTreeSet<String>, TemplateError> {
    if !text.contains('{') {
        return Ok(BTreeSet::new());
    }
    refuse_statements(text)?;
    Ok(environment().template_from_str(text)?.undeclared_variables(true).into_iter().collect())
}

/// The names that a condition uses.
pub fn names_in_expression(expression: &str) -> Result<BTreeSet<String>, TemplateError> {
    let expression = environment().compile_expression(expression)?;
    Ok(expression.undeclared_variables(true).into_iter().collect())
}

fn environment() -> &'static Environment<'static> {
    static SHARED: OnceLock<Environment<'static>> = OnceLock::new();
    SHARED.get_or_init(|| {
        let mut env = Environment::empty();
        env.set_undefined_behavior(UndefinedBehavior::SemiStrict);
        let syntax = SyntaxConfig::builder()
            .keep_trailing_newline(true)
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build();
        env.set_syntax(syntax.expect("the usual delimiters are valid"));
        env.set_fuel(Some(TEMPLATE_FUEL));
        env.add_test("defined", |value: &Value| !value.is_undefined());
        env.add_test("none", |value: &Value| value.is_none());
        env.add_filter("length", |value: &Value| value.len());
        env.add_filter("default", |value: &Value, other: Value| {
            match value.is_undefined() || value.is_none() {
                true => other,
                false => value.clone(),
            }
        });
        env
    })
}

/// Only conditions and loops: nothing that defines, includes or calls.
fn refuse_statements(text: &str) -> Result<(), TemplateError> {
    for (at, _) in text.match_indices("{%") {
        let statement = text[at + 2..].trim_start_matches(['-', '+']).trim_start();
        let word: String = statement.chars().take_while(char::is_ascii_alphabetic).collect();
        if !STATEMENTS.contains(&word.as_str()) {
            let line = text[..at].matches('\n').count() + 1;
            let message =
                format!("`{word}` is no statement of templates here; there are `if` and `for`");
            return Err(TemplateError { message, line: Some(line) });
        }
    }
    Ok(())
}

impl TemplateError {
    fn plain(message: impl Into<String>) -> Self {
        TemplateError { message: message.into(), line: None }
    }
}

impl From<minijinja::Error> for TemplateError {
    fn from(error: minijinja::Error) -> Self {
        // Its own display ends with the place, which we give ourselves.
        let message = match error.detail() {
            Some(detail) => format!("{}: {detail}", error.kind()),
            None => error.kind().to_string(),
        };
        TemplateError { message, line: error.line() }
    }
}

struct Capped(Vec<u8>);

impl Write for Capped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > TEMPLATE_BYTES_MAX {
            return Err(io::Error::other("the text that it gives is longer than the limit"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
