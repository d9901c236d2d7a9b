// The explorer: one form, one quote, and charts of what lies around it.

import { clear, curveChart, draw, frame } from "./charts.js";
import { $, copy, fill, make, options, table } from "./elements.js";
import { asked, fromAddress, mark, watch } from "./form.js";
import { ask, gigabytes, later, latest, milliseconds, number, Problem, share, usd } from "./service.js";

const DEFAULTS = { model: "llama-3.1-70b", gpu: "h100-sxm", ctx: "8192" };
const CHARTS = [
  ["memory", "Memory of one GPU", "What the card holds; the line is what the driver shows of it."],
  ["curve", "Price against context", "Dashed: where something gives way. Solid: your context. Shaded: the band."],
  ["roofline", "Roofline", "Where a decode and a prefill step lie under the card's roofs."],
  ["frontier", "User speed against price", "What no other layout beats in both."],
  ["prefix", "Prefix cache", "What the cache of prompts saves: against its memory where prompts come again, else as an example against the hit rate."],
];

// Of the quote that is shown.
let band;

const showQuote = latest(async (signal) => {
  $("#quote").classList.add("stale");
  try {
    const quote = await ask("/quote", asked(), signal);
    $("#problem").textContent = "";
    mark([]);
    prices(quote);
    sentence(quote);
    memory(quote);
    grounds(quote);
    band = quote.uncertainty;
    $("#quote").hidden = false;
    $("#quote").dataset.asked = location.search;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    $("#problem").textContent = error.message;
    mark(error.fields);
    $("#quote").hidden = true;
  }
  $("#quote").classList.remove("stale");
});

const showAround = latest(async (signal) => {
  if ($("#quote").hidden) return;
  const given = asked();
  const each = async (id, path, parameters, use) => {
    try {
      use(await ask(path, parameters, signal));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      clear(id, error.message);
    }
  };
  await each("curve", "/curve", given, (curve) => curveChart("curve", curve, band));
  await each("frontier", "/frontier", given, frontierChart);
  await each("roofline", "/roofline", given, rooflineChart);
  await prefixChart(given, signal);
  if ($("#trace-details").open) await showTrace(signal);
  if ($("#variants-details").open) await showVariants(signal);
});
const showAroundSoon = later(250, () => showAround());

function prices({ prices, uncertainty }) {
  const parts = { input: "Input", cached_input: "Cached input", output: "Output", blended: "Blended" };
  fill("#prices", ...Object.entries(parts).map(([part, name]) =>
    make("div", {}, make("dt", {}, `${name}, USD per Mtok`), make("dd", { id: `price-${part}` }, usd(prices[part].usd_per_mtok),
      make("small", {}, `${usd(prices[part].low)} to ${usd(prices[part].high)}${uncertainty.extrapolated ? ", extrapolated" : ""}`)))));
}

function proposing({ speculation: s }) {
  return s ? ` Each step yields ${number(s.tokens_per_step)} tokens, proposed by ${s.draft_model ?? "n-grams of the text"} and accepted with ${share(s.acceptance_rate)}.` : "";
}

function sentence({ deployment: d, concurrency, latency, throughput, cost, context_rent: rent }) {
  const fleet = cost.fleet
    ? ` ${cost.fleet.replicas} replicas of it, ${cost.fleet.gpus} GPUs, carry the rate at ${usd(cost.fleet.usd_per_hour * 730)} per month.` : "";
  const binds = { memory: "memory", tpot: "the time per token", ttft: "the time to the first token", max_num_seqs: "the scheduler", step_tokens: "the step's token budget" };
  $("#said").textContent = `${d.gpus} × ${d.gpu} (tp ${d.tp}, pp ${d.pp}, dp ${d.dp}; weights ${d.weights}, cache ${d.kv}), ${d.chosen}, `
    + `runs ${concurrency.limit} requests at once; ${binds[concurrency.bound] ?? concurrency.bound} binds. First token in ${milliseconds(latency.ttft_ms)}, `
    + `then ${number(throughput.output_tok_s_per_user)} tokens/s for each user. One GPU-hour is ${usd(cost.gpu_price.usd_per_gpu_hour)} (${cost.gpu_price.basis}).`
    + `${proposing(d)}${fleet}${rent?.memory_binds ? ` 1,000 more live tokens cost all users ${usd(rent.opportunity.usd_per_month_per_1000_live_tokens)} per month.` : ""}`;
}

function memory({ memory: m, concurrency, deployment }) {
  const draft = deployment.speculation?.draft_weights_bytes ?? 0;
  const cache = Math.min(concurrency.mean_sequences * m.kv_resident_sequence_bytes, m.kv_budget_bytes);
  const rows = [
    ["weights", m.weights_bytes - draft], ["weights of the draft", draft], ["activations", m.activation_bytes], ["runtime", m.runtime_bytes + m.collective_bytes],
    ["cache of running requests", cache], ["cache left over", m.kv_budget_bytes - cache], ["left unused by rule", m.left_unused_by_rule_bytes],
  ].filter(([, bytes]) => bytes > 0).map(([term, bytes]) => ({ term, bytes, gigabytes: bytes / 1e9 }));
  draw("memory", {
    label: "Memory of one GPU", rows, columns: [["term", (row) => row.term], ["bytes", (row) => row.bytes]],
    plot: {
      height: 150, marginLeft: 12, x: { label: "GB", domain: [0, m.label_bytes / 1e9] }, y: { axis: null },
      color: { legend: true, domain: rows.map((row) => row.term), range: ["#3b7dd8", "#b0539f", "#5a6b7b", "#d1762d", "#2f9e6e", "#8a6d3b", "#c0392b"] },
      marks: [
        Plot.barX(rows, Plot.stackX({ x: "gigabytes", fill: "term", order: null, tip: true, title: (row) => `${row.term}: ${gigabytes(row.bytes)}` })),
        Plot.ruleX([m.usable_bytes / 1e9], { stroke: "currentColor", strokeWidth: 2 }),
      ],
    },
  });
}

function frontierChart(answer) {
  const rows = answer.front.map((point) => ({ ...point, usd: Number(point.blended_usd_per_mtok) }));
  draw("frontier", {
    label: "User speed against price", rows,
    columns: [
      ["gpu", (row) => row.gpu], ["gpus", (row) => row.gpus], ["tp", (row) => row.tp], ["concurrency", (row) => row.concurrency],
      ["bound", (row) => row.bound], ["output_tok_s_per_user", (row) => row.output_tok_s_per_user], ["blended_usd_per_mtok", (row) => row.usd],
    ],
    plot: {
      x: { label: "tokens/s for each user" }, y: { type: "log", label: "USD per Mtok, blended", grid: true, ticks: 4, tickFormat: "~g" },
      color: { legend: true, type: "categorical", range: ["#3b7dd8", "#d1762d", "#2f9e6e", "#b0539f", "#8a6d3b", "#5a6b7b"] },
      marks: [
        Plot.line(rows, { x: "output_tok_s_per_user", y: "usd", strokeOpacity: 0.5 }),
        Plot.dot(rows, { x: "output_tok_s_per_user", y: "usd", fill: (row) => `${row.gpus} GPUs`, r: 3.5, tip: true,
          title: (row) => `${row.gpus} × ${row.gpu}, ${number(row.concurrency)} at once\n${row.bound} binds` }),
      ],
    },
  });
}

function rooflineChart(answer) {
  const { peak_flops_per_s: peak, memory_bytes_per_s: bandwidth, ridge_flop_per_byte: ridge, points } = answer;
  const low = Math.min(1, ...points.map((p) => p.flop_per_byte)) / 2;
  const high = Math.max(ridge, ...points.map((p) => p.flop_per_byte)) * 3;
  const roof = [{ x: low, y: low * bandwidth }, { x: ridge, y: peak }, { x: high, y: peak }];
  draw("roofline", {
    label: "Roofline", rows: points,
    columns: [["step", (row) => row.step], ["flop_per_byte", (row) => row.flop_per_byte], ["flops_per_s", (row) => row.flops_per_s],
      ["flops", (row) => row.flops], ["moved_bytes", (row) => row.moved_bytes], ["step_s", (row) => row.step_s]],
    plot: {
      x: { type: "log", label: "FLOP per byte moved", tickFormat: "~s", ticks: 5 }, y: { type: "log", label: `FLOP/s (${answer.arithmetic})`, tickFormat: "~s", ticks: 5, grid: true },
      marks: [
        Plot.line(roof, { x: "x", y: "y", stroke: "currentColor", strokeWidth: 1.5 }),
        Plot.dot(points, { x: "flop_per_byte", y: "flops_per_s", fill: "step", r: 6 }),
        Plot.text(points, { x: "flop_per_byte", y: "flops_per_s", text: "step", dy: 16, fill: "currentColor" }),
      ],
    },
  });
}

// Where prompts come again: hits and savings against the memory that keeps them; else the price against the hit rate.
async function prefixChart(given, signal) {
  const shares = Boolean(given.prefix_tokens || given.turns || given.profile);
  const name = shares ? "dram_gb_per_gpu" : "hit_rate";
  const steps = shares ? [0, 25, 50, 100, 200, 400, 800] : [0, 0.2, 0.4, 0.6, 0.8, 0.9];
  try {
    const quotes = await Promise.all(steps.map((step) => ask("/quote", { ...given, [name]: step }, signal)));
    const rows = quotes.map((quote, place) => ({
      step: steps[place], usd: Number(quote.prices.blended.usd_per_mtok), hit_rate: quote.prefix_caching.hit_rate,
      saved: quote.prefix_caching.savings?.share_of_bill, ttft_ms: quote.latency.ttft_ms,
    }));
    draw("prefix", {
      label: "Prefix cache", rows,
      columns: [[name, (row) => row.step], ["hit_rate", (row) => row.hit_rate], ["saved_share_of_bill", (row) => row.saved],
        ["blended_usd_per_mtok", (row) => row.usd], ["ttft_ms", (row) => row.ttft_ms]],
      plot: shares ? savings(rows) : priceByHits(rows),
    });
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    clear("prefix", error.message);
  }
}

const prefixTip = (row) => `${share(row.hit_rate)} found again\n${row.saved == null ? "" : `${share(row.saved)} of the bill saved\n`}${usd(row.usd)} per Mtok`;

function savings(rows) {
  const lines = rows.flatMap((row) => [{ ...row, what: "found again", part: row.hit_rate }, { ...row, what: "saved of the bill", part: row.saved }])
    .filter((line) => line.part != null);
  return {
    x: { label: "host memory for prefixes (GB per GPU)" }, y: { label: "%", percent: true, grid: true, zero: true },
    color: { legend: true, range: ["#3b7dd8", "#d1762d"] },
    marks: [Plot.line(lines, { x: "step", y: "part", stroke: "what", strokeWidth: 2 }),
      Plot.dot(lines, { x: "step", y: "part", fill: "what", tip: true, title: prefixTip })],
  };
}

function priceByHits(rows) {
  return {
    x: { label: "hit rate" }, y: { label: "USD per Mtok, blended", grid: true, zero: true },
    marks: [Plot.line(rows, { x: "step", y: "usd", stroke: "#3b7dd8", strokeWidth: 2 }),
      Plot.dot(rows, { x: "step", y: "usd", fill: "#3b7dd8", tip: true, title: prefixTip })],
  };
}

function grounds(quote) {
  fill("#warnings", ...[...quote.warnings, ...quote.uncertainty.why_extrapolated].map((text) => make("li", {}, text)));
  fill("#assumptions", table("What is assumed or judged", [
    ["name", (row) => row.name], ["value", (row) => number(row.value), true], ["unit", (row) => row.unit], ["kind", (row) => row.kind],
    ["dated", (row) => row.dated], ["why", (row) => row.reason ?? `${row.points} points`]], quote.assumptions));
  fill("#sources", table("Where facts were read", [
    ["title", (row) => (row.url ? make("a", { href: row.url, rel: "noreferrer" }, row.title) : row.title)], ["kind", (row) => row.kind],
    ["accessed", (row) => row.accessed], ["covers", (row) => row.covers.join(", ")]], quote.sources));
}

async function showTrace(signal) {
  const { trace } = await ask("/quote", { ...asked(), trace: "1" }, signal);
  fill("#trace", table("Every intermediate, in the order in which they follow", [
    ["name", (row) => row.name], ["value", (row) => number(row.value), true], ["unit", (row) => row.unit], ["formula", (row) => row.formula],
    ["from", (row) => row.inputs.join(", ")], ["source", (row) => row.source]], trace));
}

async function showVariants(signal) {
  const { items, note } = await ask("/what-if", asked(), signal);
  fill("#variants", make("p", {}, note), table("Variants of the model and of its cache", [
    ["variant", (row) => row.what], ["parameters", (row) => row.parameters && number(row.parameters), true],
    ["cache of a request", (row) => (row.why ? row.why : gigabytes(row.kv_bytes_per_sequence)), true],
    ["users memory holds per GPU", (row) => number(row.users_memory_holds_per_gpu), true], ["users per GPU", (row) => number(row.users_per_gpu), true],
    ["USD per Mtok", (row) => usd(row.blended_usd_per_mtok), true], ["times released", (row) => number(row.times_released), true]], items));
}

function refresh() {
  showQuote().then(showAroundSoon);
  $("#to-launch").href = `/launch?${new URLSearchParams({ ...asked(), users: "1000" })}`;
}

async function start() {
  fill("#charts", ...CHARTS.map(([id, title, caption]) => frame(id, title, caption)));
  fromAddress(DEFAULTS);
  refresh();
  watch(refresh);
  window.addEventListener("popstate", () => { fromAddress(DEFAULTS); refresh(); });
  for (const [id, show] of [["#trace-details", showTrace], ["#variants-details", showVariants]]) {
    $(id).addEventListener("toggle", () => { if ($(id).open) show(); });
  }
  const quoteAddress = (path, more = {}) => `${location.origin}${path}?${new URLSearchParams({ ...asked(), ...more })}`;
  const copies = {
    "#copy-link": () => `${location.origin}/?${new URLSearchParams(asked())}`,
    "#copy-curl": () => `curl '${quoteAddress("/quote").replaceAll("'", "%27")}'`,
    "#copy-formula": () => `=VALUE(WEBSERVICE("${quoteAddress("/quote.txt", { field: "output" })}"))`,
  };
  for (const [id, text] of Object.entries(copies)) $(id).addEventListener("click", (event) => copy(text(), event.target));
  const [models, gpus, profiles] = await Promise.all([ask("/models"), ask("/gpus"), ask("/profiles")]);
  options($("#profiles"), profiles.items);
  options($("#models"), models.items);
  options($("#gpus"), gpus.items);
}

start();
