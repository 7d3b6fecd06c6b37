//! Who may do what: allow, ask or deny, by tool and pattern.
