//! Caps on what comes from servers, and on waiting.
