// The page: a text, its labels, and why.
import { showCard } from "./card.js";
import { byId, copy, count, counted, debounced, element, percent, signed } from "./elements.js";
import { Problem, ask, token } from "./server.js";

const TYPING_PAUSE = 180;

const state = {
  model: undefined, // The name of the model asked.
  leftOut: new Map(), // Labels that are not wanted: id to text.
  last: undefined, // The last request and its answer, for copying.
  running: undefined, // Ends the request that runs, when a newer one begins.
};

/** What the form asks for. */
function request() {
  const body = { texts: [byId("text").value.trim()], top: Number(byId("top").value) || 5 };
  const threshold = Number(byId("threshold").value);
  if (threshold > 0) body.threshold = threshold;
  if (state.leftOut.size) body.exclude = [...state.leftOut.keys()];
  if (byId("model").options.length > 1) body.model = state.model;
  return body;
}

async function predict() {
  state.running?.abort();
  const body = request();
  if (!body.texts[0]) return clear();
  const running = new AbortController();
  state.running = running;
  try {
    const { answer, milliseconds, onServer } = await ask("/v1/predict", body, running.signal);
    if (state.running !== running) return;
    state.last = { body, answer };
    showLabels(answer.predictions[0].labels, body);
    const server = onServer === undefined ? "" : `, ${onServer.toFixed(1)} ms of them on the server`;
    const found = counted(answer.predictions[0].labels.length, "label");
    byId("status").textContent = `${found} in ${milliseconds.toFixed(0)} ms${server}`;
    say();
  } catch (error) {
    if (error.name !== "AbortError") say(error);
  }
}

function clear() {
  state.last = undefined;
  byId("labels").replaceChildren(element("li", { class: "none" }, "Labels will be here, the likeliest first."));
  byId("status").textContent = "";
  byId("copies").hidden = true;
  say();
}

/** Shows what is wrong, or that nothing is. */
function say(error) {
  const line = byId("problem");
  line.hidden = !error;
  line.textContent = !error ? "" : error instanceof Problem
    ? `${error.message}. ${error.toDo ? `To do: ${error.toDo}.` : ""}`
    : "The server cannot be reached. Is it running?";
}

function showLabels(labels, body) {
  const explained = once(() => explain(body));
  byId("labels").replaceChildren(...labels.map((label) => labelItem(label, explained)));
  byId("copies").hidden = false;
  if (!labels.length) {
    const words = body.threshold ? "No label has this score. Move the slider to the left." : "No label was found.";
    byId("labels").append(element("li", { class: "none" }, words));
  }
}

/** Calls at the first call only. */
function once(call) {
  let result;
  return () => (result ??= call());
}

function labelItem(label, explained) {
  const bar = element("span", { class: "bar", "aria-hidden": "true" }, element("span"));
  bar.firstChild.style.width = `${Math.max(100 * label.score, 0.5)}%`;
  const name = element("span", { class: "name" }, label.text || label.id);
  const score = element("span", { class: "score" }, percent(label.score));
  const why = element("div", { class: "why" }, element("p", { class: "hint" }, "Looking…"));
  const details = element(
    "details", {},
    element("summary", { title: "Why this label?" }, name, score, bar),
    why,
  );
  details.addEventListener("toggle", async () => {
    if (!details.open || why.dataset.filled) return;
    try {
      const found = (await explained()).find((one) => one.id === label.id);
      why.dataset.filled = "yes";
      why.replaceChildren(...whyContent(label, found?.why));
    } catch (error) {
      say(error);
    }
  });
  return element("li", {}, details);
}

async function explain(body) {
  const { answer } = await ask("/v1/predict", { ...body, explain: true });
  return answer.predictions[0].labels;
}

const VIEWS = [
  ["embedding", "Text and label are alike", "cosine of both, from −1 to 1"],
  ["classifier", "The label’s classifier", "what training texts taught; higher is likelier"],
  ["votes", "Training texts near in meaning", "with the label, weighed by nearness"],
  ["lexical", "The text’s words", "what single words speak for; higher is likelier"],
  ["label-words", "Words of the label’s text", "how many are in common, from 0 to 1"],
  ["word-votes", "Training texts with the same words", "with the label, weighed likewise"],
];

function whyContent(label, why) {
  if (!why) return [element("p", { class: "hint" }, "The model has changed since. Ask again.")];
  const score = (view) => why.views[view]?.score ?? why[view];
  const rank = (view) => (why.views[view] ? `#${count(why.views[view].rank)}` : "");
  const views = VIEWS.filter(([view]) => score(view) !== undefined).map(([view, name, meaning]) =>
    element("tr", {},
      element("th", { scope: "row" }, name, element("span", { class: "hint" }, meaning)),
      element("td", { class: "number" }, signed(score(view))),
      element("td", { class: "number rank", title: "Rank among all candidates, by this alone" }, rank(view))));
  views.push(element("tr", {},
    element("th", { scope: "row" }, "Training texts with it", element("span", { class: "hint" }, "rare labels have few")),
    element("td", { class: "number" }, count(why.frequency)), element("td", {})));
  const near = why.nearest.map((one) => element("li", {},
    element("span", { class: "near" }, one.text),
    element("span", { class: "number", title: "similarity" }, one.similarity.toFixed(2))));
  return [
    element("table", { class: "views" }, element("tbody", {}, ...views)),
    near.length
      ? element("div", {}, element("h3", {}, "Nearest training texts that have it"), element("ul", {}, ...near))
      : element("p", { class: "hint" }, "No training text near this one has it."),
    element("p", { class: "foot" },
      element("code", {}, label.id),
      element("button", { type: "button", class: "quiet", onclick: () => leaveOut(label.id, label.text || label.id) },
        "Leave this label out")),
  ];
}

function leaveOut(id, text) {
  state.leftOut.set(id, text);
  showLeftOut();
  byId("text").focus();
  predict();
}

function showLeftOut() {
  const chips = [...state.leftOut].map(([id, text]) => element(
    "button",
    { type: "button", class: "chip", "aria-label": `Let ${text} in again`, onclick: () => { state.leftOut.delete(id); showLeftOut(); predict(); } },
    text, " ×",
  ));
  byId("left-out").replaceChildren(...(chips.length ? ["Without ", ...chips] : []));
  byId("left-out").hidden = !chips.length;
}

/** The request as a line for a shell. */
function curl() {
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const secret = token() ? ' -H "authorization: Bearer $TOKEN"' : "";
  const body = quoted(JSON.stringify(state.last.body));
  return `curl ${location.origin}/v1/predict${secret} -H 'content-type: application/json' -d ${body}`;
}

let lastSearch = 0;

async function search() {
  lastSearch += 1;
  const mine = lastSearch;
  const query = byId("query").value.trim();
  const path = `/v1/models/${encodeURIComponent(state.model)}/labels?limit=${query ? 20 : 6}&q=${encodeURIComponent(query)}`;
  try {
    const { answer } = await ask(path);
    if (mine !== lastSearch) return;
    const { labels, n_matches: all } = answer;
    byId("matches").textContent = query
      ? counted(all, "label") + (all > labels.length ? `, the best ${labels.length} shown` : "")
      : "The most frequent";
    byId("found").replaceChildren(...labels.map((label) => element("li", {},
      element("span", { class: "name" }, element("span", { title: label.text }, label.text || label.id),
        label.text && label.text !== label.id ? element("code", {}, label.id) : undefined),
      element("span", { class: "number", title: "training texts that have it" }, count(label.frequency)))));
  } catch (error) {
    say(error);
  }
}

async function choose(name) {
  state.model = name;
  state.leftOut.clear();
  showLeftOut();
  document.title = `${name} · ngame`;
  const { answer: card } = await ask(`/v1/models/${encodeURIComponent(name)}`);
  if (state.model !== name) return;
  const offered = card.examples.map((example) => element(
    "button",
    { type: "button", class: "chip", onclick: () => { byId("text").value = example; byId("text").focus(); predict(); } },
    example,
  ));
  byId("examples").replaceChildren(...offered);
  showCard(card);
  byId("query").value = "";
  await Promise.all([search(), predict()]);
}

async function begin() {
  const { answer } = await ask("/v1/models");
  const names = answer.models.map((model) => model.name);
  byId("model").replaceChildren(...names.map((name) => element("option", { value: name }, name)));
  byId("picker").classList.toggle("single", names.length < 2);
  const later = debounced(TYPING_PAUSE, predict);
  byId("text").addEventListener("input", later);
  byId("text").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    later.now();
  });
  byId("top").addEventListener("input", later);
  byId("threshold").addEventListener("input", () => {
    byId("threshold-shown").textContent = percent(Number(byId("threshold").value), 0);
    later();
  });
  const searchLater = debounced(TYPING_PAUSE, search);
  byId("query").addEventListener("input", searchLater);
  byId("query").addEventListener("keydown", (event) => { if (event.key === "Enter") searchLater.now(); });
  byId("model").addEventListener("change", () => choose(byId("model").value).catch(say));
  byId("copy-json").addEventListener("click", (event) =>
    copy(JSON.stringify(state.last?.answer ?? {}, null, 2), event.currentTarget));
  byId("copy-curl").addEventListener("click", (event) => copy(curl(), event.currentTarget));
  await choose(names[0]);
}

begin().catch(say);
