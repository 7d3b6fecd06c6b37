//! The client against a scripted server: both protocols, streamed and not.

mod answers;
mod faults;
mod support;
