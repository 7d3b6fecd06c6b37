//! The git configuration that applies to a repository: the user's, which is trusted, and the
//! repository's own, which is not.
//!
//! `git config --list` reads it once, outside the sandbox, since reading configuration runs no
//! programs. The user's part is written to a file for confined calls, without credentials and URLs.
//! Where no sandbox confines programs, each of the repository's settings that names a program is
//! replaced by the user's value or by a harmless one.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_sandbox::process::OutputFlow;

use super::call::GitCall;
use super::repository_dirs::RepositoryDirs;
use super::{GitClient, GitError};

#[derive(Debug, Default)]
pub(super) struct GitConfig {
    settings: Vec<GitSetting>,
    /// The file with the user's configuration for confined calls.
    pub(super) global: Option<Utf8PathBuf>,
    /// Files of the user that the configuration names.
    pub(super) readable: Vec<Utf8PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct GitSetting {
    source: GitSettingSource,
    /// Section and name are in lower case.
    key: String,
    /// `None` for a name without a value, which means `true`.
    value: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GitSettingSource {
    System,
    User,
    Repository,
}

impl GitClient {
    /// All settings with their scopes and files, as `git config --list` prints them. Includes files
    /// outside the repository, so this call is not confined.
    pub async fn configuration_with_files(&self) -> Result<Vec<u8>, GitError> {
        let args = ["config", "--list", "--includes", "--show-scope", "--show-origin", "-z"];
        let environment = self.repository_dirs()?.git_environment();
        let answer = self
            .run_checked_call(GitCall { environment, ..GitCall::for_configuration(&args) })
            .await?;
        answer.stdout_bytes().map(<[u8]>::to_vec)
    }

    /// The configuration of the repository, read on first use.
    pub(super) async fn git_config(&self, place: &RepositoryDirs) -> Result<&GitConfig, GitError> {
        self.surroundings.get_or_try_init(|| self.load_config(place)).await
    }

    /// The current configuration, not cached.
    pub(super) async fn read_config(&self, place: &RepositoryDirs) -> Result<GitConfig, GitError> {
        let args = ["config", "--list", "--includes", "--show-scope", "-z"];
        let ask =
            GitCall { environment: place.git_environment(), ..GitCall::for_configuration(&args) };
        let answer = self.run_call_unchecked(ask, &mut |_| OutputFlow::Continue).await?;
        if answer.code != 0 {
            return Err(answer.failure_error());
        }
        let settings = settings_of(&String::from_utf8_lossy(answer.stdout_bytes()?));
        Ok(GitConfig { settings, ..GitConfig::default() })
    }

    async fn load_config(&self, place: &RepositoryDirs) -> Result<GitConfig, GitError> {
        let mut surroundings = self.read_config(place).await?;
        if self.sandbox.is_enforced() {
            let home = Utf8Path::new(self.env_variable("HOME").unwrap_or("/nonexistent"));
            let folder = self.env_variable("XDG_CONFIG_HOME").map(Utf8PathBuf::from);
            let folder = folder.filter(|path| path.is_absolute());
            let folder = folder.unwrap_or_else(|| home.join(".config"));
            let (text, readable) = surroundings.user_file(home, &folder.join("git"));
            surroundings.global = Some(self.scratch_dir()?.write_file("gitconfig", &text)?);
            surroundings.readable = readable;
        }
        Ok(surroundings)
    }
}

impl GitConfig {
    /// The effective value.
    pub(super) fn effective_value(&self, key: &str) -> Option<&str> {
        let found = self.settings.iter().rev().find(|setting| setting.key == key);
        found.and_then(|setting| setting.value.as_deref())
    }

    /// The values set by the user or the system, in order.
    fn trusted_values<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        let theirs = self.settings.iter().filter(move |setting| {
            setting.source != GitSettingSource::Repository && setting.key == key
        });
        theirs.filter_map(|setting| setting.value.as_deref())
    }

    /// Replacement values for all settings of the repository that name a program: the user's own
    /// value, or one that runs nothing. If a required filter is replaced, git refuses the file.
    pub(super) fn replaced_programs(&self) -> Vec<(String, String)> {
        let mut replaced: Vec<(String, String)> = Vec::new();
        for setting in
            self.settings.iter().filter(|setting| setting.source == GitSettingSource::Repository)
        {
            let key = &setting.key;
            if replaced.iter().any(|(other, _)| other == key) {
                continue;
            }
            if is_list_of_programs(key) {
                // An empty value empties the list.
                replaced.push((key.clone(), String::new()));
                let trusted = self.trusted_values(key).map(|value| (key.clone(), value.to_owned()));
                replaced.extend(trusted);
            } else if let Some(harmless) = harmless_value(key) {
                let value = self.trusted_values(key).last().unwrap_or(harmless);
                replaced.push((key.clone(), value.to_owned()));
            }
        }
        replaced
    }

    /// The text of the user's configuration file for confined calls, and the files that it names.
    /// `folder` holds git's default files for settings that are not set.
    fn user_file(&self, home: &Utf8Path, folder: &Utf8Path) -> (String, Vec<Utf8PathBuf>) {
        let mut text = String::new();
        let mut readable = Vec::new();
        let defaults = [("core.excludesfile", "ignore"), ("core.attributesfile", "attributes")];
        for (key, default) in defaults {
            let named = self.trusted_values(key).last().map(|path| expand_home(path, home));
            let path = named.unwrap_or_else(|| folder.join(default));
            if path.is_file() {
                text.push_str(&format_setting(key, Some(path.as_str())));
                readable.push(path);
            }
        }
        let theirs =
            self.settings.iter().filter(|setting| setting.source == GitSettingSource::User);
        for setting in theirs.filter(|setting| is_passed_on(&setting.key)) {
            text.push_str(&format_setting(&setting.key, setting.value.as_deref()));
        }
        (text, readable)
    }
}

fn expand_home(path: &str, home: &Utf8Path) -> Utf8PathBuf {
    path.strip_prefix("~/").map_or_else(|| Utf8PathBuf::from(path), |rest| home.join(rest))
}

/// Parses `scope\0key\nvalue\0`, or `scope\0key\0` for a name without a value.
fn settings_of(listed: &str) -> Vec<GitSetting> {
    let fields: Vec<&str> = listed.split_terminator('\0').collect();
    fields.chunks_exact(2).filter_map(parse_setting).collect()
}

/// Parses a pair of scope and setting; `None` for settings of our own command line.
fn parse_setting(fields: &[&str]) -> Option<GitSetting> {
    let source = match fields[0] {
        "system" => GitSettingSource::System,
        "global" => GitSettingSource::User,
        "local" | "worktree" => GitSettingSource::Repository,
        _ => return None,
    };
    let (key, value) = match fields[1].split_once('\n') {
        Some((key, value)) => (key, Some(value.to_owned())),
        None => (fields[1], None),
    };
    Some(GitSetting { source, key: key.to_owned(), value })
}

/// The user's settings that the engine's calls need: identity, line endings, filters and merge
/// drivers. A name that ends with a dot stands for a whole section.
const PASSED_ON: &[&str] = &[
    "author.",
    "committer.",
    "filter.",
    "i18n.",
    "init.",
    "merge.",
    "user.",
    "core.autocrlf",
    "core.bigfilethreshold",
    "core.checkstat",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.longpaths",
    "core.precomposeunicode",
    "core.protecthfs",
    "core.protectntfs",
    "core.safecrlf",
    "core.symlinks",
    "core.trustctime",
];

fn is_passed_on(key: &str) -> bool {
    PASSED_ON
        .iter()
        .any(|name| if name.ends_with('.') { key.starts_with(name) } else { key == *name })
}

/// Formats a setting as in a git configuration file.
fn format_setting(key: &str, value: Option<&str>) -> String {
    let (section, name) = key.rsplit_once('.').unwrap_or((key, ""));
    let section = match section.split_once('.') {
        Some((section, inner)) => {
            let inner = inner.replace('\\', "\\\\").replace('"', "\\\"");
            format!("[{section} \"{inner}\"]")
        }
        None => format!("[{section}]"),
    };
    let Some(value) = value else { return format!("{section}\n\t{name}\n") };
    let value =
        value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t");
    format!("{section}\n\t{name} = \"{value}\"\n")
}

/// The value with which a setting runs nothing; `None` if the setting names no program. Settings
/// with a fixed name are disabled in `SETTINGS` of the call instead.
fn harmless_value(key: &str) -> Option<&'static str> {
    // Git's default merge.
    const MERGE: &str = "git merge-file --quiet %A %O %B";
    match key {
        _ if is_setting(key, "filter.", &["clean", "smudge", "process"]) => Some(""),
        _ if is_setting(key, "merge.", &["driver"]) => Some(MERGE),
        _ if is_setting(key, "lfs.extension.", &["clean", "smudge"]) => Some(""),
        _ if is_setting(key, "lfs.customtransfer.", &["path"]) => Some("false"),
        "lfs.standalonetransferagent" => Some(""),
        _ if is_setting(key, "remote.", &["uploadpack", "receivepack"]) => Some("false"),
        _ if is_setting(key, "remote.", &["vcs"]) => Some(""),
        _ if is_setting(key, "trailer.", &["cmd", "command"]) => Some("true"),
        // `status -v` and others convert without being asked, and an empty value is an error.
        _ if is_setting(key, "diff.", &["textconv"]) => Some("cat"),
        "core.sshcommand" => Some("ssh"),
        "core.gitproxy" => Some(""),
        _ => None,
    }
}

/// Returns true for a key whose values are programs that git runs one after the other.
fn is_list_of_programs(key: &str) -> bool {
    key == "credential.helper" || is_setting(key, "credential.", &["helper"])
}

/// Returns true for a key such as `filter.lfs.clean`: a section, any subsection, and one of the
/// names.
fn is_setting(key: &str, section: &str, names: &[&str]) -> bool {
    let name = key.strip_prefix(section).and_then(|rest| rest.rsplit_once('.'));
    name.is_some_and(|(_, name)| names.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surroundings(listed: &[(&str, &str, &str)]) -> GitConfig {
        let text: String =
            listed.iter().map(|(scope, key, value)| format!("{scope}\0{key}\n{value}\0")).collect();
        GitConfig { settings: settings_of(&text), ..GitConfig::default() }
    }

    #[test]
    fn a_program_that_the_repository_names_is_replaced_by_the_users_or_by_nothing() {
        let found = surroundings(&[
            ("global", "filter.lfs.clean", "git-lfs clean -- %f"),
            ("local", "filter.lfs.clean", "evil"),
            ("worktree", "filter.x=y.process", "evil"),
            ("local", "merge.m.driver", "evil %A"),
            ("local", "user.name", "A"),
            ("global", "credential.helper", "store"),
            ("global", "credential.helper", "cache"),
            ("local", "credential.helper", "evil"),
            ("local", "core.sshcommand", "evil"),
        ]);
        let replaced = found.replaced_programs();
        let value = |key: &str| {
            replaced.iter().find(|(other, _)| other == key).map(|(_, value)| value.as_str())
        };
        assert_eq!(value("filter.lfs.clean"), Some("git-lfs clean -- %f"));
        assert_eq!(value("filter.x=y.process"), Some(""));
        assert_eq!(value("merge.m.driver"), Some("git merge-file --quiet %A %O %B"));
        assert_eq!(value("user.name"), None);
        assert_eq!(value("core.sshcommand"), Some("ssh"));
        let helpers: Vec<&str> = replaced
            .iter()
            .filter(|(key, _)| key == "credential.helper")
            .map(|(_, value)| value.as_str())
            .collect();
        assert_eq!(helpers, ["", "store", "cache"], "the list is emptied first");
    }

    #[test]
    fn the_users_configuration_is_passed_on_without_credentials() {
        let found = surroundings(&[
            ("global", "user.name", "A \"B\" \\ C"),
            ("global", "http.https://x/.extraheader", "secret"),
            ("global", "credential.helper", "store"),
            ("global", "url.https://token@x/.insteadof", "https://x/"),
            ("global", "filter.a.b.clean", "clean"),
            ("system", "user.email", "of the system"),
            ("local", "user.email", "of the repository"),
        ]);
        let nowhere = Utf8Path::new("/nonexistent");
        let (text, _) = found.user_file(nowhere, nowhere);
        assert_eq!(
            text,
            "[user]\n\tname = \"A \\\"B\\\" \\\\ C\"\n[filter \"a.b\"]\n\tclean = \"clean\"\n"
        );
    }

    #[test]
    fn the_value_in_force_is_the_last_one() {
        let found = surroundings(&[("global", "user.name", "a"), ("local", "user.name", "b")]);
        assert_eq!(
            (found.effective_value("user.name"), found.trusted_values("user.name").last()),
            (Some("b"), Some("a"))
        );
    }
}
