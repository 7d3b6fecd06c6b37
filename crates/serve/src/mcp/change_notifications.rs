//! Notifies clients when skills were added, removed or changed. Only an extension changes the list of
//! tools.

use rmcp::service::{Peer, RoleServer, SubscriptionContext};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use super::extension::ListChange;
use crate::serve_state::CatalogNews;

/// The lists that a change affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChangedLists {
    /// Prompts and resources, which are the skills.
    Skills,
    /// A list of the extension.
    Extension(ListChange),
}

/// The sources of changes.
pub(super) struct ChangeSources {
    /// Changes of the skills.
    pub(super) serve_state: Receiver<CatalogNews>,
    /// Changes of the extension, if there is one.
    pub(super) extension: Option<Receiver<ListChange>>,
}

impl ChangeSources {
    /// Waits for the next change of a list; `None` once the sources are closed.
    async fn next_change(&mut self) -> Option<ChangedLists> {
        loop {
            let extension = async {
                match &mut self.extension {
                    Some(extension) => extension.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                news = self.serve_state.recv() => match news {
                    Ok(CatalogNews::Skills(reload)) if !reload.replaced => {}
                    Ok(CatalogNews::Skills(_)) | Err(RecvError::Lagged(_)) => return Some(ChangedLists::Skills),
                    Err(RecvError::Closed) => return None,
                },
                change = extension => {
                    if let Ok(change) = change {
                        return Some(ChangedLists::Extension(change));
                    }
                }
            }
        }
    }
}

/// Notifies a client of the protocol before 2026-07-28, until it disconnects.
pub(super) async fn notify_peer(
    peer: Peer<RoleServer>,
    mut sources: ChangeSources,
    gone: CancellationToken,
) {
    loop {
        let lists = tokio::select! {
            () = gone.cancelled() => return,
            lists = sources.next_change() => lists,
        };
        let told = match lists {
            None => return,
            Some(ChangedLists::Extension(ListChange::Tools)) => {
                peer.notify_tool_list_changed().await
            }
            Some(ChangedLists::Extension(ListChange::Prompts)) => {
                peer.notify_prompt_list_changed().await
            }
            Some(ChangedLists::Skills) => match peer.notify_prompt_list_changed().await {
                Ok(()) => peer.notify_resource_list_changed().await,
                failed => failed,
            },
        };
        if told.is_err() {
            return;
        }
    }
}

/// Notifies one subscription until it ends. Changes that it did not request are skipped.
pub(super) async fn notify_subscription(context: SubscriptionContext, mut sources: ChangeSources) {
    let accepted = context.accepted().clone();
    let (tools, prompts) = (accepted.tools_list_changed, accepted.prompts_list_changed);
    loop {
        let lists = tokio::select! {
            () = context.cancelled() => return,
            lists = sources.next_change() => lists,
        };
        let (of_tools, of_prompts, of_resources) = match lists {
            None => return,
            Some(ChangedLists::Extension(ListChange::Tools)) => (true, false, false),
            Some(ChangedLists::Extension(ListChange::Prompts)) => (false, true, false),
            Some(ChangedLists::Skills) => (false, true, true),
        };
        let sink = context.sink();
        let mut told = Ok(());
        if of_tools && tools == Some(true) {
            told = sink.notify_tool_list_changed().await;
        }
        if told.is_ok() && of_prompts && prompts == Some(true) {
            told = sink.notify_prompt_list_changed().await;
        }
        if told.is_ok() && of_resources && accepted.resources_list_changed == Some(true) {
            told = sink.notify_resource_list_changed().await;
        }
        if told.is_err() {
            return;
        }
    }
}
