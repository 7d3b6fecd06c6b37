//! Forms: answers of a given shape that an agent hands in through a tool, where its program has no other way to be held to a
//! shape. The engine lays a form out in a folder, a server of tools (MCP) fills it in for the agent, and the engine reads what
//! was handed in. What an agent says in prose is not searched.

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

/// The tool that hands in a whole answer.
pub const HAND_IN: &str = "hand_in";
/// The tool that adds one finding.
pub const FINDING: &str = "review_finding";
/// The tool that hands in a verdict.
pub const VERDICT: &str = "plan_verdict";

/// Where forms are laid out, and the server that fills them in.
#[derive(Clone, Debug)]
pub struct Forms {
    dir: Utf8PathBuf,
    server: Option<Arc<Value>>,
}

/// One form.
#[derive(Clone, Debug)]
pub struct Form {
    dir: Utf8PathBuf,
    id: String,
    blank: Arc<Blank>,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Blank {
    /// What the answer is called: `verdict`, for instance.
    name: String,
    /// Its JSON Schema.
    schema: Value,
}

/// Why a form was not filled in.
#[derive(Debug, thiserror::Error)]
pub enum FormError {
    /// There is no such form, or it is closed.
    #[error("there is no open form `{0}`")]
    NoForm(String),
    /// What was given does not fit.
    #[error("{0}")]
    Misfit(String),
    /// The form has no list of that name.
    #[error("this form has no list `{0}`")]
    NoList(String),
    /// More than is taken.
    #[error("a form takes at most {FORM_ITEMS_MAX} entries and {FORM_BYTES_MAX} bytes")]
    TooMuch,
    /// It was handed in before.
    #[error("this form was handed in before")]
    HandedIn,
    /// The disk.
    #[error("the form cannot be kept in {path}: {source}")]
    Disk {
        /// Where.
        path: Utf8PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl Forms {
    /// Forms in a folder. `server` starts a server of tools that fills them in, as an entry of the usual configuration file:
    /// `command` and `args`, to which the name of the form is added.
    pub fn new(dir: impl Into<Utf8PathBuf>, server: Option<Value>) -> Self {
        Forms { dir: dir.into(), server: server.map(Arc::new) }
    }

    /// Lays out a form.
    ///
    /// # Errors
    ///
    /// When the disk does not take it.
    pub fn open(&self, name: &str, schema: &Value) -> Result<Form, FormError> {
        let id = uuid::Uuid::now_v7().simple().to_string();
        let blank = Blank { name: name.to_owned(), schema: schema.clone() };
        let form = Form { dir: self.dir.join(&id), id, blank: Arc::new(blank) };
        form.write(BLANK, &json!(*form.blank))?;
        Ok(form)
    }

    /// The form of that name.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub fn form(&self, id: &str) -> Result<Form, FormError> {
        let none = || FormError::NoForm(id.chars().take(64).collect());
        let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_id {
            return Err(none());
        }
        let dir = self.dir.join(id);
        let blank = read(&dir, BLANK).ok_or_else(none)?;
        let blank = serde_json::from_value(blank).map_err(|_| none())?;
        Ok(Form { dir, id: id.to_owned(), blank: Arc::new(blank) })
    }

    /// The configuration of servers with the one that fills in this form.
    pub(crate) fn serve(&self, form: &Form, servers: Option<&Value>) -> Option<Value> {
        let mut server = self.server.as_deref()?.clone();
        server["args"].as_array_mut()?.extend([json!("--form"), json!(form.id)]);
        let mut all = servers.and_then(Value::as_object).cloned().unwrap_or_default();
        all.insert("repertoire".to_owned(), server);
        Some(Value::Object(all))
    }
}

impl Form {
    /// The name that it is filled in by.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What the answer is called.
    pub fn name(&self) -> &str {
        &self.blank.name
    }

    /// The JSON Schema of the answer.
    pub fn schema(&self) -> &Value {
        &self.blank.schema
    }

    /// The tools that fill it in, the one that ends it last.
    pub fn tools(&self) -> &'static [&'static str] {
        match self.blank.name.as_str() {
            "verdict" => &[VERDICT],
            _ if self.list("findings").is_some() => &[FINDING, HAND_IN],
            _ => &[HAND_IN],
        }
    }

    /// What the agent is told.
    pub(crate) fn words(&self) -> String {
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

    fn list(&self, field: &str) -> Option<&Value> {
        let list = self.blank.schema.get("properties")?.get(field)?;
        (list.get("type")? == "array").then(|| list.get("items")).flatten()
    }

    /// Adds an entry to a list of the answer, and says how many there are.
    ///
    /// # Errors
    ///
    /// [`FormError`]; nothing is added then.
    pub fn add(&self, field: &str, entry: &Value) -> Result<usize, FormError> {
        let schema = self.list(field).ok_or_else(|| FormError::NoList(field.to_owned()))?;
        if let Some(problem) = misfit(entry, schema) {
            return Err(FormError::Misfit(problem));
        }
        // Agents call tools side by side, and perhaps through several servers.
        let _turn = self.turn()?;
        self.refuse_closed()?;
        let mut all = self.collected(field);
        all.push(entry.clone());
        let written = Value::Array(all.clone());
        if all.len() > FORM_ITEMS_MAX || written.to_string().len() > FORM_BYTES_MAX {
            return Err(FormError::TooMuch);
        }
        self.write(&format!("{field}.json"), &written)?;
        Ok(all.len())
    }

    /// Hands in an answer; what was added to its lists before comes first.
    ///
    /// # Errors
    ///
    /// [`FormError`]; it can be tried again then.
    pub fn hand_in(&self, mut answer: Map<String, Value>) -> Result<(), FormError> {
        let _turn = self.turn()?;
        self.refuse_closed()?;
        if self.list("findings").is_some() {
            let mut all = self.collected("findings");
            if let Some(Value::Array(more)) = answer.remove("findings") {
                all.extend(more);
            }
            answer.insert("findings".to_owned(), Value::Array(all));
        }
        let answer = Value::Object(answer);
        if answer.to_string().len() > FORM_BYTES_MAX {
            return Err(FormError::TooMuch);
        }
        match misfit(&answer, &self.blank.schema) {
            Some(problem) => Err(FormError::Misfit(problem)),
            None => self.write(HANDED_IN, &answer),
        }
    }

    /// What was handed in.
    pub fn answer(&self) -> Option<Value> {
        read(&self.dir, HANDED_IN)
    }

    /// Closes it: nothing more is taken, and nothing is left of it.
    pub fn close(&self) {
        // Whoever is writing would otherwise make the folder again.
        let _turn = self.turn();
        // What cannot be removed is in nobody's way: its name is known to nobody.
        let _ = std::fs::remove_dir_all(&self.dir);
    }

    fn collected(&self, field: &str) -> Vec<Value> {
        match read(&self.dir, &format!("{field}.json")) {
            Some(Value::Array(all)) => all,
            _ => Vec::new(),
        }
    }

    /// Waits until nobody else reads or writes what is collected, in this process or another.
    fn turn(&self) -> Result<Turn, FormError> {
        let path = self.dir.join(LOCK);
        let opened = OpenOptions::new().create(true).write(true).truncate(false).open(&path);
        let file = match opened {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(FormError::NoForm(self.id.clone()));
            }
            opened => opened.map_err(|source| FormError::Disk { path: path.clone(), source })?,
        };
        match file.lock() {
            // Some file systems have no such locks; what is written one after the other is kept there too.
            Err(source) if source.kind() != ErrorKind::Unsupported => {
                Err(FormError::Disk { path, source })
            }
            _ => Ok(Turn(file)),
        }
    }

    fn refuse_closed(&self) -> Result<(), FormError> {
        match () {
            () if read(&self.dir, BLANK).is_none() => Err(FormError::NoForm(self.id.clone())),
            () if self.answer().is_some() => Err(FormError::HandedIn),
            () => Ok(()),
        }
    }

    fn write(&self, name: &str, value: &Value) -> Result<(), FormError> {
        let path = self.dir.join(name);
        fs::write_private(&path, value.to_string().as_bytes())
            .map_err(|source| FormError::Disk { path, source })
    }
}

/// The lock of a form. A program that is started at that moment may still hold the file, and with it the lock: so the lock is
/// given up, and not only the file closed.
struct Turn(File);

impl Drop for Turn {
    fn drop(&mut self) {
        // The kernel gives it up in any case, only later.
        let _ = self.0.unlock();
    }
}

fn read(dir: &Utf8Path, name: &str) -> Option<Value> {
    let bytes = fs::read_bytes_beneath(dir, name.into(), 2 * FORM_BYTES_MAX as u64).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// How a value does not fit a schema.
pub(crate) fn misfit(value: &Value, schema: &Value) -> Option<String> {
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

    fn forms() -> (tempfile::TempDir, Forms) {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
        let server = json!({ "command": "rep", "args": ["mcp"] });
        (dir, Forms::new(path.join("forms"), Some(server)))
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
        let same = forms.form(form.id()).unwrap();
        assert_eq!(same.add("findings", &json!({ "title": "a" })).unwrap(), 1);
        assert_eq!(same.add("findings", &json!({ "title": "b" })).unwrap(), 2);
        assert_eq!(form.answer(), None, "nothing counts before it is handed in");
        same.hand_in(Map::new()).unwrap();
        assert_eq!(
            form.answer(),
            Some(json!({ "findings": [{ "title": "a" }, { "title": "b" }] }))
        );
        assert!(matches!(same.add("findings", &json!({ "title": "c" })), Err(FormError::HandedIn)));
    }

    #[test]
    fn findings_that_are_added_at_once_are_all_kept() {
        let (_keep, forms) = forms();
        let form = forms.open("findings", &findings()).unwrap();
        // Every one through a handle of its own, as from a process of its own.
        let add = |number: usize| {
            let handle = forms.form(form.id()).unwrap();
            handle.add("findings", &json!({ "title": number.to_string() })).unwrap()
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
                let added = scope.spawn(|| form.add("findings", &json!({ "title": "a" })));
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
        let error = form.add("findings", &json!({ "title": 1 })).unwrap_err().to_string();
        assert!(error.contains("/title"), "{error}");
        let schema = json!({ "type": "object", "required": ["ok"], "properties": { "ok": { "type": "boolean" } } });
        let form = forms.open("answer", &schema).unwrap();
        assert!(matches!(form.add("findings", &json!({})), Err(FormError::NoList(_))));
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
            assert!(matches!(forms.form(id), Err(FormError::NoForm(_))), "{id}");
        }
    }

    #[test]
    fn the_server_of_a_form_knows_its_name_and_stands_beside_the_others() {
        let (_keep, forms) = forms();
        let form = forms.open("verdict", &json!({})).unwrap();
        let servers = forms.serve(&form, Some(&json!({ "mine": { "command": "x" } }))).unwrap();
        assert_eq!(servers["repertoire"]["args"], json!(["mcp", "--form", form.id()]));
        assert_eq!(servers["mine"]["command"], "x");
    }
}
