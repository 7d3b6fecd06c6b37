//! Budgets: how much of the list of skills each client shows.

use std::borrow::Cow;

use http::Method;
use repertoire_skill::budget::{Budget, CLIENTS, Client, Shown, ShownSkill};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{Answer, Api, Call, Nothing, Page, blocking};
use crate::http::problem::Problem;

/// A client's budget for the list of skills, and the result of applying it.
#[derive(Debug, Serialize, JsonSchema)]
struct Room {
    /// The id of the client, for queries.
    agent: String,
    /// The name of the client.
    client: String,
    /// The budget, in characters.
    chars_max: usize,
    /// The maximum length of a description, in characters.
    entry_chars_max: usize,
    /// The length of the complete list of skills, in characters.
    chars_needed: usize,
    /// The length of the list as shown, in characters.
    chars_used: usize,
    /// The number of skills with their complete description.
    whole: usize,
    /// The number of skills with a shortened description.
    shortened: usize,
    /// The number of skills shown by name only.
    names_only: usize,
    /// The number of skills that are not shown.
    hidden: usize,
}

/// A filter for clients.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct WhichClient {
    /// Only this client.
    agent: Option<Agent>,
}

/// A client with a known budget.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
struct Agent(&'static Client);

impl TryFrom<String> for Agent {
    type Error = String;

    fn try_from(id: String) -> Result<Self, String> {
        let client = Client::of(&id).map(Agent);
        client.ok_or_else(|| format!("`{id}` is none of {}", ids().join(", ")))
    }
}

impl JsonSchema for Agent {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Agent".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": ids() })
    }
}

fn ids() -> Vec<&'static str> {
    CLIENTS.iter().map(|client| client.id).collect()
}

#[derive(Debug, Deserialize, JsonSchema)]
struct AgentPath {
    /// The client: `agent` of `/api/v1/budgets`.
    agent: String,
}

/// A filter for the skills of a client's list.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct WhichSkills {
    /// Only skills that are shown in this way.
    shown: Option<Shown>,
}

pub(super) fn add(api: Api) -> Api {
    let tag = "skills";
    api.list("/api/v1/budgets", tag, "What clients make of the list of skills, in numbers", list)
        .add(Method::GET, "/api/v1/budgets/{agent}", tag, "One client's, in numbers", one)
        .list(
            "/api/v1/budgets/{agent}/skills",
            tag,
            "Which skills a client would show, shorten and hide",
            skills,
        )
}

async fn list(call: Call<Nothing, WhichClient>) -> Answer<Page<Room>> {
    blocking(move || {
        let catalog = call.house.catalog();
        let wanted = |client: &&Client| call.query.agent.is_none_or(|one| one.0.id == client.id);
        let clients: Vec<&Client> = CLIENTS.iter().filter(wanted).collect();
        let budget = |client: &Client| room(client, &Budget::of(client, catalog.entries()));
        call.paging.cut(clients.into_iter().map(budget))
    })
    .await
}

async fn one(call: Call<AgentPath>) -> Answer<Room> {
    let client = client(&call.path.agent)?;
    blocking(move || {
        let catalog = call.house.catalog();
        Ok(room(client, &Budget::of(client, catalog.entries())))
    })
    .await
}

async fn skills(call: Call<AgentPath, WhichSkills>) -> Answer<Page<ShownSkill>> {
    let client = client(&call.path.agent)?;
    blocking(move || {
        let catalog = call.house.catalog();
        let mut skills = Budget::of(client, catalog.entries()).skills;
        skills.retain(|one| call.query.shown.is_none_or(|shown| one.shown == shown));
        call.paging.cut(skills.into_iter())
    })
    .await
}

fn client(id: &str) -> Answer<&'static Client> {
    Client::of(id).ok_or_else(|| {
        Problem::not_found(format!("the room of `{id}` is not known"))
            .hint(format!("It is known for {}.", ids().join(", ")))
    })
}

fn room(client: &Client, budget: &Budget) -> Room {
    Room {
        agent: client.id.to_owned(),
        client: client.name.to_owned(),
        chars_max: client.chars_max,
        entry_chars_max: client.entry_chars_max,
        chars_needed: budget.chars_needed,
        chars_used: budget.chars_used(),
        whole: budget.count(Shown::Whole),
        shortened: budget.count(Shown::Shortened),
        names_only: budget.count(Shown::NameOnly),
        hidden: budget.count(Shown::Hidden),
    }
}
