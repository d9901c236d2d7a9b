// A problem in the service's own words, with ways out of it.

import { $, make } from "./elements.js";
import { hasKey, keyForm } from "./key.js";
import { Problem } from "./service.js";

const MOST_NEAREST = 5;
const UNAUTHORIZED = 401;

// `isSaid`: its words stand elsewhere on the page. `form`: { set(name, value), has(name), drop(name), label(name) } of a page that has one. `again` asks anew.
export function showProblem(error, { form, again, start = location.pathname, isSaid = false } = {}) {
  if (!(error instanceof Problem)) throw error;
  const { title, status } = error.said;
  const place = $("#problem");
  if (status === UNAUTHORIZED) {
    const words = hasKey() ? error.message : "This service answers to holders of a key. Ask its operator for one.";
    place.replaceChildren(make("h2", {}, hasKey() ? title : "A key is needed"), make("p", {}, words), keyForm());
    return;
  }
  const ways = [...(form ? waysOfForm(error, form) : []), again && !status ? [`Try again`, again] : null].filter(Boolean);
  place.replaceChildren(make("h2", {}, title), isSaid ? "" : make("p", {}, error.message), make("div", { class: "row" },
    ...ways.map(([words, use]) => make("button", { type: "button", onclick: use }, words)), make("a", { href: start }, form ? "Start over" : "Back")));
}

export function clearProblem() {
  if ($("#problem").hasChildNodes()) $("#problem").replaceChildren();
}

function waysOfForm({ said, fields }, form) {
  const [field] = fields;
  const ways = (said.nearest ?? []).slice(0, MOST_NEAREST).filter(() => form.has(field)).map((id) => [`Use ${id}`, () => form.set(field, id)]);
  if (said.longest_tokens && field !== "profile") ways.push([`Lower the context to ${said.longest_tokens.toLocaleString("en")}`, () => form.set("ctx", said.longest_tokens)]);
  if (said.fastest_tpot_ms) {
    const given = ["tpot_ms", "ttft_ms"].find((name) => form.has(name) && form.value(name));
    ways.push(given ? [`Leave ${form.label(given)} open`, () => form.set(given, "")] : ["Without a latency objective", () => form.set("slo", "batch")]);
  }
  if (said.markets) ways.push(["Give your own price", () => form.show("price_usd_per_gpu_hour")]);
  if (field && !form.has(field)) ways.push([`Leave ${field} out`, () => form.drop(field)]);
  else if (field && !ways.length && form.isOptional(field) && form.value(field)) ways.push([`Leave ${form.label(field)} open`, () => form.set(field, "")]);
  return ways;
}
