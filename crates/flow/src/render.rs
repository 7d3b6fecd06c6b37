//! Renders a step as XML, text or JSON. All are pure functions.
//!
//! The XML uses the tags of the scripts that workflows originate from, escaped and with a single root; [`parse_xml`]
//! returns the step that was passed to [`render_xml`]. `docs/reference/workflow-protocol.md` is the reference for all three.

use crate::limits::{STEP_XML_BYTES_MAX, STEP_XML_DEPTH_MAX};
use crate::step::StepView;

mod block;
mod hints;
mod page;
mod parse;
mod text;
mod tree;
mod xml;

#[cfg(test)]
mod tests;

/// Renders the step as XML. Characters that XML 1.0 cannot represent become U+FFFD; everything else survives a round
/// trip.
pub fn render_xml(view: &StepView) -> String {
    xml::write_step(view)
}

/// The default width of the text form.
const COLUMNS: usize = 96;

/// Renders the step as text for people and simple agents.
pub fn render_text(view: &StepView) -> String {
    render_text_within(view, COLUMNS)
}

/// Renders the step as text for a terminal with this many columns. Headings, lists and our own sentences are wrapped;
/// instructions and commands are not.
pub fn render_text_within(view: &StepView, columns: usize) -> String {
    text::write_step(view, columns)
}

/// Renders the step as JSON, in the shape of [`StepView`].
pub fn json(view: &StepView) -> serde_json::Value {
    serde_json::to_value(view).unwrap_or_default()
}

/// Returns the JSON Schema of [`json`].
pub fn json_schema() -> serde_json::Value {
    schemars::schema_for!(StepView).to_value()
}

/// Parses the output of [`render_xml`]. Unknown elements and attributes are ignored.
pub fn parse_xml(text: &str) -> Result<StepView, StepParseError> {
    parse::parse_step(text)
}

/// The reason why a text is not a step in our XML.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepParseError {
    #[error("it has {bytes} bytes, and {STEP_XML_BYTES_MAX} is the limit")]
    TooLong { bytes: usize },
    #[error("its elements are more than {STEP_XML_DEPTH_MAX} deep")]
    TooDeep,
    #[error("there is no element in it")]
    Empty,
    #[error("at byte {at}: {message}")]
    Xml { at: usize, message: String },
    /// A required element or attribute is missing.
    #[error("<{element}> has no {what}")]
    Missing { element: String, what: &'static str },
    /// A value is invalid.
    #[error("<{element}> has a bad {what}: `{value}`")]
    Bad {
        element: String,
        /// The attribute or element.
        what: &'static str,
        value: String,
    },
    /// This program does not support the protocol version.
    #[error("protocol {0} is not known here; this program reads {known}", known = crate::step::PROTOCOL)]
    Protocol(u32),
}
