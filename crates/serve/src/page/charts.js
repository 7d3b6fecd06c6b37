// Pictures for what people would rather look at than read. Every one has its numbers in words as well.

import { dollars, h, number, s, span } from "./ui.js";

/** How wide a chart is drawn: on a phone its letters would be too small otherwise. */
const room = (wide) => (innerWidth < 700 ? 340 : wide);
const share = (value) => String(Math.max(0, Math.min(1, Number(value) || 0)));

/** A score from 0 to 1, with a mark where the threshold is. */
export function meter(score, { threshold, width = "64px", label } = {}) {
  const below = threshold !== undefined && threshold !== null && score < threshold;
  return h("span", { class: `meter${below ? " low" : ""}`, role: "img", "aria-label": label ?? `${Math.round(score * 100)} of 100`, vars: { v: share(score), width, t: share(threshold ?? 0) } },
    h("i"), threshold !== undefined && threshold !== null && h("b", { title: `asked: ${threshold.toFixed(2)}` }));
}

/** Parts of a whole beside each other: `[label, value, class]`. */
export function bar(parts, { label, thin = false, whole } = {}) {
  const sum = whole ?? parts.reduce((all, [, value]) => all + value, 0);
  const text = parts.filter(([, value]) => value).map(([name, value]) => `${number(value)} ${name}`).join(", ");
  return h("div", { class: `bar${thin ? " thin" : ""}`, role: "img", "aria-label": label ? `${label}: ${text}` : text },
    parts.filter(([, value]) => value > 0).map(([name, value, look]) => h("i", { class: look, title: `${number(value)} ${name}`, vars: { v: share(value / (sum || 1)) } })));
}

/** What the colours of a bar mean. */
export function legend(parts) {
  return h("p", { class: "legend" }, parts.map(([name, value, look]) => h("span", { class: look }, h("i"), `${number(value)} ${name}`)));
}

const MARKS = { reviewed: "c3", implemented: "c1", failed: "cbad", blocked: "c2", manual_qa: "c4", open: "cnone" };
const MARK_WORDS = { reviewed: "reviewed", implemented: "to review", failed: "failed", blocked: "blocked", manual_qa: "for people", open: "open" };

/** How far the tasks of a plan are: `counts` by mark. */
export function progress(counts, { thin = false } = {}) {
  const counted = Object.keys(MARKS).map((mark) => [MARK_WORDS[mark], counts[mark] ?? 0, MARKS[mark]]);
  const there = counted.filter(([, value]) => value > 0);
  return { bar: bar(there, { label: "Tasks", thin }), legend: legend(there) };
}

/** Dollars over the steps of a run: `points` are `{at, total, step, bad}`. */
export function costLine(points, { wide = 640, height = 150 } = {}) {
  const width = room(wide);
  const last = points.at(-1);
  const top = niceTop(Math.max(...points.map((point) => point.total), 0));
  const [left, right, up, down] = [50, 12, 10, 22];
  const from = points[0].at;
  const reach = Math.max(1, last.at - from);
  const x = (at) => left + ((at - from) / reach) * (width - left - right);
  const y = (value) => height - down - (value / top) * (height - up - down);
  const spots = points.map((point) => `${x(point.at).toFixed(1)},${y(point.total).toFixed(1)}`);
  const floor = height - down;
  return s("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Cost over time: ${dollars(last.total)} after ${span(reach)}` },
    [0, 0.5, 1].map((part) => [
      s("line", { class: "grid", x1: left, x2: width - right, y1: y(top * part), y2: y(top * part) }),
      s("text", { x: left - 8, y: y(top * part) + 4, "text-anchor": "end" }, dollars(top * part)),
    ]),
    s("polygon", { class: "fill", points: `${left},${floor} ${spots.join(" ")} ${x(last.at)},${floor}` }),
    s("polyline", { class: "stroke", points: spots.join(" ") }),
    points.length <= 60 && points.map((point) => s("circle", { class: `dot${point.bad ? " bad" : ""}`, cx: x(point.at), cy: y(point.total), r: 3.2 }, s("title", {}, `${point.label}: ${dollars(point.total)}`))),
    s("text", { x: left, y: height - 5 }, "start"),
    s("text", { x: width - right, y: height - 5, "text-anchor": "end" }, span(reach)));
}

/** Columns over time: `[{label, value, title}]`. */
export function columns(points, { wide = 960, height = 130, unit = dollars } = {}) {
  const width = room(wide);
  const top = niceTop(Math.max(...points.map((point) => point.value), 0));
  const [left, right, up, down] = [50, 6, 10, 22];
  const slot = (width - left - right) / points.length;
  const y = (value) => height - down - (value / top) * (height - up - down);
  const every = Math.max(1, Math.ceil(points.length / (width < 400 ? 4 : 10)));
  return s("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Cost over time, ${unit(points.reduce((sum, point) => sum + point.value, 0))} in all` },
    [0, 0.5, 1].map((part) => [
      s("line", { class: "grid", x1: left, x2: width - right, y1: y(top * part), y2: y(top * part) }),
      s("text", { x: left - 8, y: y(top * part) + 4, "text-anchor": "end" }, unit(top * part)),
    ]),
    points.map((point, at) => [
      s("rect", { class: "column", x: left + at * slot + slot * 0.16, width: Math.max(1, Math.min(slot * 0.68, 38)), y: y(point.value), height: Math.max(0, height - down - y(point.value)), rx: 2 }, s("title", {}, point.title)),
      at % every === 0 && s("text", { x: left + at * slot + slot * 0.16, y: height - 6 }, point.label),
    ]));
}

/** A round number that is not below the given one. */
function niceTop(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const steps = [1, 2, 2.5, 5, 10];
  return steps.find((step) => step * power >= value) * power;
}
