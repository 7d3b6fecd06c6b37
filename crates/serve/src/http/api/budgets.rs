//! Budgets: how much of the list of skills each client shows.

use std::borrow::Cow;

use http::Method;
use repertoire_skill::budget::{CLIENTS, ClientListing, ListedSkill, ListingClient, ListingState};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{ApiBuilder, ApiCall, ApiResult, ListPage, Nothing, run_blocking};
use crate::http::problem::HttpProblem;

/// A client's budget for the list of skills, and the result of applying it.
#[derive(Debug, Serialize, JsonSchema)]
struct ClientBudget {
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
struct BudgetFilter {
    /// Only this client.
    agent: Option<BudgetClient>,
}

/// A client with a known budget.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
struct BudgetClient(&'static ListingClient);

impl TryFrom<String> for BudgetClient {
    type Error = String;

    fn try_from(id: String) -> Result<Self, String> {
        let client = ListingClient::from_id(&id).map(BudgetClient);
        client.ok_or_else(|| format!("`{id}` is none of {}", client_ids().join(", ")))
    }
}

impl JsonSchema for BudgetClient {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Agent".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": client_ids() })
    }
}

fn client_ids() -> Vec<&'static str> {
    CLIENTS.iter().map(|client| client.id).collect()
}

#[derive(Debug, Deserialize, JsonSchema)]
struct BudgetPath {
    /// The client: `agent` of `/api/v1/budgets`.
    agent: String,
}

/// A filter for the skills of a client's list.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct BudgetSkillFilter {
    /// Only skills that are shown in this way.
    shown: Option<ListingState>,
}

pub(super) fn add_endpoints(api: ApiBuilder) -> ApiBuilder {
    let tag = "skills";
    api.list(
        "/api/v1/budgets",
        tag,
        "What clients make of the list of skills, in numbers",
        list_budgets,
    )
    .add(Method::GET, "/api/v1/budgets/{agent}", tag, "One client's, in numbers", show_budget)
    .list(
        "/api/v1/budgets/{agent}/skills",
        tag,
        "Which skills a client would show, shorten and hide",
        list_budget_skills,
    )
}

async fn list_budgets(call: ApiCall<Nothing, BudgetFilter>) -> ApiResult<ListPage<ClientBudget>> {
    run_blocking(move || {
        let catalog = call.serve_state.catalog();
        let wanted =
            |client: &&ListingClient| call.query.agent.is_none_or(|one| one.0.id == client.id);
        let clients: Vec<&ListingClient> = CLIENTS.iter().filter(wanted).collect();
        let budget = |client: &ListingClient| {
            client_budget(client, &ClientListing::for_client(client, catalog.entries()))
        };
        call.paging.cut_page(clients.into_iter().map(budget))
    })
    .await
}

async fn show_budget(call: ApiCall<BudgetPath>) -> ApiResult<ClientBudget> {
    let client = find_client(&call.path.agent)?;
    run_blocking(move || {
        let catalog = call.serve_state.catalog();
        Ok(client_budget(client, &ClientListing::for_client(client, catalog.entries())))
    })
    .await
}

async fn list_budget_skills(
    call: ApiCall<BudgetPath, BudgetSkillFilter>,
) -> ApiResult<ListPage<ListedSkill>> {
    let client = find_client(&call.path.agent)?;
    run_blocking(move || {
        let catalog = call.serve_state.catalog();
        let mut skills = ClientListing::for_client(client, catalog.entries()).skills;
        skills.retain(|one| call.query.shown.is_none_or(|shown| one.shown == shown));
        call.paging.cut_page(skills.into_iter())
    })
    .await
}

fn find_client(id: &str) -> ApiResult<&'static ListingClient> {
    ListingClient::from_id(id).ok_or_else(|| {
        HttpProblem::not_found(format!("the room of `{id}` is not known"))
            .hint(format!("It is known for {}.", client_ids().join(", ")))
    })
}

fn client_budget(client: &ListingClient, budget: &ClientListing) -> ClientBudget {
    ClientBudget {
        agent: client.id.to_owned(),
        client: client.name.to_owned(),
        chars_max: client.chars_max,
        entry_chars_max: client.entry_chars_max,
        chars_needed: budget.chars_needed,
        chars_used: budget.chars_used(),
        whole: budget.count_shown(ListingState::Whole),
        shortened: budget.count_shown(ListingState::Shortened),
        names_only: budget.count_shown(ListingState::NameOnly),
        hidden: budget.count_shown(ListingState::Hidden),
    }
}
