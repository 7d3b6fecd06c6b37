//! Profiles: the order in which roots are searched, how skills are named, and which one wins a name
//! collision.
//!
//! Precedence differs between clients, so it is data here. A new client is a new table.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::terminal::printable_line;
use repertoire_text::{Diagnostic, repository};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::load::MissingDescription;
use crate::skill::Scope;

/// The clients whose search paths and rules are known.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ProfileId {
    /// Repertoire itself: all known roots, project first, but an untrusted skill never replaces a trusted
    /// one.
    #[default]
    Repertoire,
    /// The client guide of agentskills.io; `rep lint` then reports the findings of skills-ref.
    Agentskills,
    /// The npm tool OpenSkills.
    Openskills,
    /// Claude Code.
    Claude,
    /// Codex CLI.
    Codex,
    /// Gemini CLI.
    Gemini,
}

/// The directory that the path of a root is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootBase {
    /// The working directory.
    Here,
    /// The working directory and every one above it, up to the root of the git repository.
    Upwards,
    /// The user's home directory.
    Home,
    /// The root of the file system.
    System,
    /// Every plugin in Claude Code's cache.
    PluginCache,
    /// The pack that ships with Repertoire.
    Builtin,
}

/// The contents of a root.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum RootContents {
    /// Folders with a `SKILL.md`, and flat files if the profile has them.
    Skills,
    /// Flat files that define agents.
    Agents,
}

/// An entry in a profile's search order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootSpec {
    pub base: RootBase,
    /// The path relative to `base`.
    pub path: &'static str,
    pub holds: RootContents,
}

/// The rule for skills of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollisionRule {
    /// The first root in the order wins.
    FirstWins,
    /// The first wins, but an untrusted skill never wins over a trusted one.
    TrustedThenFirst,
    /// All are kept; a name that is not unique finds nothing.
    KeepAll,
}

/// The source of a skill's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamingRule {
    /// The `name` field, normalised.
    Field,
    /// The name of the folder.
    Folder,
}

/// The search paths and rules of one client.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    pub id: ProfileId,
    /// The roots in search order.
    pub roots: &'static [RootSpec],
    pub collision: CollisionRule,
    pub naming: NamingRule,
    /// True if single `*.md` files are skills.
    pub flat_files: bool,
    /// The maximum depth of skills below a root; `None` for the configured limit.
    pub depth_max: Option<usize>,
    pub missing_description: MissingDescription,
}

const fn skills_root(base: RootBase, path: &'static str) -> RootSpec {
    RootSpec { base, path, holds: RootContents::Skills }
}

const fn agents_root(base: RootBase, path: &'static str) -> RootSpec {
    RootSpec { base, path, holds: RootContents::Agents }
}

const REPERTOIRE: Profile = Profile {
    id: ProfileId::Repertoire,
    roots: &[
        skills_root(RootBase::Upwards, ".repertoire/skills"),
        skills_root(RootBase::Upwards, ".agents/skills"),
        skills_root(RootBase::Upwards, ".claude/skills"),
        skills_root(RootBase::Upwards, ".agent/skills"),
        skills_root(RootBase::Upwards, ".codex/skills"),
        skills_root(RootBase::Upwards, ".gemini/skills"),
        skills_root(RootBase::Upwards, ".github/skills"),
        agents_root(RootBase::Upwards, ".repertoire/agents"),
        agents_root(RootBase::Upwards, ".claude/agents"),
        agents_root(RootBase::Upwards, ".claude/subagents"),
        skills_root(RootBase::Home, ".repertoire/skills"),
        skills_root(RootBase::Home, ".agents/skills"),
        skills_root(RootBase::Home, ".claude/skills"),
        skills_root(RootBase::Home, ".agent/skills"),
        skills_root(RootBase::Home, ".codex/skills"),
        skills_root(RootBase::Home, ".gemini/skills"),
        agents_root(RootBase::Home, ".repertoire/agents"),
        agents_root(RootBase::Home, ".claude/agents"),
        skills_root(RootBase::PluginCache, ".claude/plugins/cache"),
        skills_root(RootBase::Builtin, ""),
    ],
    collision: CollisionRule::TrustedThenFirst,
    naming: NamingRule::Field,
    flat_files: true,
    depth_max: None,
    missing_description: MissingDescription::Skip,
};

const AGENTSKILLS: Profile = Profile {
    id: ProfileId::Agentskills,
    roots: &[
        skills_root(RootBase::Upwards, ".agents/skills"),
        skills_root(RootBase::Upwards, ".claude/skills"),
        skills_root(RootBase::Home, ".agents/skills"),
        skills_root(RootBase::Home, ".claude/skills"),
    ],
    collision: CollisionRule::FirstWins,
    flat_files: false,
    ..REPERTOIRE
};

const OPENSKILLS: Profile = Profile {
    id: ProfileId::Openskills,
    roots: &[
        skills_root(RootBase::Here, ".agent/skills"),
        skills_root(RootBase::Home, ".agent/skills"),
        skills_root(RootBase::Here, ".claude/skills"),
        skills_root(RootBase::Home, ".claude/skills"),
    ],
    collision: CollisionRule::FirstWins,
    naming: NamingRule::Folder,
    flat_files: false,
    depth_max: Some(1),
    missing_description: MissingDescription::Skip,
};

const CLAUDE: Profile = Profile {
    id: ProfileId::Claude,
    roots: &[
        skills_root(RootBase::Home, ".claude/skills"),
        skills_root(RootBase::Upwards, ".claude/skills"),
        agents_root(RootBase::Upwards, ".claude/agents"),
        agents_root(RootBase::Home, ".claude/agents"),
        skills_root(RootBase::PluginCache, ".claude/plugins/cache"),
    ],
    collision: CollisionRule::FirstWins,
    naming: NamingRule::Folder,
    flat_files: false,
    depth_max: Some(1),
    missing_description: MissingDescription::FirstParagraph,
};

const CODEX: Profile = Profile {
    id: ProfileId::Codex,
    roots: &[
        skills_root(RootBase::Upwards, ".codex/skills"),
        skills_root(RootBase::Upwards, ".agents/skills"),
        skills_root(RootBase::Home, ".codex/skills"),
        skills_root(RootBase::Home, ".agents/skills"),
        skills_root(RootBase::System, "etc/codex/skills"),
    ],
    collision: CollisionRule::KeepAll,
    naming: NamingRule::Field,
    flat_files: false,
    depth_max: Some(6),
    missing_description: MissingDescription::Skip,
};

const GEMINI: Profile = Profile {
    id: ProfileId::Gemini,
    roots: &[
        skills_root(RootBase::Here, ".agents/skills"),
        skills_root(RootBase::Here, ".gemini/skills"),
        skills_root(RootBase::Home, ".agents/skills"),
        skills_root(RootBase::Home, ".gemini/skills"),
    ],
    collision: CollisionRule::FirstWins,
    naming: NamingRule::Field,
    flat_files: false,
    depth_max: Some(1),
    missing_description: MissingDescription::Skip,
};

impl ProfileId {
    /// All profiles, in display order.
    pub const ALL: &[ProfileId] = &[
        ProfileId::Repertoire,
        ProfileId::Agentskills,
        ProfileId::Openskills,
        ProfileId::Claude,
        ProfileId::Codex,
        ProfileId::Gemini,
    ];

    /// Returns the table of the profile.
    pub fn profile(self) -> &'static Profile {
        match self {
            ProfileId::Repertoire => &REPERTOIRE,
            ProfileId::Agentskills => &AGENTSKILLS,
            ProfileId::Openskills => &OPENSKILLS,
            ProfileId::Claude => &CLAUDE,
            ProfileId::Codex => &CODEX,
            ProfileId::Gemini => &GEMINI,
        }
    }

    /// The name of the profile on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            ProfileId::Repertoire => "repertoire",
            ProfileId::Agentskills => "agentskills",
            ProfileId::Openskills => "openskills",
            ProfileId::Claude => "claude",
            ProfileId::Codex => "codex",
            ProfileId::Gemini => "gemini",
        }
    }
}

/// The directories that discovery starts from. Nothing in this crate reads the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchDirectories {
    /// The working directory.
    pub here: Utf8PathBuf,
    /// The user's home directory.
    pub home: Utf8PathBuf,
    /// The folder that the built-in pack is written to.
    pub pack: Utf8PathBuf,
}

impl SearchDirectories {
    /// Returns the root of the git repository around `here`, or `here` itself.
    pub fn project_dir(&self) -> &Utf8Path {
        repository::find_work_tree(&self.here, &self.home).unwrap_or(&self.here)
    }

    /// Returns `here` and its ancestors up to the project's folder, nearest first. A home folder is never
    /// taken for a part of a project below it.
    pub fn project_ancestors(&self) -> Vec<&Utf8Path> {
        let project = self.project_dir();
        self.here
            .ancestors()
            .take_while(|dir| dir.starts_with(project))
            .filter(|dir| *dir == self.here || *dir != self.home)
            .collect()
    }

    /// Returns the scope of a folder: the user's home is never a project.
    fn scope_of(&self, dir: &Utf8Path) -> Scope {
        if dir == self.home { Scope::User } else { Scope::Project }
    }

    /// Formats a path for people: relative to the working directory, or with `~`.
    pub fn shorten_path(&self, path: &Utf8Path) -> String {
        let below_here = path.strip_prefix(&self.here).ok().filter(|rest| *rest != "");
        let text = match (below_here, path.strip_prefix(&self.home)) {
            (Some(rest), _) => rest.to_string(),
            (None, Ok(rest)) if rest == "" => "~".to_owned(),
            (None, Ok(rest)) => format!("~/{rest}"),
            (None, Err(_)) => path.to_string(),
        };
        printable_line(&text)
    }
}

/// A directory that is scanned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    pub dir: Utf8PathBuf,
    pub scope: Scope,
    pub holds: RootContents,
    /// The plugin that the root belongs to.
    pub plugin: Option<crate::skill::PluginInfo>,
    /// True if the user named the root, so that its absence is reported.
    pub named: bool,
}

impl Root {
    /// Creates a root that the user named.
    pub fn named_by_user(dir: impl Into<Utf8PathBuf>) -> Self {
        Root {
            dir: dir.into(),
            scope: Scope::Extra,
            holds: RootContents::Skills,
            plugin: None,
            named: true,
        }
    }

    /// Creates a root of the profile's own order.
    fn from_profile(dir: Utf8PathBuf, scope: Scope, holds: RootContents) -> Self {
        Root { dir, scope, holds, plugin: None, named: false }
    }
}

impl Profile {
    /// Returns the roots of this profile in order, whether they exist or not.
    pub fn roots_at(&self, places: &SearchDirectories) -> Vec<Root> {
        self.find_roots(places).0
    }

    /// Like [`Profile::roots_at`], with findings about the search.
    pub fn find_roots(&self, places: &SearchDirectories) -> (Vec<Root>, Vec<Diagnostic>) {
        let mut out = Vec::new();
        let mut findings = Vec::new();
        let mut specs = self.roots.iter().peekable();
        while let Some(spec) = specs.next() {
            match spec.base {
                RootBase::Here => {
                    let scope = places.scope_of(&places.here);
                    out.push(Root::from_profile(places.here.join(spec.path), scope, spec.holds));
                }
                // Nearer folders win regardless of the kind of root: all roots of one folder come before
                // those of the folder above.
                RootBase::Upwards => {
                    let mut group = vec![spec];
                    while let Some(next) = specs.next_if(|next| next.base == RootBase::Upwards) {
                        group.push(next);
                    }
                    for dir in places.project_ancestors() {
                        let scope = places.scope_of(dir);
                        out.extend(group.iter().map(|spec| {
                            Root::from_profile(dir.join(spec.path), scope, spec.holds)
                        }));
                    }
                }
                RootBase::Home => out.push(Root::from_profile(
                    places.home.join(spec.path),
                    Scope::User,
                    spec.holds,
                )),
                RootBase::System => {
                    out.push(Root::from_profile(
                        Utf8Path::new("/").join(spec.path),
                        Scope::User,
                        spec.holds,
                    ));
                }
                RootBase::PluginCache => {
                    let plugins = crate::plugin::search_plugins(&places.home.join(spec.path));
                    out.extend(plugins.roots);
                    findings.extend(plugins.cut);
                }
                RootBase::Builtin => {
                    out.push(Root::from_profile(places.pack.clone(), Scope::Builtin, spec.holds))
                }
            }
        }
        let mut seen = Vec::new();
        out.retain(|root| {
            let key = (root.dir.clone(), root.holds);
            let first = !seen.contains(&key);
            seen.push(key);
            first
        });
        (out, findings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(here: &str) -> SearchDirectories {
        SearchDirectories { here: here.into(), home: "/home/u".into(), pack: "/data/pack".into() }
    }

    fn dirs(id: ProfileId, here: &str) -> Vec<String> {
        id.profile().roots_at(&places(here)).iter().map(|root| root.dir.to_string()).collect()
    }

    #[test]
    fn openskills_prefers_the_global_universal_folder_to_the_projects_claude_folder() {
        assert_eq!(
            dirs(ProfileId::Openskills, "/p"),
            [
                "/p/.agent/skills",
                "/home/u/.agent/skills",
                "/p/.claude/skills",
                "/home/u/.claude/skills"
            ]
        );
    }

    #[test]
    fn claude_puts_personal_skills_before_the_projects() {
        let dirs = dirs(ProfileId::Claude, "/p");
        assert_eq!(dirs[..2], ["/home/u/.claude/skills", "/p/.claude/skills"]);
    }

    #[test]
    fn standing_at_home_names_each_root_once_and_as_the_users_own() {
        let roots = ProfileId::Openskills.profile().roots_at(&places("/home/u"));
        let shown: Vec<_> = roots.iter().map(|root| (root.dir.as_str(), root.scope)).collect();
        assert_eq!(
            shown,
            [("/home/u/.agent/skills", Scope::User), ("/home/u/.claude/skills", Scope::User)]
        );
    }

    #[test]
    fn paths_are_shortened_for_people() {
        let places = places("/home/u/p");
        assert_eq!(places.shorten_path(Utf8Path::new("/home/u/p/a/b")), "a/b");
        assert_eq!(places.shorten_path(Utf8Path::new("/home/u/.x")), "~/.x");
        assert_eq!(places.shorten_path(Utf8Path::new("/etc")), "/etc");
    }
}
