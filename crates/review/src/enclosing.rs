//! Guesses which function a line belongs to, from indentation and common definition syntax. Accurate enough to tell
//! whether two findings are about the same function.

use std::sync::LazyLock;

use regex::Regex;

/// Maximum number of lines that are searched upwards.
const LINES_MAX: usize = 2_000;

static DEFINITION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?x)
        \b(?:fn|def|func|function|sub|proc|class|struct|interface|trait|impl|module)\s+
            (?:\([^)]*\)\s*)?([A-Za-z_$][\w$:]*)
        | \b(?:const|let|var)\s+([A-Za-z_$][\w$]*)\s*=\s*(?:async\s*)?(?:function\b|\([^)]*\)\s*=>|[\w$]+\s*=>)
        | ^\s*(?:(?:public|private|protected|internal|static|final|async|virtual|override|export|default)\s+)*
            (?:[\w<>\[\],.?:*&]+\s+)*([A-Za-z_$][\w$]*)\s*\([^;]*\)\s*(?:throws\s+[\w,\s.]+|:\s*[\w<>\[\]|.\s]+|->\s*[\w<>\[\]&.:\s]+)?\{\s*$",
    )
    .expect("the expression is a constant")
});

/// Keywords that the expression would take for the name of a function.
const NOT_NAMES: &[&str] =
    &["if", "for", "while", "switch", "match", "catch", "return", "else", "loop", "with", "do"];

/// Returns the name of the innermost definition around a line, counted from 1.
pub fn enclosing_definition(text: &str, line: u32) -> Option<String> {
    let lines: Vec<&str> = text.lines().take(line as usize).collect();
    let own = lines.last().filter(|_| lines.len() == line as usize)?;
    if let Some(name) = defined_name(own) {
        return Some(name);
    }
    let mut depth =
        lines.iter().rev().find(|line| !line.trim().is_empty()).map(|line| indent_width(line))?;
    for line in lines.iter().rev().skip(1).take(LINES_MAX) {
        if line.trim().is_empty() || indent_width(line) >= depth {
            continue;
        }
        depth = indent_width(line);
        if let Some(name) = defined_name(line) {
            return Some(name);
        }
    }
    None
}

fn defined_name(line: &str) -> Option<String> {
    let found = DEFINITION.captures(line)?;
    let name = found.iter().skip(1).flatten().next()?.as_str();
    (!NOT_NAMES.contains(&name)).then(|| name.to_owned())
}

fn indent_width(line: &str) -> usize {
    let blank = line.len() - line.trim_start().len();
    line[..blank].chars().map(|char| if char == '\t' { 4 } else { 1 }).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_definition_is_found_in_the_usual_languages() {
        let rust = "impl Pool {\n    fn get(&self) -> i32 {\n        if a {\n            b();\n        }\n        c()\n    }\n}\n";
        assert_eq!(enclosing_definition(rust, 4).as_deref(), Some("get"));
        assert_eq!(enclosing_definition(rust, 6).as_deref(), Some("get"));
        let python =
            "class A:\n    async def load(self, x):\n        try:\n            pass\n\nx = 1\n";
        assert_eq!(enclosing_definition(python, 4).as_deref(), Some("load"));
        assert_eq!(enclosing_definition(python, 6), None);
        let go = "func (s *Server) Serve(l net.Listener) error {\n\tfor {\n\t\tx()\n\t}\n}\n";
        assert_eq!(enclosing_definition(go, 3).as_deref(), Some("Serve"));
        let js = "export const save = async (user) => {\n  await db.put(user);\n};\n";
        assert_eq!(enclosing_definition(js, 2).as_deref(), Some("save"));
        let java = "class A {\n    public int size(List<String> a) {\n        while (true) {\n            x();\n        }\n    }\n}\n";
        assert_eq!(enclosing_definition(java, 4).as_deref(), Some("size"));
    }

    #[test]
    fn lines_that_are_not_there_are_in_nothing() {
        assert_eq!(enclosing_definition("fn a() {\n}\n", 9), None);
        assert_eq!(enclosing_definition("", 1), None);
        assert_eq!(enclosing_definition("fn a() {\n}\n", 0), None);
    }
}
