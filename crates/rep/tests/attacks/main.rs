//! Attacks on the real binary, one guarantee a line.
//!
//! Every guarantee is tried in situations that this machine can offer: as root with user namespaces and as `nobody`
//! without, or in all four combinations with `ATTACKS_FULL=1`. `cargo test -p repertoire-cli attacks` runs them,
//! `cargo test -p repertoire-cli --test attacks -- nobody` only some. `REPERTOIRE_ATTACKED=/path/to/rep` attacks another binary, for instance an older release.

#![allow(clippy::unwrap_used, reason = "an attack that cannot be set up should stop there")]

mod backends;
mod consent;
mod effects;
mod files;
mod gates;
mod git;
mod hidden_text;
mod leases;
mod processes;
mod project;
mod scene;
mod server;
mod walls;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

use self::scene::{Scene, Situation};

/// Something that must hold, whatever the attacker does.
pub(crate) struct Guarantee {
    /// The sentence that holds, as the output shows it.
    pub(crate) holds: &'static str,
    /// The situations in which to try it.
    pub(crate) tried: Tried,
    /// The attack; panics when the guarantee is broken.
    pub(crate) attack: Attack,
}

/// The situations in which a guarantee is tried.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tried {
    /// All of [`Situation::tried`]: the walls or the account matter.
    InEverySituation,
    /// As [`Tried::InEverySituation`], but only as with [`Tried::Once`] in the short form: the walls hardly matter.
    OnceInShortForm,
    /// As [`Tried::InEverySituation`], but ignored in the short form: it uses up the machine, or another guarantee
    /// includes it.
    InFullForm,
    /// Only as the account that runs the tests, with the best walls: neither matters.
    Once,
}

/// An attack on a scene; panics when the guarantee is broken.
pub(crate) type Attack = fn(&Scene);

/// The guarantees of an area.
type Guarantees = fn() -> Vec<Guarantee>;

/// The areas of the suite, each with its guarantees.
const AREAS: &[(&str, Guarantees)] = &[
    ("walls", walls::guarantees),
    ("processes", processes::guarantees),
    ("backends", backends::guarantees),
    ("files", files::guarantees),
    ("consent", consent::guarantees),
    ("git", git::guarantees),
    ("effects", effects::guarantees),
    ("gates", gates::guarantees),
    ("hidden_text", hidden_text::guarantees),
    ("leases", leases::guarantees),
    ("server", server::guarantees),
    ("project", project::guarantees),
];

fn main() -> ExitCode {
    if let Some(code) = scene::become_without_user_namespaces() {
        return code;
    }
    let mut arguments = Arguments::from_args();
    // With so many processes of their own, more attacks at once than cores would only time each other out.
    arguments.test_threads.get_or_insert(2);
    libtest_mimic::run(&arguments, trials()).exit_code()
}

fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (area, guarantees) in AREAS {
        for guarantee in guarantees() {
            for situation in Situation::tried() {
                let is_once = match guarantee.tried {
                    Tried::Once => true,
                    Tried::OnceInShortForm => !scene::is_full(),
                    Tried::InEverySituation | Tried::InFullForm => false,
                };
                if is_once && situation != Situation::own() {
                    continue;
                }
                trials.push(trial(area, &guarantee, situation));
            }
        }
    }
    trials
}

fn trial(area: &str, guarantee: &Guarantee, situation: Situation) -> Trial {
    let name = format!("attacks::{area} [{situation}] {}", guarantee.holds);
    let attack = guarantee.attack;
    let tried = move || -> Result<(), Failed> {
        attack(&Scene::new(situation));
        Ok(())
    };
    let is_for_full = guarantee.tried == Tried::InFullForm && !scene::is_full();
    Trial::test(name, tried).with_ignored_flag(is_for_full || !situation.is_offered())
}
