// The catalog: lists to search, and an entry with its facts, sources and prices.

import { draw, frame } from "./charts.js";
import { $, fill, make, table } from "./elements.js";
import { ask, gigabytes, later, number, Problem, usd } from "./service.js";

const MONTHS = 13;

const link = (kind, row) => make("a", { href: `/catalog?${kind}=${encodeURIComponent(row.id)}` }, row.name);

async function lists(q) {
  const wanted = q ? { q } : {};
  const [models, gpus] = await Promise.all([ask("/models", wanted), ask("/gpus", wanted)]);
  fill("#gpu-list", table(`${gpus.items.length} accelerators on ${gpus.as_of}`, [
    ["name", (row) => link("gpu", row)], ["memory", (row) => gigabytes(row.memory_bytes), true],
    ["bandwidth, TB/s", (row) => number(row.memory_bytes_per_s / 1e12), true],
    ["bf16, TFLOP/s", (row) => number((row.dense_flops_per_s.bf16 ?? row.dense_flops_per_s.fp16) / 1e12), true],
    ["USD per GPU-hour", (row) => usd(row.reference_usd_per_gpu_hour), true], ["facts", (row) => row.spec_check]], gpus.items));
  fill("#model-list", table(`${models.items.length} models`, [
    ["name", (row) => link("model", row)], ["parameters", (row) => number(row.published_parameters), true],
    ["window, tokens", (row) => number(row.max_context_tokens), true], ["released as", (row) => row.released_weights],
    ["licence", (row) => row.licence]], models.items));
}

function sources(rows) {
  return make("section", { class: "block" }, make("h2", {}, "Sources"), table("Each fact has exactly one", [
    ["fact", (row) => row.field], ["title", (row) => (row.url ? make("a", { href: row.url, rel: "noreferrer" }, row.title) : row.title)],
    ["kind", (row) => row.kind], ["accessed", (row) => row.accessed], ["where", (row) => row.locator]], rows));
}

function facts(entry, left) {
  const plain = Object.entries(entry).filter(([name, value]) => !left.includes(name) && value != null && typeof value !== "object");
  return make("section", { class: "block" }, make("h2", {}, "Facts"), table("As the catalog holds them, in SI units", [
    ["name", (row) => row[0]], ["value", (row) => (typeof row[1] === "number" ? number(row[1]) : String(row[1]))]], plain));
}

async function model(id) {
  const entry = await ask(`/models/${id}`);
  const offers = await ask("/api-prices", { model: id });
  $("#title").textContent = entry.name;
  fill("#entry",
    make("p", {}, make("a", { href: `/?model=${encodeURIComponent(id)}&gpu=h100-sxm&ctx=8192` }, "Price it"), " · ", make("a", { href: "/catalog" }, "All entries")),
    facts(entry, ["id", "name"]), make("section", { class: "block" }, make("h2", {}, "Published prices"),
      table("USD per 1,000,000 tokens, as last observed", [
        ["provider", (row) => row.provider], ["input", (row) => usd(row.input_usd_per_mtok), true], ["cached", (row) => usd(row.cached_input_usd_per_mtok), true],
        ["output", (row) => usd(row.output_usd_per_mtok), true], ["context, tokens", (row) => number(row.context_limit_tokens), true],
        ["observed", (row) => row.observed]], offers.items)), sources(entry.sources));
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
  const entry = await ask(`/gpus/${id}`);
  const offers = await ask("/prices", { gpu: id });
  $("#title").textContent = entry.name;
  fill("#entry",
    make("p", {}, make("a", { href: `/?model=llama-3.1-8b&gpu=${encodeURIComponent(id)}&ctx=8192` }, "Price a model on it"), " · ", make("a", { href: "/catalog" }, "All entries")),
    facts(entry, ["id", "name"]), make("div", { class: "charts" }, frame("history", "Price of an hour", "Reference price on a day of each month, on demand.")),
    make("section", { class: "block" }, make("h2", {}, "Offers"), table(`On ${offers.as_of}`, [
      ["provider", (row) => row.provider], ["market", (row) => row.market], ["region", (row) => row.region],
      ["USD per GPU-hour", (row) => usd(row.usd_per_gpu_hour), true], ["since", (row) => row.since],
      ["votes", (row) => (row.in_reference ? "yes" : row.excluded_reason)]], offers.items)), sources(entry.sources));
  const days = monthsBefore(offers.as_of);
  const past = await Promise.all(days.map((as_of) => ask(`/gpus/${id}`, { as_of })));
  const rows = past.map((one, place) => ({ day: days[place], usd: Number(one.reference_usd_per_gpu_hour) || null })).filter((row) => row.usd);
  if (!rows.length) return;
  draw("history", {
    label: "Price of an hour", rows, columns: [["day", (row) => row.day], ["usd_per_gpu_hour", (row) => row.usd]],
    plot: {
      x: { label: null, type: "utc" }, y: { label: "USD per GPU-hour", grid: true, zero: true },
      marks: [Plot.line(rows, { x: (row) => new Date(row.day), y: "usd", stroke: "#3b7dd8", strokeWidth: 2, curve: "step-after" }),
        Plot.dot(rows, { x: (row) => new Date(row.day), y: "usd", fill: "#3b7dd8", tip: true })],
    },
  });
}

async function start() {
  const given = new URLSearchParams(location.search);
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
      lists(field.value.trim());
    }));
    await lists(field.value.trim());
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    $("#problem").textContent = error.message;
  }
}

start();
