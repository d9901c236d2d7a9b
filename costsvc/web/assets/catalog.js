// The catalog: lists to search, and an entry with its facts, sources and prices.

import { cite, clear, COLOURS, dollars, draw, frame } from "./charts.js";
import { $, fill, make, table } from "./elements.js";
import { cleanAddress, showKey } from "./key.js";
import { clearProblem, showProblem } from "./problem.js";
import { ask, gigabytes, later, latest, number, usd } from "./service.js";

const MONTHS = 13;
const MOST_LINES = 7;

const link = (kind, row) => make("a", { href: `/catalog?${kind}=${encodeURIComponent(row.id)}` }, row.name);

const lists = latest(async (signal, q) => {
  const wanted = q ? { q } : {};
  const [models, gpus] = await Promise.all([ask("/models", wanted, signal), ask("/gpus", wanted, signal)]);
  clearProblem();
  $("#found").textContent = `${gpus.items.length} accelerators and ${models.items.length} models${q ? ` match “${q}”` : ""}, catalog revision ${gpus.catalog_revision}, ${gpus.as_of}.`;
  const none = (what) => make("p", { class: "none" }, `No ${what} matches. A shorter word finds more.`);
  fill("#gpu-list", gpus.items.length ? table("Peak arithmetic is dense", [
    ["name", (row) => link("gpu", row)], ["memory", (row) => gigabytes(row.memory_bytes), true],
    ["bandwidth", (row) => `${number(row.memory_bytes_per_s / 1e12)} TB/s`, true],
    ["bf16", (row) => `${number((row.dense_flops_per_s.bf16 ?? row.dense_flops_per_s.fp16) / 1e12)} TFLOP/s`, true],
    ["USD per GPU-hour", (row) => usd(row.reference_usd_per_gpu_hour), true], ["facts", (row) => row.spec_check]], gpus.items) : none("accelerator"));
  fill("#model-list", models.items.length ? table("Parameters as published", [
    ["name", (row) => link("model", row)], ["parameters", (row) => `${number(row.published_parameters / 1e9)} B`, true],
    ["window, tokens", (row) => number(row.max_context_tokens), true], ["released", (row) => row.released, "date"], ["released as", (row) => row.released_weights],
    ["licence", (row) => row.licence]], models.items) : none("model"));
});

function sources(rows) {
  return make("section", { class: "block" }, make("h2", {}, "Sources"), table("Each fact has exactly one", [
    ["fact", (row) => row.field], ["title", (row) => (row.url ? make("a", { href: row.url, rel: "noreferrer" }, row.title) : row.title)],
    ["kind", (row) => row.kind], ["accessed", (row) => row.accessed, "date"], ["where", (row) => row.locator]], rows, (row) => `source-${row.field}`));
}

const UNITS = [[/bytes_per_s$/, 1e12, "TB/s"], [/flops_per_s/, 1e12, "TFLOP/s"], [/bytes$/, 1e9, "GB"], [/parameters$/, 1e9, "billion"]];

// A large number in the unit that people say.
function spoken([name, value]) {
  if (typeof value !== "number" || value < 1e6) return "";
  const unit = UNITS.find(([pattern]) => pattern.test(name));
  return unit ? `${number(value / unit[1])} ${unit[2]}` : "";
}

// What the source prints under another name, in its own unit.
const PRINTED = {
  memory_bytes: "memory_gib", usable_memory_bytes: "driver_memory_mib", memory_bytes_per_s: "memory_bandwidth_gb_per_s",
  link_bytes_per_s: "scale_up_gb_per_s_per_direction", link_domain_gpus: "scale_up_domain_gpus", pcie_bytes_per_s: "pcie_gb_per_s_per_direction",
};

function sourceOf(name, sourced) {
  const parts = name.split(".");
  const field = [PRINTED[name], `dense_${parts.at(-1)}_tflops`, ...parts].find((one) => sourced.has(one));
  return field ? make("a", { href: `#source-${field}`, "aria-label": `${field}: the source of ${name}` }, field) : "";
}

const LEFT = new Set(["id", "name", "sources", "aliases", "spec", "pattern"]);

// Facts of any depth, each with the path to it; what is repeated of a `spec` is shown once.
function flat(entry, path = "") {
  return Object.entries(entry).flatMap(([name, value]) => {
    if (value == null || (!path && LEFT.has(name)) || name === "pattern") return [];
    const here = path ? `${path}.${name}` : name;
    if (Array.isArray(value) && value.every((one) => typeof one !== "object")) return value.length ? [[here, value.join(", ")]] : [];
    return typeof value === "object" ? flat(value, here) : [[here, value]];
  });
}

function layers({ groups, pattern }) {
  return groups.flatMap((group, place) => flat(group, groups.length > 1 ? `layers ${place + 1}` : "every layer")
    .concat([[groups.length > 1 ? `layers ${place + 1}.count` : "every layer.count", pattern.filter((one) => one === place).length]]));
}

function facts(entry) {
  const { groups, pattern, id, ...shape } = entry.spec ?? {};
  const known = new Set(Object.keys(entry));
  const sourced = new Set(entry.sources.map((source) => source.field));
  const rows = [...flat(entry), ...flat(Object.fromEntries(Object.entries(shape).filter(([name]) => !known.has(name)))), ...(groups ? layers({ groups, pattern }) : [])];
  return make("section", { class: "block" }, make("h2", {}, "Facts"), table("As the catalog holds them, in SI units; each with a link to its source", [
    ["name", (row) => row[0]], ["value", (row) => (typeof row[1] === "number" ? number(row[1]) : String(row[1]))], ["reads as", spoken],
    ["source", ([name]) => sourceOf(name, sourced)]], rows));
}

const back = (href, words) => make("p", { class: "row" }, make("a", { href }, words), make("a", { href: "/catalog" }, "All entries"));

async function model(id) {
  const entry = await ask(`/models/${encodeURIComponent(id)}`);
  const offers = await ask("/api-prices", { model: entry.id });
  titled(entry, `${number(entry.published_parameters / 1e9)} billion parameters, ${number(entry.max_context_tokens)} tokens of context`);
  fill("#entry",
    back(`/?model=${encodeURIComponent(entry.id)}&gpu=h100-sxm&ctx=${Math.min(8192, entry.max_context_tokens)}`, "Price it"),
    make("section", { class: "block" }, make("h2", {}, "Published prices"), offers.items.length
      ? table("USD per 1,000,000 tokens, as last observed", [
        ["provider", (row) => row.provider], ["input", (row) => usd(row.input_usd_per_mtok), true], ["cached", (row) => usd(row.cached_input_usd_per_mtok), true],
        ["output", (row) => usd(row.output_usd_per_mtok), true], ["context, tokens", (row) => number(row.context_limit_tokens), true],
        ["observed", (row) => row.observed, "date"]], offers.items) : make("p", { class: "none" }, "Nobody's price of it is in the catalog.")), facts(entry), sources(entry.sources));
}

function titled(entry, subtitle) {
  $("#title").textContent = entry.name;
  $("#subtitle").textContent = subtitle;
}

function monthsBefore(day) {
  const end = new Date(`${day}T00:00:00Z`);
  return Array.from({ length: MONTHS }, (_, place) => {
    const at = new Date(end);
    at.setUTCMonth(end.getUTCMonth() - (MONTHS - 1 - place), Math.min(end.getUTCDate(), 28));
    return place === MONTHS - 1 ? day : at.toISOString().slice(0, 10);
  });
}

async function gpu(id) {
  const entry = await ask(`/gpus/${encodeURIComponent(id)}`);
  const offers = await ask("/prices", { gpu: entry.id });
  titled(entry, `${gigabytes(entry.memory_bytes)}, ${number(entry.memory_bytes_per_s / 1e12)} TB/s, reference price ${entry.reference_usd_per_gpu_hour ? `${usd(entry.reference_usd_per_gpu_hour)} an hour` : "unknown"}`);
  cite(`costsvc · ${entry.id} · prices of ${offers.as_of}, catalog revision ${offers.catalog_revision}`);
  fill("#entry",
    back(`/?model=llama-3.1-8b&gpu=${encodeURIComponent(entry.id)}&ctx=8192`, "Price a model on it"),
    make("div", { class: "charts" }, frame("history", "Price of an hour", "Reference price on a day of each month, on demand."),
      frame("offers", "Offers by provider", "On demand, on the day. Line: the reference price, the median of those that vote.")),
    facts(entry),
    make("details", { class: "block" }, make("summary", {}, `All ${offers.items.length} offers, every market`), table(`On ${offers.as_of}`, [
      ["provider", (row) => row.provider], ["market", (row) => row.market], ["region", (row) => row.region],
      ["USD per GPU-hour", (row) => usd(row.usd_per_gpu_hour), true], ["since", (row) => row.since, "date"],
      ["votes", (row) => (row.in_reference ? "yes" : row.excluded_reason)]], offers.items)), sources(entry.sources));
  offersChart(offers.items.filter((row) => row.market === "on-demand"), Number(entry.reference_usd_per_gpu_hour) || null);
  const days = monthsBefore(offers.as_of);
  const past = await Promise.all(days.map((as_of) => ask(`/gpus/${encodeURIComponent(entry.id)}`, { as_of })));
  historyChart(past.map((one, place) => ({ day: days[place], usd: Number(one.reference_usd_per_gpu_hour) || null })).filter((row) => row.usd));
}

function historyChart(rows) {
  if (!rows.length) { clear("history", "No on-demand price in the last twelve months."); return; }
  const at = (row) => new Date(row.day);
  draw("history", {
    label: "Price of an hour", rows, columns: [["day", (row) => row.day], ["usd_per_gpu_hour", (row) => row.usd]],
    plot: {
      x: { label: null, type: "utc", ticks: 6, tickSize: 3 }, y: { label: "USD per GPU-hour", grid: true, zero: true, ticks: 5, tickFormat: dollars, tickSize: 0 },
      marks: [Plot.line(rows, { x: at, y: "usd", stroke: COLOURS[0], strokeWidth: 2, curve: "step-after" }),
        Plot.dot(rows, { x: at, y: "usd", fill: COLOURS[0], tip: true, title: (row) => `${row.day}\n${usd(row.usd)} per GPU-hour` })],
    },
  });
}

function offersChart(rows, reference) {
  if (!rows.length) { clear("offers", "No on-demand offer on the day."); return; }
  const priced = rows.map((row) => ({ ...row, usd: Number(row.usd_per_gpu_hour) }));
  const providers = [...d3.rollup(priced, (of) => d3.median(of, (row) => row.usd), (row) => row.provider)].sort((a, b) => a[1] - b[1]).map(([name]) => name);
  const votes = { true: COLOURS[0], false: COLOURS[5] };
  draw("offers", {
    label: "Offers by provider", rows: priced,
    columns: [["provider", (row) => row.provider], ["region", (row) => row.region], ["usd_per_gpu_hour", (row) => row.usd], ["votes", (row) => String(row.in_reference)]],
    legend: [{ what: "votes", colour: votes.true }, { what: "left out of the reference", colour: votes.false }],
    plot: {
      height: Math.max(40 + 17 * providers.length, 12 * MOST_LINES), marginLeft: 100, marginTop: 6,
      x: { label: "USD per GPU-hour", grid: true, ticks: 5, tickFormat: dollars, tickSize: 0, zero: true }, y: { label: null, domain: providers, tickSize: 0 },
      marks: [
        reference ? Plot.ruleX([reference], { stroke: "currentColor", strokeWidth: 1.5 }) : null,
        Plot.dot(priced, { x: "usd", y: "provider", fill: (row) => votes[row.in_reference], r: 3.5, tip: true,
          title: (row) => `${row.provider}${row.region ? `, ${row.region}` : ""}\n${usd(row.usd)}, since ${row.since}${row.in_reference ? "" : `\n${row.excluded_reason}`}` }),
      ],
    },
  });
}

async function start() {
  cleanAddress();
  showKey();
  const given = new URLSearchParams(location.search);
  const refused = (error) => showProblem(error, { start: "/catalog", again: () => location.reload() });
  try {
    if (given.has("model") || given.has("gpu")) {
      $("#lists").hidden = true;
      await (given.has("model") ? model(given.get("model")) : gpu(given.get("gpu")));
      document.title = `${$("#title").textContent} · costsvc`;
      return;
    }
    const field = $("input[name=q]");
    field.value = given.get("q") ?? "";
    field.form.addEventListener("submit", (event) => event.preventDefault());
    field.addEventListener("input", later(120, () => {
      history.replaceState(null, "", field.value ? `?q=${encodeURIComponent(field.value)}` : "/catalog");
      lists(field.value.trim()).catch(refused);
    }));
    await lists(field.value.trim());
  } catch (error) {
    $("#lists").hidden = true;
    refused(error);
  }
}

start();
