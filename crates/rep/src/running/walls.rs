//! Selects the sandbox as configured, and refuses one that lacks a required guarantee.

use std::collections::BTreeSet;

use repertoire_sandbox::confinement::{Guarantee, Probed, Sandbox};
use repertoire_skill::name::nearest;

use crate::cli::Ctx;
use crate::env::Env;
use crate::failure::Failure;

/// The key that restricts the guarantees required by `sandbox = "require"`.
const REQUIRES: &str = "sandbox_requires";

impl Ctx<'_> {
    /// Returns the sandbox for the programs of agents.
    pub(crate) fn sandbox(&self) -> Result<Probed, Failure> {
        let word = self.config.text("sandbox").unwrap_or("auto");
        let demanded = self.demanded_guarantees()?;
        if word == "off" {
            return Ok(Sandbox::None.into());
        }
        let sandbox = Env::sandbox();
        if word == "require" {
            refuse_lacking(&sandbox, &demanded)?;
        }
        Ok(sandbox)
    }

    /// Returns the sandbox of this machine, even if the configuration does not accept it. For
    /// reports.
    pub(crate) fn sandbox_as_found(&self) -> Probed {
        match self.config.text("sandbox") {
            Some("off") => Sandbox::None.into(),
            _ => Env::sandbox(),
        }
    }

    /// Returns the guarantees required by `sandbox = "require"`: all, unless the configuration
    /// names fewer.
    fn demanded_guarantees(&self) -> Result<BTreeSet<Guarantee>, Failure> {
        if !self.config.is_set(REQUIRES) {
            return Ok(Guarantee::ALL.iter().copied().collect());
        }
        let names = self.config.texts(REQUIRES);
        names.iter().map(|name| guarantee(name, &self.config.origin(REQUIRES))).collect()
    }
}

fn guarantee(name: &str, origin: &str) -> Result<Guarantee, Failure> {
    name.parse().map_err(|error| {
        let names = Guarantee::ALL.iter().map(|guarantee| guarantee.name());
        let near = nearest(name, names.clone()).map(|near| format!("Did you mean `{near}`?"));
        let all = format!("There are: {}.", names.collect::<Vec<_>>().join(", "));
        let failure = Failure::usage(format!("{origin}: {REQUIRES}: {error}"));
        if name.contains(',') {
            return failure.hint("Separate the items of a list in a variable with `;`.").hint(all);
        }
        failure.hint(near.unwrap_or(all))
    })
}

/// Fails if the sandbox lacks a guarantee, with a hint for each.
fn refuse_lacking(sandbox: &Sandbox, demanded: &BTreeSet<Guarantee>) -> Result<(), Failure> {
    let held = sandbox.guarantees();
    let lacking: Vec<Guarantee> = demanded.difference(&held).copied().collect();
    if lacking.is_empty() && sandbox.is_enforced() {
        return Ok(());
    }
    if !sandbox.is_enforced() {
        return Err(Failure::cannot_run(sandbox.describe())
            .hint("`sandbox = \"require\"` in the configuration asks for one."));
    }
    let message = format!(
        "`sandbox = \"require\"` demands guarantees that the sandbox of this machine lacks: {}",
        join_names(&lacking)
    );
    let narrower: Vec<String> =
        demanded.intersection(&held).map(|guarantee| format!("\"{guarantee}\"")).collect();
    let failure = Failure::cannot_run(message).hint(sandbox.describe());
    let failure = sandbox.degradations().into_iter().fold(failure, Failure::hint);
    Err(failure.hint(format!(
        "To do without them, write `{REQUIRES} = [{}]` into your configuration.",
        narrower.join(", ")
    )))
}

fn join_names(guarantees: &[Guarantee]) -> String {
    guarantees.iter().map(|guarantee| guarantee.name()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn require_refuses_no_sandbox_at_all() {
        let none = Sandbox::Unavailable { reason: "there is none".into() };
        let refused = refuse_lacking(&none, &BTreeSet::new()).unwrap_err();
        assert!(refused.message.contains("there is none"), "{refused:?}");
    }

    #[test]
    fn a_guarantee_that_does_not_exist_is_refused_with_the_nearest_name() {
        let refused = guarantee("network-of", "repertoire.toml:1").unwrap_err();
        assert!(refused.message.contains("`network-of` is not a guarantee"), "{refused:?}");
        assert!(refused.hints.iter().any(|hint| hint.contains("`network-off`")), "{refused:?}");
        let refused = guarantee("network-off,files-confined", "$X").unwrap_err();
        assert!(refused.hints[0].contains("with `;`"), "{refused:?}");
    }
}
