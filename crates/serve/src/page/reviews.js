// Reviews: what was found in a change, in its place, and what was left out and why.

import { all, get, isAttended, part, stream } from "./api.js";
import { bar } from "./charts.js";
import { fileDiff } from "./diff.js";
import { ago, arrows, chip, command, copier, count, debounce, dollars, empty, failure, h, icon, keyed, more, number, replace, segments, skeleton, span, status, words } from "./ui.js";

const SEVERITIES = ["critical", "major", "minor", "suggestion"];
const LOOK = { critical: "bad", major: "warn", minor: "accent", suggestion: "" };
const BAR = { critical: "cbad", major: "c2", minor: "c1", suggestion: "c4" };
const low = (severity) => String(severity ?? "").toLowerCase();
const severity = (word) => chip(low(word), LOOK[low(word)]);

/** Reviews that are shown at first, and how many more each time. */
const ROWS = 100;

export function mount(root, to) {
  const view = new Reviews(root);
  view.update(to);
  return view;
}

class Reviews {
  constructor(root) {
    this.root = root;
    this.most = ROWS;
    const refresh = debounce(() => this.id || this.gone || this.load(), 250);
    this.unlisten = stream.listen((event) => {
      if (event.kind === "resync" || isAttended(event)) refresh();
    });
  }

  update(to) {
    this.asking?.abort();
    this.id = to.parts[0] ?? null;
    this.list = null;
    replace(this.root, skeleton(6));
    if (this.id) this.loadOne();
    else this.load();
  }

  back() {
    if (this.id) location.hash = "#/reviews";
  }

  destroy() {
    this.unlisten();
    this.gone = true;
    this.asking?.abort();
  }

  async load() {
    document.title = "Reviews · Repertoire";
    this.asking?.abort();
    const asking = (this.asking = new AbortController());
    try {
      const [page, live] = await Promise.all([all("/reviews", {}, { max: this.most, signal: asking.signal }), get("/runs", { kind: "review", status: "running", here: true }, asking.signal)]);
      if (!this.list) this.build();
      const rows = [...live.items.filter((run) => !run.interrupted), ...page.items];
      if (rows.length) keyed(this.list, rows, (one) => one.id, (one) => (one.kind === "review" ? liveRow(one) : reviewRow(one)));
      else replace(this.list, h("li", {}, empty("No reviews yet", "A review looks at what has changed since the last commit.", command("rep review"))));
      replace(this.rest, more(page, () => { this.most += ROWS; this.load(); }));
    } catch (error) {
      if (error.name === "AbortError") return;
      this.list = null;
      replace(this.root, failure(error, () => this.load()));
    }
  }

  build() {
    this.list = arrows(h("ul", { class: "card rows", "aria-label": "Reviews" }), "a.review-row");
    this.rest = h("p", { class: "list-note" });
    replace(this.root,
      h("div", { class: "view-head" }, h("div", { class: "view-head-text" }, h("h1", {}, "Reviews"), h("p", {}, "Findings in the changes they are about."))), this.list, this.rest);
  }

  async loadOne() {
    const asking = (this.asking = new AbortController());
    const back = () => h("a", { class: "back-link", href: "#/reviews" }, icon("back"), "All reviews");
    try {
      const [review, change] = await Promise.all([
        get(`/reviews/${part(this.id)}`, {}, asking.signal),
        get(`/reviews/${part(this.id)}/change`, {}, asking.signal).catch((error) => { if (error.name === "AbortError") throw error; return null; }),
      ]);
      document.title = `Review ${review.id} · Repertoire`;
      replace(this.root, back(), one(review, change));
    } catch (error) {
      if (error.name !== "AbortError") replace(this.root, back(), failure(error, () => this.loadOne()));
    }
  }
}

const severityParts = (counts) => SEVERITIES.map((word) => [word, counts[word] ?? 0, BAR[word]]);

function countsOf(findings) {
  const counts = {};
  for (const one of findings) counts[low(one.severity)] = (counts[low(one.severity)] ?? 0) + 1;
  return counts;
}

function chips(counts) {
  const there = SEVERITIES.filter((word) => counts[word]);
  return there.length ? there.map((word) => chip(`${counts[word]} ${word}`, LOOK[word])) : chip("nothing found", "ok");
}

/** A review that is under way: it has no record yet, so the run is shown. */
function liveRow(run) {
  return h("a", { class: "review-row", href: `#/runs/${part(run.id)}` },
    h("span", { class: "review-main" }, h("span", { class: "item-name" }, run.name), h("span", { class: "faint" }, `${count(run.steps, "agent")} answered`)),
    h("span", { class: "row" }, status("running")),
    h("span", { class: "faint mono" }, run.short),
    h("span", { class: "faint run-when" }, ago(run.created_ms)));
}

function reviewRow(row) {
  if (row.broken) return h("div", { class: "review-row" }, h("span", { class: "review-main" }, h("span", { class: "item-name" }, row.id), h("span", { class: "faint" }, row.broken)), chip("cannot be read", "bad"));
  const counts = row.counts ?? {};
  return h("a", { class: "review-row", href: `#/reviews/${part(row.id)}` },
    h("span", { class: "review-main" }, h("span", { class: "item-name" }, row.scope), h("span", { class: "faint" }, `${count(row.files, "file")} · ${row.depth}`)),
    h("span", { class: "row" }, chips(counts)),
    h("span", { class: "faint mono" }, row.id.slice(-8)),
    h("span", { class: "faint run-when" }, ago(row.started_ms)));
}

function one(review, change) {
  const counts = countsOf(review.findings);
  const place = h("div", { class: "stack" });
  const draw = (only) => replace(place, inFiles(review, change, only));
  draw("");
  const filter = segments("Severity", [["", "All"], ...SEVERITIES.filter((word) => counts[word]).map((word) => [word, words(word)])], "", draw);
  for (const word of SEVERITIES) filter.count(word, counts[word]);
  const cost = review.calls.reduce((sum, call) => sum + (call.cost_usd ?? 0), 0);
  const added = review.files.reduce((sum, file) => sum + file.added, 0);
  const removed = review.files.reduce((sum, file) => sum + file.removed, 0);
  return h("div", { class: "stack" },
    h("header", { class: "stack-small" },
      h("h1", {}, `Review of ${review.scope.words}`),
      h("p", { class: "row soft" }, chips(counts), h("span", {}, count(review.files.length, "file")), h("span", { class: "plus" }, `+${added}`), h("span", { class: "minus" }, `−${removed}`), h("span", {}, `${review.depth}, ${span(review.duration_ms)}${cost ? `, ${dollars(cost)}` : ""}`), ago(review.started_ms)),
      review.findings.length > 0 && bar(severityParts(counts), { label: "Findings", thin: true })),
    review.warnings.map((text) => h("p", { class: "note warn" }, icon("warn", 15), h("span", {}, text))),
    review.insights.length > 0 && h("section", { class: "stack-small" }, h("h2", {}, "What findings mean together"), review.insights.map(insight)),
    review.findings.length > 0 && h("div", { class: "scroll-x" }, filter),
    place,
    review.test_recommendations.length > 0 && h("section", { class: "stack-small" }, h("h2", {}, "Tests that would have caught something"), h("ul", { class: "card card-pad plain" }, review.test_recommendations.map((one) => h("li", {}, one.test, one.catches && [" ", chip(one.catches, "line")], one.file && [" ", h("span", { class: "path" }, one.file)])))),
    leftOut(review),
    h("details", { class: "more" }, h("summary", {}, "How it was done"), about(review)));
}

function inFiles(review, change, only) {
  const findings = review.findings.filter((one) => !only || low(one.severity) === only);
  const byFile = Map.groupBy ? Map.groupBy(findings, (one) => one.file) : group(findings);
  const files = change?.files ?? [];
  const known = new Set(files.map((file) => file.path));
  const lost = findings.filter((one) => !known.has(one.file));
  const withFindings = files.filter((file) => byFile.has(file.path));
  const without = only ? [] : files.filter((file) => !byFile.has(file.path));
  if (!findings.length && !files.length) return empty("Nothing found", "No finding stood up to a second look.");
  return [
    withFindings.map((file) => reviewedFile(file, byFile.get(file.path))),
    lost.map((one) => h("div", { class: "stack-small" }, h("p", { class: "path" }, `${one.file}:${lineWords(one.lines)}`), findingCard(one, true))),
    without.map((file) => reviewedFile(file, [])),
  ];
}

function group(findings) {
  const map = new Map();
  for (const one of findings) map.set(one.file, [...(map.get(one.file) ?? []), one]);
  return map;
}

const lineWords = (lines) => (lines.first === lines.last ? `${lines.first}` : `${lines.first}–${lines.last}`);

function reviewedFile(file, findings) {
  const kinds = { context: "same", added: "add", removed: "del" };
  const lines = file.hunks.flatMap((hunk, at) => [...(at === 0 && hunk.new_start <= 1 ? [] : [{ kind: "hunk", text: hunk.section ?? "" }]), ...hunk.lines.map((line) => ({ kind: kinds[line.kind], old: line.old ?? null, now: line.new ?? null, text: line.text }))]);
  const shown = new Set(lines.map((line) => line.now));
  const put = new Set();
  const below = (line) => {
    const here = findings.filter((one) => !put.has(one) && line.now !== null && line.now === lastShown(one.lines, shown));
    here.forEach((one) => put.add(one));
    return here.length ? here.map((one) => findingCard(one)) : null;
  };
  const linesOf = (kind) => lines.filter((line) => line.kind === kind).length;
  const entry = { path: file.path, from: file.old_path ?? null, added: linesOf("add"), removed: linesOf("del"), lines, badge: findings.length > 0 && chips(countsOf(findings)) };
  const drawn = fileDiff(entry, { below, open: findings.length > 0 });
  const homeless = findings.filter((one) => lastShown(one.lines, shown) === null);
  return homeless.length ? h("div", { class: "stack-small" }, drawn, homeless.map((one) => findingCard(one, true))) : drawn;
}

/** The last of the lines that the diff shows. */
function lastShown(lines, shown) {
  for (let line = lines.last; line >= lines.first; line -= 1) if (shown.has(line)) return line;
  return null;
}

function findingCard(one, withExcerpt = false) {
  const agents = one.agents.filter((agent) => agent !== "patterns");
  return h("article", { class: `review-finding ${LOOK[low(one.severity)]}`, data: { finding: one.id } },
    h("div", { class: "row" }, severity(one.severity), h("b", {}, one.title), h("span", { class: "faint" }, `${one.id} · ${one.lines.first === one.lines.last ? "line" : "lines"} ${lineWords(one.lines)}`)),
    h("p", {}, one.description),
    one.failure_scenario && h("p", { class: "soft" }, h("b", {}, "When it goes wrong: "), one.failure_scenario),
    withExcerpt && one.excerpt.length > 0 && h("div", { class: "source" }, one.excerpt.map((line) => h("div", { class: `source-line${line.cited ? " marked" : ""}` }, h("span", {}, line.number), h("span", {}, line.text || " ")))),
    one.also?.map((other) => h("p", { class: "soft" }, "Also ", severity(other.severity), " ", h("b", {}, other.title), `: ${other.description}`)),
    one.fix && fix(one.fix),
    h("p", { class: "row faint" }, one.categories.map((category) => chip(words(category))), one.pattern && chip(one.pattern, "line"), agents.length > 0 && h("span", {}, `by ${agents.join(", ")}`), h("span", {}, validation(one.validation)), h("span", { class: "num" }, `${Math.round(one.confidence * 100)} % sure`)));
}

function fix(what) {
  const [kind, text] = Object.entries(what)[0] ?? [];
  return h("details", { class: "more" }, h("summary", {}, kind === "diff" ? "A fix" : "What to tell an agent that mends it"), h("div", { class: "stack-small" }, h("pre", { class: "code" }, kind === "diff" ? diffLines(text) : text), copier(text)));
}

const diffLines = (text) => String(text).split("\n").map((line) => h("span", { class: line.startsWith("+") ? "plus" : line.startsWith("-") ? "minus" : "" }, `${line}\n`));

function validation(how) {
  if (how.verdict === "pattern") return "its pattern matches";
  if (how.verdict === "valid") return "a second reviewer agreed";
  if (how.verdict === "downgraded") return `a second reviewer agreed, and thought it less bad than ${low(how.from)}`;
  if (how.verdict === "unverified") return `nobody looked again: ${how.reason}`;
  return "accepted";
}

const insight = (one) => h("article", { class: "card card-pad stack-small" }, h("div", { class: "row" }, severity(one.severity), h("b", {}, one.title), one.related.map((id) => chip(id, "line"))), h("p", {}, one.insight), h("p", { class: "path" }, `${one.file}:${one.line}`));

function leftOut(review) {
  const all = review.left_out;
  const skipped = review.skipped;
  if (!all.length && !skipped.length && !review.still_open?.length) return null;
  return h("section", { class: "stack-small" },
    h("div", { class: "section-title" }, h("h2", {}, "Left out"), h("span", { class: "count" }, "what was found and is not reported, and why")),
    all.length > 0 && h("div", { class: "card table-wrap" }, h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "What"), h("th", {}, "Where"), h("th", {}, "By"), h("th", {}, "Why not"))),
      h("tbody", {}, all.map((one) => h("tr", {}, h("td", {}, one.title || h("span", { class: "faint" }, "without a title")), h("td", {}, h("span", { class: "path" }, `${one.file}${one.lines ? `:${lineWords(one.lines)}` : ""}`)), h("td", { class: "faint" }, one.agent), h("td", {}, one.reason)))))),
    review.still_open?.length > 0 && h("p", { class: "hint" }, `${count(review.still_open.length, "finding")} of earlier reviews still open: `, review.still_open.map((one) => one.title).join("; ")),
    skipped.length > 0 && h("p", { class: "hint" }, "Not looked at: ", skipped.map((file, at) => [at > 0 && ", ", h("span", { class: "path" }, file.path), ` (${file.reason})`])));
}

function about(review) {
  const tokens = review.calls.reduce((sum, call) => sum + call.input_tokens + call.output_tokens, 0);
  return h("div", { class: "stack-small" },
    h("p", { class: "soft" }, `${count(review.calls.length, "call")}, ${number(tokens)} tokens. Looked for ${review.categories.map((one) => one.title).join(", ") || "what patterns find"}.`),
    review.skills.length > 0 && h("p", { class: "row" }, "Skills: ", review.skills.map((skill) => chip(skill.name, skill.trusted ? "" : "warn"))),
    review.calls.length > 0 && h("div", { class: "card table-wrap" }, h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "Phase"), h("th", {}, "Who"), h("th", {}, "Outcome"), h("th", { class: "num" }, "Let in"), h("th", { class: "num" }, "Time"), h("th", { class: "num" }, "Cost"))),
      h("tbody", {}, review.calls.map((call) => h("tr", {}, h("td", {}, call.phase), h("td", {}, call.agent), h("td", {}, call.outcome, call.reason && h("span", { class: "faint" }, ` ${call.reason}`)), h("td", { class: "num" }, `${call.admitted} of ${call.answered}`), h("td", { class: "num" }, span(call.duration_ms)), h("td", { class: "num" }, dollars(call.cost_usd))))))));
}
