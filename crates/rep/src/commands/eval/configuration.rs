//! A configuration of selection as it is typed: `threshold=0.5,without=meaning`.

use repertoire_select::{Settings, Stage, Stages};

const KEYS: &str = "threshold, max_skills, without and only";

/// Settings, and how they were typed.
#[derive(Clone, Debug)]
pub(super) struct Configuration {
    pub(super) typed: String,
    pub(super) settings: Settings,
}

pub(super) fn parse(text: &str) -> Result<Configuration, String> {
    let mut settings = Settings::default();
    for part in text.split(',').filter(|_| text != "default") {
        let (key, value) = part
            .split_once('=')
            .ok_or_else(|| format!("`{part}` is not KEY=VALUE; the keys are {KEYS}"))?;
        match key.trim() {
            "threshold" => settings.threshold = share(value)?,
            "max_skills" => settings.max_skills = number(value)?,
            "without" => {
                settings.stages = stages(value)?.into_iter().fold(settings.stages, Stages::without);
            }
            "only" => settings.stages = Stages::only(stages(value)?),
            key => return Err(format!("there is no key `{key}`; the keys are {KEYS}")),
        }
    }
    Ok(Configuration { typed: text.to_owned(), settings })
}

fn share(value: &str) -> Result<f32, String> {
    let share = value.trim().parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("`{value}` is not a threshold; it lies between 0 and 1"))
}

fn number(value: &str) -> Result<usize, String> {
    let number = value.trim().parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("`{value}` is not a number from 1"))
}

/// Stages with `+` between them, or `|` for those who quote it.
fn stages(value: &str) -> Result<Vec<Stage>, String> {
    let stage = |name: &str| {
        Stage::from_name(name.trim()).ok_or_else(|| {
            let names = Stage::ALL.map(Stage::as_str).join(", ");
            format!("there is no stage `{name}`; there are {names}")
        })
    };
    value.split(['+', '|']).map(stage).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_changes_that_and_nothing_else() {
        let default = Settings::default();
        assert_eq!(parse("default").unwrap().settings, default);
        let check = |text: &str, expect: Settings| {
            assert_eq!(parse(text).unwrap().settings, expect);
        };
        check("threshold=0.5,max_skills=1", Settings { threshold: 0.5, max_skills: 1, ..default });
        let stages = Stages::ALL.without(Stage::Meaning).without(Stage::Context);
        check("without=meaning|context", Settings { stages, ..default });
        check("without=meaning+context", Settings { stages, ..default });
        let stages = Stages::only([Stage::Words]);
        check("only=words+meaning,without=meaning", Settings { stages, ..default });
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        let check = |text: &str, expect: &str| {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expect), "{error}");
        };
        check("", "is not KEY=VALUE");
        check("threshold=2", "between 0 and 1");
        check("threshold=NaN", "between 0 and 1");
        check("max_skills=0", "not a number from 1");
        check("without=magic", "no stage `magic`");
        check("mood=good", "no key `mood`");
    }
}
