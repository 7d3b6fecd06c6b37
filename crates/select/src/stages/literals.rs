//! Extracts the required literals of a pattern: every text that matches contains at least one of them.
//!
//! They are read from the syntax tree before any character class is expanded, so that a pattern costs little
//! until a task comes that it could match. Constructs that are not understood yield no literal, which is
//! always correct.

use regex_syntax::ast::{
    Ast, ClassBracketed, ClassSet, ClassSetItem, Concat, Repetition, RepetitionKind,
    RepetitionRange,
};

use super::case_folding::fold_char;

/// Shorter literals occur in too many tasks to filter anything.
const BYTES_MIN: usize = 3;
/// Longer literals are hardly more selective than their beginnings.
const BYTES_MAX: usize = 44;
/// The maximum number of bytes of one folded character.
const FOLDED_BYTES_MAX: usize = 12;
/// The maximum number of literals of a pattern.
const TEXTS_MAX: usize = 64;
/// The maximum number of literals that may result from combining alternatives.
const CROSSED_MAX: usize = 16;

/// Returns the required literals of a pattern, folded; `None` if it has none that are selective enough.
pub(crate) fn required_literals(ast: &Ast) -> Option<Vec<String>> {
    LiteralSet::from_ast(ast).most_selective()
}

/// Returns the minimum number of characters that a pattern matches.
pub(crate) fn chars_min(ast: &Ast) -> usize {
    match ast {
        Ast::Empty(_) | Ast::Flags(_) | Ast::Assertion(_) => 0,
        Ast::Literal(_)
        | Ast::Dot(_)
        | Ast::ClassUnicode(_)
        | Ast::ClassPerl(_)
        | Ast::ClassBracketed(_) => 1,
        Ast::Repetition(repetition) => {
            chars_min(&repetition.ast).saturating_mul(times_min(repetition))
        }
        Ast::Group(group) => chars_min(&group.ast),
        Ast::Alternation(either) => either.asts.iter().map(chars_min).min().unwrap_or(0),
        Ast::Concat(all) => saturating_sum(all.asts.iter().map(chars_min)),
    }
}

fn times_min(repetition: &Repetition) -> usize {
    match &repetition.op.kind {
        RepetitionKind::ZeroOrOne | RepetitionKind::ZeroOrMore => 0,
        RepetitionKind::OneOrMore => 1,
        RepetitionKind::Range(
            RepetitionRange::Exactly(least)
            | RepetitionRange::AtLeast(least)
            | RepetitionRange::Bounded(least, _),
        ) => *least as usize,
    }
}

/// Returns the number of characters in a pattern with repetitions written out: its cost per character of a
/// text.
pub(crate) fn count_positions(ast: &Ast) -> usize {
    match ast {
        Ast::Empty(_) | Ast::Flags(_) | Ast::Assertion(_) => 0,
        Ast::Literal(_)
        | Ast::Dot(_)
        | Ast::ClassUnicode(_)
        | Ast::ClassPerl(_)
        | Ast::ClassBracketed(_) => 1,
        Ast::Repetition(repetition) => {
            count_positions(&repetition.ast).saturating_mul(written_out(repetition).max(1))
        }
        Ast::Group(group) => count_positions(&group.ast),
        Ast::Alternation(either) => saturating_sum(either.asts.iter().map(count_positions)),
        Ast::Concat(all) => saturating_sum(all.asts.iter().map(count_positions)),
    }
}

/// Returns an upper bound on the compiled size of a pattern in bytes, without compiling it.
pub(crate) fn compiled_bytes_max(ast: &Ast) -> usize {
    const LITERAL: usize = 512;
    const CLASS: usize = 128 * 1024;
    match ast {
        Ast::Empty(_) | Ast::Flags(_) | Ast::Literal(_) | Ast::Dot(_) => LITERAL,
        Ast::Assertion(_) => LITERAL,
        Ast::ClassUnicode(_) | Ast::ClassPerl(_) => CLASS,
        Ast::ClassBracketed(class) if class_members(class).is_some() => CROSSED_MAX * LITERAL,
        Ast::ClassBracketed(_) => CLASS,
        Ast::Repetition(repetition) => {
            let once = compiled_bytes_max(&repetition.ast);
            once.saturating_mul(written_out(repetition) + 1).saturating_add(LITERAL)
        }
        Ast::Group(group) => compiled_bytes_max(&group.ast).saturating_add(LITERAL),
        Ast::Alternation(either) => {
            saturating_sum(either.asts.iter().map(compiled_bytes_max)).saturating_add(LITERAL)
        }
        Ast::Concat(all) => saturating_sum(all.asts.iter().map(compiled_bytes_max)),
    }
}

/// Returns the number of copies that a repetition compiles to.
fn written_out(repetition: &Repetition) -> usize {
    match repetition.op.kind {
        RepetitionKind::Range(RepetitionRange::Bounded(_, most)) => most as usize,
        _ => times_min(repetition),
    }
}

fn saturating_sum(numbers: impl Iterator<Item = usize>) -> usize {
    numbers.fold(0, usize::saturating_add)
}

/// The known literals of the texts that a part of a pattern matches.
struct LiteralSet {
    /// All texts that the part matches, if there are few.
    all: Option<Vec<String>>,
    /// A set of literals of which every matching text contains at least one.
    one_of: Option<Vec<String>>,
}

impl LiteralSet {
    const ANY: LiteralSet = LiteralSet { all: None, one_of: None };

    fn from_all(texts: Vec<String>) -> LiteralSet {
        LiteralSet { all: Some(texts), one_of: None }
    }

    fn empty_text() -> LiteralSet {
        LiteralSet::from_all(vec![String::new()])
    }

    fn from_ast(ast: &Ast) -> LiteralSet {
        match ast {
            Ast::Empty(_) | Ast::Flags(_) | Ast::Assertion(_) => LiteralSet::empty_text(),
            Ast::Literal(literal) => LiteralSet::from_all(vec![fold_to_string(literal.c)]),
            Ast::Dot(_) | Ast::ClassUnicode(_) | Ast::ClassPerl(_) => LiteralSet::ANY,
            Ast::ClassBracketed(class) => {
                class_members(class).map_or(LiteralSet::ANY, LiteralSet::from_all)
            }
            Ast::Group(group) => LiteralSet::from_ast(&group.ast),
            Ast::Repetition(repetition) => LiteralSet::from_repetition(repetition),
            Ast::Alternation(either) => LiteralSet::from_alternation(&either.asts),
            Ast::Concat(concat) => LiteralSet::from_concat(concat),
        }
    }

    fn from_repetition(repetition: &Repetition) -> LiteralSet {
        let once = LiteralSet::from_ast(&repetition.ast);
        if times_min(repetition) > 0 {
            return LiteralSet { all: None, one_of: once.most_selective() };
        }
        match (&repetition.op.kind, once.all) {
            (RepetitionKind::ZeroOrOne, Some(mut all)) => {
                all.push(String::new());
                dedup_few(all).map_or(LiteralSet::ANY, LiteralSet::from_all)
            }
            _ => LiteralSet::ANY,
        }
    }

    fn from_alternation(branches: &[Ast]) -> LiteralSet {
        let (mut all, mut one_of) = (Some(Vec::new()), Some(Vec::new()));
        for branch in branches {
            let texts = LiteralSet::from_ast(branch);
            all = all.zip(texts.all.clone()).and_then(|(all, more)| join_sets(all, more));
            one_of =
                one_of.zip(texts.most_selective()).and_then(|(all, more)| join_sets(all, more));
            if all.is_none() && one_of.is_none() {
                return LiteralSet::ANY;
            }
        }
        LiteralSet { all, one_of }
    }

    fn from_concat(concat: &Concat) -> LiteralSet {
        let mut best: Option<Vec<String>> = None;
        let mut run = vec![String::new()];
        let mut is_whole = true;
        for part in &concat.asts {
            // Fast path: most of a pattern is plain letters, and thousands of patterns are parsed at once.
            if let Ast::Literal(literal) = part
                && run.len() <= CROSSED_MAX
                && longest_len(&run) + FOLDED_BYTES_MAX <= BYTES_MAX
            {
                run.iter_mut().for_each(|text| fold_char(literal.c, text));
                continue;
            }
            let texts = LiteralSet::from_ast(part);
            if let Some(longer) = texts.all.as_ref().and_then(|all| concat_all(&run, all)) {
                run = longer;
                continue;
            }
            is_whole = false;
            best = more_selective(best, std::mem::replace(&mut run, vec![String::new()]));
            if let Some(one_of) = texts.one_of {
                best = more_selective(best, one_of);
            }
            run = texts.all.unwrap_or(run);
        }
        if is_whole {
            return LiteralSet { all: Some(run), one_of: None };
        }
        LiteralSet { all: None, one_of: more_selective(best, run) }
    }

    /// Returns the more selective of the two sets.
    fn most_selective(self) -> Option<Vec<String>> {
        let all = self.all.filter(|all| is_selective(all));
        match (all, self.one_of) {
            (Some(all), one_of) => more_selective(one_of, all),
            (None, one_of) => one_of,
        }
    }
}

fn fold_to_string(c: char) -> String {
    let mut text = String::new();
    fold_char(c, &mut text);
    text
}

/// Returns the characters of a class that merely lists a few.
fn class_members(class: &ClassBracketed) -> Option<Vec<String>> {
    fn add(item: &ClassSetItem, members: &mut Vec<String>) -> Option<()> {
        match item {
            ClassSetItem::Empty(_) => {}
            ClassSetItem::Literal(literal) => members.push(fold_to_string(literal.c)),
            ClassSetItem::Range(range) => {
                let (start, end) = (u32::from(range.start.c), u32::from(range.end.c));
                if end.saturating_sub(start) as usize >= CROSSED_MAX {
                    return None;
                }
                members.extend((start..=end).filter_map(char::from_u32).map(fold_to_string));
            }
            ClassSetItem::Union(union) => {
                union.items.iter().try_for_each(|item| add(item, members))?;
            }
            _ => return None,
        }
        Some(())
    }
    let ClassSet::Item(item) = &class.kind else { return None };
    let mut found = Vec::new();
    if !class.negated {
        add(item, &mut found)?;
    }
    dedup_few(found).filter(|found| (1..=CROSSED_MAX).contains(&found.len()))
}

fn dedup_few(mut texts: Vec<String>) -> Option<Vec<String>> {
    texts.sort_unstable();
    texts.dedup();
    (texts.len() <= TEXTS_MAX).then_some(texts)
}

fn join_sets(mut texts: Vec<String>, more: Vec<String>) -> Option<Vec<String>> {
    texts.extend(more);
    dedup_few(texts)
}

/// Concatenates every start with every end, or returns `None` if the result is too large.
fn concat_all(starts: &[String], ends: &[String]) -> Option<Vec<String>> {
    if starts.len() * ends.len() > CROSSED_MAX
        || longest_len(starts) + longest_len(ends) > BYTES_MAX
    {
        return None;
    }
    dedup_few(
        starts
            .iter()
            .flat_map(|start| ends.iter().map(move |end| format!("{start}{end}")))
            .collect(),
    )
}

fn longest_len(texts: &[String]) -> usize {
    texts.iter().map(String::len).max().unwrap_or(0)
}

fn shortest_len(texts: &[String]) -> usize {
    texts.iter().map(String::len).min().unwrap_or(0)
}

fn is_selective(texts: &[String]) -> bool {
    shortest_len(texts) >= BYTES_MIN
}

/// Returns the more selective set: long literals are rarer, and every additional literal matches more texts.
fn more_selective(best: Option<Vec<String>>, other: Vec<String>) -> Option<Vec<String>> {
    match best {
        best if !is_selective(&other) => best,
        Some(best) if compute_selectivity(&best) >= compute_selectivity(&other) => Some(best),
        _ => Some(other),
    }
}

fn compute_selectivity(texts: &[String]) -> i64 {
    2 * shortest_len(texts) as i64 - texts.len() as i64
}

#[cfg(test)]
mod tests {
    use regex_syntax::ast::parse::Parser;

    use super::*;

    #[track_caller]
    fn check(pattern: &str, expect: &[&str]) {
        let ast = Parser::new().parse(pattern).unwrap();
        assert_eq!(required_literals(&ast).unwrap_or_default(), expect, "{pattern}");
    }

    #[test]
    fn every_match_has_one_of_the_fixed_texts() {
        check("analy[sz]e.*tender", &["analyse", "analyze"]);
        check("Tender.*(denmark|danish)", &["tender"]);
        check("for.*(denmark|danish)", &["danish", "denmark"]);
        check(
            r"\b(create|make) an? PR\b",
            &["create a pr", "create an pr", "make a pr", "make an pr"],
        );
        check("(?i)ÆBLE", &["æble"]);
        check("udbud(smateriale)?", &["udbud", "udbudsmateriale"]);
        check("(foo){2,}x*", &["foo"]);
        check("(?x) spaced # not this", &["spaced"]);
        check("(abc|d.*efgh)", &["abc", "efgh"]);
    }

    #[test]
    fn a_pattern_that_may_match_without_a_text_has_none() {
        for pattern in
            ["a|bcd", r"\d+", "(tender)?x", "(tender)*", "[a-z]+", "[^a]bc", "ab.cd", "[a&&A]"]
        {
            check(pattern, &[]);
        }
    }

    #[test]
    fn long_texts_and_large_sets_are_cut_to_what_tells() {
        check(&"abcdefgh".repeat(100), &[&"abcdefgh".repeat(6)[..44]]);
        check("[a-z][a-z]xyz", &["xyz"]);
        let many: Vec<String> = (10..60).map(|at| format!("word{at}")).collect();
        check(
            &format!("({}).*", many.join("|")),
            &many.iter().map(String::as_str).collect::<Vec<_>>(),
        );
    }

    #[test]
    fn what_matches_the_empty_text_is_known() {
        let least = |pattern: &str| chars_min(&Parser::new().parse(pattern).unwrap());
        for pattern in ["", ".*", "x?", "a|", r"\b", "^$", "(a*)+", "(?i)", "a{0,3}"] {
            assert_eq!(least(pattern), 0, "{pattern}");
        }
        for (pattern, expect) in [("a", 1), ("ab|c", 1), ("a{3}b", 4), (r"\w+\s", 2)] {
            assert_eq!(least(pattern), expect, "{pattern}");
        }
    }

    #[test]
    fn repetitions_are_written_out_in_thought() {
        let positions = |pattern: &str| count_positions(&Parser::new().parse(pattern).unwrap());
        for (pattern, expect) in
            [("a|bc", 3), (r"\bab?.*", 3), ("(ab){2,50}c{3}", 103), ("(a{1000}){1000}", 1_000_000)]
        {
            assert_eq!(positions(pattern), expect, "{pattern}");
        }
    }
}
