// The model card: sizes, what the model reaches, by frequency, and how training went.
import { byId, bytes, count, element, percent } from "./elements.js";

export function showCard(card) {
  const parts = [tiles(card), results(card), charts(card), settings(card)];
  byId("card-content").replaceChildren(...parts.filter(Boolean));
  byId("card-content").setAttribute("aria-busy", "false");
}

function tiles(card) {
  const data = card.plan.data ?? {};
  const encoder = card.plan.config?.encoder?.start;
  const facts = [
    ["Labels", count(card.n_labels)],
    ["Training texts", count(data.n_train ?? card.n_points)],
    ["Pairs of both", data.n_pairs === undefined ? undefined : count(data.n_pairs)],
    ["Encoder", encoder === "bag" ? "bag of words" : encoder],
    ["Vectors of", count(card.dim)],
    ["Fused by", card.method],
    ["On disk", bytes(card.bytes)],
    ["Views", card.views.join(", ")],
  ];
  const shown = facts.filter(([, value]) => value !== undefined && value !== "");
  return element("dl", { class: "tiles" }, ...shown.map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value))));
}

const COLUMNS = [
  ["P@1", (m) => m.precision?.[0]],
  ["P@3", (m) => m.precision?.[2]],
  ["P@5", (m) => m.precision?.[4]],
  ["nDCG@5", (m) => m.ndcg?.[4]],
  ["PSP@1", (m) => m.psprecision?.[0]],
  ["PSP@5", (m) => m.psprecision?.[4]],
  ["R@100", (m) => m.recall_100],
];

function results(card) {
  const { metrics } = card;
  if (metrics?.fused) {
    const rows = [["Fused", metrics.fused], ["Classifiers alone", metrics.classifier], ["Embeddings alone", metrics.embedding]];
    return table(
      `What it reaches on ${count(metrics.n_points)} test texts, in percent`,
      COLUMNS.map(([name]) => name),
      rows.filter(([, reached]) => reached).map(([name, reached]) => [name, COLUMNS.map(([, of]) => of(reached))]),
    );
  }
  if (!card.tried.length) return undefined;
  const chosen = card.tried.map((one) => [
    one.chosen ? `${one.method} (in use)` : one.method,
    [one.precision_1, one.precision_5, one.psprecision_1, one.psprecision_5],
  ]);
  return table("What it reaches on held-out texts, in percent", ["P@1", "P@5", "PSP@1", "PSP@5"], chosen);
}

function table(caption, columns, rows) {
  const number = (value) => (value === undefined || value === null ? "–" : (100 * value).toFixed(1));
  return element("div", { class: "scrolls", tabindex: "0", role: "group", "aria-label": caption },
    element("table", { class: "results" },
      element("caption", {}, caption),
      element("thead", {}, element("tr", {}, element("td"), ...columns.map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, ...rows.map(([name, values]) => element("tr", {},
        element("th", { scope: "row" }, name),
        ...values.map((value) => element("td", { class: "number" }, number(value))))))));
}

function charts(card) {
  const { losses, validations } = card.training;
  const made = [deciles(card.metrics?.deciles)];
  if (losses.length > 1) {
    made.push(lines("Training loss", "steps", [{ name: "loss", points: losses.map((p) => [p.step, p.loss]) }], (v) => v.toFixed(2)));
  }
  if (validations.length > 1) {
    made.push(lines("Held-out precision while training", "steps", [
      { name: "P@1", points: validations.map((p) => [p.step, p.precision_1]) },
      { name: "P@5", points: validations.map((p) => [p.step, p.precision_5]) },
    ], (v) => percent(v, 0)));
  }
  const shown = made.filter(Boolean);
  return shown.length ? element("div", { class: "charts" }, ...shown) : undefined;
}

const WIDTH = 360;
const HEIGHT = 190;
const FRAME = { left: 44, right: 14, top: 22, bottom: 30 };

/** Recall by how frequent labels are: ten groups with as many training pairs each. */
function deciles(groups) {
  if (!groups?.length) return undefined;
  const values = groups.map((group) => group.recall?.at(-1) ?? 0);
  const depth = groups[0].recall?.length ?? 5;
  const most = Math.max(...values, 0.01);
  const room = (WIDTH - FRAME.left - FRAME.right) / values.length;
  const y = (value) => HEIGHT - FRAME.bottom - (value / most) * (HEIGHT - FRAME.top - FRAME.bottom);
  const bars = values.map((value, at) => element("g", {},
    element("rect", {
      class: "filled", x: FRAME.left + at * room + room * 0.14, width: room * 0.72,
      y: y(value), height: Math.max(HEIGHT - FRAME.bottom - y(value), 1), rx: 2,
    }, element("title", {}, `${groups[at].name}: ${percent(value)}, ${count(groups[at].n_labels)} labels`)),
    element("text", { x: FRAME.left + (at + 0.5) * room, y: HEIGHT - 16, "text-anchor": "middle" }, String(at + 1))));
  const said = values.map((value, at) => `${at + 1}: ${percent(value, 0)}`).join(", ");
  return figure(`Recall at ${depth} by label frequency`,
    `Recall at ${depth} by decile of label frequency. ${said}`,
    [...scale(0, most, y, (v) => percent(v, most < 0.1 ? 1 : 0)), ...bars,
      element("text", { x: FRAME.left, y: HEIGHT - 3 }, "frequent"),
      element("text", { x: WIDTH - FRAME.right, y: HEIGHT - 3, "text-anchor": "end" }, "rare")]);
}

function lines(title, unit, series, shown) {
  const all = series.flatMap((one) => one.points);
  const [low, high] = [Math.min(0, ...all.map(([, v]) => v)), Math.max(...all.map(([, v]) => v), 1e-9)];
  const [first, last] = [all[0][0], Math.max(...all.map(([step]) => step))];
  const x = (step) => FRAME.left + ((step - first) / Math.max(last - first, 1)) * (WIDTH - FRAME.left - FRAME.right);
  const y = (value) => HEIGHT - FRAME.bottom - ((value - low) / (high - low)) * (HEIGHT - FRAME.top - FRAME.bottom);
  const drawn = series.map((one, at) => element("path", {
    class: `line line-${at + 1}`, d: one.points.map(([step, v], i) => `${i ? "L" : "M"}${x(step).toFixed(1)} ${y(v).toFixed(1)}`).join(""),
  }));
  const names = series.length < 2 ? [] : series.map((one, at) => element("text", {
    class: `named-${at + 1}`, x: WIDTH - FRAME.right, y: y(one.points.at(-1)[1]) - 6, "text-anchor": "end",
  }, one.name));
  const ends = series.map((one) => `${one.name} from ${shown(one.points[0][1])} to ${shown(one.points.at(-1)[1])}`).join(", ");
  return figure(title, `${title}, over ${count(last)} ${unit}: ${ends}`, [
    ...scale(low, high, y, shown), ...drawn, ...names,
    element("text", { x: FRAME.left, y: HEIGHT - 12 }, count(first)),
    element("text", { x: WIDTH - FRAME.right, y: HEIGHT - 12, "text-anchor": "end" }, `${count(last)} ${unit}`),
  ]);
}

/** Lines across, with what they stand for. */
function scale(low, high, y, shown) {
  return [low, (low + high) / 2, high].flatMap((value) => [
    element("line", { class: "across", x1: FRAME.left, x2: WIDTH - FRAME.right, y1: y(value), y2: y(value) }),
    element("text", { x: FRAME.left - 6, y: y(value) + 4, "text-anchor": "end" }, shown(value)),
  ]);
}

function figure(title, said, shapes) {
  return element("figure", {},
    element("figcaption", {}, title),
    element("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": said }, ...shapes));
}

function settings(card) {
  const choices = (card.plan.choices ?? []).map((choice) => element("tr", {},
    element("th", { scope: "row" }, element("code", {}, choice.setting)),
    element("td", {}, element("code", {}, choice.value)), element("td", {}, choice.why)));
  return element("details", { class: "plan" },
    element("summary", {}, "How it was trained"),
    choices.length ? element("div", { class: "scrolls", tabindex: "0", role: "group", "aria-label": "What was chosen" },
      element("table", { class: "choices" }, element("caption", {}, "What was left open, what was chosen, and why"), element("tbody", {}, ...choices))) : undefined,
    element("pre", { tabindex: "0", "aria-label": "The whole plan" }, JSON.stringify(card.plan, null, 2)),
    element("p", { class: "hint" }, `Written by ${card.written_by}; loaded anew ${count(card.reloads)} times.`));
}
