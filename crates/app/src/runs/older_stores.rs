//! The stores of earlier versions, which kept conversations, workflows and reviews outside of the journal.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs;

const OLDER_STORES: [&str; 3] = ["conversations", "workflows", "reviews"];

/// Returns the older stores in the data folder that hold something. They are left as they are.
pub fn find_older_stores(data: &Utf8Path) -> Vec<Utf8PathBuf> {
    let holds_something =
        |dir: &Utf8PathBuf| fs::list_entries(dir).is_ok_and(|mut entries| entries.next().is_some());
    OLDER_STORES.iter().map(|name| data.join(name)).filter(holds_something).collect()
}

/// Describes older stores in a sentence; `None` if there are none.
pub fn describe_older_stores(
    stores: &[Utf8PathBuf],
    shorten: impl Fn(&Utf8Path) -> String,
) -> Option<String> {
    if stores.is_empty() {
        return None;
    }
    let names: Vec<String> = stores.iter().map(|dir| shorten(dir)).collect();
    Some(format!(
        "records of an earlier version are not listed and stay as they are; delete them if you don't need them: {}",
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_stores_that_hold_something_are_named() {
        let keep = tempfile::tempdir().unwrap();
        let data = Utf8Path::from_path(keep.path()).unwrap();
        assert_eq!(find_older_stores(data), Vec::<Utf8PathBuf>::new());
        assert_eq!(describe_older_stores(&[], |dir| dir.to_string()), None);
        std::fs::create_dir_all(data.join("workflows")).unwrap();
        std::fs::create_dir_all(data.join("reviews/0123")).unwrap();
        let found = find_older_stores(data);
        assert_eq!(found, [data.join("reviews")]);
        let text = describe_older_stores(&found, |dir| dir.to_string()).unwrap();
        assert!(text.ends_with(data.join("reviews").as_str()), "{text}");
    }
}
