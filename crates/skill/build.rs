//! The built-in pack is part of this crate: a file that is added to it, or taken away, is a change of the crate.

fn main() {
    println!("cargo::rerun-if-changed=../../skills");
}
