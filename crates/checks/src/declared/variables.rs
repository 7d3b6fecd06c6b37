//! The environment variables that a check may set, as an allow-list.
//!
//! A check may set variables that change what a program prints, logs or counts. Variables that
//! change how programs are found, loaded or configured are refused for every source of checks,
//! because they would also affect the engine's own programs. This is no restriction in practice: a
//! command can set any variable for itself, inside the sandbox.

/// Names that every check may set. A trailing `*` matches any suffix.
pub const HARMLESS_VARIABLES: &[&str] = &[
    "APP_*",
    "CARGO_BUILD_JOBS",
    "CARGO_INCREMENTAL",
    "CARGO_NET_OFFLINE",
    "CARGO_TERM_COLOR",
    "CARGO_TERM_VERBOSE",
    "CI",
    "CI_*",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "DATABASE_URL",
    "DEBUG",
    "DO_NOT_TRACK",
    "FORCE_COLOR",
    "GOMAXPROCS",
    "HOST",
    "INSTA_UPDATE",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "LINES",
    "LOG_LEVEL",
    "MIX_ENV",
    "NODE_ENV",
    "NO_COLOR",
    "OMP_NUM_THREADS",
    "PORT",
    "PROPTEST_CASES",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "PYTHONIOENCODING",
    "PYTHONUNBUFFERED",
    "PYTHONUTF8",
    "RACK_ENV",
    "RAILS_ENV",
    "REDIS_URL",
    "RUST_BACKTRACE",
    "RUST_LIB_BACKTRACE",
    "RUST_LOG",
    "RUST_TEST_THREADS",
    "SOURCE_DATE_EPOCH",
    "SQLX_OFFLINE",
    "TERM",
    "TEST_*",
    "TZ",
    "VERBOSE",
];

/// Names that no check may set and no configuration can allow, except those in
/// [`HARMLESS_VARIABLES`]. A `*` at the start or the end matches anything. Compared in upper case.
const FORBIDDEN_VARIABLES: &[&str] = &[
    // Locations of programs and their files.
    "*PATH",
    "*PATH_*",
    "HOME",
    "*_HOME",
    "*_ROOT",
    "*_PREFIX",
    "TMPDIR",
    "TMP",
    "TEMP",
    "PWD",
    "OLDPWD",
    "USER",
    "LOGNAME",
    "USERPROFILE",
    "XDG_*",
    // The dynamic loader and the C library.
    "LD_*",
    "DYLD_*",
    "*PRELOAD*",
    "GLIBC_*",
    "GCONV_*",
    "MALLOC_*",
    "HOSTALIASES",
    "LOCALDOMAIN",
    "RES_OPTIONS",
    "RESOLV_*",
    "TZDIR",
    // Shells.
    "BASH*",
    "ENV",
    "IFS",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "SHELL",
    "SHELLOPTS",
    "ZDOTDIR",
    // Interpreters and virtual machines.
    "BUN_*",
    "COMPLUS_*",
    "CORECLR_*",
    "DENO_*",
    "DOTNET_*",
    "ELIXIR_*",
    "ERL_*",
    "JAVA_*",
    "_JAVA_*",
    "JDK_*",
    "JULIA_*",
    "LUA_*",
    "MONO_*",
    "NODE_*",
    "PERL*",
    "PHP*",
    "PYTHON*",
    "RUBY*",
    "R_*",
    // Compilers, build tools and package managers.
    "AR",
    "AS",
    "BUNDLE_*",
    "CARGO*",
    "CC",
    "CPP",
    "CXX",
    "GEM_*",
    "GO*",
    "GRADLE_*",
    "LD",
    "MAKE*",
    "MAVEN_*",
    "MFLAGS",
    "NPM_*",
    "PIP_*",
    "PNPM_*",
    "POETRY_*",
    "PYTEST_*",
    "RUSTC*",
    "RUSTDOC*",
    "RUSTUP_*",
    "UV_*",
    "YARN_*",
    "*FLAGS",
    "*OPT",
    "*OPTIONS",
    "*OPTS",
    "*_RUNNER",
    "*_WRAPPER",
    // Programs that are started by other programs.
    "BROWSER",
    "*EDITOR",
    "*PAGER",
    "*_ASKPASS",
    "LESS*",
    "VISUAL",
    // Version control, network, and the engine itself.
    "GIT_*",
    "SSH_*",
    "*_PROXY",
    "CURL_*",
    "OPENSSL_*",
    "REQUESTS_CA_BUNDLE",
    "SSL_*",
    "WGETRC",
    "REPERTOIRE_*",
];

/// The reason why a check may not set a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VariableRefusal {
    /// Not a portable name.
    #[error("a variable's name has letters, digits and `_` only, and begins with no digit")]
    Malformed,
    /// No configuration can allow it.
    #[error("it changes how programs are found, loaded or configured, so no check may set it")]
    Forbidden,
    /// Neither in the built-in list nor in the user's.
    #[error("it is not on the list of variables that checks may set")]
    NotListed,
}

/// The variables that checks may set: the built-in list and the user's additions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedVariables {
    added: Vec<String>,
}

impl AllowedVariables {
    /// The built-in list with additional names. A trailing `*` in a name matches any suffix.
    ///
    /// # Errors
    ///
    /// The first name that cannot be allowed, and the reason.
    pub fn with_added(added: Vec<String>) -> Result<Self, (String, VariableRefusal)> {
        for name in &added {
            let literal = name.strip_suffix('*').unwrap_or(name);
            let refusal = match literal {
                "" => None,
                literal if !is_well_formed(literal) => Some(VariableRefusal::Malformed),
                literal if is_forbidden(literal) => Some(VariableRefusal::Forbidden),
                _ => None,
            };
            if let Some(refusal) = refusal {
                return Err((name.clone(), refusal));
            }
        }
        Ok(AllowedVariables { added })
    }

    /// The reason why a check may not set this variable; `None` if it may.
    pub fn refusal_of(&self, name: &str) -> Option<VariableRefusal> {
        refusal_for_everyone(name).or_else(|| {
            let harmless = HARMLESS_VARIABLES.iter().copied();
            let mut listed = harmless.chain(self.added.iter().map(String::as_str));
            (!listed.any(|pattern| is_match(pattern, name))).then_some(VariableRefusal::NotListed)
        })
    }
}

/// The reason why no check may set this variable, whatever the configuration; `None` if the
/// configuration decides.
pub(super) fn refusal_for_everyone(name: &str) -> Option<VariableRefusal> {
    match (is_well_formed(name), is_forbidden(name)) {
        (false, _) => Some(VariableRefusal::Malformed),
        (true, true) => Some(VariableRefusal::Forbidden),
        (true, false) => None,
    }
}

fn is_well_formed(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn is_forbidden(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let forbidden = FORBIDDEN_VARIABLES.iter().any(|pattern| is_match(pattern, &upper));
    forbidden && !HARMLESS_VARIABLES.contains(&name)
}

fn is_match(pattern: &str, name: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(""), _) => true,
        (Some(inner), Some(_)) => name.contains(inner.trim_end_matches('*')),
        (Some(end), None) => name.ends_with(end),
        (None, Some(start)) => name.starts_with(start),
        (None, None) => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: &str) -> Option<VariableRefusal> {
        AllowedVariables::default().refusal_of(name)
    }

    #[test]
    fn variables_of_a_check_are_allowed_by_a_list() {
        for name in ["CI", "RUST_LOG", "LC_ALL", "APP_ENV", "DATABASE_URL", "NODE_ENV", "TEST_SEED"]
        {
            assert_eq!(refused(name), None, "{name}");
        }
        assert_eq!(refused("MY_FLAG"), Some(VariableRefusal::NotListed));
        let own = AllowedVariables::with_added(vec!["MY_FLAG".into(), "ACME_*".into()]).unwrap();
        assert_eq!(own.refusal_of("MY_FLAG"), None);
        assert_eq!(own.refusal_of("ACME_ENV"), None);
        assert_eq!(own.refusal_of("MY_FLAGS2"), Some(VariableRefusal::NotListed));
    }

    #[test]
    fn nothing_allows_a_variable_that_changes_how_programs_are_found_loaded_or_configured() {
        let all = AllowedVariables::with_added(vec!["*".into()]).unwrap();
        for name in [
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "LD_AUDIT",
            "DYLD_INSERT_LIBRARIES",
            "PATH",
            "Path",
            "HOME",
            "CARGO_HOME",
            "RUSTUP_HOME",
            "APP_HOME",
            "TEST_PATH",
            "TMPDIR",
            "GIT_SSH_COMMAND",
            "GIT_CONFIG_COUNT",
            "PYTHONSTARTUP",
            "PYTHONPATH",
            "PYTHONHOME",
            "PYTHONWARNINGS",
            "PERL5OPT",
            "PERL5LIB",
            "RUBYOPT",
            "RUBYLIB",
            "NODE_OPTIONS",
            "BASH_ENV",
            "ENV",
            "SHELLOPTS",
            "BASHOPTS",
            "PS4",
            "JAVA_TOOL_OPTIONS",
            "_JAVA_OPTIONS",
            "RUSTC_WRAPPER",
            "RUSTFLAGS",
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER",
            "CARGO_BUILD_RUSTC_WRAPPER",
            "GCONV_PATH",
            "MALLOC_CHECK_",
            "GLIBC_TUNABLES",
            "npm_config_script_shell",
            "https_proxy",
            "XDG_CONFIG_HOME",
            "REPERTOIRE_SANDBOX",
            "PAGER",
            "GOFLAGS",
            "MAKEFLAGS",
            "DOTNET_STARTUP_HOOKS",
        ] {
            assert_eq!(all.refusal_of(name), Some(VariableRefusal::Forbidden), "{name}");
            assert!(AllowedVariables::with_added(vec![name.to_owned()]).is_err(), "{name}");
        }
        for name in ["", "1A", "A=B", "A B", "BASH_FUNC_x%%", "Ä", "A\0"] {
            assert_eq!(all.refusal_of(name), Some(VariableRefusal::Malformed), "{name}");
        }
    }

    #[test]
    fn the_built_in_list_has_nothing_that_is_forbidden_by_its_pattern() {
        for name in HARMLESS_VARIABLES {
            let name = name.strip_suffix('*').unwrap_or(name);
            assert_eq!(refusal_for_everyone(name), None, "{name}");
        }
        assert!(HARMLESS_VARIABLES.is_sorted());
        let page = include_str!("../../../../docs/reference/checks.md");
        for name in HARMLESS_VARIABLES {
            assert!(page.contains(&format!("`{name}`")), "docs/reference/checks.md lacks {name}");
        }
    }
}
