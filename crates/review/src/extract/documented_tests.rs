//! The examples of the documentation come out of skills in each way of writing them.

use insta::assert_snapshot;

use super::tests::{extract_from, extracted, findings, skill};
use super::*;

const SECURITY_YAML: &str = r#"resolved_skills:
  - name: "reviewing-security"
    source: "reviewing-security"
    type: "review"
    primary_agent: "security-agent"
    focus_areas:
      - name: "Injection Vulnerabilities"
        severity: "Critical"
        checks:
          - "SQL injection via string concatenation"
          - "Command injection via exec/spawn"
          - "XSS via innerHTML or dangerouslySetInnerHTML"
      - name: "Authentication Weaknesses"
        severity: "Critical"
        checks:
          - "Hardcoded credentials"
          - "Weak token generation"
    auto_validated_patterns:
      - id: "hardcoded_password"
        pattern: "password\\s*=\\s*[\"'][^\"']+[\"']"
        description: "Hardcoded password assignments"
      - id: "sql_concat"
        pattern: "\\+.*\\$\\{.*\\}.*FROM|WHERE"
        description: "SQL string concatenation with variables"
    false_positive_rules:
      - "Passwords in test files or fixtures"
      - "SQL in ORM query builders"
      - "Example code in documentation"
    priority_files:
      patterns:
        - "**/auth/**"
        - "**/login/**"
        - "**/password/**"
        - "**/api/**"
"#;

/// Headings, an inline table of three columns, code for globs.
pub(super) const SECURITY_HEADINGS: &str = r#"
# Security review

## When to Use

- Before a release (Critical)

## Security Categories Checked

### Injection Vulnerabilities (Critical):

- SQL injection via *string concatenation*
- Command injection via `exec`/`spawn`
- XSS via `innerHTML` or
  [`dangerouslySetInnerHTML`](https://example.org)

### Authentication Weaknesses (CRITICAL)

* Hardcoded credentials
* Weak token generation

```markdown
### Not An Area (Critical)
- not a check
```

## Auto-Validated Patterns

| Pattern Name | Regex | Description |
|---|---|---|
| `hardcoded_password` | `password\s*=\s*["'][^"']+["']` | Hardcoded password assignments |
| sql_concat | `\+.*\$\{.*\}.*FROM\|WHERE` | SQL string concatenation with variables |

## Security-Specific False Positives

Do NOT flag:

- Passwords in test files or fixtures
- SQL in ORM query builders
- Example code in documentation

## Scope Prioritization

- Whoever signs in (`**/auth/**`, `**/login/**`)
- `**/password/**`
- **/api/**
"#;

/// Bold labels, a shared catalog, false positives by pointer, bare globs.
const SECURITY_LABELS: &str = r#"
Finds holes.

## Categories Checked

**Injection Vulnerabilities (Critical):**
- SQL injection via string concatenation
- Command injection via exec/spawn
- XSS via innerHTML or dangerouslySetInnerHTML

**Authentication Weaknesses** (Severity: Critical):

- Hardcoded credentials
- Weak token generation

## Patterns (auto validated)

High-confidence patterns skip validation. Their expressions are in
`${CLAUDE_PLUGIN_ROOT}/shared/validation-rules.md`.

**False Positives**

Apply all rules from [the list](../../shared/false-positives.md#security).

## Priority Files

- **/auth/**
- **/login/**
- **/password/**, **/api/**
"#;

const VALIDATION_RULES: &str = r#"---
title: rules
---
# Validation

| Field | Type |
|---|---|
| `name` | text |

## Auto-Validation Patterns

**Bug patterns (always valid):**

| Pattern Name | Regex | Description |
|---|---|---|
| `empty_catch` | `catch\s*\{\s*\}` | Empty catch |

**Security patterns (always valid):**

| ID | Expression | Finds |
|---|---|---|
| `hardcoded_password` | `password\s*=\s*["'][^"']+["']` | Hardcoded password assignments |
| `sql_concat` | \+.*\$\{.*\}.*FROM\|WHERE | SQL string concatenation with variables |
"#;

const FALSE_POSITIVES: &str = "
## Performance

- Cold paths

## Security

- Passwords in test files or fixtures
- SQL in ORM query builders
- Example code in documentation
";

#[test]
fn the_documented_review_skill_comes_out_of_headings_and_tables() {
    let found = extracted("reviewing-security", SECURITY_HEADINGS);
    assert_eq!(findings(&found), [""; 0]);
    assert_eq!(to_yaml(&[found.skill]), SECURITY_YAML);
}

#[test]
fn the_documented_review_skill_comes_out_of_labels_and_shared_files() {
    let skill = skill("reviewing-security", "", SECURITY_LABELS);
    let shared = [
        ("shared/validation-rules.md", VALIDATION_RULES),
        ("shared/false-positives.md", FALSE_POSITIVES),
    ];
    let found = extract_from(&skill, &shared);
    assert_eq!(findings(&found), [""; 0]);
    assert_eq!(to_yaml(&[found.skill]), SECURITY_YAML);
}

const BRAINSTORMING_YAML: &str = r#"resolved_skills:
  - name: "brainstorming"
    source: "superpowers:brainstorming"
    type: "methodology"
    primary_agent: null
    methodology:
      approach: "Explore multiple interpretations before concluding"
      mindset: "Question assumptions, consider edge cases"
      steps:
        - "Identify what the code is trying to do"
        - "Consider why it might be correct"
        - "Brainstorm ways it could fail"
        - "Evaluate likelihood of each failure mode"
      questions:
        - "What assumptions does this code make?"
        - "What happens if those assumptions are violated?"
        - "Are there edge cases the developer might have missed?"
"#;

#[track_caller]
fn check_brainstorming(body: &str) {
    let found =
        extract_review_skill(&skill("brainstorming", "", body), "superpowers:brainstorming");
    assert_eq!(findings(&found), [""; 0]);
    assert_eq!(to_yaml(&[found.skill]), BRAINSTORMING_YAML);
}

#[test]
fn the_documented_methodology_comes_out_of_headings_and_numbers() {
    check_brainstorming(
        "# Brainstorming\n\nExplore multiple interpretations before concluding\n\n\
         ## When to Use\n\n1. Before anything else\n2. Is it late?\n\n\
         ## Mindset\n\n- Question assumptions, consider edge cases\n\n\
         ## Steps\n\n1. Identify what the code is trying to do\n   - Is a detail here\n2. **Consider** why it might be correct\n\
         3. Brainstorm ways it could fail\n4. Evaluate likelihood of each failure mode\n\n\
         ## Questions to Ask\n\n- What assumptions does this code make?\n- What happens if those assumptions are violated?\n\n\
         Are there edge cases the developer might have missed? Ask.\n",
    );
}

#[test]
fn the_documented_methodology_comes_out_of_labels_and_phases() {
    check_brainstorming(
        "# Brainstorming\n\nSome words that come first.\n\n## Overview\n\n\
         **Core principle:** Explore multiple interpretations before concluding\n\n\
         **Mindset:** Question assumptions, consider edge cases\n\n\
         ## Process Overview\n\n1. Not a step\n\n### Phase 9: Nor this\n\n\
         ## The Four Phases\n\n### Phase 1: Identify what the code is trying to do\n\n\
         - What assumptions does this code make?\n\n\
         ### Phase 2: Consider why it might be correct\n\nProse. Is it?\n\n\
         ### Phase 3: Brainstorm ways it could fail\n\n\
         - What happens if those assumptions are violated?\n\n\
         ### Phase 4: Evaluate likelihood of each failure mode\n\n```\n- Not a question?\n```\n\n\
         * Are there edge cases the developer might have missed? (Ask.)\n",
    );
}

#[test]
fn the_documented_section_becomes_its_yaml() {
    let bullets =
        "- SQL injection via string concatenation\n- Command injection through shell execution\n";
    for title in
        ["### Injection Vulnerabilities (Critical):", "**Injection Vulnerabilities (Critical):**"]
    {
        let found = extracted("reviewing-injection", &format!("{title}\n{bullets}"));
        insta::allow_duplicates! { assert_snapshot!(to_yaml(&[found.skill]), @r#"
        resolved_skills:
          - name: "reviewing-injection"
            source: "reviewing-injection"
            type: "review"
            primary_agent: "injection-agent"
            focus_areas:
              - name: "Injection Vulnerabilities"
                severity: "Critical"
                checks:
                  - "SQL injection via string concatenation"
                  - "Command injection through shell execution"
        "#) };
    }
}
