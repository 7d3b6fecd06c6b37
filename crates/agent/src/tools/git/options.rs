//! The options of git that the tool passes on, as data.
//!
//! Git's own parser differs between subcommands: a letter that takes a value here is a flag there. So every subcommand has
//! a list of its options and of what they take, an option that is not in the list is refused, and arguments are passed on in
//! a form that can only be read in one way. Options that run a program, or that read or write other files, are in no list.

/// A subcommand and its options, separated by blanks.
pub(super) struct GitSubcommand {
    pub(super) name: &'static str,
    pub(super) kind: GitSubcommandKind,
    options: &'static [&'static str],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GitSubcommandKind {
    Reads,
    Changes,
    UsesNetwork,
}

/// The form of an option's value. In the lists, `-q` is a flag, `-m=` takes text, `-F=PATH` the path of a file,
/// `--stat[=]` optional text that is attached to it, and `-#` stands for numbers such as `-5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OptionValue {
    None,
    Text,
    Path,
    Optional,
}

/// An argument, as git will read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GitArgument {
    /// A flag, or an option with text attached to it.
    Option(String),
    /// An option with a path.
    PathOption { option: String, path: String },
    /// A revision, a path or a name.
    Operand(String),
    /// The `--` before paths.
    Separator,
}

const DIFF: &str = "-p -u --patch -s --no-patch -U= --unified= -W --function-context --inter-hunk-context= --raw -z \
    --patch-with-stat --stat[=] --numstat --shortstat --dirstat[=] --summary --compact-summary --name-only --name-status \
    --word-diff[=] --word-diff-regex= --color-words[=] --color[=] --no-color --color-moved[=] --no-color-moved --minimal \
    --patience --histogram --diff-algorithm= --anchored= --indent-heuristic --no-indent-heuristic -M[=] --find-renames[=] \
    -C[=] --find-copies[=] --find-copies-harder --no-renames -B[=] --break-rewrites[=] -D --irreversible-delete -l= \
    --diff-filter= -S= -G= --pickaxe-all --pickaxe-regex -R --relative[=] --no-relative -a --text -b \
    --ignore-space-change -w --ignore-all-space --ignore-space-at-eol --ignore-cr-at-eol --ignore-blank-lines \
    --ignore-matching-lines= -I= --exit-code --quiet -q --check --full-index --binary --abbrev[=] --no-abbrev \
    --src-prefix= --dst-prefix= --no-prefix --default-prefix --line-prefix= --ita-invisible-in-index --ignore-submodules[=] \
    --no-ext-diff --no-textconv -1 -2 -3 -0 --base --ours --theirs --merge-base --cached --staged";
const LOG: &str = "-# -n= --max-count= --skip= --since= --after= --until= --before= --since-as-filter= --author= --committer= \
    --grep= --grep-reflog= --all-match --invert-grep -i --regexp-ignore-case -E --extended-regexp -F --fixed-strings \
    -P --perl-regexp --basic-regexp --remove-empty --merges --no-merges --min-parents= --max-parents= --first-parent \
    --exclude-first-parent-only --not --all --branches[=] --tags[=] --remotes[=] --glob= --exclude= --reflog --ignore-missing \
    --cherry-mark --cherry-pick --cherry --left-only --right-only -g --walk-reflogs --merge --boundary --simplify-by-decoration \
    --show-pulls --full-history --dense --sparse --simplify-merges --ancestry-path[=] --date-order --author-date-order \
    --topo-order --reverse --no-walk[=] --do-walk --pretty[=] --format= --abbrev-commit --no-abbrev-commit --oneline \
    --encoding= --expand-tabs[=] --no-expand-tabs --notes[=] --no-notes --relative-date --date= --parents --children \
    --left-right --graph --no-graph --show-linear-break[=] --decorate[=] --no-decorate --decorate-refs= \
    --decorate-refs-exclude= --clear-decorations --source --mailmap --no-mailmap --use-mailmap --log-size -L= --follow \
    -m -c --cc --dd --diff-merges= --no-diff-merges --combined-all-paths -t --count --objects";
const MERGING: &str = "-n --no-commit --commit --ff --no-ff --ff-only --squash --no-squash --edit --no-edit --cleanup= --stat \
    --no-stat --log[=] --no-log --signoff --no-signoff -X= --strategy-option= --no-gpg-sign --allow-unrelated-histories \
    --autostash --no-autostash --no-verify --verify --abort --continue --quit --no-rerere-autoupdate --no-progress -q --quiet \
    -v --verbose";
const PICKING: &str = "-n --no-commit -m= --mainline= -s --signoff --ff --edit --no-edit --cleanup= --allow-empty \
    --allow-empty-message --keep-redundant-commits --empty= -X= --strategy-option= --no-gpg-sign --abort --continue --skip \
    --quit --no-rerere-autoupdate";
const SWITCHING: &str = "-f --force -d --detach -q --quiet -m --merge --conflict= -t --track[=] --no-track --guess --no-guess \
    --orphan= --ignore-other-worktrees --overwrite-ignore --no-overwrite-ignore --progress --no-progress";
const FETCHING: &str = "--all --no-all -a --append --atomic --depth= --deepen= --shallow-since= --shallow-exclude= --unshallow \
    --update-shallow --negotiation-tip= --dry-run -f --force -k --keep -p --prune --prune-tags -t --tags --no-tags \
    --no-recurse-submodules -j= --jobs= -q --quiet -v --verbose --progress --no-progress -4 --ipv4 -6 --ipv6 --filter=";

const fn reads(name: &'static str, options: &'static [&'static str]) -> GitSubcommand {
    GitSubcommand { name, kind: GitSubcommandKind::Reads, options }
}

const fn changes(name: &'static str, options: &'static [&'static str]) -> GitSubcommand {
    GitSubcommand { name, kind: GitSubcommandKind::Changes, options }
}

const fn uses_network(name: &'static str, options: &'static [&'static str]) -> GitSubcommand {
    GitSubcommand { name, kind: GitSubcommandKind::UsesNetwork, options }
}

pub(super) const SUBCOMMANDS: &[GitSubcommand] = &[
    reads(
        "status",
        &[
            "-s --short -b --branch --show-stash --porcelain[=] --long -v --verbose -u[=] --untracked-files[=] \
          --ignore-submodules[=] --ignored[=] -z --no-column --ahead-behind --no-ahead-behind --renames --no-renames \
          -M[=] --find-renames[=]",
        ],
    ),
    reads("diff", &[DIFF]),
    reads("log", &[LOG, DIFF]),
    reads("show", &[LOG, DIFF]),
    reads(
        "blame",
        &[
            "-b --root --show-stats -L= -l -t --reverse --first-parent -p --porcelain --line-porcelain --incremental --date= \
          -M[=] -C[=] --ignore-rev= --ignore-revs-file=PATH --color-lines --color-by-age -c -n --show-number -f --show-name \
          -e --show-email -s -w --abbrev= --minimal --since= --no-progress",
        ],
    ),
    reads(
        "rev-parse",
        &[
            "--verify -q --quiet --short[=] --abbrev-ref[=] --symbolic --symbolic-full-name --not --all --branches[=] \
          --tags[=] --remotes[=] --glob= --exclude= --disambiguate= --show-toplevel --show-prefix --show-cdup \
          --show-superproject-working-tree --show-object-format[=] --is-inside-work-tree --is-inside-git-dir \
          --is-bare-repository --is-shallow-repository --absolute-git-dir --git-common-dir --since= --until= \
          --revs-only --no-revs --flags --no-flags",
        ],
    ),
    reads("rev-list", &[LOG]),
    reads(
        "ls-files",
        &[
            "-c --cached -d --deleted -m --modified -o --others -i --ignored -s --stage -u --unmerged -k --killed \
          --resolve-undo --directory --no-empty-directory --eol --deduplicate -x= --exclude= --exclude-standard \
          --error-unmatch -t -v -f --full-name --abbrev[=] --sparse --format= -z",
        ],
    ),
    reads(
        "ls-tree",
        &[
            "-d -r -t -l --long -z --name-only --name-status --object-only --full-name --full-tree --abbrev[=] --format=",
        ],
    ),
    reads(
        "describe",
        &[
            "--all --tags --contains --abbrev= --candidates= --exact-match --debug --long --match= --exclude= --always \
          --first-parent --dirty[=] --broken[=]",
        ],
    ),
    reads("merge-base", &["-a --all --octopus --independent --is-ancestor --fork-point"]),
    reads(
        "reflog",
        &[
            LOG,
            "--expire= --expire-unreachable= --updateref --rewrite --stale-fix --dry-run --verbose",
        ],
    ),
    changes(
        "add",
        &[
            "-A --all --no-all -u --update -n --dry-run -v --verbose -f --force -N --intent-to-add --refresh \
          --ignore-errors --ignore-missing --ignore-removal --no-ignore-removal --no-warn-embedded-repo --renormalize \
          --chmod= --sparse",
        ],
    ),
    changes(
        "commit",
        &[
            "-a --all -C= --reuse-message= --fixup= --squash= --reset-author --short --branch --porcelain --long -z \
          -F=PATH --file=PATH --author= --date= -m= --message= -s --signoff --no-signoff --trailer= -n --no-verify --verify \
          --allow-empty --allow-empty-message --cleanup= --no-edit --edit --amend --no-post-rewrite -i --include -o --only \
          -u[=] --untracked-files[=] -v --verbose -q --quiet --dry-run --status --no-status --no-gpg-sign",
        ],
    ),
    changes("switch", &[SWITCHING, "-c= --create= -C= --force-create= --discard-changes"]),
    changes("checkout", &[SWITCHING, "-b= -B= -l --ours -2 --theirs -3 --overlay --no-overlay"]),
    changes(
        "restore",
        &[
            "-s= --source= -S --staged -W --worktree -q --quiet --progress --no-progress --ours --theirs -m --merge \
          --conflict= --ignore-unmerged --ignore-skip-worktree-bits --overlay --no-overlay",
        ],
    ),
    changes(
        "stash",
        &[
            DIFF,
            "--keep-index -k --no-keep-index --include-untracked --no-include-untracked --all --only-untracked \
          --index -m= --message=",
        ],
    ),
    changes(
        "branch",
        &[
            "-d --delete -D -m --move -M -c --copy -C -f --force -i --ignore-case --no-column --color[=] --no-color -r \
          --remotes -a --all -l --list --show-current -v -vv --verbose -q --quiet --abbrev= --no-abbrev -t --track[=] \
          --no-track -u= --set-upstream-to= --unset-upstream --contains[=] --no-contains[=] --merged[=] --no-merged[=] \
          --sort= --points-at= --format= --create-reflog --omit-empty",
        ],
    ),
    changes(
        "tag",
        &[
            "-a --annotate -f --force -d --delete -n[=] -l --list --sort= --color[=] --no-color -i --ignore-case --omit-empty \
          --no-column --contains[=] --no-contains[=] --merged[=] --no-merged[=] --points-at[=] -m= --message= -F=PATH \
          --file=PATH --trailer= --cleanup= --create-reflog --format= --no-sign",
        ],
    ),
    changes("mv", &["-f --force -k -n --dry-run -v --verbose --sparse"]),
    changes("rm", &["-f --force -n --dry-run -r --cached --ignore-unmatch --sparse -q --quiet"]),
    changes(
        "merge",
        &[MERGING, "-m= --message= -F=PATH --file=PATH --into-name= --overwrite-ignore"],
    ),
    changes(
        "rebase",
        &[
            "--onto= --keep-base --continue --skip --abort --quit --show-current-patch --apply --empty= --no-keep-empty \
          --keep-empty --reapply-cherry-picks --no-reapply-cherry-picks --allow-empty-message -m --merge -X= \
          --strategy-option= --no-gpg-sign -q --quiet -v --verbose --stat -n --no-stat --no-verify --verify -C= --no-ff \
          --force-rebase -f --fork-point --no-fork-point --ignore-whitespace --whitespace= --committer-date-is-author-date \
          --ignore-date --reset-author-date --signoff -i --interactive -r[=] --rebase-merges[=] --no-rebase-merges \
          --autosquash --no-autosquash --autostash --no-autostash --reschedule-failed-exec --update-refs --no-update-refs \
          --root",
        ],
    ),
    changes("cherry-pick", &[PICKING, "-x"]),
    changes("revert", &[PICKING, "--reference"]),
    changes(
        "reset",
        &[
            "-q --quiet --refresh --no-refresh --soft --mixed -N --intent-to-add --hard --merge --keep",
        ],
    ),
    changes(
        "worktree",
        &[
            "-f --force -b= -B= -d --detach --checkout --no-checkout --guess-remote --no-guess-remote --track --no-track \
          --lock --reason= -n --dry-run --orphan --porcelain -q --quiet -v --verbose -z --expire= --relative-paths \
          --no-relative-paths",
        ],
    ),
    changes("init", &["-q --quiet -b= --initial-branch= --bare --object-format= --ref-format="]),
    uses_network(
        "push",
        &[
            "--all --branches --prune -n --dry-run --porcelain -d --delete --tags --follow-tags --no-signed --atomic \
          --no-atomic -u --set-upstream --force-with-lease[=] --no-force-with-lease --force-if-includes \
          --no-force-if-includes -f --force --thin --no-thin -q --quiet -v --verbose --progress --no-progress --no-verify \
          --verify --no-recurse-submodules -4 --ipv4 -6 --ipv6",
        ],
    ),
    uses_network(
        "fetch",
        &[FETCHING, "-n --set-upstream --refetch -P --write-fetch-head --no-write-fetch-head"],
    ),
    uses_network("pull", &[FETCHING, MERGING, "--rebase[=] --no-rebase -r[=] --set-upstream"]),
    uses_network(
        "clone",
        &[
            "-l --local --no-hardlinks -q --quiet -v --verbose --progress --no-progress -n --no-checkout --bare --sparse \
          --filter= --mirror -b= --branch= --revision= --depth= --shallow-since= --shallow-exclude= --single-branch \
          --no-single-branch --tags --no-tags -j= --jobs= --no-shallow-submodules --ref-format= -4 --ipv4 -6 --ipv6",
        ],
    ),
    uses_network(
        "remote",
        &[
            "-v --verbose -f --fetch -t= --track= -m= --master= --tags --no-tags --push --all --add --delete -n --dry-run \
          -p --prune -a --auto -d",
        ],
    ),
    uses_network(
        "ls-remote",
        &[
            "-b --branches -h --heads -t --tags --refs -q --quiet --exit-code --get-url --symref --sort=",
        ],
    ),
];

impl GitSubcommand {
    pub(super) fn find(name: &str) -> Option<&'static GitSubcommand> {
        SUBCOMMANDS.iter().find(|subcommand| subcommand.name == name)
    }

    /// Parses the arguments after the subcommand.
    pub(super) fn parse_arguments(&self, args: &[String]) -> Result<Vec<GitArgument>, String> {
        let mut parsed = Vec::new();
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            if arg == "--" {
                parsed.push(GitArgument::Separator);
                for path in rest.by_ref() {
                    // Should git take the `--` for the value of an option, this must not become one.
                    if path.starts_with('-') {
                        return Err(format!(
                            "`{path}` begins with a dash; write a path as `./{path}`"
                        ));
                    }
                    parsed.push(GitArgument::Operand(path.clone()));
                }
            } else if arg.starts_with("--") {
                parsed.push(self.parse_long(arg, &mut rest)?);
            } else if self.is_number(arg) {
                parsed.push(GitArgument::Option(arg.clone()));
            } else if let Some(letters) = arg.strip_prefix('-').filter(|rest| !rest.is_empty()) {
                self.parse_letters(letters, &mut rest, &mut parsed)?;
            } else {
                parsed.push(GitArgument::Operand(arg.clone()));
            }
        }
        Ok(parsed)
    }

    fn words(&self) -> impl Iterator<Item = &'static str> {
        self.options.iter().flat_map(|list| list.split_ascii_whitespace())
    }

    /// What an option takes; `None` if the option is not in the list.
    fn value_of(&self, option: &str) -> Option<OptionValue> {
        self.words().find_map(|word| match word.strip_prefix(option)? {
            "" => Some(OptionValue::None),
            "=" => Some(OptionValue::Text),
            "=PATH" => Some(OptionValue::Path),
            "[=]" => Some(OptionValue::Optional),
            _ => None,
        })
    }

    fn is_number(&self, arg: &str) -> bool {
        let digits = arg.strip_prefix('-').unwrap_or_default();
        !digits.is_empty()
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && self.words().any(|word| word == "-#")
    }

    fn parse_long<'a>(
        &self,
        arg: &str,
        rest: &mut impl Iterator<Item = &'a String>,
    ) -> Result<GitArgument, String> {
        let (name, value) = match arg.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (arg, None),
        };
        let form = self.value_of(name).ok_or_else(|| self.refusal(name))?;
        match (form, value) {
            (OptionValue::None, Some(_)) => Err(format!("the option `{name}` takes no value")),
            (OptionValue::None | OptionValue::Optional, None) => {
                Ok(GitArgument::Option(name.to_owned()))
            }
            (OptionValue::Optional, Some(value)) => {
                Ok(GitArgument::Option(format!("{name}={value}")))
            }
            (OptionValue::Text | OptionValue::Path, value) => {
                let value = value.or_else(|| rest.next().cloned());
                let value = value.ok_or_else(|| format!("the option `{name}` needs a value"))?;
                Ok(with_value(form, format!("{name}={value}"), value))
            }
        }
    }

    /// Parses short options behind one dash. The last of them may take a value, attached or as the next argument.
    fn parse_letters<'a>(
        &self,
        letters: &str,
        rest: &mut impl Iterator<Item = &'a String>,
        parsed: &mut Vec<GitArgument>,
    ) -> Result<(), String> {
        let mut chars = letters.chars();
        while let Some(letter) = chars.next() {
            let name = format!("-{letter}");
            let form = self.value_of(&name).ok_or_else(|| self.refusal(&name))?;
            let attached = chars.as_str();
            match form {
                OptionValue::None => {
                    parsed.push(GitArgument::Option(name));
                    continue;
                }
                OptionValue::Optional => {
                    parsed.push(GitArgument::Option(format!("{name}{attached}")));
                }
                OptionValue::Text | OptionValue::Path => {
                    let value = Some(attached).filter(|text| !text.is_empty()).map(str::to_owned);
                    let value =
                        value.or_else(|| rest.next().cloned().filter(|text| !text.is_empty()));
                    let value =
                        value.ok_or_else(|| format!("the option `{name}` needs a value"))?;
                    parsed.push(with_value(form, format!("{name}{value}"), value));
                }
            }
            return Ok(());
        }
        Ok(())
    }

    fn refusal(&self, option: &str) -> String {
        let known = self.words().map(|word| word.split(['=', '[']).next().unwrap_or(word));
        let near = (option.len() > 2)
            .then(|| repertoire_skill::name::nearest_name(option, known))
            .flatten();
        let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        format!(
            "`git {}` of this tool has no option `{option}`: options that run programs or leave the folder are refused, and \
             so are abbreviations{hint}",
            self.name
        )
    }
}

fn with_value(form: OptionValue, option: String, path: String) -> GitArgument {
    match form {
        OptionValue::Path => GitArgument::PathOption { option, path },
        _ => GitArgument::Option(option),
    }
}

impl GitArgument {
    /// The argument as it is passed to git.
    pub(super) fn into_text(self) -> String {
        match self {
            GitArgument::Option(text) | GitArgument::Operand(text) => text,
            GitArgument::PathOption { option, .. } => option,
            GitArgument::Separator => "--".to_owned(),
        }
    }

    /// The text that can name a file.
    pub(super) fn path(&self) -> Option<&str> {
        match self {
            GitArgument::Operand(path) | GitArgument::PathOption { path, .. } => Some(path),
            GitArgument::Option(_) | GitArgument::Separator => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Result<&str, &str>) {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let subcommand = GitSubcommand::find(&words[0]).unwrap();
        let parsed = subcommand.parse_arguments(&words[1..]);
        let parsed = parsed.map(|parsed| {
            parsed.into_iter().map(GitArgument::into_text).collect::<Vec<_>>().join(" ")
        });
        match expected {
            Ok(text) => assert_eq!(parsed.as_deref(), Ok(text), "{line}"),
            Err(part) => {
                assert!(parsed.clone().is_err_and(|e| e.contains(part)), "{line}: {parsed:?}")
            }
        }
    }

    #[test]
    fn options_are_passed_on_in_a_form_with_one_meaning() {
        check("log -5 --oneline -Sword -- a b", Ok("-5 --oneline -Sword -- a b"));
        check("log --grep x -n 3", Ok("--grep=x -n3"));
        check("commit -qam text", Ok("-q -a -mtext"));
        check("commit -m -- -a", Ok("-m-- -a"));
        check("diff --stat=80 -M50 HEAD~1", Ok("--stat=80 -M50 HEAD~1"));
        check("checkout -", Ok("-"));
        check("show -m HEAD", Ok("-m HEAD"));
        check("rebase -m --onto main a", Ok("-m --onto=main a"));
    }

    #[test]
    fn a_letter_is_a_flag_or_takes_a_value_as_the_subcommand_has_it() {
        check("rebase -mx true", Err("no option `-x`"));
        check("rebase -nx true", Err("no option `-x`"));
        check("clone -nu x . y", Err("no option `-u`"));
        check("fetch -o -- --upload-pack=x .", Err("no option `-o`"));
        check("cherry-pick -m -- -x", Ok("-m-- -x"));
    }

    #[test]
    fn unknown_and_abbreviated_options_are_refused() {
        check("diff --outp=x", Err("no option `--outp`"));
        check("log --onelin", Err("did you mean `--oneline`"));
        check("commit --amend=x", Err("takes no value"));
        check("commit -m", Err("needs a value"));
        check("status -5", Err("no option `-5`"));
    }

    #[test]
    fn no_list_has_an_option_that_runs_a_program_or_leaves_the_folder() {
        const REFUSED: &[&str] = &[
            "--upload-pack",
            "--receive-pack",
            "--exec",
            "--exec-path",
            "--ext-diff",
            "--textconv",
            "--output",
            "--config",
            "--template",
            "--separate-git-dir",
            "--reference-if-able",
            "--git-dir",
            "--work-tree",
            "--no-index",
            "--open-files-in-pager",
            "--recurse-submodules",
            "--recursive",
            "--gpg-sign",
            "--edit-description",
            "--strategy",
            "--show-signature",
            "--server-option",
        ];
        for subcommand in SUBCOMMANDS {
            for word in subcommand.words() {
                let name = word.split(['=', '[']).next().unwrap();
                assert!(!REFUSED.contains(&name), "{} {name}", subcommand.name);
            }
        }
    }
}
