//! Templates: texts of a workflow, filled in from parameters and state, and conditions over the same values.
//!
//! Templates have no access to files, the environment or the clock. Their cost is bounded, and constructs that could
//! build unlimited text out of text are refused (see `plain`).

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use minijinja::value::{Serde, ValueKind};
use minijinja::{Environment, UndefinedBehavior, Value, context};
use repertoire_text::template::block_line_syntax;

use crate::limits::{STEP_BYTES_MAX, TEMPLATE_BYTES_MAX, TEMPLATE_FUEL};
use crate::state::WorkflowRunState;

mod restrictions;
mod shell;

#[cfg(test)]
mod tests;

/// The reason why a template cannot be rendered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TemplateError {
    pub message: String,
    /// The line in the template, starting at 1.
    pub line: Option<usize>,
}

/// The values visible to templates, and the number of bytes they may still write: all texts of a step share one limit.
#[derive(Clone, Debug)]
pub struct TemplateScope {
    names: Value,
    left: Arc<AtomicUsize>,
}

impl TemplateScope {
    /// Creates a scope with all parameters by name, and `state`.
    pub fn new(state: &WorkflowRunState) -> Self {
        TemplateScope::with_names(state, |_| true)
    }

    /// Creates a scope with only the values these texts mention, which is cheaper if a run has large outputs.
    pub(crate) fn for_texts<'a>(
        state: &WorkflowRunState,
        texts: impl Iterator<Item = &'a str> + Clone,
    ) -> Self {
        TemplateScope::with_names(state, |name| texts.clone().any(|text| text.contains(name)))
    }

    fn with_names(state: &WorkflowRunState, is_named: impl Fn(&str) -> bool) -> Self {
        // All or none, because a template may ask for their number.
        let (outputs, answers) = (is_named("outputs"), is_named("answers"));
        let outputs: BTreeMap<&str, &str> = state
            .outputs
            .iter()
            .filter(|_| outputs)
            .map(|(id, text)| (id.as_str(), text.as_str()))
            .collect();
        let answers: BTreeMap<&str, &str> = state
            .answers
            .iter()
            .filter(|_| answers)
            .map(|answer| (answer.id.as_str(), answer.answer.as_str()))
            .collect();
        let error = state.history.last().and_then(|passage| passage.error.as_deref());
        let mut run = context! {
            run => state.run.as_str(),
            step => state.step.as_str(),
            iteration => state.visit_count(),
            outputs => Serde(&outputs),
            answers => Serde(&answers),
        };
        if let Some(error) = error {
            run = context! { error, ..run };
        }
        let parameters: BTreeMap<&str, &serde_json::Value> = state
            .parameters
            .iter()
            .filter(|(name, _)| is_named(name))
            .map(|(name, value)| (name.as_str(), value))
            .collect();
        let names = context! { state => run, ..Value::from(Serde(&parameters)) };
        TemplateScope { names, left: Arc::new(AtomicUsize::new(STEP_BYTES_MAX)) }
    }

    /// The same scope with `item` set to an entry of a list; the byte limit is shared.
    #[must_use]
    pub fn and_item(&self, item: &serde_json::Value) -> Self {
        let item = Value::from(Serde(item));
        let names = context! { item, ..self.names.clone() };
        TemplateScope { names, left: Arc::clone(&self.left) }
    }

    fn take_bytes(&self, bytes: usize) -> Result<(), TemplateError> {
        let less = |left: usize| left.checked_sub(bytes);
        match self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
            Ok(_) => Ok(()),
            Err(_) => Err(TemplateError::without_line(format!(
                "the texts of one step give more than {STEP_BYTES_MAX} bytes"
            ))),
        }
    }
}

/// Renders a text.
pub fn render_template(text: &str, scope: &TemplateScope) -> Result<String, TemplateError> {
    if !text.contains('{') {
        scope.take_bytes(text.len())?;
        return Ok(text.to_owned());
    }
    render_in(shared_environment(), text, scope)
}

/// How values are put into a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandValues {
    /// Every value is quoted as one word.
    Quoted,
    /// Like `Quoted`, but a value that is the whole command is the command.
    QuotedUnlessWhole,
}

/// Renders a shell command, with values as words: none of them can begin another command.
pub fn render_command(
    text: &str,
    scope: &TemplateScope,
    values: CommandValues,
) -> Result<String, TemplateError> {
    if text.contains([shell::VALUE_BEGIN, shell::VALUE_END]) {
        return Err(TemplateError::without_line("a command has no control characters"));
    }
    if !text.contains('{') {
        return render_template(text, scope);
    }
    let marked = render_in(marking_environment(), text, scope)?;
    match shell::only_value(&marked) {
        Some(whole) if values == CommandValues::QuotedUnlessWhole => Ok(whole.to_owned()),
        _ => shell::quote_values(&marked).map_err(TemplateError::without_line),
    }
}

/// Returns an error if a value stands in a place of a command where it cannot be quoted. Both branches of a condition
/// are looked at, one after the other.
pub(crate) fn check_command_text(text: &str) -> Result<(), TemplateError> {
    let mut marked = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        marked.push_str(&rest[..at]);
        let end = match rest.get(at..at + 2) {
            Some("{{") => Some("}}"),
            Some("{%") => Some("%}"),
            Some("{#") => Some("#}"),
            _ => None,
        };
        let Some(end) = end else {
            marked.push('{');
            rest = &rest[at + 1..];
            continue;
        };
        if end == "}}" {
            marked.extend([shell::VALUE_BEGIN, shell::VALUE_END]);
        }
        rest = rest[at..].find(end).map_or("", |found| &rest[at + found + end.len()..]);
    }
    marked.push_str(rest);
    shell::quote_values(&marked).map(drop).map_err(TemplateError::without_line)
}

fn render_in(
    environment: &Environment<'_>,
    text: &str,
    scope: &TemplateScope,
) -> Result<String, TemplateError> {
    restrictions::check_text(text)?;
    let template = environment.template_from_str(text)?;
    let mut out = CappedWriter(Vec::new());
    if let Err(error) = template.render_captured_to(scope.names.clone(), &mut out) {
        let mut error = TemplateError::from(error);
        let missing = missing_names(template.undeclared_variables(true), scope);
        if !missing.is_empty() {
            error.message = format!("there is no value for {}", missing.join(", "));
        }
        return Err(error);
    }
    scope.take_bytes(out.0.len())?;
    String::from_utf8(out.0).map_err(|_| TemplateError::without_line("the result is not UTF-8"))
}

/// The names in a text that have no value, which is the most common error.
fn missing_names(names: impl IntoIterator<Item = String>, scope: &TemplateScope) -> Vec<String> {
    let has_value = |name: &str| {
        let mut parts = name.split('.');
        let value = parts.try_fold(scope.names.clone(), |value, part| value.get_attr(part).ok());
        value.is_some_and(|value| !value.is_undefined())
    };
    let mut missing: Vec<String> =
        names.into_iter().filter(|name| !has_value(name)).map(|name| format!("`{name}`")).collect();
    missing.sort();
    missing
}

/// Evaluates a condition.
pub fn evaluate_condition(expression: &str, scope: &TemplateScope) -> Result<bool, TemplateError> {
    restrictions::check_expression(expression)?;
    let value = shared_environment().compile_expression(expression)?.eval(scope.names.clone())?;
    Ok(value.is_true())
}

/// The names that a text uses, as paths: `task`, `state.outputs.scope`.
pub fn names_in_text(text: &str) -> Result<BTreeSet<String>, TemplateError> {
    if !text.contains('{') {
        return Ok(BTreeSet::new());
    }
    restrictions::check_text(text)?;
    Ok(shared_environment()
        .template_from_str(text)?
        .undeclared_variables(true)
        .into_iter()
        .collect())
}

/// The names that a condition uses.
pub fn names_in_expression(expression: &str) -> Result<BTreeSet<String>, TemplateError> {
    restrictions::check_expression(expression)?;
    let expression = shared_environment().compile_expression(expression)?;
    Ok(expression.undeclared_variables(true).into_iter().collect())
}

fn shared_environment() -> &'static Environment<'static> {
    static SHARED: OnceLock<Environment<'static>> = OnceLock::new();
    SHARED.get_or_init(build_environment)
}

/// Like [`shared_environment`], but marks where each value begins and ends.
fn marking_environment() -> &'static Environment<'static> {
    static SHARED: OnceLock<Environment<'static>> = OnceLock::new();
    SHARED.get_or_init(|| {
        let mut env = build_environment();
        env.set_formatter(|out, _, value| {
            let text = value.to_string();
            // A marker or NUL in a value cannot be part of a word.
            if text.contains([shell::VALUE_BEGIN, shell::VALUE_END, '\0']) {
                let said = "a value in a command has control characters";
                return Err(minijinja::Error::new(minijinja::ErrorKind::InvalidOperation, said));
            }
            write!(out, "{}{text}{}", shell::VALUE_BEGIN, shell::VALUE_END)?;
            Ok(())
        });
        env
    })
}

fn build_environment() -> Environment<'static> {
    let mut env = Environment::empty();
    env.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    env.set_syntax(block_line_syntax());
    env.set_fuel(Some(TEMPLATE_FUEL));
    env.add_test("defined", |value: &Value| !value.is_undefined());
    env.add_test("none", |value: &Value| value.is_none());
    env.add_filter("length", |value: &Value| value.len());
    env.add_filter("join", join_filter);
    env.add_filter("default", |value: &Value, other: Value| {
        if value.is_undefined() || value.is_none() { other } else { value.clone() }
    });
    env
}

/// The `join` filter, limited to [`TEMPLATE_BYTES_MAX`].
fn join_filter(list: &Value, between: Option<&str>) -> Result<String, minijinja::Error> {
    let bad = |said: String| minijinja::Error::new(minijinja::ErrorKind::InvalidOperation, said);
    if !matches!(list.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return Err(bad(format!("`join` is for lists, and this is {}", list.kind())));
    }
    let mut joined = String::new();
    for (at, entry) in list.try_iter()?.enumerate() {
        if at > 0 {
            joined.push_str(between.unwrap_or_default());
        }
        joined.push_str(&entry.to_string());
        if joined.len() > TEMPLATE_BYTES_MAX {
            return Err(bad(format!("`join` gives more than {TEMPLATE_BYTES_MAX} bytes")));
        }
    }
    Ok(joined)
}

impl TemplateError {
    fn without_line(message: impl Into<String>) -> Self {
        TemplateError { message: message.into(), line: None }
    }
}

impl From<minijinja::Error> for TemplateError {
    fn from(error: minijinja::Error) -> Self {
        // Its own `Display` appends the location, which we report separately.
        let message = match error.detail() {
            Some(detail) => format!("{}: {detail}", error.kind()),
            None => error.kind().to_string(),
        };
        TemplateError { message, line: error.line() }
    }
}

struct CappedWriter(Vec<u8>);

impl Write for CappedWriter {
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
