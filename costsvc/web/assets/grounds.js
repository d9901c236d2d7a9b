// What stands behind a quote: trace, assumptions, sources, variants.

import { $, fill, make, table } from "./elements.js";
import { ask, gigabytes, number, times, usd } from "./service.js";

export function grounds(quote) {
  fill("#warnings", ...[...quote.warnings, ...quote.uncertainty.why_extrapolated].map((text) => make("li", {}, text)));
  fill("#assumptions", table("What is assumed or judged", [
    ["name", (row) => row.name], ["value", (row) => number(row.value), true], ["unit", (row) => row.unit], ["kind", (row) => row.kind],
    ["dated", (row) => row.dated, "date"], ["why", (row) => row.reason ?? `${row.points} points`]], quote.assumptions));
  fill("#sources", table("Where facts were read", [
    ["title", (row) => (row.url ? make("a", { href: row.url, rel: "noreferrer" }, row.title) : row.title)], ["kind", (row) => row.kind],
    ["accessed", (row) => row.accessed, "date"], ["covers", (row) => row.covers.join(", ")]], quote.sources));
}

// Long names may break behind their joints.
const breakable = (text) => make("span", {}, ...String(text).split(/(?<=[_.])/).flatMap((part, place) => (place ? [make("wbr"), part] : [part])));

const row = (name) => `trace-${name}`;

// What a value follows from, each a link to its own line.
function inputs(names, known) {
  const links = names.map((name) => (known.has(name) ? make("a", { href: `#${row(name)}` }, breakable(name)) : breakable(name)));
  return make("span", {}, ...links.flatMap((link, place) => (place ? [", ", link] : [link])));
}

export async function showTrace(parameters, signal) {
  const { trace } = await ask("/quote", { ...parameters, trace: "1" }, signal);
  const known = new Set(trace.map((step) => step.name));
  fill("#trace", table("Every intermediate, in the order in which they follow", [
    ["name", (step) => breakable(step.name)], ["value", (step) => number(step.value), true], ["unit", (step) => step.unit], ["formula", (step) => step.formula],
    ["from", (step) => inputs(step.inputs, known)], ["source", (step) => breakable(step.source)]], trace, (step) => row(step.name)));
}

// A click on a price leads to the line of the trace that it is.
export function pointAt(name) {
  for (const line of document.querySelectorAll("#trace tr.marked")) line.classList.remove("marked");
  const line = document.getElementById(row(name));
  if (!line) return;
  line.classList.add("marked");
  line.scrollIntoView({ block: "center" });
  $("#trace .scroll").focus({ preventScroll: true });
}

export async function showVariants(parameters, signal) {
  const { items, note } = await ask("/what-if", parameters, signal);
  fill("#variants", make("p", { class: "fine" }, `${note[0].toUpperCase()}${note.slice(1)}.`), table("Variants of the model and of its cache", [
    ["variant", (one) => one.what], ["parameters", (one) => one.parameters && number(one.parameters), true],
    ["cache of a request", (one) => (one.why ? one.why : gigabytes(one.kv_bytes_per_sequence)), true],
    ["users memory holds per GPU", (one) => number(one.users_memory_holds_per_gpu), true], ["users per GPU", (one) => number(one.users_per_gpu), true],
    ["USD per Mtok", (one) => usd(one.blended_usd_per_mtok), true], ["against released", (one) => times(one.times_released), true]], items));
}
