//! A scripted model server for tests: it speaks both protocols, streamed and not, and fails on command.
