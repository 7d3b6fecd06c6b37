//! Tells clients when skills have come, gone or changed. Tools stay the same.

use rmcp::service::{Peer, RoleServer, SubscriptionContext};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use super::conformance::Change;
use crate::house::News;

/// What a list of the server's is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lists {
    /// Prompts and resources: the skills.
    Skills,
    /// The fixtures of the suite.
    Fixtures(Change),
}

/// Where news come from.
pub(super) struct Sources {
    /// The house.
    pub(super) house: Receiver<News>,
    /// The fixtures of the suite, if they are served.
    pub(super) fixtures: Option<Receiver<Change>>,
}

impl Sources {
    /// The next change of a list; `None` once there will be none.
    async fn next(&mut self) -> Option<Lists> {
        loop {
            let fixtures = async {
                match &mut self.fixtures {
                    Some(fixtures) => fixtures.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                news = self.house.recv() => match news {
                    Ok(News::Skills(reload)) if !reload.replaced => {}
                    Ok(News::Skills(_)) | Err(RecvError::Lagged(_)) => return Some(Lists::Skills),
                    Err(RecvError::Closed) => return None,
                },
                change = fixtures => {
                    if let Ok(change) = change {
                        return Some(Lists::Fixtures(change));
                    }
                }
            }
        }
    }
}

/// Tells a client of the protocol before 2026-07-28, until it has gone.
pub(super) async fn tell(peer: Peer<RoleServer>, mut sources: Sources, gone: CancellationToken) {
    loop {
        let lists = tokio::select! {
            () = gone.cancelled() => return,
            lists = sources.next() => lists,
        };
        let told = match lists {
            None => return,
            Some(Lists::Fixtures(Change::Tools)) => peer.notify_tool_list_changed().await,
            Some(Lists::Fixtures(Change::Prompts)) => peer.notify_prompt_list_changed().await,
            Some(Lists::Skills) => match peer.notify_prompt_list_changed().await {
                Ok(()) => peer.notify_resource_list_changed().await,
                failed => failed,
            },
        };
        if told.is_err() {
            return;
        }
    }
}

/// Tells one subscription, until it ends. What it has not asked for is passed over.
pub(super) async fn listen(context: SubscriptionContext, mut sources: Sources) {
    let accepted = context.accepted().clone();
    let (tools, prompts) = (accepted.tools_list_changed, accepted.prompts_list_changed);
    loop {
        let lists = tokio::select! {
            () = context.cancelled() => return,
            lists = sources.next() => lists,
        };
        let (of_tools, of_prompts, of_resources) = match lists {
            None => return,
            Some(Lists::Fixtures(Change::Tools)) => (true, false, false),
            Some(Lists::Fixtures(Change::Prompts)) => (false, true, false),
            Some(Lists::Skills) => (false, true, true),
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
