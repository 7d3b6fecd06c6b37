//! Skills: listing them.

use http::Method;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Answer, Api, Call, Nothing, Page, Paging};

/// One skill of a list.
#[derive(Debug, Serialize, JsonSchema)]
struct Row {
    /// The name to ask for.
    name: String,
    /// What it does and when to use it.
    description: String,
}

pub(super) fn add(api: Api) -> Api {
    api.add(Method::GET, "/api/v1/skills", "skills", "List skills", list)
}

async fn list(call: Call<Nothing, Paging>) -> Answer<Page<Row>> {
    let catalog = call.house.catalog();
    call.query.cut(
        catalog.entries().iter().map(|entry| Row {
            name: entry.id.clone(),
            description: entry.skill.description.clone(),
        }),
    )
}
