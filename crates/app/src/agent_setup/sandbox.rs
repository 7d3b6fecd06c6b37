//! Selects the sandbox as configured, and refuses one that lacks a required guarantee.

use std::collections::BTreeSet;

use repertoire_sandbox::confinement::{LazySandbox, Sandbox, SandboxGuarantee};
use repertoire_skill::name::nearest_name;

use crate::config::{KEY, SandboxSetting};
use crate::context::AppContext;
use crate::error::AppError;

impl AppContext<'_> {
    /// Returns the sandbox for the programs of agents.
    pub fn configured_sandbox(&self) -> Result<LazySandbox, AppError> {
        let setting = self.config.values().sandbox;
        let demanded = self.demanded_guarantees()?;
        if setting == SandboxSetting::Off {
            return Ok(Sandbox::None.into());
        }
        let sandbox = self.env.probe_sandbox();
        if setting == SandboxSetting::Require {
            refuse_lacking(&sandbox, &demanded)?;
        }
        Ok(sandbox)
    }

    /// Returns the sandbox of this machine, even if the configuration does not accept it. For
    /// reports.
    pub fn sandbox_as_found(&self) -> LazySandbox {
        match self.config.values().sandbox {
            SandboxSetting::Off => Sandbox::None.into(),
            SandboxSetting::Auto | SandboxSetting::Require => self.env.probe_sandbox(),
        }
    }

    /// Returns the guarantees required by `sandbox = "require"`: all, unless the configuration
    /// names fewer.
    fn demanded_guarantees(&self) -> Result<BTreeSet<SandboxGuarantee>, AppError> {
        let Some(names) = &self.config.values().sandbox_requires else {
            return Ok(SandboxGuarantee::ALL.iter().copied().collect());
        };
        let origin = self.config.describe_origin(&KEY.sandbox_requires);
        names.iter().map(|name| parse_guarantee(name, &origin)).collect()
    }
}

fn parse_guarantee(name: &str, origin: &str) -> Result<SandboxGuarantee, AppError> {
    name.parse().map_err(|error| {
        let names = SandboxGuarantee::ALL.iter().map(|guarantee| guarantee.name());
        let near = nearest_name(name, names.clone()).map(|near| format!("Did you mean `{near}`?"));
        let all = format!("There are: {}.", names.collect::<Vec<_>>().join(", "));
        let key = KEY.sandbox_requires.name;
        let failure = AppError::wrong_usage(format!("{origin}: {key}: {error}"));
        if name.contains(',') {
            return failure.hint("Separate the items of a list in a variable with `;`.").hint(all);
        }
        failure.hint(near.unwrap_or(all))
    })
}

/// Fails if the sandbox lacks a guarantee, with a hint for each.
fn refuse_lacking(
    sandbox: &Sandbox,
    demanded: &BTreeSet<SandboxGuarantee>,
) -> Result<(), AppError> {
    let held = sandbox.guarantees();
    let lacking: Vec<SandboxGuarantee> = demanded.difference(&held).copied().collect();
    if lacking.is_empty() && sandbox.is_enforced() {
        return Ok(());
    }
    if !sandbox.is_enforced() {
        return Err(AppError::cannot_run(sandbox.describe())
            .hint("`sandbox = \"require\"` in the configuration asks for one."));
    }
    let message = format!(
        "`sandbox = \"require\"` demands guarantees that the sandbox of this machine lacks: {}",
        join_names(&lacking)
    );
    let narrower: Vec<String> =
        demanded.intersection(&held).map(|guarantee| format!("\"{guarantee}\"")).collect();
    let failure = AppError::cannot_run(message).hint(sandbox.describe());
    let failure = sandbox.degradations().into_iter().fold(failure, AppError::hint);
    Err(failure.hint(format!(
        "To do without them, write `{} = [{}]` into your configuration.",
        KEY.sandbox_requires.name,
        narrower.join(", ")
    )))
}

fn join_names(guarantees: &[SandboxGuarantee]) -> String {
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
        let refused = parse_guarantee("network-of", "repertoire.toml:1").unwrap_err();
        assert!(refused.message.contains("`network-of` is not a guarantee"), "{refused:?}");
        assert!(refused.hints.iter().any(|hint| hint.contains("`network-off`")), "{refused:?}");
        let refused = parse_guarantee("network-off,files-confined", "$X").unwrap_err();
        assert!(refused.hints[0].contains("with `;`"), "{refused:?}");
    }
}
