//! Properties that hold for every step.

use proptest::prelude::*;

use super::super::{json, parse_xml, render_text, render_xml};
use super::arbitrary;
use crate::step::StepView;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn xml_gives_the_step_back(view in arbitrary::view()) {
        let written = render_xml(&view);
        prop_assert_eq!(parse_xml(&written), Ok(view), "{}", written);
    }

    #[test]
    fn json_gives_the_step_back(view in arbitrary::view()) {
        let read: StepView = serde_json::from_value(json(&view)).unwrap();
        prop_assert_eq!(read, view);
    }

    #[test]
    fn text_can_always_be_written(view in arbitrary::view()) {
        prop_assert!(render_text(&view).starts_with("STEP "));
    }

    #[test]
    fn xml_of_any_text_is_read_whatever_is_in_it(title in any::<String>()) {
        let view = StepView { title, ..super::last_step() };
        prop_assert!(parse_xml(&render_xml(&view)).is_ok());
    }

    #[test]
    fn reading_any_text_never_panics(text in "\\PC{0,200}|(<[a-z_/]{0,9}( a=\"[^\"]{0,3}\")?>|&[a-z#0-9]{0,4};){0,20}") {
        let _ = parse_xml(&text);
    }
}
