//! Three renderings of one step model: XML, text and JSON. All are pure.
//!
//! The XML has the tags of the scripts that workflows came from, escaped and with one root; [`parse_xml`] gives back the
//! step that [`xml`] was given. `docs/workflow-protocol.md` is the reference for all three.

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

/// The step as XML. Characters that XML 1.0 cannot hold become U+FFFD; everything else can be read back as it was.
pub fn xml(view: &StepView) -> String {
    xml::xml(view)
}

/// How wide the text form is, if nobody says.
const COLUMNS: usize = 96;

/// The step as text for people and simple agents.
pub fn text(view: &StepView) -> String {
    text_within(view, COLUMNS)
}

/// The step as text for a terminal of so many columns. Headings, lists and our own sentences are wrapped; instructions and
/// commands stay as they are.
pub fn text_within(view: &StepView, columns: usize) -> String {
    text::text(view, columns)
}

/// The step as JSON, in the shape of [`StepView`].
pub fn json(view: &StepView) -> serde_json::Value {
    serde_json::to_value(view).unwrap_or_default()
}

/// The JSON Schema of [`json`].
pub fn json_schema() -> serde_json::Value {
    schemars::schema_for!(StepView).to_value()
}

/// The step that [`xml`] was given. Elements and attributes that are not known are passed over.
pub fn parse_xml(text: &str) -> Result<StepView, ParseError> {
    parse::parse(text)
}

/// A text that is not a step in our XML.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// It is too long.
    #[error("it has {bytes} bytes, and {STEP_XML_BYTES_MAX} is the limit")]
    TooLong {
        /// How long.
        bytes: usize,
    },
    /// Its elements are too deep.
    #[error("its elements are more than {STEP_XML_DEPTH_MAX} deep")]
    TooDeep,
    /// There is no element.
    #[error("there is no element in it")]
    Empty,
    /// It is not well-formed.
    #[error("at byte {at}: {message}")]
    Xml {
        /// Where.
        at: usize,
        /// What is wrong.
        message: String,
    },
    /// Something that a step has is not there.
    #[error("<{element}> has no {what}")]
    Missing {
        /// The element.
        element: String,
        /// What is not there.
        what: &'static str,
    },
    /// A value is not what it has to be.
    #[error("<{element}> has a bad {what}: `{value}`")]
    Bad {
        /// The element.
        element: String,
        /// Which value.
        what: &'static str,
        /// What it is.
        value: String,
    },
    /// It is of a version that this program does not know.
    #[error("protocol {0} is not known here; this program reads {known}", known = crate::step::PROTOCOL)]
    Protocol(u32),
}
