// Small things that every part of the page uses: elements, numbers, the clipboard.

/** An element with attributes and children; text goes in as text, never as markup. */
export function element(name, attributes = {}, ...children) {
  const made = name === "svg" || SHAPES.has(name)
    ? document.createElementNS("http://www.w3.org/2000/svg", name)
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  made.append(...children.filter((child) => child !== undefined && child !== null));
  return made;
}

const SHAPES = new Set(["g", "path", "rect", "line", "circle", "text", "title"]);

export const byId = (id) => document.getElementById(id);

const grouped = new Intl.NumberFormat("en");
export const count = (number) => grouped.format(number);
export const counted = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

/** A share as a percentage, with a digit where it matters. */
export function percent(share, digits = 1) {
  return `${(100 * share).toFixed(digits)} %`;
}

/** A number with a minus sign as print has it. */
export const signed = (number) => number.toFixed(3).replace("-", "−");

/** Bytes in the unit people would say. */
export function bytes(number) {
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let value = number / 1024;
  let unit = 0;
  while (value >= 1024 && unit + 1 < units.length) { value /= 1024; unit += 1; }
  return `${value.toFixed(1)} ${units[unit]}`;
}

/** Calls back when nothing happened for a while; `now` does so at once. */
export function debounced(milliseconds, callback) {
  let timer;
  const later = () => { clearTimeout(timer); timer = setTimeout(callback, milliseconds); };
  later.now = () => { clearTimeout(timer); callback(); };
  return later;
}

/** Copies a text and says so on the button that was pressed. */
export async function copy(text, button) {
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Browsers keep the clipboard from pages that did not come over HTTPS or from this machine.
    const area = element("textarea", { class: "hidden", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
    button.focus();
  }
  const before = button.dataset.name ?? button.textContent;
  button.dataset.name = before;
  button.textContent = done ? "Copied" : "Not copied";
  setTimeout(() => { button.textContent = before; }, 1500);
}
