//! Generates `docs/reference/profiles.md`: the search orders and rules of all profiles, from their tables.

use repertoire_skill::lint::LintRuleSet;
use repertoire_skill::load::MissingDescription;
use repertoire_skill::profile::{
    CollisionRule, NamingRule, Profile, ProfileId, RootBase, RootContents, RootSpec,
};

use crate::markdown::{GENERATED, table_header, table_row};

const INTRODUCTION: &str = "\
# Profiles

A profile emulates one client: it defines the search order of roots, the rule for name collisions, and the lint rule
set. Choose one with `--profile`, or with `profile` in [the configuration](configuration.md).
[Discovery](../concepts/discovery.md) explains how roots are searched.

In the tables, `PROJECT` stands for the current folder and every folder above it up to the root of the git repository,
nearest first; `HERE` for the current folder only.
";

pub(crate) fn render_page() -> String {
    let mut out = format!("{GENERATED}{INTRODUCTION}\n");
    let columns = [
        "profile",
        "name collision",
        "name from",
        "flat `*.md` files",
        "depth",
        "missing description",
        "lint rules",
    ];
    out.push_str(&table_header(&columns));
    for id in ProfileId::ALL {
        out.push_str(&profile_row(id.profile()));
    }
    for id in ProfileId::ALL {
        out.push_str(&format!("\n## `{}`\n\n", id.as_str()));
        out.push_str(&table_header(&["order", "root", "contains", "scope"]));
        for (number, spec) in id.profile().roots.iter().enumerate() {
            let number = (number + 1).to_string();
            let (place, scope) = describe_place(spec);
            let holds = match spec.holds {
                RootContents::Skills => "skills",
                RootContents::Agents => "agents",
            };
            out.push_str(&table_row(&[&number, &place, holds, scope]));
        }
    }
    out
}

fn profile_row(profile: &Profile) -> String {
    let name = format!("[`{0}`](#{0})", profile.id.as_str());
    let collision = match profile.collision {
        CollisionRule::FirstWins => "first wins",
        CollisionRule::TrustedThenFirst => "trusted wins, then first",
        CollisionRule::KeepAll => "all kept; the bare name is ambiguous",
    };
    let naming = match profile.naming {
        NamingRule::Field => "the `name` field",
        NamingRule::Folder => "the folder's name",
    };
    let flat = if profile.flat_files { "skills" } else { "ignored" };
    let depth = match profile.depth_max {
        None => "`walk.depth_max`".to_owned(),
        Some(depth) => depth.to_string(),
    };
    let missing = match profile.missing_description {
        MissingDescription::Skip => "not loaded",
        MissingDescription::FirstParagraph => "first paragraph is used",
    };
    let rules = match LintRuleSet::from(profile.id) {
        LintRuleSet::AgentSkills => "`agentskills`",
        LintRuleSet::Claude => "`claude`",
        LintRuleSet::Repertoire => "`repertoire`",
    };
    table_row(&[&name, collision, naming, flat, &depth, missing, rules])
}

fn describe_place(spec: &RootSpec) -> (String, &'static str) {
    let path = spec.path;
    match spec.base {
        RootBase::Here => (format!("`HERE/{path}`"), "project"),
        RootBase::Upwards => (format!("`PROJECT/{path}`"), "project"),
        RootBase::Home => (format!("`~/{path}`"), "user"),
        RootBase::System => (format!("`/{path}`"), "user"),
        RootBase::PluginCache => (format!("`~/{path}/**/PLUGIN/VERSION/skills`"), "plugin"),
        RootBase::Builtin => ("the built-in pack".to_owned(), "builtin"),
    }
}
