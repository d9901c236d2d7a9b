// The launch check as a report.

import { cite, clear, frame } from "./charts.js";
import { curveChart, KINDS } from "./curves.js";
import { $, copy, fill, make, table } from "./elements.js";
import { asked, fromAddress, hands, mark, searchable, watch } from "./form.js";
import { cleanAddress, hasKey, showKey } from "./key.js";
import { clearProblem, showProblem } from "./problem.js";
import { ask, counted, later, latest, milliseconds, number, Problem, share, times, usd } from "./service.js";

const DEFAULTS = { model: "llama-3.1-70b", gpu: "h100-sxm", ctx: "131072", users: "5000" };
const OF_RUNNING = ["sides", "cliffs", "stack", "buying"];
const dollars = (value) => (value == null ? "–" : `$${Math.round(Number(value)).toLocaleString("en")}`);

const show = latest(async (signal) => {
  $("#report").classList.add("stale");
  try {
    const answer = await ask("/launch-check", asked(), signal);
    clearProblem();
    mark([]);
    cite(`costsvc · ${answer.feature.model} · prices of ${answer.as_of}, catalog revision ${answer.catalog_revision}, engine ${answer.engine_version}`);
    report(answer);
    $("#report").hidden = false;
    if (answer.with_feature) await drawCurve(answer, signal);
    else waysOut(answer);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    mark(error.fields);
    $("#report").hidden = true;
    $("#verdict").textContent = "";
    showProblem(error, { form: hands(show), again: show });
  }
  $("#report").classList.remove("stale");
});

// Nothing runs it, and the verdict has said why: what would.
function waysOut({ refused, verdict }) {
  const { field, ...more } = refused ?? {};
  const error = new Problem({ ...more, title: "What to do", status: 422, detail: verdict.sentence, errors: [{ field }] });
  mark(error.fields);
  showProblem(error, { form: hands(show), again: show, isSaid: true });
}

function report(answer) {
  $("#verdict").textContent = answer.verdict.sentence;
  $("#verdict").dataset.fits = answer.verdict.fits;
  $("#identity").textContent = `Prices of ${answer.as_of}, catalog revision ${answer.catalog_revision}, engine ${answer.engine_version}. ${location.origin}/launch?${new URLSearchParams(asked())}`;
  $("#report").dataset.asked = location.search;
  const { profile, ...feature } = answer.feature;
  const named = typeof profile === "string" ? { ...feature, profile } : feature;
  $("#to-quote").href = `/?${new URLSearchParams({ ...named, gpu: answer.with_feature?.gpu ?? feature.gpu })}`;
  const warnings = [answer.verdict.as_asked, ...answer.warnings].filter(Boolean);
  fill("#warnings", ...warnings.map((text) => make("li", {}, text)));
  $("#warnings").closest("section").hidden = !warnings.length;
  levers(answer.levers);
  const has = Boolean(answer.with_feature);
  for (const id of OF_RUNNING) $(`#${id}`).closest("section").hidden = !has;
  for (const id of ["charts", "heads"]) $(`#${id}`).hidden = !has;
  if (!has) return;
  heads(answer);
  sides(answer);
  $("#law").textContent = `Little's law: ${answer.traffic.littles_law}`;
  fill("#cliffs", table("From each of these contexts on", [
    ["context", (row) => number(row.ctx), true], ["kind", (row) => KINDS[row.kind] ?? row.kind], ["what", (row) => row.what]], answer.cliffs));
  const prefixes = answer.prefix_caching;
  $("#prefixes").textContent = prefixes.savings && !prefixes.example
    ? `Prefix caching is in these numbers, today as with the feature: ${share(prefixes.hit_rate)} of the prompt is found again, which saves ${share(prefixes.savings.share_of_bill)} of the bill.` : "";
  fill("#stack", answer.stack.length ? table("Best first, each where it still saves", [
    ["lever", (row) => row.what], ["saves of what was left", (row) => share(row.saves_share_of_what_was_left), true],
    ["runs on", (row) => `${row.gpus_per_replica}\u00a0×\u00a0${row.gpu.replaceAll("-", "\u2011")}`], ["GPUs", (row) => number(row.gpus), true],
    ["USD per month", (row) => dollars(row.usd_per_month), true]], answer.stack) : make("p", {}, "No lever that keeps the feature saves."));
  buying(answer);
}

function heads({ now, with_feature: then, multiples, traffic }) {
  const against = (before, name) => (multiples ? `${before} today, ${times(multiples[name])}` : "nothing to compare with");
  const rows = [
    ["USD per month", dollars(then.usd_per_month), against(dollars(now.usd_per_month), "usd_per_month")],
    ["GPUs", number(then.gpus), against(number(now.gpus), "gpus")],
    ["Requests at once per replica", number(then.concurrency), against(number(now.concurrency), "concurrency")],
    ["At peak, USD per month", dollars(then.at_peak.usd_per_month), `${counted(then.at_peak.gpus, "GPU")} at ${number(traffic.peak_rps)} requests/s`],
  ];
  fill("#heads", ...rows.map(([name, value, small]) => make("div", {}, make("dt", {}, name), make("dd", {}, value, make("small", {}, small)))));
}

function sides({ now, with_feature: then, multiples }) {
  const rows = [
    ["longest context", (side) => `${number(side.ctx)} tokens`],
    ["mean request", (side) => `${number(side.input_tokens)} in, ${number(side.output_tokens)} out`],
    ["prompt found again", (side) => share(side.cached_input_tokens / side.input_tokens)],
    ["replica", (side) => `${side.gpus_per_replica} × ${side.gpu}, tp ${side.tp}, ${side.weights} / ${side.kv}`],
    ["requests at once per replica", (side) => `${side.concurrency} (${side.bound} binds)`, "concurrency"],
    ["replicas, GPUs", (side) => `${number(side.replicas)}, ${number(side.gpus)}`, "gpus"],
    ["USD per month", (side) => dollars(side.usd_per_month), "usd_per_month"],
    ["at peak: GPUs, USD per month", (side) => `${number(side.at_peak.gpus)}, ${dollars(side.at_peak.usd_per_month)}`],
    ["USD per request", (side) => usd(side.request_usd), "request_usd"],
    ["USD per Mtok, blended", (side) => `${usd(side.blended_usd_per_mtok)} (${usd(side.blended_low_usd_per_mtok)} to ${usd(side.blended_high_usd_per_mtok)})`, "blended_usd_per_mtok"],
    ["KV share of memory", (side) => share(side.memory.kv_share_of_usable)],
    ["first token: median, 95 %", (side) => `${milliseconds(side.latency.ttft_ms_p50)}, ${milliseconds(side.latency.ttft_ms_p95)}`],
    ["per token: median, 95 %", (side) => `${milliseconds(side.latency.tpot_ms_p50)}, ${milliseconds(side.latency.tpot_ms_p95)}`],
  ];
  fill("#sides", table("Each at its own rate of requests", [
    ["what", (row) => row[0]], ["today", (row) => (now.ctx ? row[1](now) : "–")], ["with the feature", (row) => row[1](then)],
    ["change", (row) => (multiples && row[2] ? times(multiples[row[2]]) : ""), true]], rows),
  make("p", { class: "fine noprint" }, `How percentiles come about: ${then.latency.how}.`),
  now.refused ? make("p", {}, `Today: ${now.refused}`) : null);
}

// What is saved, as a number and as a bar; what costs more says so.
function saving(row) {
  if (row.refused || row.saves_share == null) return "–";
  if (row.saves_share < 0) return `costs ${share(-row.saves_share)} more`;
  return make("span", {}, make("meter", { min: 0, max: 1, value: row.saves_share, "aria-hidden": "true", class: "noprint" }), make("span", { class: "amount" }, share(row.saves_share)));
}

function levers(rows) {
  $("#levers").closest("section").hidden = !rows.length;
  fill("#levers", table("By what a request costs, each against the feature as it runs", [
    ["lever", (row) => `${row.what}${row.gpu_price_providers === 1 ? " (a GPU with one seller's price)" : ""}`], ["saves", saving, true],
    ["requests at once", (row) => (row.refused ? "–" : number(row.concurrency)), true],
    ["first token", (row) => (row.refused ? "–" : milliseconds(row.ttft_ms)), "number noprint"],
    ["GPUs", (row) => number(row.gpus), true], ["USD per month", (row) => dollars(row.usd_per_month), true],
    ["side effect", (row) => row.refused ?? `${row.side_effect}${row.is_same_feature ? "" : " (not the same feature)"}`]], rows));
}

function buying({ buying: offer, opportunity, longer_context: longer }) {
  const first = offer.break_even
    ? `Own replicas cost less from ${number(offer.break_even.first_rps)} requests per second on${offer.break_even.for_good_rps == null ? "" : `, for good from ${number(offer.break_even.for_good_rps)}`}.`
    : `${offer.note[0].toUpperCase()}${offer.note.slice(1)}.`;
  fill("#buying", make("p", {}, `${first} Own replicas: ${dollars(offer.own_usd_per_month)} per month. 1,000 more live tokens in one replica cost all its users `
    + `${usd(opportunity.opportunity.usd_per_month_per_1000_live_tokens)} per month${opportunity.memory_binds ? "" : ", as memory does not bind"}. `
    + (longer.usd_per_month == null ? `1,000 more tokens in every request: ${longer.why_null}.`
      : `1,000 more tokens in every request cost ${dollars(longer.usd_per_month)} per month.`)),
  offer.cheapest.length ? table("Published prices that take this context", [
    ["provider", (row) => row.provider], ["USD per request", (row) => usd(row.request_usd), true],
    ["USD per month", (row) => dollars(row.usd_per_month), true],
    ["own cheaper from", (row) => (row.own_cheaper_from_rps == null ? "never" : `${number(row.own_cheaper_from_rps)} requests/s`), true],
    ["cached price", (row) => (row.cached_price_known ? "published" : "none: as input")],
    ["observed", (row) => row.observed, "date"]], offer.cheapest.slice(0, 5)) : null);
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
}

async function start() {
  cleanAddress();
  showKey();
  fill("#charts", frame("curve", "Price against context", "Dashed: cliffs. Solid: the feature. Shaded: the band."));
  fromAddress(DEFAULTS);
  show();
  watch(later(400, () => show()));
  window.addEventListener("popstate", () => { fromAddress(DEFAULTS); show(); });
  $("#print").addEventListener("click", () => window.print());
  const link = () => `?${new URLSearchParams(asked())}`;
  $("#copy-link").addEventListener("click", (event) => copy(`${location.origin}/launch${link()}`, event.target));
  $("#copy-curl").addEventListener("click", (event) =>
    copy(`curl ${hasKey() ? '-H "X-API-Key: $COSTSVC_KEY" ' : ""}'${location.origin}/launch-check${link().replaceAll("'", "%27")}'`, event.target));
  try {
    await searchable([{ id: "any", name: "Any", note: "the cheapest" }]);
  } catch (error) {
    // The check has said what is wrong; the fields take what is typed.
    if (!(error instanceof Problem)) throw error;
  }
}

start();
