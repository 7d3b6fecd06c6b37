//! Completion of the URIs of skills and their files.

use rmcp::ErrorData;
use rmcp::model::{CompleteRequestParams, CompleteResult, CompletionInfo, Reference};

use super::limits::COMPLETIONS_MAX;
use super::state::McpState;

/// Completes an argument. Arguments of skills are free text, so there are no suggestions for them.
pub(super) fn complete_argument(
    state: &McpState,
    request: &CompleteRequestParams,
) -> Result<CompleteResult, ErrorData> {
    let shelf = state.served_skills();
    let begun = request.argument.value.as_str();
    let all: Vec<String> = match (&request.r#ref, request.argument.name.as_str()) {
        (Reference::Resource(_), "skill") => {
            shelf.listed_skills().iter().map(|book| book.path.clone()).collect()
        }
        (Reference::Resource(_), "path") => {
            let given = request.context.as_ref().and_then(|context| context.get_argument("skill"));
            let address = given.map(|skill| format!("skill://{skill}/SKILL.md"));
            let book = address.as_deref().and_then(|address| shelf.find_by_uri(address));
            let manifest = book.and_then(|book| shelf.manifest(book).ok());
            let files = manifest.iter().flat_map(|manifest| &manifest.files);
            let files = files.map(|file| file.path.to_string());
            std::iter::once("SKILL.md".to_owned()).filter(|_| book.is_some()).chain(files).collect()
        }
        _ => Vec::new(),
    };
    let fits: Vec<String> = all.into_iter().filter(|value| value.starts_with(begun)).collect();
    let total = fits.len();
    let values: Vec<String> = fits.into_iter().take(COMPLETIONS_MAX).collect();
    let has_more = total > values.len();
    let mut info =
        CompletionInfo::new(values).map_err(|error| ErrorData::internal_error(error, None))?;
    info.total = u32::try_from(total).ok();
    info.has_more = Some(has_more);
    Ok(CompleteResult::new(info))
}
