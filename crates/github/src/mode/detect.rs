//! Selects the mode that answers an event.

use crate::trigger::{EventTrigger, TriggerMatch};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{GitHubMode, plain_name};

/// The selected mode, and the reasons.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModeDetection {
    /// The name of the mode; null if no trigger matches.
    pub mode: Option<String>,
    /// The trigger that started it, the one with the highest confidence if there are several.
    pub trigger: Option<TriggerMatch>,
    /// The reason, in one sentence.
    pub reason: String,
    /// The confidence that this was intended, in percent.
    pub confidence: u8,
    /// The results for all modes, the winner first, then by priority and name.
    pub considered: Vec<ConsideredMode>,
}

/// The result for one mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConsideredMode {
    /// The name of the mode.
    pub mode: String,
    /// The priority of the mode.
    pub priority: u8,
    /// The triggers of the mode that match.
    pub matched: Vec<EventTrigger>,
    /// The reason it was selected or not.
    pub why: String,
}

/// Selects the matching mode with the highest priority; of two with the same priority, the first by
/// name. If a mode is requested by name, only that one is considered.
pub fn detect_mode(
    modes: &[GitHubMode],
    matches: &[TriggerMatch],
    asked: Option<&str>,
) -> ModeDetection {
    let mut order: Vec<&GitHubMode> = modes.iter().collect();
    order.sort_by(|a, b| b.priority.cmp(&a.priority).then_with(|| a.name.cmp(&b.name)));
    let asked = asked.map(plain_name);
    let eligible = |mode: &GitHubMode| asked.is_none_or(|name| mode.name == name);
    let winner = order.iter().find(|mode| eligible(mode) && surest_match(mode, matches).is_some());
    let winner = winner.copied();
    order.sort_by_key(|mode| winner.is_none_or(|winner| winner.name != mode.name));
    let considered = order.iter().map(|mode| consider_mode(mode, matches, asked, winner)).collect();
    let trigger = winner.and_then(|mode| surest_match(mode, matches)).cloned();
    ModeDetection {
        mode: winner.map(|mode| mode.name.clone()),
        reason: detection_reason(modes, matches, asked, trigger.as_ref()),
        confidence: trigger.as_ref().map_or(0, |found| found.confidence),
        trigger,
        considered,
    }
}

/// Returns the match with the highest confidence that starts a mode; the first one of several.
fn surest_match<'a>(mode: &GitHubMode, matches: &'a [TriggerMatch]) -> Option<&'a TriggerMatch> {
    let fits = matches.iter().filter(|found| mode.has_trigger(found.trigger));
    fits.rev().max_by_key(|found| found.confidence)
}

fn consider_mode(
    mode: &GitHubMode,
    matches: &[TriggerMatch],
    asked: Option<&str>,
    winner: Option<&GitHubMode>,
) -> ConsideredMode {
    let held = matches.iter().filter(|found| mode.has_trigger(found.trigger));
    let matched: Vec<EventTrigger> = held.map(|found| found.trigger).collect();
    let why = match (winner, asked) {
        (Some(winner), _) if winner.name == mode.name => format!("{} held", quoted_names(&matched)),
        (_, Some(asked)) if asked != mode.name => format!("`{asked}` was asked for"),
        (Some(winner), _) if !matched.is_empty() && winner.priority > mode.priority => format!(
            "{} held, but `{}` has priority {} and this one {}",
            quoted_names(&matched),
            winner.name,
            winner.priority,
            mode.priority
        ),
        (Some(winner), _) if !matched.is_empty() => {
            format!("{} held, but `{}` comes first by name", quoted_names(&matched), winner.name)
        }
        _ if mode.triggers.is_empty() => "it has no triggers".to_owned(),
        _ => format!("none of {} held", quoted_names(&mode.triggers)),
    };
    ConsideredMode { mode: mode.name.clone(), priority: mode.priority, matched, why }
}

fn quoted_names(triggers: &[EventTrigger]) -> String {
    let names: Vec<String> = triggers.iter().map(|t| format!("`{}`", t.as_str())).collect();
    names.join(", ")
}

fn detection_reason(
    modes: &[GitHubMode],
    matches: &[TriggerMatch],
    asked: Option<&str>,
    trigger: Option<&TriggerMatch>,
) -> String {
    match (trigger, asked) {
        (Some(found), _) => found.reason.clone(),
        (None, Some(asked)) if !modes.iter().any(|mode| mode.name == asked) => {
            let known: Vec<String> = modes.iter().map(|mode| format!("`{}`", mode.name)).collect();
            let asked = crate::untrusted::sanitise_line(asked);
            format!("there is no mode `{asked}`; there are {}", known.join(", "))
        }
        (None, Some(asked)) => {
            format!("`{asked}` was asked for, and it cannot be started by hand on this event")
        }
        (None, None) if matches.is_empty() => "nothing in this event calls for work".to_owned(),
        (None, None) => {
            let held: Vec<String> =
                matches.iter().map(|found| format!("`{}`", found.trigger.as_str())).collect();
            format!("no mode takes {}", held.join(", "))
        }
    }
}
