use super::*;

#[test]
fn placeholder() {
    assert!(find("", &|_| None).errors.is_empty());
}
