//! Finds a skill and puts it into a conversation, once: `cargo run -p repertoire-skill --example serve -- DIR NAME`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use std::error::Error;

use camino::Utf8PathBuf;
use repertoire_skill::activate::{ActivationBudget, ActivationRequest as Activate};
use repertoire_skill::discover::{DiscoveryRequest, discover_catalog};
use repertoire_skill::ledger::{Ledger, LedgerRecordOutcome};
use repertoire_skill::profile::{ProfileId, SearchDirectories};
use repertoire_skill::render::{
    catalog::render_catalog, skill_content::skill_content, tool_result,
};
use repertoire_text::{Severity, terminal};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let here = Utf8PathBuf::from(args.next().unwrap_or_else(|| ".".to_owned()));
    let name = args.next().unwrap_or_else(|| "error-analyzer".to_owned());

    // Nothing in the library asks the environment: the caller says where the user stands and lives.
    let data = tempfile::tempdir()?;
    let data = Utf8PathBuf::try_from(data.path().to_owned())?;
    let here = here.canonicalize_utf8()?;
    let places = SearchDirectories { here, home: data.join("home"), pack: data.join("pack") };
    let skills = discover_catalog(&DiscoveryRequest::new(ProfileId::Repertoire, places));

    // What was wrong is a value as well. Nothing was skipped without one.
    for found in skills.diagnostics().iter().filter(|found| found.severity != Severity::Info) {
        eprint!("{}", terminal::render_diagnostic(found, None, terminal::TerminalColour::Never));
    }

    // What a model is told of, in at most 1,000 characters.
    print!("{}", render_catalog(skills.entries(), &[&name], 1_000).text);

    // What it is given when it asks. The ledger knows what is in the conversation already.
    let mut ledger = Ledger::default();
    let budget = ActivationBudget { body_chars_max: 400, ..ActivationBudget::default() };
    let request = Activate { arguments: "build.log", budget, ..Activate::default() };
    for now_ms in [0, 60_000] {
        let entry = match skills.resolve(&name) {
            Ok(entry) => entry,
            Err(error) => {
                println!("{}", tool_result::not_found(&error, skills.entries()));
                return Ok(());
            }
        };
        let (activation, recorded) = ledger.activate(entry, &request, now_ms);
        match recorded.outcome {
            LedgerRecordOutcome::AlreadyActive => {
                println!("{}", tool_result::already_active(&activation))
            }
            LedgerRecordOutcome::Activated
            | LedgerRecordOutcome::Extended
            | LedgerRecordOutcome::Changed { .. } => {
                print!("{}", skill_content(&activation));
            }
        }
    }
    Ok(())
}
