//! A cache of recent results.

use repertoire_skill::skill::Digest;

use super::SkillResult;
use crate::limits::{RESULT_TTL_MS, RESULTS_KEPT_MAX};

/// An LRU cache; the least recently used result comes first.
#[derive(Debug, Default)]
pub(super) struct Cache {
    held: Vec<Held>,
}

#[derive(Debug)]
struct Held {
    key: Digest,
    result: SkillResult,
    put_ms: u64,
}

impl Cache {
    pub(super) fn get(&mut self, key: Digest, now_ms: u64) -> Option<SkillResult> {
        self.held.retain(|held| now_ms.saturating_sub(held.put_ms) < RESULT_TTL_MS);
        let at = self.held.iter().position(|held| held.key == key)?;
        let held = self.held.remove(at);
        let result = held.result.clone();
        self.held.push(held);
        Some(result)
    }

    pub(super) fn put(&mut self, key: Digest, result: SkillResult, now_ms: u64) {
        self.held.retain(|held| held.key != key);
        self.held.push(Held { key, result, put_ms: now_ms });
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
        let mut cache = Cache::default();
        let key = Digest::of(b"a");
        cache.put(key, result("x"), 1_000);
        assert_eq!(cache.get(key, 60_999).map(|result| result.output), Some("x".to_owned()));
        assert_eq!(cache.get(key, 61_000), None);
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut cache = Cache::default();
        for number in 0..RESULTS_KEPT_MAX {
            cache.put(Digest::of(&number.to_le_bytes()), result("x"), 0);
        }
        assert!(cache.get(Digest::of(&0usize.to_le_bytes()), 1).is_some());
        cache.put(Digest::of(b"new"), result("y"), 1);
        assert!(cache.get(Digest::of(&0usize.to_le_bytes()), 1).is_some());
        assert!(cache.get(Digest::of(&1usize.to_le_bytes()), 1).is_none());
    }
}
