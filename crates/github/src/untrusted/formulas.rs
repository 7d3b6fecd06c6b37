//! TeX formulas that hide text: phantoms, white and tiny text, definitions.

use std::sync::LazyLock;

use regex::Regex;

use super::markup::{MarkdownRanges, range_containing};
use super::{HiddenKind, RemovalCounts, separate_words};

/// The commands that draw all of their arguments legibly. Formulas with other commands are removed.
const DRAWN: &str = "\
    alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi omicron pi \
    varpi rho varrho sigma varsigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma \
    Upsilon Phi Psi Omega aleph hbar ell Re Im partial nabla infty emptyset varnothing forall exists nexists neg \
    lnot angle triangle square bullet star ast dagger prime degree circ ldots cdots vdots ddots dots dotsb dotsc \
    top bot pm mp times div cdot oplus ominus otimes odot cap cup uplus sqcap sqcup vee wedge lor land setminus \
    sum prod coprod int iint iiint oint bigcup bigcap bigvee bigwedge bigoplus bigotimes leq geq le ge lt gt ne \
    neq ll gg equiv sim simeq approx cong propto mid nmid parallel perp in notin ni subset supset subseteq \
    supseteq subsetneq vdash dashv models prec succ preceq succeq asymp coloneqq not leqslant geqslant to gets \
    rightarrow leftarrow leftrightarrow Rightarrow Leftarrow Leftrightarrow longrightarrow longleftarrow \
    Longrightarrow implies impliedby iff mapsto uparrow downarrow updownarrow hookrightarrow rightharpoonup \
    nearrow searrow sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln lg exp min max sup inf \
    lim limsup liminf det dim ker gcd deg arg Pr bmod pmod mod operatorname frac dfrac tfrac cfrac sqrt binom \
    tbinom dbinom over choose overline underline overbrace underbrace overset underset stackrel substack hat \
    widehat bar tilde widetilde vec dot ddot boxed limits nolimits displaystyle textstyle left right middle big \
    Big bigg Bigg bigl bigr Bigl Bigr biggl biggr lfloor rfloor lceil rceil langle rangle lvert rvert lVert \
    rVert vert Vert lbrace rbrace lbrack rbrack backslash text textbf textit textrm textsf texttt mathrm mathbf \
    mathit mathsf mathtt mathcal mathbb mathfrak mathscr boldsymbol bm mbox quad qquad begin end hline";

/// The environments that draw all of their content.
const ENVIRONMENTS: &str = "\
    matrix pmatrix bmatrix vmatrix Vmatrix Bmatrix smallmatrix cases aligned align align* gather gather* \
    gathered split equation equation*";

/// Matches the parts of formulas that have to be examined: commands, comments, shifted lines, and
/// negative spaces.
static SIGN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\\\\\s*\[|\\begin\s*\{([^{}]*)\}|\\([A-Za-z]+)|(?:\\!\s*){3,}|\\(?s:.)|%")
        .expect("the pattern is a constant")
});

fn is_listed(names: &str, name: &str) -> bool {
    names.split_ascii_whitespace().any(|known| known == name)
}

/// Returns the positions in TeX of constructs that may hide something.
fn suspect_positions(tex: &str) -> impl Iterator<Item = usize> {
    SIGN.captures_iter(tex).filter_map(|found| {
        let whole = found.get(0).expect("a match has a whole");
        let is_drawn = match (found.get(1), found.get(2)) {
            (Some(environment), _) => is_listed(ENVIRONMENTS, environment.as_str().trim()),
            (None, Some(command)) => is_listed(DRAWN, command.as_str()),
            // A backslash with one other character is a space or that character.
            (None, None) => {
                let sign = whole.as_str();
                sign.starts_with('\\') && sign.chars().count() == 2
            }
        };
        (!is_drawn).then(|| whole.start())
    })
}

/// Matches commands whose argument is not drawn, or drawn illegibly.
static HIDES: LazyLock<Regex> = LazyLock::new(|| {
    let commands = concat!(
        r"\\(?:[hv]?phantom|color|textcolor|definecolor|colorbox|fcolorbox|pagecolor|tiny|scriptscriptstyle|smash",
        r"|math[lrc]?lap|[lrc]lap|raise|lower|raisebox|kern|mkern|hskip|hspace|mspace|hfil|newcommand|renewcommand",
        r"|providecommand|def|gdef|edef|xdef|let|label|href|url|class|cssId|style|data|htmlData|htmlId|htmlClass",
        r"|htmlStyle|mathtip|texttip|toggle|bbox|require|unicode|special|iffalse|if|begingroup|resizebox|scalebox",
        r"|transparent|opacity|hidden|invisible|mathchoice)",
    );
    Regex::new(&format!(r"(?i){commands}(?:[^A-Za-z]|\z)")).expect("the pattern is a constant")
});

/// Returns true if a block of math hides something.
pub(super) fn hides_in_block(block: &str) -> bool {
    HIDES.is_match(block) || suspect_positions(block).next().is_some()
}

/// Removes formulas between dollar signs that hide something.
pub(super) fn without_hidden_text(text: &str, counts: &mut RemovalCounts) -> String {
    if !text.contains('$') {
        return text.to_owned();
    }
    let text = without_commands(text, counts);
    without_suspects(&text, counts)
}

/// Removes formulas with a command that is known to hide text, however their dollar signs are
/// placed.
fn without_commands(text: &str, counts: &mut RemovalCounts) -> String {
    let commands = HIDES.find_iter(text).map(|found| found.start());
    without_formulas(text, commands, counts, |dollars, at| {
        let (start, end) = dollars.pair_around(at)?;
        let is_apart = text[start..at].contains("\n\n");
        (!is_apart || text[start..end].starts_with("$$")).then_some((start, end))
    })
}

/// Removes formulas with constructs that are not known to be drawn.
fn without_suspects(text: &str, counts: &mut RemovalCounts) -> String {
    let ranges = MarkdownRanges::find_ranges(text);
    let outside =
        suspect_positions(text).filter(|at| range_containing(&ranges.blocks, *at).is_none());
    without_formulas(text, outside, counts, |dollars, at| {
        match range_containing(&ranges.spans, at) {
            // A formula may also be written in backticks between dollar signs.
            Some(span) => (text[..span.start].ends_with('$') && text[span.end..].starts_with('$'))
                .then(|| (span.start - 1, span.end + 1)),
            None => dollars.pair_around(at).filter(|found| is_formula(text, *found)),
        }
    })
}

/// Removes the formulas around the given positions, which must be ascending.
fn without_formulas(
    text: &str,
    places: impl Iterator<Item = usize>,
    counts: &mut RemovalCounts,
    formula: impl Fn(&DollarSigns, usize) -> Option<(usize, usize)>,
) -> String {
    let dollars = DollarSigns::find_all(text);
    let mut out = String::with_capacity(text.len());
    let mut last = 0;
    let mut rejected = 0..0;
    for at in places {
        if at < last || rejected.contains(&at) {
            continue;
        }
        let Some((start, end)) = formula(&dollars, at).filter(|(start, _)| *start >= last) else {
            rejected = at..dollars.next_after(at);
            continue;
        };
        counts.add(HiddenKind::Formula);
        out.push_str(&text[last..start]);
        last = end;
        separate_words(&mut out, &text[last..]);
    }
    out.push_str(&text[last..]);
    out
}

/// The positions of the dollar signs in a text.
struct DollarSigns {
    places: Vec<usize>,
    text_end: usize,
}

impl DollarSigns {
    fn find_all(text: &str) -> Self {
        let places = text.match_indices('$').map(|(at, _)| at).collect();
        DollarSigns { places, text_end: text.len() }
    }

    /// Returns the position of the next dollar sign, or the end of the text.
    fn next_after(&self, at: usize) -> usize {
        let after = self.places.partition_point(|place| *place < at);
        self.places.get(after).copied().unwrap_or(self.text_end)
    }

    /// Returns the nearest dollar signs around a position, with adjacent ones.
    fn pair_around(&self, at: usize) -> Option<(usize, usize)> {
        let after = self.places.partition_point(|place| *place < at);
        let (mut first, mut last) = (after.checked_sub(1)?, after);
        self.places.get(last)?;
        while first > 0 && self.places[first - 1] + 1 == self.places[first] {
            first -= 1;
        }
        while self.places.get(last + 1) == Some(&(self.places[last] + 1)) {
            last += 1;
        }
        Some((self.places[first], self.places[last] + 1))
    }
}

/// Returns true if dollar signs delimit a formula. Those of prices and variables do not.
fn is_formula(text: &str, (start, end): (usize, usize)) -> bool {
    let formula = &text[start..end];
    if formula.starts_with("$$") {
        return true;
    }
    let inner = formula.trim_matches('$');
    let is_close = !inner.starts_with(char::is_whitespace) && !inner.ends_with(char::is_whitespace);
    let is_ended = !text[end..].starts_with(char::is_alphanumeric);
    is_close && is_ended && !inner.contains("\n\n")
}
