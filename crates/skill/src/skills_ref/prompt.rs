//! The output of `agentskills to-prompt`: the `<available_skills>` block for a system prompt.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::html::{EscapedQuotes, escape_markup};

use super::properties::{read_with_file_name, skill_md_missing};
use super::validate::{SpecFinding, skill_dir};

/// A skill of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptSkill<'a> {
    /// The name, trimmed.
    pub name: &'a str,
    /// The description, trimmed.
    pub description: &'a str,
    /// The absolute path of its `SKILL.md`, which is not escaped.
    pub location: &'a str,
}

/// Renders the `<available_skills>` block, without a final line break.
pub fn to_prompt<'a>(skills: impl IntoIterator<Item = PromptSkill<'a>>) -> String {
    let mut out = String::from("<available_skills>\n");
    for skill in skills {
        out.push_str("<skill>\n<name>\n");
        out.push_str(&escape_as_python(skill.name));
        out.push_str("\n</name>\n<description>\n");
        out.push_str(&escape_as_python(skill.description));
        out.push_str("\n</description>\n<location>\n");
        out.push_str(skill.location);
        out.push_str("\n</location>\n</skill>\n");
    }
    out.push_str("</available_skills>");
    out
}

/// Renders the block for the skills at some paths, folders or `SKILL.md` files. The first invalid one fails
/// the whole call.
pub fn prompt_of_paths<P: AsRef<Utf8Path>>(paths: &[P]) -> Result<String, SpecFinding> {
    let mut skills = Vec::with_capacity(paths.len());
    for path in paths {
        let dir = real_dir(skill_dir(path.as_ref()))?;
        let (properties, file_name) = read_with_file_name(&dir)?;
        skills.push((properties, dir.join(file_name)));
    }
    Ok(to_prompt(skills.iter().map(|(properties, location)| PromptSkill {
        name: &properties.name,
        description: &properties.description,
        location: location.as_str(),
    })))
}

fn real_dir(dir: &Utf8Path) -> Result<Utf8PathBuf, SpecFinding> {
    dir.canonicalize_utf8().map_err(|_| skill_md_missing(dir))
}

/// Python's `html.escape`, which writes a single quote in hexadecimal.
fn escape_as_python(text: &str) -> String {
    escape_markup(text, EscapedQuotes::Both).replace("&#39;", "&#x27;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(dir: &Utf8Path, name: &str, description: &str) -> Utf8PathBuf {
        let folder = dir.join(name);
        std::fs::create_dir(&folder).unwrap();
        let text = format!("---\nname: {name}\ndescription: {description}\n---\n");
        repertoire_text::fs::write_atomic(&folder.join("SKILL.md"), text.as_bytes()).unwrap();
        folder
    }

    fn temporary() -> (tempfile::TempDir, Utf8PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
        (dir, path)
    }

    #[test]
    fn names_and_descriptions_are_escaped_and_locations_are_not() {
        let skill = PromptSkill {
            name: "a&b",
            description: "Say \"hi\" & it's <done>",
            location: "/skills/a&b/SKILL.md",
        };
        insta::assert_snapshot!(to_prompt([skill]), @r#"
        <available_skills>
        <skill>
        <name>
        a&amp;b
        </name>
        <description>
        Say &quot;hi&quot; &amp; it&#x27;s &lt;done&gt;
        </description>
        <location>
        /skills/a&b/SKILL.md
        </location>
        </skill>
        </available_skills>
        "#);
    }

    #[test]
    fn no_skills_give_an_empty_block() {
        assert_eq!(to_prompt([]), "<available_skills>\n</available_skills>");
    }

    #[test]
    fn folders_and_files_are_read_in_the_order_given() {
        let (_guard, dir) = temporary();
        let (one, two) = (skill(&dir, "one", "First."), skill(&dir, "two", "Second."));
        let block = prompt_of_paths(&[two, one.join("SKILL.md")]).unwrap();
        insta::assert_snapshot!(block.replace(dir.as_str(), "@"), @r"
        <available_skills>
        <skill>
        <name>
        two
        </name>
        <description>
        Second.
        </description>
        <location>
        @/two/SKILL.md
        </location>
        </skill>
        <skill>
        <name>
        one
        </name>
        <description>
        First.
        </description>
        <location>
        @/one/SKILL.md
        </location>
        </skill>
        </available_skills>
        ");
    }

    #[test]
    fn one_bad_skill_ends_it_for_all() {
        let (_guard, dir) = temporary();
        let (good, bad) = (skill(&dir, "good", "Fine."), skill(&dir, "bad", ""));
        let finding = prompt_of_paths(&[good, bad]).unwrap_err();
        assert_eq!(finding.message, "Field 'description' must be a non-empty string");
        let finding = prompt_of_paths(&[dir.join("nowhere")]).unwrap_err();
        assert_eq!(finding.message, format!("SKILL.md not found in {dir}/nowhere"));
    }
}
