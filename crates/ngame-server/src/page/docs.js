// The API page, drawn from /openapi.json: it cannot say anything else than the server does.
import { byId, element } from "./elements.js";

const api = await (await fetch("/openapi.json")).json();

/** The schema that a reference leads to. */
function resolved(schema) {
  if (!schema?.$ref) return schema ?? {};
  return schema.$ref.slice(2).split("/").reduce((at, part) => at[part], api);
}

/** A type in a few words. */
function typeName(schema) {
  if (schema === true) return "anything";
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.anyOf) return schema.anyOf.map(typeName).join(" or ");
  const types = [].concat(schema.type ?? "anything");
  return types.map((type) => (type === "array" ? `list of ${typeName(schema.items ?? true)}` : type)).join(" or ");
}

function bounds(schema) {
  const said = [];
  if (schema.minimum !== undefined || schema.maximum !== undefined) said.push(`${schema.minimum ?? ""} to ${schema.maximum ?? ""}`);
  if (schema.maxItems !== undefined) said.push(`at most ${schema.maxItems}`);
  if (schema.maxLength !== undefined) said.push(`at most ${schema.maxLength} characters`);
  if (schema.default !== undefined && schema.default !== null) said.push(`otherwise ${JSON.stringify(schema.default)}`);
  return said.join(", ");
}

/** What is said of a field, in one line. */
function sentence(...parts) {
  return parts.filter(Boolean).map((part) => part.replace(/\.$/, "")).join("; ");
}

function fieldRows(schema, prefix = "", seen = []) {
  const rows = [];
  const isRequired = ([name]) => (schema.required ?? []).includes(name);
  const fields = Object.entries(schema.properties ?? {}).sort((a, b) => isRequired(b) - isRequired(a));
  for (const [name, field] of fields) {
    const optional = prefix === "" && schema.additionalProperties === false && !isRequired([name]);
    rows.push(element("tr", {},
      element("th", { scope: "row" }, element("code", {}, prefix + name)),
      element("td", {}, typeName(field)),
      element("td", {}, sentence(field.description, bounds(field), optional && field.default === undefined ? "may be left out" : ""))));
    const inner = field.items ?? field;
    const reference = inner.$ref ?? inner.anyOf?.find((one) => one.$ref)?.$ref;
    if (reference && !seen.includes(reference)) {
      const mark = field.items ? "[]." : ".";
      rows.push(...fieldRows(resolved({ $ref: reference }), prefix + name + mark, [...seen, reference]));
    }
  }
  return rows;
}

function fields(title, rows) {
  if (!rows.length) return undefined;
  return element("div", {}, element("h3", {}, title), element("div", { class: "scrolls", tabindex: "0", role: "group", "aria-label": title },
    element("table", {},
      element("thead", {}, element("tr", {}, ...["Field", "Type", "Meaning"].map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, ...rows))));
}

function example(method, path, body) {
  const url = location.origin + path.replace("{name}", "MODEL");
  return body === undefined
    ? `curl ${url}`
    : `curl ${url} -H 'content-type: application/json' \\\n  -d '${JSON.stringify(body)}'`;
}

function route(path, method, operation) {
  const content = operation.requestBody?.content["application/json"];
  const answer = operation.responses["200"].content["application/json"];
  const parameters = (operation.parameters ?? []).map((one) => element("tr", {},
    element("th", { scope: "row" }, element("code", {}, one.name)), element("td", {}, typeName(one.schema)),
    element("td", {}, sentence(one.description, bounds(one.schema)))));
  const problems = Object.entries(operation.responses).filter(([status]) => status !== "200")
    .map(([status, response]) => element("tr", {}, element("th", { scope: "row" }, status), element("td", {}, response.description)));
  return element("section", { id: operation.operationId, "aria-label": operation.summary },
    element("h2", {}, operation.summary),
    element("p", { class: "route" }, element("span", { class: "method" }, method.toUpperCase()), element("span", {}, path)),
    element("p", {}, operation.description),
    element("pre", { tabindex: "0", "aria-label": "Example" }, example(method, path, content?.example)),
    fields("Parameters", parameters),
    content ? fields("Sent", fieldRows(resolved(content.schema))) : undefined,
    answer ? fields("Answered", fieldRows(resolved(answer.schema))) : undefined,
    problems.length ? element("details", {}, element("summary", {}, "Problems"), element("table", {}, element("tbody", {}, ...problems))) : undefined);
}

// What people come for first, then what operators need.
const FIRST = ["/v1/predict", "/v1/embed", "/v1/models", "/v1/models/{name}", "/v1/models/{name}/labels"];
const place = ([path]) => (FIRST.includes(path) ? FIRST.indexOf(path) : FIRST.length);

const routes = Object.entries(api.paths).sort((a, b) => place(a) - place(b)).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => route(path, method, operation)));
byId("routes").replaceChildren(...routes);
byId("routes").setAttribute("aria-busy", "false");
