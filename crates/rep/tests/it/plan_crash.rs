//! Plans that are worked through while processes are killed, frozen and told to stop: nothing that was acknowledged is
//! lost, nothing counts twice, and every plan is done in the end.
//!
//! `REPERTOIRE_LONG=1` kills 300 times instead of a few; `REPERTOIRE_SEED` repeats the choices of a run that failed.

pub(crate) mod audit;
pub(crate) mod disk;
pub(crate) mod field;
mod frozen;
mod kills;
mod mending;
mod signals;
