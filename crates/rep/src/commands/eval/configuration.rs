//! Parses a selection configuration given on the command line: `threshold=0.5,without=meaning`.

use repertoire_select::{SelectionSettings, SelectionStage, StageSet};

use crate::commands::matching::parse_stage;

const KEYS: &str = "threshold, max_skills, without and only";

/// Overrides of the configured selection settings, with the text that they were parsed from.
#[derive(Clone, Debug)]
pub(super) struct EvalOverrides {
    pub(super) typed: String,
    threshold: Option<f32>,
    max_skills: Option<usize>,
    stages: StageSet,
}

impl EvalOverrides {
    /// Returns the configured settings with the overrides applied.
    pub(super) fn apply_to(&self, configured: &SelectionSettings) -> SelectionSettings {
        SelectionSettings {
            threshold: self.threshold.unwrap_or(configured.threshold),
            max_skills: self.max_skills.unwrap_or(configured.max_skills),
            stages: self.stages,
            ..*configured
        }
    }
}

pub(super) fn parse_overrides(text: &str) -> Result<EvalOverrides, String> {
    let mut parsed = EvalOverrides {
        typed: text.to_owned(),
        threshold: None,
        max_skills: None,
        stages: StageSet::ALL,
    };
    for part in text.split(',').filter(|_| text != "default") {
        let (key, value) = part
            .split_once('=')
            .ok_or_else(|| format!("`{part}` is not KEY=VALUE; the keys are {KEYS}"))?;
        match key.trim() {
            "threshold" => parsed.threshold = Some(parse_share(value)?),
            "max_skills" => parsed.max_skills = Some(parse_number(value)?),
            "without" => {
                parsed.stages =
                    parse_stages(value)?.into_iter().fold(parsed.stages, StageSet::without);
            }
            "only" => parsed.stages = StageSet::only(parse_stages(value)?),
            key => return Err(format!("there is no key `{key}`; the keys are {KEYS}")),
        }
    }
    Ok(parsed)
}

fn parse_share(value: &str) -> Result<f32, String> {
    let share = value.trim().parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("`{value}` is not a threshold; it lies between 0 and 1"))
}

fn parse_number(value: &str) -> Result<usize, String> {
    let number = value.trim().parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("`{value}` is not a number from 1"))
}

/// Parses stage names separated by `+` or `|`.
fn parse_stages(value: &str) -> Result<Vec<SelectionStage>, String> {
    let stage = |name: &str| parse_stage(name.trim()).map_err(|error| format!("`{name}`: {error}"));
    value.split(['+', '|']).map(stage).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_changes_that_and_nothing_else() {
        let default = SelectionSettings::default();
        let given = |text: &str| parse_overrides(text).unwrap().apply_to(&default);
        assert_eq!(given("default"), default);
        let check = |text: &str, expect: SelectionSettings| {
            assert_eq!(given(text), expect);
        };
        check(
            "threshold=0.5,max_skills=1",
            SelectionSettings { threshold: 0.5, max_skills: 1, ..default },
        );
        let stages =
            StageSet::ALL.without(SelectionStage::Meaning).without(SelectionStage::Context);
        check("without=meaning|context", SelectionSettings { stages, ..default });
        check("without=meaning+context", SelectionSettings { stages, ..default });
        let stages = StageSet::only([SelectionStage::Words]);
        check("only=words+meaning,without=meaning", SelectionSettings { stages, ..default });
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        let check = |text: &str, expect: &str| {
            let error = parse_overrides(text).unwrap_err();
            assert!(error.contains(expect), "{error}");
        };
        check("", "is not KEY=VALUE");
        check("threshold=2", "between 0 and 1");
        check("threshold=NaN", "between 0 and 1");
        check("max_skills=0", "not a number from 1");
        check("without=magic", "`magic`: there is no such stage");
        check("mood=good", "no key `mood`");
    }
}
