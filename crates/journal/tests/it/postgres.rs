//! The suite on PostgreSQL, and what only PostgreSQL has.
