//! Pagination of lists.

use reqwest::Url;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::GitHubClient;
use super::error::ClientError;
use super::limits::{PAGE_ITEMS, PAGES_MAX};
use super::types::{CheckRun, CommitStatus};
use super::wire::ClientCall;

/// A list that may be incomplete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PagedList<T> {
    pub items: Vec<T>,
    /// True if the list is complete. Don't base decisions on an incomplete one.
    pub whole: bool,
}

/// A page of a list, as GitHub returns it.
pub(super) trait GitHubListPage: DeserializeOwned {
    type Item;
    fn items(self) -> Vec<Self::Item>;
}

impl<T: DeserializeOwned> GitHubListPage for Vec<T> {
    type Item = T;

    fn items(self) -> Vec<T> {
        self
    }
}

#[derive(Deserialize)]
pub(super) struct CheckRuns {
    check_runs: Vec<CheckRun>,
}

impl GitHubListPage for CheckRuns {
    type Item = CheckRun;

    fn items(self) -> Vec<CheckRun> {
        self.check_runs
    }
}

#[derive(Deserialize)]
pub(super) struct CombinedStatus {
    statuses: Vec<CommitStatus>,
}

impl GitHubListPage for CombinedStatus {
    type Item = CommitStatus;

    fn items(self) -> Vec<CommitStatus> {
        self.statuses
    }
}

impl GitHubClient {
    /// Fetches all pages of a list, up to [`PAGES_MAX`].
    pub(super) async fn list_pages<P: GitHubListPage>(
        &self,
        mut url: Url,
    ) -> Result<PagedList<P::Item>, ClientError> {
        url.query_pairs_mut().append_pair("per_page", &PAGE_ITEMS.to_string());
        let mut items = Vec::new();
        for _ in 0..PAGES_MAX {
            let answer = self.send_call(&ClientCall::get(url)).await?;
            let page: P = answer.decode_json()?;
            items.extend(page.items());
            let links = answer.headers.get("link").and_then(|value| value.to_str().ok());
            let Some(next) = links.and_then(next_link) else {
                return Ok(PagedList { items, whole: true });
            };
            url = match Url::parse(next) {
                // Never send the token to another address, whatever a response says.
                Ok(next) if self.is_api_url(&next) => next,
                _ => return Err(answer.unclear_error("the next page is somewhere else".to_owned())),
            };
        }
        Ok(PagedList { items, whole: false })
    }
}

/// Returns the URL of the next page in a `link` header.
fn next_link(header: &str) -> Option<&str> {
    header.split(',').find_map(|link| {
        let (url, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
        let next = |parameter: &str| matches!(parameter.trim(), "rel=\"next\"" | "rel=next");
        parameters.split(';').any(next).then_some(url)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_found_among_the_links() {
        let both = "<https://h/a?page=1>; rel=\"prev\", <https://h/a?page=3>; rel=\"next\"";
        for (header, expect) in [
            (both, Some("https://h/a?page=3")),
            ("<https://h/a?page=9>; rel=\"last\"", None),
            ("<https://h/a>;rel=next", Some("https://h/a")),
            ("", None),
            ("rel=\"next\"", None),
            ("<https://h/a; rel=\"next\"", None),
        ] {
            assert_eq!(next_link(header), expect, "{header}");
        }
    }
}
