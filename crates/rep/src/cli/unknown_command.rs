//! Words that are no commands: what to use instead.

use std::ffi::OsString;

use clap::Command;
use repertoire_skill::name::nearest_name;

use super::build_clap_command;
use super::old_names::OLD_NAMES;
use crate::failure::CliFailure;
use crate::ui::quote_argument;

/// What a word that other tools use as a command would do.
#[derive(Clone, Copy)]
enum MissingCommand {
    Install,
    Update,
    Remove,
    Search,
}

const WORDS: [(&str, MissingCommand); 12] = [
    ("install", MissingCommand::Install),
    ("add", MissingCommand::Install),
    ("i", MissingCommand::Install),
    ("update", MissingCommand::Update),
    ("upgrade", MissingCommand::Update),
    ("remove", MissingCommand::Remove),
    ("uninstall", MissingCommand::Remove),
    ("rm", MissingCommand::Remove),
    ("delete", MissingCommand::Remove),
    ("search", MissingCommand::Search),
    ("find", MissingCommand::Search),
    ("grep", MissingCommand::Search),
];

/// Returns the failure for a command line that starts with a word that is no command.
pub(super) fn explain(words: &[OsString]) -> CliFailure {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let word = words.first().map(String::as_str).unwrap_or_default();
    let failure = CliFailure::wrong_usage(format!("there is no command `rep {word}`"));
    let missing = WORDS.iter().find(|(known, _)| *known == word);
    match missing {
        Some((_, MissingCommand::Install)) => CliFailure::wrong_usage(format!(
            "`rep {word}` does not exist yet: rep cannot install skills"
        ))
        .hint(
            "Copy or `git clone` the skill's folder into `.agents/skills`, or use \
             `openskills install OWNER/REPO`; then check with `rep list`.",
        ),
        Some((_, MissingCommand::Update)) => CliFailure::wrong_usage(format!(
            "`rep {word}` does not exist yet: rep cannot update skills"
        ))
        .hint("Run `git pull` in the folder that you cloned, or `openskills update`; then check with `rep list`."),
        Some((_, MissingCommand::Remove)) => CliFailure::wrong_usage(format!(
            "`rep {word}` does not exist yet: rep cannot remove skills"
        ))
        .hint("Delete the skill's folder: `rep show NAME` prints its path; then check with `rep list`.")
        .hint("To remove a run, use `rep runs rm RUN`."),
        Some((_, MissingCommand::Search)) => {
            let rest = words.get(1..).unwrap_or_default();
            let rest: Vec<&str> = rest.iter().map(String::as_str).filter(|word| !word.starts_with('-')).collect();
            let (task, filter) = match rest.as_slice() {
                [] => ("\"TASK\"".to_owned(), "WORD".to_owned()),
                [first, ..] => (quote_argument(&rest.join(" ")), quote_argument(first)),
            };
            failure
                .hint(format!("To pick the skills for a task, run `rep match {task}`."))
                .hint(format!("To filter the list of skills by a word, run `rep list {filter}`."))
        }
        None => match suggest(word) {
            Some(near) => failure.hint(format!("Did you mean `rep {near}`?")),
            None => failure,
        }
        .hint("`rep --help` lists the commands."),
    }
}

/// Returns the command whose name is nearest, by its new name.
fn suggest(word: &str) -> Option<String> {
    let command = build_clap_command();
    let visible = command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(Command::get_name);
    let old = OLD_NAMES.iter().map(|(old, _)| *old);
    let near = nearest_name(word, visible.chain(old))?;
    let new = OLD_NAMES.iter().find(|(old, _)| *old == near).map(|(_, new)| *new);
    Some(new.unwrap_or(near).to_owned())
}
