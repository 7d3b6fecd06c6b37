//! Anthropic Messages, as pure functions between our values and its JSON.
