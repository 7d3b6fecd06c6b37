//! OpenAI-compatible Chat Completions, as pure functions between our values and its JSON.
