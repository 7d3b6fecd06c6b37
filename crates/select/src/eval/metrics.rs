//! Standard metrics of ranked retrieval, for a single query.

use std::collections::BTreeMap;

/// The right skills of a query, with grades.
pub type GoldSkills = BTreeMap<String, f64>;

/// Computes the normalised discounted cumulative gain (NDCG) of the first `k` results.
///
/// ```
/// use repertoire_select::eval::metrics::ndcg;
///
/// let gold = [("a".to_owned(), 1.0)].into();
/// assert_eq!(ndcg(&["a", "b"], &gold, 5), 1.0);
/// assert!(ndcg(&["b", "a"], &gold, 5) < 0.7);
/// ```
pub fn ndcg(ranked: &[&str], gold: &GoldSkills, k: usize) -> f64 {
    let gain = ranked
        .iter()
        .take(k)
        .enumerate()
        .map(|(rank, id)| gold.get(*id).copied().unwrap_or(0.0) / rank_discount(rank));
    let mut ideal: Vec<f64> = gold.values().copied().collect();
    ideal.sort_by(|a, b| b.total_cmp(a));
    let best: f64 = ideal.iter().take(k).enumerate().map(|(rank, g)| g / rank_discount(rank)).sum();
    if best > 0.0 { gain.sum::<f64>() / best } else { 0.0 }
}

/// The discount of a rank, from 0.
fn rank_discount(rank: usize) -> f64 {
    libm::log2(rank as f64 + 2.0)
}

/// Computes the fraction of the right skills that are among the first `k` results.
pub fn recall_at(ranked: &[&str], gold: &GoldSkills, k: usize) -> f64 {
    let found = ranked.iter().take(k).filter(|id| gold.contains_key(**id)).count();
    if gold.is_empty() { 0.0 } else { found as f64 / gold.len() as f64 }
}

/// Computes the reciprocal of the first right skill's rank, or 0 if none is ranked.
pub fn reciprocal_rank(ranked: &[&str], gold: &GoldSkills) -> f64 {
    let place = ranked.iter().position(|id| gold.contains_key(*id));
    place.map_or(0.0, |place| 1.0 / (place as f64 + 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_textbook() {
        let gold: GoldSkills = [("a".to_owned(), 1.0), ("b".to_owned(), 1.0)].into();
        assert_eq!(ndcg(&["a", "b"], &gold, 5), 1.0);
        let late = ndcg(&["x", "a"], &gold, 5);
        assert!((late - 0.386_852_807).abs() < 1e-6, "{late}");
        assert_eq!(recall_at(&["a", "x"], &gold, 1), 0.5);
        assert_eq!(reciprocal_rank(&["x", "b"], &gold), 0.5);
        assert_eq!(reciprocal_rank(&["x"], &gold), 0.0);
    }
}
