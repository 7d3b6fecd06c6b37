use std::sync::OnceLock;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::document::SkillDocument;

/// A skill as text: words that recur in other skills, in several languages, and passages against it.
fn skill() -> impl Strategy<Value = (String, String, String)> {
    (
        "[a-d]{1,2}(-[a-d]{1,2})?",
        "([a-f]{1,3} ){0,8}(Not for [a-f]{1,3}\\.)?( og det er ikke for [æøå]{2})?",
        "(# [a-d]{1,2}\n)?([a-f]{1,3}[ .\n]){0,30}(see https://[a-d]{3})?",
    )
}

fn documents(skills: &[(String, String, String)]) -> Vec<SkillDocument<'_>> {
    skills.iter().map(|(name, about, body)| SkillDocument::new(name, name, about, body)).collect()
}

fn build(skills: &[(String, String, String)], before: Option<&SkillIndex>) -> SkillIndex {
    SkillIndex::build(&documents(skills), WordVectors::embedded(), before)
}

/// An index and its serialised form.
fn written() -> &'static (SkillIndex, Vec<u8>) {
    static WRITTEN: OnceLock<(SkillIndex, Vec<u8>)> = OnceLock::new();
    WRITTEN.get_or_init(|| {
        let skill = |at: usize| {
            (format!("skill-{at}"), format!("Does {at}. Not for nothing."), "Text ".repeat(at))
        };
        let index = build(&(0..20).map(skill).collect::<Vec<_>>(), None);
        let bytes = index.write();
        (index, bytes)
    })
}

#[test]
fn an_index_comes_back_from_its_bytes() {
    let (index, bytes) = written();
    assert_eq!(SkillIndex::read(bytes.clone()).as_ref(), Ok(index));
    assert!(index.is_made_with(WordVectors::embedded()));
    assert!(!index.is_made_with(&WordVectors::without_rows()));
    let nothing = SkillIndex::default();
    assert_eq!(SkillIndex::read(nothing.write()), Ok(nothing));
}

#[test]
fn other_files_and_other_formats_are_told_apart() {
    let (_, bytes) = written();
    assert_eq!(SkillIndex::read(Vec::new()), Err(IndexCacheError::Foreign));
    assert_eq!(
        SkillIndex::read(b"PK\x03\x04 something else".to_vec()),
        Err(IndexCacheError::Foreign)
    );
    let mut later = bytes.clone();
    later[MAGIC.len()] = 9;
    assert_eq!(SkillIndex::read(later), Err(IndexCacheError::Format { found: 9 }));
}

#[test]
fn an_index_made_with_other_vectors_is_not_taken_over() {
    let skills = [("a".to_owned(), "b c".to_owned(), "d".to_owned())];
    let scales = [1f32.to_le_bytes(), 2f32.to_le_bytes()].concat();
    let other = WordVectors::from_parts("a\nb\n", &scales, &[1; 512]).unwrap();
    let foreign = SkillIndex::build(&documents(&skills), &other, None);
    assert_eq!(foreign.dimensions, WordVectors::embedded().dimensions());
    assert_eq!(build(&skills, Some(&foreign)), build(&skills, None));
}

#[test]
fn numbers_that_do_not_fit_are_damage_even_with_a_right_checksum() {
    let (_, bytes) = written();
    for at in SUMMED..bytes.len().min(4000) {
        let mut changed = bytes.clone();
        changed[at] = !changed[at];
        let sum = compute_checksum(&changed[SUMMED..]);
        changed[SUM..SUMMED].copy_from_slice(&sum.to_le_bytes());
        // Damaged bytes may still parse, but queries must not panic.
        if let Ok(index) = SkillIndex::read(changed) {
            let skills = [("new".to_owned(), "A new skill".to_owned(), "d".to_owned())];
            let mut documents = documents(&skills);
            let digests = index.digests.iter().take(3).copied();
            documents.extend(digests.map(|digest| SkillDocument {
                digest,
                ..SkillDocument::new("old", "old", "", "")
            }));
            let again = SkillIndex::build(&documents, WordVectors::embedded(), Some(&index));
            assert_eq!(again.len(), documents.len());
            for term in 0..index.terms.len() {
                index.each_posting(term, |_| {});
                let _ = index.terms.get(term);
            }
        }
    }
}

#[test]
fn what_is_indexed_changes_only_with_the_format() {
    let skill = (
        "getUserName tools".to_owned(),
        "Checks the GraphQL invoices. Not for pay.".to_owned(),
        "# Use\nRun it.".to_owned(),
    );
    let bytes = build(&[skill], None).write();
    // If this number changes, cached indexes have become invalid: increase `FORMAT`, then update the number.
    assert_eq!((FORMAT, compute_checksum(&bytes[SUMMED..])), (1, 13_172_541_566_444_764_182));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_cut_file_is_damaged(share in 0.0..1.0f64) {
        let (_, bytes) = written();
        let end = (bytes.len() as f64 * share) as usize;
        prop_assert!(SkillIndex::read(bytes[..end].to_vec()).is_err());
    }

    #[test]
    fn a_flipped_bit_is_noticed(share in 0.0..1.0f64, bit in 0u8..8) {
        let (_, bytes) = written();
        let mut flipped = bytes.clone();
        flipped[(bytes.len() as f64 * share) as usize] ^= 1u8 << bit;
        prop_assert!(SkillIndex::read(flipped).is_err());
    }

    #[test]
    fn any_bytes_are_an_error(mut any in vec(any::<u8>(), 0..300), start in 0usize..40) {
        let (_, bytes) = written();
        let start = start.min(any.len());
        any[..start].copy_from_slice(&bytes[..start]);
        prop_assert!(SkillIndex::read(any).is_err());
    }

    #[test]
    fn an_index_that_grew_is_the_same_as_one_built_at_once(
        first in vec(skill(), 0..12),
        rounds in vec((vec(any::<prop::sample::Index>(), 0..6), vec(skill(), 0..6)), 0..4),
    ) {
        let mut skills = first;
        let mut index = build(&skills, None);
        for (removed, added) in rounds {
            for at in removed {
                if !skills.is_empty() {
                    skills.swap_remove(at.index(skills.len()));
                }
            }
            skills.extend(added);
            index = build(&skills, Some(&SkillIndex::read(index.write()).unwrap()));
            prop_assert_eq!(&index, &build(&skills, None));
        }
    }

    #[test]
    fn the_order_of_skills_changes_places_and_no_score(
        skills in vec(skill(), 1..20),
        turn in any::<prop::sample::Index>(),
        text in "([a-f]{1,3} ){1,6}(\\. [a-f]{1,3} [a-f]{1,3})?",
    ) {
        use crate::{SelectionModel, SkillSelector, SelectionSettings, SelectionStage, StageSet, Task};

        let settings = SelectionSettings {
            stages: StageSet::only([SelectionStage::Words, SelectionStage::Meaning]),
            ..SelectionSettings::default()
        };
        let mut skills = skills;
        skills.sort();
        skills.dedup_by(|a, b| a.0 == b.0);
        let ranked = |skills: &[(String, String, String)]| {
            let documents = documents(skills);
            let selector = SkillSelector::new(&documents, SelectionModel::embedded(), settings, None);
            let ranked = selector.rank(&Task::new(text.clone()), skills.len());
            let mut scores: Vec<(String, u32)> =
                ranked.into_iter().map(|one| (one.name, one.score.to_bits())).collect();
            scores.sort();
            scores
        };
        let scores = ranked(&skills);
        prop_assert_eq!(&scores, &ranked(&skills));
        let turn = turn.index(skills.len());
        skills.rotate_left(turn);
        prop_assert_eq!(&scores, &ranked(&skills));
    }
}
