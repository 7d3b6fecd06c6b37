//! The steps of the demo: the tour of `rep demo`, and the chapters of `rep demo CHAPTER`.

/// A command of the demo.
pub(super) struct DemoStep {
    pub(super) title: &'static str,
    /// One sentence about what the command shows.
    pub(super) about: &'static str,
    pub(super) args: &'static [&'static str],
    /// True if the command needs the project to be a git repository.
    pub(super) needs_git: bool,
    pub(super) setting: DemoSetting,
}

/// What is different while a step runs.
pub(super) enum DemoSetting {
    Usual,
    /// A variable of the environment.
    Variable(&'static str, &'static str),
    /// Uncommitted changes in the project.
    ChangedFiles,
}

/// Some steps with a subject in common.
pub(super) struct DemoChapter {
    /// The word to type: `rep demo NAME`.
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) steps: &'static [DemoStep],
}

const fn step(title: &'static str, args: &'static [&'static str], about: &'static str) -> DemoStep {
    DemoStep { title, about, args, needs_git: false, setting: DemoSetting::Usual }
}

const fn git_step(
    title: &'static str,
    args: &'static [&'static str],
    about: &'static str,
) -> DemoStep {
    DemoStep { needs_git: true, ..step(title, args, about) }
}

/// The six steps of `rep demo`.
pub(super) const TOUR: DemoChapter = DemoChapter {
    name: "tour",
    about: "Find, fix, match, why, plan, review",
    steps: &[
        step(
            "Find",
            &["list", "--scope", "project"],
            "Lists the project's skills, including those that do not load or are shadowed by another skill.",
        ),
        step(
            "Fix",
            &["lint", "--fix", ".claude/skills"],
            "Checks the skills and fixes what is safe: here an unquoted colon that makes other tools drop a skill.",
        ),
        step(
            "Match",
            &["match", "this migration locks the orders table, is the index safe?"],
            "Picks the skills that a task needs, with reasons, in a millisecond and without a model.",
        ),
        step(
            "Why",
            &["match", "write the changelog for version 2", "--why", "sql-review"],
            "Explains why a skill was not picked for a task.",
        ),
        DemoStep {
            setting: DemoSetting::Variable("REPERTOIRE_PLAN_BACKEND", "scripted:plan-agent.yaml"),
            ..git_step(
                "Plan",
                &["plan", "run", "--no-review", "--check", "test -s PLAN.md"],
                "Has an agent work through a checklist; this agent is replayed from a file, and at its first \
                 attempt it claims to be done without changing anything.",
            )
        },
        DemoStep {
            setting: DemoSetting::ChangedFiles,
            ..git_step(
                "Review",
                &["review", "--patterns-only"],
                "Reviews the uncommitted changes, here with the patterns of skills only, which needs no model.",
            )
        },
    ],
};

/// The chapters of `rep demo CHAPTER`.
pub(super) const CHAPTERS: [DemoChapter; 9] = [
    DemoChapter {
        name: "skills",
        about: "Look at skills, and hand them to agents",
        steps: &[
            step(
                "Show",
                &["show", "sql-review"],
                "Shows everything known about a skill, with the position of each field.",
            ),
            step(
                "Dependencies",
                &["show", "--deps", "auto-merge"],
                "Shows which skills a skill depends on, with versions.",
            ),
            step("Read", &["read", "release-notes"], "Prints a skill as an agent reads it."),
            step(
                "Sync",
                &["sync"],
                "Writes the list of skills into AGENTS.md; running it again changes nothing.",
            ),
        ],
    },
    DemoChapter {
        name: "run",
        about: "Have an agent do one task",
        steps: &[
            step(
                "Preview",
                &[
                    "run",
                    "--dry-run",
                    "-a",
                    "schema-keeper",
                    "is the index of this migration safe?",
                ],
                "Prints exactly what a model would be sent: instructions, skills and tools; it needs no key and sends nothing.",
            ),
            step(
                "Run",
                &[
                    "run",
                    "--backend",
                    "scripted:transcript.yaml",
                    "is the index of this migration safe?",
                ],
                "Runs the task with answers replayed from a file; with an API key, leave out `--backend`.",
            ),
            step(
                "Conversations",
                &["runs", "--kind", "conversation"],
                "Lists the conversations, which are stored and can be resumed.",
            ),
        ],
    },
    DemoChapter {
        name: "workflows",
        about: "Follow a workflow whose gates the engine decides",
        steps: &[
            step(
                "List",
                &["workflow", "list"],
                "Lists the workflows of the skills: steps as data, checked before they run.",
            ),
            step(
                "Start",
                &[
                    "workflow",
                    "start",
                    "sql-review",
                    "--id",
                    "orders-index",
                    "--param",
                    "migration=orders.sql",
                    "--format",
                    "text",
                ],
                "Starts a workflow: the agent gets one step at a time and the command that reports it.",
            ),
            step(
                "Record",
                &[
                    "workflow",
                    "record",
                    "orders-index",
                    r#"{"id":"lock","check":"no lock on orders","severity":"MUST","status":"FAIL","finding":"line 3 locks it"}"#,
                ],
                "Records what a reviewer checked, and the result.",
            ),
            step(
                "Gate",
                &["workflow", "step", "orders-index", "--outcome", "ok", "--format", "text"],
                "Tries to pass the gate: the engine computes the outcome from the records, whatever the agent claims.",
            ),
            step(
                "Repair",
                &["workflow", "step", "orders-index", "--at", "2", "--format", "text"],
                "Goes on with the step that the gate sent the work back to, with the findings.",
            ),
        ],
    },
    DemoChapter {
        name: "plans",
        about: "Work through a plan, and read its record",
        steps: &[
            step(
                "Status",
                &["plan", "status"],
                "Shows what is done in a plan, what waits, and which task is next.",
            ),
            DemoStep {
                setting: DemoSetting::Variable(
                    "REPERTOIRE_PLAN_BACKEND",
                    "scripted:plan-agent.yaml",
                ),
                ..git_step(
                    "Run",
                    &["plan", "run", "--check", "test -s PLAN.md", "--ending", "merge"],
                    "Works through the plan in a worktree of its own, with an agent replayed from a file, and merges the result.",
                )
            },
            git_step(
                "Show",
                &["runs", "show", "last"],
                "Shows what each step of the run did, took and cost.",
            ),
            git_step(
                "Replay",
                &["runs", "replay", "last"],
                "Rebuilds the run from its events and reports differences.",
            ),
        ],
    },
    DemoChapter {
        name: "reviews",
        about: "Have agents review a change, and check what they claim",
        steps: &[DemoStep {
            setting: DemoSetting::ChangedFiles,
            ..git_step(
                "Review",
                &["review", "--backend", "scripted:reviewers.yaml"],
                "Has reviewers read the change, replayed from a file; a finding must have a place in the change, and a \
                 validator must agree.",
            )
        }],
    },
    DemoChapter {
        name: "checks",
        about: "Understand failed checks, and remember what fixed them",
        steps: &[
            step(
                "Read",
                &["verify", "--read", "test-output.txt"],
                "Groups the errors in the output of a compiler and says what to fix first.",
            ),
            git_step(
                "Teach",
                &[
                    "verify",
                    "memory",
                    "teach",
                    "d1943017ed10dfab",
                    "--advice",
                    "the field is called attempts since version 2",
                ],
                "Stores a fix for the failure, by its signature; `rep plan run --self-improve` stores fixes by itself.",
            ),
            git_step(
                "Memory",
                &["verify", "memory", "show", "d19430"],
                "Shows a failure with its known fixes and how often they worked.",
            ),
        ],
    },
    DemoChapter {
        name: "github",
        about: "Preview the response to a GitHub event",
        steps: &[step(
            "Detect",
            &[
                "github",
                "detect",
                "--event",
                "github-event.json",
                "--event-name",
                "issue_comment",
                "--permission",
                "write",
            ],
            "Shows what a comment in an issue would start: the mode, the reason and the tools; outsiders' text is never \
             treated as instructions.",
        )],
    },
    DemoChapter {
        name: "mcp",
        about: "Use the skills from an agent that you already have",
        steps: &[
            step(
                "Setup",
                &["setup", "claude", "--print"],
                "Prints the entry for an agent's configuration; without `--print` it is added, and nothing else changes.",
            ),
            step(
                "Search",
                &[
                    "mcp",
                    "--call",
                    "skill_search",
                    r#"{"task": "is the index of this migration safe?"}"#,
                ],
                "Calls a tool of the MCP server as an agent would.",
            ),
        ],
    },
    DemoChapter {
        name: "doctor",
        about: "Find out why an agent does not see a skill",
        steps: &[step(
            "Doctor",
            &["doctor"],
            "Explains which skills an agent sees, which it does not, and why.",
        )],
    },
];
