//! What keeps programs in their place: probed once, and a lack of it is told, never silent.

/// What keeps programs in their place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Sandbox {
    /// Nothing does; the reason is for the user.
    #[default]
    None,
}
#[allow(missing_docs)]
impl Sandbox {
    pub fn is_enforced(&self) -> bool {
        false
    }
    pub fn describe(&self) -> String {
        "without a sandbox".into()
    }
    pub fn degradations(&self) -> Vec<String> {
        vec![]
    }
}
