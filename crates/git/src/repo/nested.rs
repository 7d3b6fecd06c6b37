//! Nested repositories: submodules, and repositories that an agent has put in their place.
//!
//! `git add` starts git in every submodule to look for changes, with that repository's
//! configuration. So the engine stages everything else, and for a submodule only the commit that it
//! is at.

use std::io::Read;

use camino::Utf8Path;

use super::call::GitCall;
use super::{GitClient, GitError};
use crate::limits::GIT_INDEX_BYTES_MAX;

/// The mode of a submodule in the index.
const GITLINK: [u8; 4] = 0o160_000_u32.to_be_bytes();

impl GitClient {
    /// Stages all files that are not ignored. `environment` may name another index.
    pub(super) async fn stage_all(
        &self,
        environment: Vec<(String, String)>,
    ) -> Result<(), GitError> {
        let nested = self.checked_out_submodules(&environment).await?;
        let excluded: Vec<String> =
            nested.iter().map(|path| format!(":(exclude,top,literal){path}")).collect();
        let mut args = vec!["add", "--all", "--", ":/"];
        args.extend(excluded.iter().map(String::as_str));
        self.run_checked_call(GitCall { environment: environment.clone(), ..GitCall::new(&args) })
            .await?;
        for path in nested {
            let inner = self.in_dir(self.work_tree_root().await?.join(&path));
            let Ok(Some(commit)) = inner.find_commit("HEAD").await else { continue };
            let entry = format!("160000,{commit},{path}");
            let args = ["update-index", "--cacheinfo", &entry];
            self.run_checked_call(GitCall {
                environment: environment.clone(),
                ..GitCall::new(&args)
            })
            .await?;
        }
        Ok(())
    }

    /// The submodules in the index that have a repository in their folder.
    async fn checked_out_submodules(
        &self,
        environment: &[(String, String)],
    ) -> Result<Vec<String>, GitError> {
        let index = environment.iter().find(|(name, _)| name == "GIT_INDEX_FILE");
        let index = match index {
            Some((_, path)) => path.into(),
            None => self.git_dir().await?.join("index"),
        };
        if !may_have_submodules(&index) {
            return Ok(Vec::new());
        }
        let top = self.work_tree_root().await?;
        let at_top = GitClient { dir: top.clone(), ..self.clone() };
        let environment = environment.to_vec();
        let args = ["ls-files", "--stage", "-z"];
        let answer =
            at_top.run_checked_call(GitCall { environment, ..GitCall::new(&args) }).await?;
        let text = String::from_utf8_lossy(answer.stdout_bytes()?);
        let entries = text.split_terminator('\0').filter(|entry| entry.starts_with("160000 "));
        let paths = entries.filter_map(|entry| Some(entry.split_once('\t')?.1.to_owned()));
        // Only those whose folder has a repository.
        Ok(paths.filter(|path| top.join(path).join(".git").symlink_metadata().is_ok()).collect())
    }
}

/// Returns true if the bytes of the index contain the mode of a submodule, or if the index is too
/// large or refers to a shared one. May be a false positive.
fn may_have_submodules(index: &Utf8Path) -> bool {
    if repertoire_text::fs::refuse_irregular(index).is_err() {
        return index.exists();
    }
    let Ok(file) = std::fs::File::open(index) else { return false };
    let mut bytes = Vec::new();
    let read = file.take(GIT_INDEX_BYTES_MAX).read_to_end(&mut bytes);
    let whole = read.is_ok_and(|count| (count as u64) < GIT_INDEX_BYTES_MAX);
    // The extension `link` refers to a shared index.
    !whole || [GITLINK, *b"link"].iter().any(|wanted| bytes.windows(4).any(|four| four == wanted))
}
