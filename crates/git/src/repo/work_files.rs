//! The files of a checkout, for callers that read them themselves.

use camino::Utf8PathBuf;

use super::call::GitCall;
use super::{GitClient, GitError, GitObjectId};

/// The state of a checkout, without the contents of its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkFiles {
    /// The root of the checkout.
    pub root: Utf8PathBuf,
    /// The commit that is checked out.
    pub head: Option<GitObjectId>,
    /// What is staged, as git prints it.
    pub index: Vec<u8>,
    /// The files, sorted: those in the index, also missing ones, and those that no `.gitignore` excludes. A nested
    /// repository is one entry.
    pub paths: Vec<Utf8PathBuf>,
}

impl GitClient {
    /// Lists the files of the whole checkout around this folder. Only the `.gitignore` files of the work decide what is
    /// ignored, because the configuration and `.git/info/exclude` are not part of the work. Returns `None` if git
    /// ignores the folder itself, or if a name is not UTF-8.
    pub async fn work_files(&self) -> Result<Option<WorkFiles>, GitError> {
        let root = self.work_tree_root().await?;
        let dir = self.dir.canonicalize_utf8().unwrap_or_else(|_| self.dir.clone());
        let at_top = GitClient { dir: root.clone(), ..self.clone() };
        let inner = dir.strip_prefix(&root).map(|inner| inner.as_str()).unwrap_or_default();
        if !inner.is_empty() && at_top.is_ignored(inner).await? {
            return Ok(None);
        }
        let head = at_top.find_commit("HEAD").await?;
        let staged = ["ls-files", "--stage", "-z"];
        let index = at_top.run_checked_call(GitCall::new(&staged)).await?.stdout_bytes()?.to_vec();
        let others = ["ls-files", "--others", "--exclude-per-directory=.gitignore", "-z"];
        let others = at_top.run_checked_call(GitCall::new(&others)).await?;
        let Some(paths) = parse_paths(&index, others.stdout_bytes()?) else { return Ok(None) };
        Ok(Some(WorkFiles { root, head, index, paths }))
    }
}

/// The paths of `<mode> <oid> <stage>\tpath` entries and of plain ones; `None` if one is not UTF-8.
fn parse_paths(index: &[u8], others: &[u8]) -> Option<Vec<Utf8PathBuf>> {
    let entries = |bytes| std::str::from_utf8(bytes).ok().map(|text| text.split_terminator('\0'));
    let staged = entries(index)?.filter_map(|entry| Some(entry.split_once('\t')?.1));
    let paths = staged.chain(entries(others)?).map(|path| path.trim_end_matches('/').into());
    let mut paths: Vec<Utf8PathBuf> = paths.collect();
    paths.sort();
    paths.dedup();
    Some(paths)
}
