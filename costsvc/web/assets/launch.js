// The launch check as a report.

import { clear, curveChart, frame, KINDS } from "./charts.js";
import { $, copy, fill, make, options, table } from "./elements.js";
import { asked, fromAddress, mark, watch } from "./form.js";
import { ask, later, latest, milliseconds, number, Problem, share, usd } from "./service.js";

const DEFAULTS = { model: "llama-3.1-70b", gpu: "h100-sxm", ctx: "131072", users: "5000" };

const show = latest(async (signal) => {
  $("#report").classList.add("stale");
  try {
    const answer = await ask("/launch-check", asked(), signal);
    $("#problem").textContent = "";
    mark([]);
    report(answer);
    $("#report").hidden = false;
    if (answer.with_feature) await drawCurve(answer, signal);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    $("#problem").textContent = error.message;
    mark(error.fields);
    $("#report").hidden = true;
  }
  $("#report").classList.remove("stale");
});

function report(answer) {
  $("#verdict").textContent = answer.verdict.sentence;
  $("#verdict").dataset.fits = answer.verdict.fits;
  $("#identity").textContent = `Prices of ${answer.as_of}, catalog revision ${answer.catalog_revision}, engine ${answer.engine_version}. ${location.href}`;
  $("#report").dataset.asked = location.search;
  const { profile, ...feature } = answer.feature;
  const named = typeof profile === "string" ? { ...feature, profile } : feature;
  $("#to-quote").href = `/?${new URLSearchParams({ ...named, gpu: answer.with_feature?.gpu ?? feature.gpu })}`;
  const warnings = [answer.verdict.as_asked, ...answer.warnings].filter(Boolean);
  fill("#warnings", ...warnings.map((text) => make("li", {}, text)));
  $("#warnings").closest("section").hidden = !warnings.length;
  levers(answer.levers);
  const has = Boolean(answer.with_feature);
  for (const id of ["sides", "cliffs", "stack", "buying"]) $(`#${id}`).closest("section").hidden = !has;
  $("#charts").hidden = !has;
  if (!has) return;
  sides(answer);
  $("#law").textContent = answer.traffic.littles_law;
  fill("#cliffs", table("From each of these contexts on", [
    ["context", (row) => number(row.ctx), true], ["kind", (row) => KINDS[row.kind] ?? row.kind], ["what", (row) => row.what]], answer.cliffs));
  const prefixes = answer.prefix_caching;
  $("#prefixes").textContent = prefixes.savings && !prefixes.example
    ? `Prefix caching is in these numbers: ${share(prefixes.hit_rate)} of the prompt is found again, which saves ${share(prefixes.savings.share_of_bill)} of the bill.` : "";
  fill("#stack", answer.stack.length ? table("Best first, each where it still saves", [
    ["lever", (row) => row.what], ["saves of what was left", (row) => share(row.saves_share_of_what_was_left), true],
    ["runs on", (row) => `${row.gpus_per_replica} × ${row.gpu}`], ["GPUs", (row) => number(row.gpus), true],
    ["USD per month", (row) => usd(row.usd_per_month), true]], answer.stack) : make("p", {}, "No lever that keeps the feature saves."));
  buying(answer);
}

function sides({ now, with_feature: then, multiples }) {
  const rows = [
    ["context", (side) => `${number(side.ctx)} tokens`],
    ["replica", (side) => `${side.gpus_per_replica} × ${side.gpu}, tp ${side.tp}, ${side.weights} / ${side.kv}`],
    ["requests at once per replica", (side) => `${side.concurrency} (${side.bound} binds)`, "concurrency"],
    ["replicas, GPUs", (side) => `${number(side.replicas)}, ${number(side.gpus)}`, "gpus"],
    ["USD per month", (side) => usd(side.usd_per_month), "usd_per_month"],
    ["at peak: GPUs, USD per month", (side) => `${number(side.at_peak.gpus)}, ${usd(side.at_peak.usd_per_month)}`],
    ["USD per request", (side) => usd(side.request_usd), "request_usd"],
    ["USD per Mtok, blended", (side) => usd(side.blended_usd_per_mtok), "blended_usd_per_mtok"],
    ["KV share of memory", (side) => share(side.memory.kv_share_of_usable)],
    ["first token: median, 95 %", (side) => `${milliseconds(side.latency.ttft_ms_p50)}, ${milliseconds(side.latency.ttft_ms_p95)}`],
    ["per token: median, 95 %", (side) => `${milliseconds(side.latency.tpot_ms_p50)}, ${milliseconds(side.latency.tpot_ms_p95)}`],
  ];
  fill("#sides", table(`How percentiles come about: ${then.latency.how}`, [
    ["what", (row) => row[0]], ["today", (row) => (now.ctx ? row[1](now) : "–")], ["with the feature", (row) => row[1](then)],
    ["times", (row) => (multiples && row[2] ? number(multiples[row[2]]) : ""), true]], rows),
  now.refused ? make("p", {}, `Today: ${now.refused}`) : null);
}

function levers(rows) {
  fill("#levers", rows.length ? table("By what a request costs, each against the feature as it runs", [
    ["lever", (row) => row.what], ["saves", (row) => (row.refused ? "–" : share(row.saves_share)), true],
    ["requests at once", (row) => (row.refused ? "–" : number(row.concurrency)), true],
    ["USD per month", (row) => usd(row.usd_per_month), true],
    ["side effect", (row) => row.refused ?? `${row.side_effect}${row.is_same_feature ? "" : " (not the same feature)"}`]], rows)
    : make("p", {}, "No lever changes this."));
}

function buying({ buying: offer, opportunity, longer_context: longer }) {
  const first = offer.break_even
    ? `Own replicas cost less from ${number(offer.break_even.first_rps)} requests per second on${offer.break_even.for_good_rps == null ? "" : `, for good from ${number(offer.break_even.for_good_rps)}`}.`
    : `${offer.note[0].toUpperCase()}${offer.note.slice(1)}.`;
  fill("#buying", make("p", {}, `${first} Own replicas: ${usd(offer.own_usd_per_month)} per month. 1,000 more live tokens in one replica cost all its users `
    + `${usd(opportunity.opportunity.usd_per_month_per_1000_live_tokens)} per month${opportunity.memory_binds ? "" : ", as memory does not bind"}. `
    + (longer.usd_per_month == null ? `1,000 more tokens in every request: ${longer.why_null}.`
      : `1,000 more tokens in every request cost ${usd(longer.usd_per_month)} per month.`)),
  offer.cheapest.length ? table("Published prices that take this context", [
    ["provider", (row) => row.provider], ["USD per request", (row) => usd(row.request_usd), true],
    ["USD per month", (row) => usd(row.usd_per_month), true],
    ["own cheaper from", (row) => (row.own_cheaper_from_rps == null ? "never" : `${number(row.own_cheaper_from_rps)} /s`), true], ["cached price", (row) => (row.cached_price_known ? "published" : "none: as input")],
    ["observed", (row) => row.observed]], offer.cheapest.slice(0, 5)) : null);
}

async function drawCurve(answer, signal) {
  const { feature } = answer;
  const ctx = answer.with_feature.ctx;
  try {
    curveChart("curve", await ask("/curve", { ...feature, from_ctx: Math.min(2048, ctx - 1) }, signal), answer.uncertainty);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    clear("curve", error.message);
  }
  return null;
}

async function start() {
  fill("#charts", frame("curve", "Price against context", "Dashed: cliffs. Solid: the feature."));
  fromAddress(DEFAULTS);
  show();
  const soon = later(400, () => show());
  watch(soon);
  window.addEventListener("popstate", () => { fromAddress(DEFAULTS); show(); });
  $("#print").addEventListener("click", () => window.print());
  const link = () => `?${new URLSearchParams(asked())}`;
  $("#copy-link").addEventListener("click", (event) => copy(`${location.origin}/launch${link()}`, event.target));
  $("#copy-curl").addEventListener("click", (event) => copy(`curl '${location.origin}/launch-check${link()}'`, event.target));
  const [models, gpus, profiles] = await Promise.all([ask("/models"), ask("/gpus"), ask("/profiles")]);
  options($("#profiles"), profiles.items);
  options($("#models"), models.items);
  options($("#gpus"), [{ id: "any", name: "the cheapest" }, ...gpus.items]);
}

start();
