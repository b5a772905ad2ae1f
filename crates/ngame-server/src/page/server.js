// Talks to the server: JSON in and out, problems as errors, and the token where one is asked for.
import { byId } from "./elements.js";

/** What the server says is wrong. */
export class Problem extends Error {
  constructor(problem) {
    super(problem.detail ?? "The server did not answer as it should.");
    this.toDo = problem.to_do ?? "";
    this.status = problem.status;
  }
}

export const token = () => {
  try { return sessionStorage.getItem("token"); } catch { return null; }
};

/** Asks, and gives the answer with the milliseconds it took here and there. */
export async function ask(path, body, signal) {
  const headers = {};
  if (body !== undefined) headers["content-type"] = "application/json";
  if (token()) headers.authorization = `Bearer ${token()}`;
  const began = performance.now();
  const options = { method: body === undefined ? "GET" : "POST", headers, signal };
  if (body !== undefined) options.body = JSON.stringify(body);
  const response = await fetch(path, options);
  const answer = await response.json().catch(() => ({ status: response.status }));
  if (response.status === 401) {
    await askForToken();
    return ask(path, body, signal);
  }
  if (!response.ok) throw new Problem(answer);
  const timing = /dur=([\d.]+)/.exec(response.headers.get("server-timing") ?? "");
  return {
    answer,
    milliseconds: performance.now() - began,
    onServer: timing ? Number(timing[1]) : undefined,
  };
}

let asking;

/** Shows a box for the token; requests that come meanwhile wait for the same one. */
function askForToken() {
  asking ??= new Promise((resolve) => {
    const dialog = byId("token-dialog");
    dialog.addEventListener("close", () => {
      try { sessionStorage.setItem("token", byId("token").value.trim()); } catch { /* Asked again. */ }
      byId("token").value = "";
      asking = undefined;
      resolve();
    }, { once: true });
    if (!dialog.open) dialog.showModal();
  });
  return asking;
}
