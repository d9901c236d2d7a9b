// The explorer: one form, one quote, and charts of what lies around it.

import { cite, clear, frame } from "./charts.js";
import { concurrencyChart, curveChart, waitChart } from "./curves.js";
import { $, copy, fill, make } from "./elements.js";
import { asked, fromAddress, hands, mark, searchable, watch } from "./form.js";
import { grounds, pointAt, showTrace, showVariants } from "./grounds.js";
import { cleanAddress, hasKey, showKey } from "./key.js";
import { cardsChart, frontierChart, memoryChart, prefixChart, rooflineChart } from "./pictures.js";
import { clearProblem, showProblem } from "./problem.js";
import { ask, counted, later, latest, milliseconds, number, Problem, share, usd } from "./service.js";

const DEFAULTS = { model: "llama-3.1-70b", gpu: "h100-sxm", ctx: "8192" };
const CHARTS = [
  ["memory", "Memory of one GPU", "What the card holds, against its size. The line is what the driver shows of it."],
  ["curve", "Price against context", "Dashed: where something gives way. Solid: your context. Shaded: the band."],
  ["concurrency", "Requests at once against context", "In one replica, on the layout that is cheapest at each context."],
  ["wait", "First token against context", "Mean time to the first token at the utilization sold."],
  ["roofline", "Roofline", "Where a decode and a prefill step lie under the card's roofs."],
  ["frontier", "User speed against price", "What no other layout beats in both. Ring: this quote."],
  ["prefix", "Prefix cache", "What the cache of prompts saves: against its memory where prompts come again, else as an example against the hit rate."],
  ["cards", "The same on every GPU", "Blended price on the cheapest layout of each card with a price, within the same objectives."],
];
const BOUNDS = {
  memory: "memory", tpot: "the time per token", ttft: "the time to the first token", max_num_seqs: "the scheduler", step_tokens: "the step's token budget",
};

let shown;

const showQuote = latest(async (signal) => {
  $("#quote").classList.add("stale");
  try {
    const quote = await ask("/quote", asked(), signal);
    shown = quote;
    clearProblem();
    mark([]);
    cite(`costsvc · ${quote.request.model} on ${quote.request.gpu} · prices of ${quote.as_of}, catalog revision ${quote.catalog_revision}, engine ${quote.engine_version}`);
    prices(quote);
    sentence(quote);
    grounds(quote);
    $("#quote").hidden = false;
    memoryChart("memory", quote);
    $("#quote").dataset.asked = location.search;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    mark(error.fields);
    $("#quote").hidden = true;
    showProblem(error, { form: hands(refresh), again: refresh });
  }
  $("#quote").classList.remove("stale");
});

const showAround = latest(async (signal) => {
  if ($("#quote").hidden) return;
  const given = asked();
  const each = async (ids, path, parameters, ...uses) => {
    try {
      const answer = await ask(path, parameters, signal);
      for (const use of uses) use(answer);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      for (const id of ids) clear(id, error.message);
    }
  };
  await each(["curve", "concurrency", "wait"], "/curve", given, (curve) => curveChart("curve", curve, shown.uncertainty),
    (curve) => concurrencyChart("concurrency", curve), (curve) => waitChart("wait", curve));
  await each(["frontier"], "/frontier", given, (answer) => frontierChart("frontier", answer, shown));
  await each(["roofline"], "/roofline", given, (answer) => rooflineChart("roofline", answer));
  await prefixChart("prefix", given, signal);
  await each(["cards"], "/compare", { ...given, gpu: "any", limit: "100" }, (answer) => cardsChart("cards", answer, shown.request.gpu));
  if ($("#trace-details").open) await showTrace(given, signal);
  if ($("#variants-details").open) await showVariants(given, signal);
});
const showAroundSoon = later(250, () => showAround());

function prices({ prices: all, uncertainty }) {
  const parts = { input: "Input", cached_input: "Cached input", output: "Output", blended: "Blended" };
  fill("#prices", ...Object.entries(parts).map(([part, name]) =>
    make("div", {}, make("dt", {}, name), make("dd", { id: `price-${part}` }, usd(all[part].usd_per_mtok),
      make("small", {}, `${usd(all[part].low)} to ${usd(all[part].high)}${uncertainty.extrapolated ? ", extrapolated" : ""}`)),
    make("dd", { class: "why" }, make("button", { type: "button", class: "plain", "aria-label": `Why: where the price of ${name.toLowerCase()} comes from`,
      onclick: () => explain(part === "blended" ? "request_usd" : `${part}_usd_per_mtok`) }, "why")))));
}

// Opening the trace asks for it; what led there is shown once it has come.
let wanted = null;

async function openTrace() {
  await showTrace(asked());
  if (wanted) pointAt(wanted);
  wanted = null;
}

function explain(name) {
  wanted = name;
  if ($("#trace-details").open) openTrace();
  else $("#trace-details").open = true;
}

function proposing({ speculation: s }) {
  return s ? ` Each step yields ${number(s.tokens_per_step)} tokens, proposed by ${s.draft_model ?? "n-grams of the text"} and accepted with ${share(s.acceptance_rate)}.` : "";
}

function sentence({ deployment: d, concurrency, latency, throughput, cost, context_rent: rent }) {
  const fleet = cost.fleet
    ? ` ${counted(cost.fleet.replicas, "replica")} of it, ${counted(cost.fleet.gpus, "GPU")}, ${cost.fleet.replicas === 1 ? "carries" : "carry"} the rate at ${usd(cost.fleet.usd_per_hour * 730)} per month.` : "";
  $("#said").textContent = `USD per 1,000,000 tokens on ${d.gpus} × ${d.gpu} (tp ${d.tp}, pp ${d.pp}, dp ${d.dp}; weights ${d.weights}, cache ${d.kv}), ${d.chosen}. `
    + `It runs ${counted(concurrency.limit, "request")} at once; ${BOUNDS[concurrency.bound] ?? concurrency.bound} binds. First token in ${milliseconds(latency.ttft_ms)}, `
    + `then ${number(throughput.output_tok_s_per_user)} tokens/s for each user. One GPU-hour is ${usd(cost.gpu_price.usd_per_gpu_hour)} (${cost.gpu_price.basis}).`
    + `${proposing(d)}${fleet}${rent?.memory_binds ? ` 1,000 more live tokens cost all users ${usd(rent.opportunity.usd_per_month_per_1000_live_tokens)} per month.` : ""}`;
}

function refresh() {
  showQuote().then(showAroundSoon);
  $("#to-launch").href = `/launch?${new URLSearchParams({ ...asked(), users: "1000" })}`;
}

async function start() {
  cleanAddress();
  showKey();
  fill("#charts", ...CHARTS.map(([id, title, caption]) => frame(id, title, caption)));
  fromAddress(DEFAULTS);
  refresh();
  watch(refresh);
  window.addEventListener("popstate", () => { if (location.search !== $("#quote").dataset.asked) { fromAddress(DEFAULTS); refresh(); } });
  for (const [id, show] of [["#trace-details", openTrace], ["#variants-details", () => showVariants(asked())]]) {
    $(id).addEventListener("toggle", () => { if ($(id).open) show(); });
  }
  const quoteAddress = (path, more = {}) => `${location.origin}${path}?${new URLSearchParams({ ...asked(), ...more })}`;
  // What is copied names a place for the key, never the key.
  const copies = {
    "#copy-link": () => `${location.origin}/?${new URLSearchParams(asked())}`,
    "#copy-curl": () => `curl ${hasKey() ? '-H "X-API-Key: $COSTSVC_KEY" ' : ""}'${quoteAddress("/quote").replaceAll("'", "%27")}'`,
    "#copy-formula": () => `=VALUE(WEBSERVICE("${quoteAddress("/quote.txt", { field: "output", ...(hasKey() ? { api_key: "YOUR-KEY" } : {}) })}"))`,
  };
  for (const [id, text] of Object.entries(copies)) $(id).addEventListener("click", (event) => copy(text(), event.target));
  try {
    await searchable();
  } catch (error) {
    // The quote has said what is wrong; the fields take what is typed.
    if (!(error instanceof Problem)) throw error;
  }
}

start();
