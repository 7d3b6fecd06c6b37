//! How long it takes to index a catalog, to read an index back and to answer a task, and how much room the
//! index takes.
//!
//! `cargo bench -p repertoire-select` makes catalogs of 1,000, 10,000 and 100,000 skills whose words are as
//! frequent as among public skills, and asks each 400 tasks on one thread. Figures are medians over tasks,
//! of which each counts the best of five times: what else the machine does is not measured. Other sizes can
//! follow: `cargo bench -p repertoire-select -- 5000`.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark may print and give up as it likes"
)]

use std::time::Instant;

use repertoire_select::background::{BackgroundFrequencies, FrequencyPart};
use repertoire_select::{
    SelectionModel, SelectionSettings, SkillDocument, SkillIndex, SkillSelector, Task,
};

/// The allocator that `rep` uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TASKS: usize = 400;

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, end: usize) -> usize {
        (self.roll() * end as f64) as usize
    }
}

/// Words with the frequencies of public skills.
struct Words {
    words: Vec<&'static str>,
    /// Sums of shares, so that a number between 0 and the last falls on a word.
    sums: Vec<f64>,
}

impl Words {
    fn new(part: FrequencyPart) -> Self {
        let background = BackgroundFrequencies::embedded();
        let (mut words, mut sums, mut sum) = (Vec::new(), Vec::new(), 0.0);
        for stem in background.stems() {
            let share = f64::from(background.share_of_stem(stem, part));
            if share > 0.0 && share < 0.5 {
                sum += share;
                words.push(stem);
                sums.push(sum);
            }
        }
        Words { words, sums }
    }

    fn any(&self, dice: &mut Dice) -> &'static str {
        let wanted = dice.roll() * self.sums.last().unwrap();
        self.words[self.sums.partition_point(|sum| *sum < wanted).min(self.words.len() - 1)]
    }

    fn text(&self, dice: &mut Dice, length: usize, line: usize) -> String {
        let mut text = String::new();
        for at in 0..length {
            text.push_str(self.any(dice));
            text.push_str(if at % line == line - 1 { ".\n" } else { " " });
        }
        text
    }
}

struct Skill {
    name: String,
    description: String,
    body: String,
}

fn skills(count: usize) -> Vec<Skill> {
    let (head, whole) = (Words::new(FrequencyPart::Head), Words::new(FrequencyPart::Whole));
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let skill = |at: usize| {
        let mut body = String::new();
        for _ in 0..8 + dice.below(8) {
            body.push_str(&format!("## {}\n\n", whole.text(&mut dice, 3, 9).trim()));
            let length = 25 + dice.below(50);
            body.push_str(&whole.text(&mut dice, length, 12));
            body.push('\n');
        }
        let length = 20 + dice.below(40);
        Skill {
            name: format!("{}-{}-{at}", head.any(&mut dice), head.any(&mut dice)),
            description: head.text(&mut dice, length, 15),
            body,
        }
    };
    (0..count).map(skill).collect()
}

/// Tasks as people write them: some words of a skill's description, some of the world.
fn tasks(skills: &[Skill]) -> Vec<Task> {
    let mut dice = Dice(42);
    let whole = Words::new(FrequencyPart::Whole);
    let task = |_| {
        let skill = &skills[dice.below(skills.len())];
        let words: Vec<&str> = skill.description.split_whitespace().collect();
        let start = dice.below(words.len().saturating_sub(8).max(1));
        let mut text = words[start..(start + 6).min(words.len())].join(" ");
        text.push_str(" for the ");
        text.push_str(&whole.text(&mut dice, 4, 9));
        Task::new(text)
    };
    (0..TASKS).map(task).collect()
}

fn main() {
    println!(
        "{:>8}  {:>9}  {:>9}  {:>9}  {:>9}  {:>11}",
        "skills", "build", "read", "p50", "p99", "index/skill"
    );
    let given: Vec<usize> = std::env::args().filter_map(|size| size.parse().ok()).collect();
    let counts = if given.is_empty() { vec![1_000, 10_000, 100_000] } else { given };
    for count in counts {
        let skills = skills(count);
        let ids: Vec<String> = (0..count).map(|at| format!("skill-{at:06}")).collect();
        let documents: Vec<SkillDocument<'_>> = skills
            .iter()
            .zip(&ids)
            .map(|(skill, id)| SkillDocument::new(id, &skill.name, &skill.description, &skill.body))
            .collect();
        let start = Instant::now();
        let selector = SkillSelector::new(
            &documents,
            SelectionModel::embedded(),
            SelectionSettings::default(),
            None,
        );
        let build = start.elapsed();
        let tasks = tasks(&skills);
        let mut times: Vec<_> = tasks
            .iter()
            .map(|task| {
                let once = |_| {
                    let start = Instant::now();
                    std::hint::black_box(selector.select(task));
                    start.elapsed()
                };
                (0..5).map(once).min().unwrap()
            })
            .collect();
        times.sort_unstable();
        let bytes = selector.index().write();
        let read = (0..5).map(|_| {
            let bytes = bytes.clone();
            let start = Instant::now();
            std::hint::black_box(SkillIndex::read(bytes)).unwrap();
            start.elapsed()
        });
        let read = read.min().unwrap();
        println!(
            "{count:>8}  {:>6.0} ms  {:>6.1} ms  {:>6.0} µs  {:>6.0} µs  {:>9} B",
            build.as_secs_f64() * 1e3,
            read.as_secs_f64() * 1e3,
            times[TASKS / 2].as_secs_f64() * 1e6,
            times[TASKS * 99 / 100].as_secs_f64() * 1e6,
            selector.index().memory_bytes() / count,
        );
    }
}
