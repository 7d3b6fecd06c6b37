//! Records a review in the journal while it runs. A review whose record cannot be written still reports what it found.

use camino::Utf8Path;
use repertoire_review::change::ReviewChange;
use repertoire_review::pipeline::Progress;
use repertoire_review::record::ReviewRecord;
use repertoire_review::run_event::ReviewRequest;
use repertoire_review::store::{ReviewRecorder, ReviewStore};

use super::earlier::review_store_failure;
use crate::cli::CliContext;
use crate::failure::CliFailure;

/// The record of a running review.
pub(super) enum ReviewRecording {
    /// The review is not recorded.
    Off,
    On(ReviewRecorder),
    /// The record could not be started.
    Failed(CliFailure),
}

impl ReviewRecording {
    /// Starts to record a review. `store` is the store, if it is open already.
    pub(super) async fn start(
        ctx: &CliContext<'_>,
        store: Option<ReviewStore>,
        workspace: &Utf8Path,
        (id, request): (&str, &ReviewRequest),
    ) -> Self {
        let store = match store {
            Some(store) => Ok(store),
            None => ctx.review_store(workspace).await.map_err(CliFailure::from),
        };
        let started = match store {
            Ok(store) => store.start_review(id, request).await.map_err(review_store_failure),
            Err(failure) => Err(failure),
        };
        started.map_or_else(ReviewRecording::Failed, ReviewRecording::On)
    }

    pub(super) fn note_progress(&self, progress: Progress<'_>) {
        if let ReviewRecording::On(recorder) = self {
            recorder.note_progress(progress);
        }
    }

    /// Completes the record.
    pub(super) async fn finish(
        self,
        review: &ReviewRecord,
        change: &ReviewChange,
    ) -> Result<(), CliFailure> {
        match self {
            ReviewRecording::Off => Ok(()),
            ReviewRecording::On(recorder) => {
                let kept = recorder.finish_review(review, change).await;
                kept.map(drop).map_err(review_store_failure)
            }
            ReviewRecording::Failed(failure) => Err(failure),
        }
    }

    /// Records that the review ended without a result.
    pub(super) async fn fail(self, failure: &CliFailure) {
        if let ReviewRecording::On(recorder) = self {
            // `failure` is reported, not an error that follows from it.
            let _ = recorder.fail_review(failure.message.clone()).await;
        }
    }
}
