//! A cache of recent results.

use repertoire_skill::skill::ContentDigest;

use super::SkillResult;
use crate::limits::{RESULT_TTL_MS, RESULTS_KEPT_MAX};

/// An LRU cache; the least recently used result comes first.
#[derive(Debug, Default)]
pub(super) struct ResultCache {
    held: Vec<CachedResult>,
}

#[derive(Debug)]
struct CachedResult {
    key: ContentDigest,
    result: SkillResult,
    put_ms: u64,
}

impl ResultCache {
    pub(super) fn get(&mut self, key: ContentDigest, now_ms: u64) -> Option<SkillResult> {
        self.held.retain(|held| now_ms.saturating_sub(held.put_ms) < RESULT_TTL_MS);
        let at = self.held.iter().position(|held| held.key == key)?;
        let held = self.held.remove(at);
        let result = held.result.clone();
        self.held.push(held);
        Some(result)
    }

    pub(super) fn insert(&mut self, key: ContentDigest, result: SkillResult, now_ms: u64) {
        self.held.retain(|held| held.key != key);
        self.held.push(CachedResult { key, result, put_ms: now_ms });
        let over = self.held.len().saturating_sub(RESULTS_KEPT_MAX);
        self.held.drain(..over);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(output: &str) -> SkillResult {
        SkillResult {
            success: true,
            output: output.to_owned(),
            data: None,
            error: None,
            metadata: Default::default(),
        }
    }

    #[test]
    fn a_result_is_kept_for_a_minute() {
        let mut cache = ResultCache::default();
        let key = ContentDigest::hash_bytes(b"a");
        cache.insert(key, result("x"), 1_000);
        assert_eq!(cache.get(key, 60_999).map(|result| result.output), Some("x".to_owned()));
        assert_eq!(cache.get(key, 61_000), None);
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut cache = ResultCache::default();
        for number in 0..RESULTS_KEPT_MAX {
            cache.insert(ContentDigest::hash_bytes(&number.to_le_bytes()), result("x"), 0);
        }
        assert!(cache.get(ContentDigest::hash_bytes(&0usize.to_le_bytes()), 1).is_some());
        cache.insert(ContentDigest::hash_bytes(b"new"), result("y"), 1);
        assert!(cache.get(ContentDigest::hash_bytes(&0usize.to_le_bytes()), 1).is_some());
        assert!(cache.get(ContentDigest::hash_bytes(&1usize.to_le_bytes()), 1).is_none());
    }
}
