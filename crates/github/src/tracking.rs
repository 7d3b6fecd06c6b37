//! What people see of a run while it goes on: one comment, and one label.
//!
//! There is one comment whatever happens: it is found again by its marker when a run is repeated. A sticky one is shared by
//! all runs of a mode on an issue; the newest answer stands on top. The label is taken off at the end, whatever the end.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use crate::client::{Client, ClientError};
use crate::comment::{self, Harmless, Marker, cut, harmless};
use repertoire_model::Secret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::COMMENT_CHARS_MAX;

/// Which comment a run writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CommentKind {
    /// One of its own.
    #[default]
    New,
    /// The one of its mode.
    Sticky,
    /// None.
    None,
}

/// How a run is tracked.
#[derive(Clone, Debug)]
pub struct TrackingSettings {
    /// The issue or pull request.
    pub number: u64,
    /// Who we write as.
    pub own_login: String,
    /// Which comment.
    pub comment: CommentKind,
    /// The name of the mode: what a sticky comment belongs to.
    pub mode: String,
    /// What tells this run from all others.
    pub run: String,
    /// A label for the time of the run.
    pub label: Option<String>,
    /// Most characters of one answer.
    pub answer_chars_max: usize,
    /// Phrases that would start us.
    pub triggers: Vec<String>,
    /// Secrets that are taken out of everything.
    pub secrets: Vec<Secret>,
}

/// What is to be said.
#[derive(Clone, Copy, Debug, Default)]
pub struct Saying<'a> {
    /// Words of ours, written as they are.
    pub ours: &'a str,
    /// Words of an agent or a stranger; they are made harmless.
    pub theirs: &'a str,
}

/// What became of the end: each on its own.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// The address of the comment, if there is one.
    pub url: Option<String>,
    /// What went wrong.
    pub errors: Vec<ClientError>,
}

/// A run that is tracked.
#[derive(Debug)]
pub struct Tracking {
    client: Client,
    settings: TrackingSettings,
    marker: Marker,
    /// Our comment, once there is one.
    id: Option<u64>,
    url: Option<String>,
    /// What a sticky comment said before this run.
    before: String,
    labelled: bool,
}

impl Tracking {
    /// Writes the first comment, and sets the label. What does not work is in the list; the run can go on without.
    pub async fn begin(
        client: Client,
        settings: TrackingSettings,
        saying: Saying<'_>,
    ) -> (Self, Vec<ClientError>) {
        let subject = match settings.comment {
            CommentKind::Sticky => settings.mode.clone(),
            CommentKind::New | CommentKind::None => format!("{}:{}", settings.mode, settings.run),
        };
        let mut tracking = Tracking {
            client,
            marker: Marker::new(&subject),
            settings,
            id: None,
            url: None,
            before: String::new(),
            labelled: false,
        };
        let mut errors = Vec::new();
        errors.extend(tracking.set_label().await.err());
        errors.extend(tracking.first(saying).await.err());
        (tracking, errors)
    }

    /// Says something else in the same place.
    pub async fn update(&mut self, saying: Saying<'_>) -> Result<(), ClientError> {
        if self.settings.comment == CommentKind::None {
            return Ok(());
        }
        let body = self.body(saying);
        let written = match self.id {
            Some(id) => match self.client.update_comment(id, &body).await {
                // Somebody deleted it.
                Err(error) if error.is_not_found() => self.create(&body).await?,
                done => done?,
            },
            None => self.create(&body).await?,
        };
        (self.id, self.url) = (Some(written.id), Some(written.html_url));
        Ok(())
    }

    /// Says the last word, and takes the label off.
    pub async fn end(mut self, saying: Saying<'_>) -> Ended {
        let mut errors = Vec::new();
        errors.extend(self.update(saying).await.err());
        errors.extend(self.take_label_off().await.err());
        Ended { url: self.url, errors }
    }

    /// Does some work, and ends the tracking however that ends: also if it panics.
    pub async fn around<T>(
        self,
        work: impl Future<Output = T>,
        saying: impl FnOnce(&T) -> (String, String),
    ) -> (T, Ended) {
        match AssertUnwindSafe(work).catch_unwind().await {
            Ok(done) => {
                let (ours, theirs) = saying(&done);
                let ended = self.end(Saying { ours: &ours, theirs: &theirs }).await;
                (done, ended)
            }
            Err(panic) => {
                let ours =
                    "The run broke off because of a defect in the program. Nothing was published.";
                self.end(Saying { ours, theirs: "" }).await;
                std::panic::resume_unwind(panic)
            }
        }
    }

    /// Where the comment is, if there is one.
    pub fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }

    async fn set_label(&mut self) -> Result<(), ClientError> {
        let Some(label) = self.settings.label.clone() else { return Ok(()) };
        // Before the call: its answer may be lost, and then the label is there all the same.
        self.labelled = true;
        self.client.add_label(self.settings.number, &label).await
    }

    async fn take_label_off(&mut self) -> Result<(), ClientError> {
        match self.settings.label.clone().filter(|_| self.labelled) {
            Some(label) => self.client.remove_label(self.settings.number, &label).await,
            None => Ok(()),
        }
    }

    async fn first(&mut self, saying: Saying<'_>) -> Result<(), ClientError> {
        if self.settings.comment == CommentKind::None {
            return Ok(());
        }
        let there = self.client.comments(self.settings.number).await?;
        let found = comment::find(&there.items, &self.settings.own_login, &self.marker);
        if let Some(found) = found {
            self.id = Some(found.id);
            self.url = Some(found.html_url.clone());
            let body = found.body.clone().unwrap_or_default();
            self.before = match comment::newest(&self.marker, &body).contains(&self.run_mark()) {
                // This run was here before: its own words are not an earlier answer.
                true => comment::without_newest(&self.marker, &body),
                false => body,
            };
        }
        self.update(saying).await
    }

    async fn create(
        &self,
        body: &str,
    ) -> Result<crate::client::types::Comment, ClientError> {
        let (login, marker) = (&self.settings.own_login, self.marker.text());
        self.client.create_comment(self.settings.number, body, login, &marker).await
    }

    /// The comment as a whole.
    fn body(&self, saying: Saying<'_>) -> String {
        let triggers: Vec<&str> = self.settings.triggers.iter().map(String::as_str).collect();
        let secrets = &self.settings.secrets;
        let rules = Harmless { triggers: &triggers, secrets, image_host: None };
        let theirs = harmless(saying.theirs.trim(), &rules);
        let ours = secrets.iter().fold(saying.ours.trim().to_owned(), |text, it| it.scrub(&text));
        let said = [ours, theirs].join("\n\n");
        let answer = cut(said.trim(), self.settings.answer_chars_max.min(COMMENT_CHARS_MAX / 2));
        let answer = format!("{answer}\n{}", self.run_mark());
        match self.settings.comment {
            CommentKind::Sticky => {
                let title = "Earlier answer";
                comment::with_answer(&self.marker, &self.before, title, &answer, COMMENT_CHARS_MAX)
            }
            CommentKind::New | CommentKind::None => {
                comment::new_body(&self.marker, &answer, COMMENT_CHARS_MAX)
            }
        }
    }

    fn run_mark(&self) -> String {
        Marker::new(&format!("run:{}", self.settings.run)).text()
    }
}
