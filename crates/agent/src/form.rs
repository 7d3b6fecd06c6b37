//! Forms: structured answers that an agent submits through a tool, for backends that cannot enforce
//! a schema. The engine creates a form in a folder, an MCP server fills it in for the agent, and
//! the engine reads the submitted answer. The agent's prose is never searched for an answer.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::limits::{FORM_BYTES_MAX, FORM_ITEMS_MAX};

const BLANK: &str = "form.json";
const HANDED_IN: &str = "handed-in.json";
const LOCK: &str = "lock";

/// The tool that submits a whole answer.
pub const HAND_IN: &str = "hand_in";
/// The tool that adds one finding.
pub const FINDING: &str = "review_finding";
/// The tool that submits a verdict.
pub const VERDICT: &str = "plan_verdict";

/// The folder with the forms, and the server that fills them in.
#[derive(Clone, Debug)]
pub struct AnswerForms {
    dir: Utf8PathBuf,
    server: Option<Arc<Value>>,
}

#[derive(Clone, Debug)]
pub struct AnswerForm {
    dir: Utf8PathBuf,
    id: String,
    blank: Arc<FormDefinition>,
}

/// The definition of a form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct FormDefinition {
    /// The name of the answer: `verdict`, for instance.
    name: String,
    /// The JSON Schema of the answer.
    schema: Value,
}

#[derive(Debug, thiserror::Error)]
pub enum FormError {
    /// The form does not exist, or is closed.
    #[error("there is no open form `{0}`")]
    NoForm(String),
    /// The value does not match the schema.
    #[error("{0}")]
    Misfit(String),
    #[error("this form has no list `{0}`")]
    NoList(String),
    #[error("a form takes at most {FORM_ITEMS_MAX} entries and {FORM_BYTES_MAX} bytes")]
    TooMuch,
    #[error("this form was handed in before")]
    HandedIn,
    #[error("the form cannot be kept in {path}: {source}")]
    Disk { path: Utf8PathBuf, source: std::io::Error },
}

impl AnswerForms {
    /// Manages forms in a folder. `server` is an entry of an MCP configuration file (`command` and
    /// `args`) that starts the server; the id of the form is appended to its arguments.
    pub fn new(dir: impl Into<Utf8PathBuf>, server: Option<Value>) -> Self {
        AnswerForms { dir: dir.into(), server: server.map(Arc::new) }
    }

    /// Creates a form.
    ///
    /// # Errors
    ///
    /// Returns an error if the form cannot be written.
    pub fn open(&self, name: &str, schema: &Value) -> Result<AnswerForm, FormError> {
        let id = uuid::Uuid::now_v7().simple().to_string();
        let blank = FormDefinition { name: name.to_owned(), schema: schema.clone() };
        let form = AnswerForm { dir: self.dir.join(&id), id, blank: Arc::new(blank) };
        form.write_file(BLANK, &json!(*form.blank))?;
        Ok(form)
    }

    /// Opens an existing form by its id.
    ///
    /// # Errors
    ///
    /// Returns an error if the form does not exist.
    pub fn find(&self, id: &str) -> Result<AnswerForm, FormError> {
        let none = || FormError::NoForm(id.chars().take(64).collect());
        let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_id {
            return Err(none());
        }
        let dir = self.dir.join(id);
        let blank = read_json(&dir, BLANK).ok_or_else(none)?;
        let blank = serde_json::from_value(blank).map_err(|_| none())?;
        Ok(AnswerForm { dir, id: id.to_owned(), blank: Arc::new(blank) })
    }

    /// Returns `servers` plus the server that fills in this form.
    pub(crate) fn with_server(&self, form: &AnswerForm, servers: Option<&Value>) -> Option<Value> {
        let mut server = self.server.as_deref()?.clone();
        server["args"].as_array_mut()?.extend([json!("--form"), json!(form.id)]);
        let mut all = servers.and_then(Value::as_object).cloned().unwrap_or_default();
        all.insert("repertoire".to_owned(), server);
        Some(Value::Object(all))
    }
}

impl AnswerForm {
    /// The id by which the server finds the form.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The name of the answer.
    pub fn name(&self) -> &str {
        &self.blank.name
    }

    pub fn schema(&self) -> &Value {
        &self.blank.schema
    }

    /// The tools that fill in the form; the one that submits it comes last.
    pub fn tools(&self) -> &'static [&'static str] {
        match self.blank.name.as_str() {
            "verdict" => &[VERDICT],
            _ if self.list_schema("findings").is_some() => &[FINDING, HAND_IN],
            _ => &[HAND_IN],
        }
    }

    /// The instructions for the agent.
    pub(crate) fn instructions(&self) -> String {
        let tools = match self.tools() {
            [one] => format!("Hand your answer in with the tool `{one}`"),
            [each, last] => format!(
                "Report each finding with the tool `{each}`, as you find it, and end with the tool `{last}`, also if there \
                 were none"
            ),
            _ => String::new(),
        };
        format!(
            "\n\n{tools} (server `repertoire`, form `{}`). What is handed in has to be valid for this JSON Schema:\n{}\nIf you \
             do not have this tool, answer with one JSON value for the same schema, and nothing else.\n",
            self.id, self.blank.schema
        )
    }

    fn list_schema(&self, field: &str) -> Option<&Value> {
        let list = self.blank.schema.get("properties")?.get(field)?;
        (list.get("type")? == "array").then(|| list.get("items")).flatten()
    }

    /// Adds an entry to a list of the answer, and returns the new length of the list.
    ///
    /// # Errors
    ///
    /// Returns an error if the form is closed, or if the entry is invalid or too large; nothing is
    /// added then.
    pub fn add_entry(&self, field: &str, entry: &Value) -> Result<usize, FormError> {
        let schema = self.list_schema(field).ok_or_else(|| FormError::NoList(field.to_owned()))?;
        if let Some(problem) = schema_violation(entry, schema) {
            return Err(FormError::Misfit(problem));
        }
        // Agents call tools concurrently, perhaps through several servers.
        let _turn = self.acquire_lock()?;
        self.ensure_open()?;
        let mut all = self.collected_entries(field);
        all.push(entry.clone());
        let written = Value::Array(all.clone());
        if all.len() > FORM_ITEMS_MAX || written.to_string().len() > FORM_BYTES_MAX {
            return Err(FormError::TooMuch);
        }
        self.write_file(&format!("{field}.json"), &written)?;
        Ok(all.len())
    }

    /// Submits an answer; entries that were added to its lists come first.
    ///
    /// # Errors
    ///
    /// Returns an error if the form is closed, or if the answer is invalid or too large; it can be
    /// submitted again then.
    pub fn hand_in(&self, mut answer: Map<String, Value>) -> Result<(), FormError> {
        let _turn = self.acquire_lock()?;
        self.ensure_open()?;
        if self.list_schema("findings").is_some() {
            let mut all = self.collected_entries("findings");
            if let Some(Value::Array(more)) = answer.remove("findings") {
                all.extend(more);
            }
            answer.insert("findings".to_owned(), Value::Array(all));
        }
        let answer = Value::Object(answer);
        if answer.to_string().len() > FORM_BYTES_MAX {
            return Err(FormError::TooMuch);
        }
        match schema_violation(&answer, &self.blank.schema) {
            Some(problem) => Err(FormError::Misfit(problem)),
            None => self.write_file(HANDED_IN, &answer),
        }
    }

    /// The submitted answer.
    pub fn answer(&self) -> Option<Value> {
        read_json(&self.dir, HANDED_IN)
    }

    /// Closes the form and deletes its folder. Later submissions are rejected.
    pub fn close(&self) {
        // Without the lock, a concurrent writer could create the folder again.
        let _turn = self.acquire_lock();
        // A folder that cannot be deleted does no harm: its id is random and not used again.
        let _ = std::fs::remove_dir_all(&self.dir);
    }

    fn collected_entries(&self, field: &str) -> Vec<Value> {
        match read_json(&self.dir, &format!("{field}.json")) {
            Some(Value::Array(all)) => all,
            _ => Vec::new(),
        }
    }

    /// Acquires the form's lock, which excludes other threads and processes.
    fn acquire_lock(&self) -> Result<FormLock, FormError> {
        let path = self.dir.join(LOCK);
        let opened = OpenOptions::new().create(true).write(true).truncate(false).open(&path);
        let file = match opened {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(FormError::NoForm(self.id.clone()));
            }
            opened => opened.map_err(|source| FormError::Disk { path: path.clone(), source })?,
        };
        match file.lock() {
            // On file systems without locks, continue: sequential writes are still safe.
            Err(source) if source.kind() != ErrorKind::Unsupported => {
                Err(FormError::Disk { path, source })
            }
            _ => Ok(FormLock(file)),
        }
    }

    fn ensure_open(&self) -> Result<(), FormError> {
        match () {
            () if read_json(&self.dir, BLANK).is_none() => Err(FormError::NoForm(self.id.clone())),
            () if self.answer().is_some() => Err(FormError::HandedIn),
            () => Ok(()),
        }
    }

    fn write_file(&self, name: &str, value: &Value) -> Result<(), FormError> {
        let path = self.dir.join(name);
        fs::write_private(&path, value.to_string().as_bytes())
            .map_err(|source| FormError::Disk { path, source })
    }
}

/// The lock of a form. A child process that was just forked may still hold the file descriptor, and
/// with it the lock, so it is released explicitly instead of by closing the file.
struct FormLock(File);

impl Drop for FormLock {
    fn drop(&mut self) {
        // If this fails, the kernel releases the lock when the last descriptor is closed.
        let _ = self.0.unlock();
    }
}

fn read_json(dir: &Utf8Path, name: &str) -> Option<Value> {
    let bytes = fs::read_bytes_beneath(dir, name.into(), 2 * FORM_BYTES_MAX as u64).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Returns the first violation of a schema, or `None` if the value is valid.
pub(crate) fn schema_violation(value: &Value, schema: &Value) -> Option<String> {
    let validator = match jsonschema::validator_for(schema) {
        Ok(validator) => validator,
        Err(error) => return Some(format!("the schema that was asked for is not one: {error}")),
    };
    let error = validator.validate(value).err()?;
    Some(format!("the answer does not fit the schema at `{}`: {error}", error.instance_path()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forms() -> (tempfile::TempDir, AnswerForms) {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
        let server = json!({ "command": "rep", "args": ["mcp"] });
        (dir, AnswerForms::new(path.join("forms"), Some(server)))
    }

    fn findings() -> Value {
        let item = json!({ "type": "object", "properties": { "title": { "type": "string" } }, "required": ["title"] });
        json!({ "type": "object", "properties": { "findings": { "type": "array", "items": item } }, "required": ["findings"] })
    }

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn findings_are_collected_until_the_form_is_handed_in() {
        let (_keep, forms) = forms();
        let form = forms.open("findings", &findings()).unwrap();
        let same = forms.find(form.id()).unwrap();
        assert_eq!(same.add_entry("findings", &json!({ "title": "a" })).unwrap(), 1);
        assert_eq!(same.add_entry("findings", &json!({ "title": "b" })).unwrap(), 2);
        assert_eq!(form.answer(), None, "nothing counts before it is handed in");
        same.hand_in(Map::new()).unwrap();
        assert_eq!(
            form.answer(),
            Some(json!({ "findings": [{ "title": "a" }, { "title": "b" }] }))
        );
        assert!(matches!(
            same.add_entry("findings", &json!({ "title": "c" })),
            Err(FormError::HandedIn)
        ));
    }

    #[test]
    fn findings_that_are_added_at_once_are_all_kept() {
        let (_keep, forms) = forms();
        let form = forms.open("findings", &findings()).unwrap();
        // Each through its own handle, as from a separate process.
        let add = |number: usize| {
            let handle = forms.find(form.id()).unwrap();
            handle.add_entry("findings", &json!({ "title": number.to_string() })).unwrap()
        };
        let mut counts: Vec<usize> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..50).map(|number| scope.spawn(move || add(number))).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        counts.sort_unstable();
        assert_eq!(counts, (1..=50).collect::<Vec<_>>(), "everybody is told another number");
        form.hand_in(Map::new()).unwrap();
        let answer = form.answer().unwrap();
        let titles = answer["findings"].as_array().unwrap().iter();
        let mut titles: Vec<usize> =
            titles.map(|one| one["title"].as_str().unwrap().parse().unwrap()).collect();
        titles.sort_unstable();
        assert_eq!(titles, (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn of_a_finding_and_the_end_at_once_the_finding_is_kept_or_refused() {
        for _ in 0..50 {
            let (_keep, forms) = forms();
            let form = forms.open("findings", &findings()).unwrap();
            let added = std::thread::scope(|scope| {
                let added = scope.spawn(|| form.add_entry("findings", &json!({ "title": "a" })));
                form.hand_in(Map::new()).unwrap();
                added.join().unwrap()
            });
            let kept = form.answer().unwrap()["findings"].as_array().unwrap().len();
            match added {
                Ok(count) => assert_eq!((count, kept), (1, 1)),
                Err(error) => assert!(matches!(error, FormError::HandedIn) && kept == 0),
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_and_can_be_tried_again() {
        let (_keep, forms) = forms();
        let form = forms.open("findings", &findings()).unwrap();
        let error = form.add_entry("findings", &json!({ "title": 1 })).unwrap_err().to_string();
        assert!(error.contains("/title"), "{error}");
        let schema = json!({ "type": "object", "required": ["ok"], "properties": { "ok": { "type": "boolean" } } });
        let form = forms.open("answer", &schema).unwrap();
        assert!(matches!(form.add_entry("findings", &json!({})), Err(FormError::NoList(_))));
        assert!(matches!(form.hand_in(Map::new()), Err(FormError::Misfit(_))));
        form.hand_in(object(json!({ "ok": true }))).unwrap();
        assert_eq!(form.answer(), Some(json!({ "ok": true })));
    }

    #[test]
    fn a_form_that_is_closed_or_was_never_there_takes_nothing() {
        let (_keep, forms) = forms();
        let form = forms.open("findings", &findings()).unwrap();
        form.close();
        assert!(matches!(form.hand_in(Map::new()), Err(FormError::NoForm(_))));
        for id in [form.id(), "", "..", "../../etc", &"f".repeat(32), &"é".repeat(16)] {
            assert!(matches!(forms.find(id), Err(FormError::NoForm(_))), "{id}");
        }
    }

    #[test]
    fn the_server_of_a_form_knows_its_name_and_stands_beside_the_others() {
        let (_keep, forms) = forms();
        let form = forms.open("verdict", &json!({})).unwrap();
        let servers =
            forms.with_server(&form, Some(&json!({ "mine": { "command": "x" } }))).unwrap();
        assert_eq!(servers["repertoire"]["args"], json!(["mcp", "--form", form.id()]));
        assert_eq!(servers["mine"]["command"], "x");
    }
}
