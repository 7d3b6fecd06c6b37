//! The progress of a run on GitHub: one comment and one label.
//!
//! There is a single comment, which is found again by its marker when a run is repeated. A sticky
//! comment is shared by all runs of a mode on an issue; the newest answer is on top. The label is
//! always removed at the end.

use std::panic::AssertUnwindSafe;

use crate::client::{ClientError, GitHubClient};
use crate::comment::{self, CommentMarker, NeutraliseRules, neutralise_text, truncate_markdown};
use futures_util::FutureExt;
use repertoire_model::ApiSecret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::COMMENT_CHARS_MAX;

/// The comment that a run writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CommentKind {
    /// A new comment for the run.
    #[default]
    New,
    /// The shared comment of its mode.
    Sticky,
    /// No comment.
    None,
}

/// The settings of the tracking of a run.
#[derive(Clone, Debug)]
pub struct TrackingSettings {
    /// The issue or pull request.
    pub number: u64,
    /// The bot's account.
    pub own_login: String,
    pub comment: CommentKind,
    /// The name of the mode, which a sticky comment belongs to.
    pub mode: String,
    /// A unique id of this run.
    pub run: String,
    /// The label that is set during the run.
    pub label: Option<String>,
    /// The maximum length of one answer.
    pub answer_chars_max: usize,
    /// Phrases that would trigger the bot, which are broken in the text.
    pub triggers: Vec<String>,
    /// Secrets that are redacted.
    pub secrets: Vec<ApiSecret>,
}

/// The text of a comment.
#[derive(Clone, Copy, Debug, Default)]
pub struct CommentText<'a> {
    /// Text of the engine, written as it is.
    pub ours: &'a str,
    /// Text of an agent or another author; it is neutralised.
    pub theirs: &'a str,
}

/// The result of ending the tracking.
#[derive(Clone, Debug, Default)]
pub struct TrackingResult {
    /// The URL of the comment, if there is one.
    pub url: Option<String>,
    pub errors: Vec<ClientError>,
}

/// The tracking of a run.
#[derive(Debug)]
pub struct RunTracking {
    client: GitHubClient,
    settings: TrackingSettings,
    marker: CommentMarker,
    /// The id of the comment, once it exists.
    id: Option<u64>,
    url: Option<String>,
    /// The content of a sticky comment before this run.
    before: String,
    labelled: bool,
}

impl RunTracking {
    /// Writes the first comment, and sets the label. Errors are returned in the list; the run can
    /// continue regardless.
    pub async fn begin_tracking(
        client: GitHubClient,
        settings: TrackingSettings,
        saying: CommentText<'_>,
    ) -> (Self, Vec<ClientError>) {
        let subject = match settings.comment {
            CommentKind::Sticky => settings.mode.clone(),
            CommentKind::New | CommentKind::None => format!("{}:{}", settings.mode, settings.run),
        };
        let mut tracking = RunTracking {
            client,
            marker: CommentMarker::new(&subject),
            settings,
            id: None,
            url: None,
            before: String::new(),
            labelled: false,
        };
        let mut errors = Vec::new();
        errors.extend(tracking.set_label().await.err());
        errors.extend(tracking.write_first_comment(saying).await.err());
        (tracking, errors)
    }

    /// Replaces the text of the comment.
    pub async fn update_comment(&mut self, saying: CommentText<'_>) -> Result<(), ClientError> {
        if self.settings.comment == CommentKind::None {
            return Ok(());
        }
        let body = self.render_comment(saying);
        let written = match self.id {
            Some(id) => match self.client.update_comment(id, &body).await {
                // The comment was deleted.
                Err(error) if error.is_not_found() => self.create_comment(&body).await?,
                done => done?,
            },
            None => self.create_comment(&body).await?,
        };
        (self.id, self.url) = (Some(written.id), Some(written.html_url));
        Ok(())
    }

    /// Writes the final text, and removes the label.
    pub async fn end_tracking(mut self, saying: CommentText<'_>) -> TrackingResult {
        let mut errors = Vec::new();
        errors.extend(self.update_comment(saying).await.err());
        errors.extend(self.remove_label().await.err());
        TrackingResult { url: self.url, errors }
    }

    /// Runs the work, and ends the tracking in any case, even if the work panics.
    pub async fn track_work<T>(
        self,
        work: impl Future<Output = T>,
        saying: impl FnOnce(&T) -> (String, String),
    ) -> (T, TrackingResult) {
        match AssertUnwindSafe(work).catch_unwind().await {
            Ok(done) => {
                let (ours, theirs) = saying(&done);
                let ended = self.end_tracking(CommentText { ours: &ours, theirs: &theirs }).await;
                (done, ended)
            }
            Err(panic) => {
                let ours =
                    "The run broke off because of a defect in the program. Nothing was published.";
                self.end_tracking(CommentText { ours, theirs: "" }).await;
                std::panic::resume_unwind(panic)
            }
        }
    }

    /// The URL of the comment, if there is one.
    pub fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }

    async fn set_label(&mut self) -> Result<(), ClientError> {
        let Some(label) = self.settings.label.clone() else { return Ok(()) };
        // Set this before the call: if the response is lost, the label may be set nevertheless.
        self.labelled = true;
        self.client.add_label(self.settings.number, &label).await
    }

    async fn remove_label(&mut self) -> Result<(), ClientError> {
        match self.settings.label.clone().filter(|_| self.labelled) {
            Some(label) => self.client.remove_label(self.settings.number, &label).await,
            None => Ok(()),
        }
    }

    async fn write_first_comment(&mut self, saying: CommentText<'_>) -> Result<(), ClientError> {
        if self.settings.comment == CommentKind::None {
            return Ok(());
        }
        let there = self.client.list_comments(self.settings.number).await?;
        let found = comment::find_own_comment(&there.items, &self.settings.own_login, &self.marker);
        if let Some(found) = found {
            self.id = Some(found.id);
            self.url = Some(found.html_url.clone());
            let body = found.body.clone().unwrap_or_default();
            let is_of_this_run =
                comment::newest_answer(&self.marker, &body).contains(&self.run_mark());
            // A repeated run replaces its own text, which is not an earlier answer.
            self.before =
                if is_of_this_run { comment::without_newest(&self.marker, &body) } else { body };
        }
        self.update_comment(saying).await
    }

    async fn create_comment(
        &self,
        body: &str,
    ) -> Result<crate::client::types::IssueComment, ClientError> {
        let (login, marker) = (&self.settings.own_login, self.marker.to_html());
        self.client.create_comment(self.settings.number, body, login, &marker).await
    }

    /// Renders the whole comment.
    fn render_comment(&self, saying: CommentText<'_>) -> String {
        let triggers: Vec<&str> = self.settings.triggers.iter().map(String::as_str).collect();
        let secrets = &self.settings.secrets;
        let rules = NeutraliseRules { triggers: &triggers, secrets, image_host: None };
        let theirs = neutralise_text(saying.theirs.trim(), &rules);
        let ours = secrets.iter().fold(saying.ours.trim().to_owned(), |text, it| it.scrub(&text));
        let said = [ours, theirs].join("\n\n");
        let answer = truncate_markdown(
            said.trim(),
            self.settings.answer_chars_max.min(COMMENT_CHARS_MAX / 2),
        );
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
        CommentMarker::new(&format!("run:{}", self.settings.run)).to_html()
    }
}
