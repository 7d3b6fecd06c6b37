//! Who may do what: allow, ask or deny, by tool and pattern.

/// Our name for a tool that others may know by another.
pub(crate) fn canonical(name: &str) -> String {
    name.to_lowercase()
}
