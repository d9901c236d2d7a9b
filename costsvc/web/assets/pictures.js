// The explorer's other charts, each of one answer.

import { clear, COLOURS, dollars, draw, logTicks } from "./charts.js";
import { ask, counted, gigabytes, number, Problem, share, usd } from "./service.js";

const TERMS = ["#3b7dd8", "#b0539f", "#7b8794", "#d1762d", "#2f9e6e", "#8a6d3b", "#d0453a"];

export function memoryChart(id, { memory: m, concurrency, deployment }) {
  const draft = deployment.speculation?.draft_weights_bytes ?? 0;
  const cache = Math.min(concurrency.mean_sequences * m.kv_resident_sequence_bytes, m.kv_budget_bytes);
  const rows = [
    ["weights", m.weights_bytes - draft], ["weights of the draft", draft], ["activations", m.activation_bytes], ["runtime", m.runtime_bytes + m.collective_bytes],
    ["cache of running requests", cache], ["cache left over", m.kv_budget_bytes - cache], ["left unused by rule", m.left_unused_by_rule_bytes],
  ].filter(([, bytes]) => bytes > 0).map(([term, bytes], place) => ({ term, bytes, gigabytes: bytes / 1e9, colour: TERMS[place] }));
  draw(id, {
    label: "Memory of one GPU", rows, columns: [["term", (row) => row.term], ["bytes", (row) => row.bytes]],
    legend: rows.map((row) => ({ what: `${row.term} ${gigabytes(Number(row.bytes.toPrecision(3)))}`, colour: row.colour })),
    plot: {
      height: 230, marginLeft: 8, marginRight: 8, x: { label: `GB of ${number(m.label_bytes / 1e9)}`, domain: [0, m.label_bytes / 1e9], tickSize: 3 }, y: { axis: null },
      marks: [
        Plot.barX(rows, Plot.stackX({ x: "gigabytes", fill: "colour", order: null, insetLeft: 0.5, insetRight: 0.5, tip: true, title: (row) => `${row.term}: ${gigabytes(row.bytes)}` })),
        Plot.ruleX([m.usable_bytes / 1e9], { stroke: "currentColor", strokeWidth: 2 }),
        Plot.frame({ strokeOpacity: 0.3 }),
      ],
    },
  });
}

export function frontierChart(id, answer, { throughput, prices }) {
  const rows = answer.front.map((point) => ({ ...point, usd: Number(point.blended_usd_per_mtok) }));
  const widths = [...new Set(rows.map((row) => row.gpus))].sort((a, b) => a - b);
  const here = { speed: throughput.output_tok_s_per_user, usd: Number(prices.blended.usd_per_mtok) };
  const colourOf = (gpus) => COLOURS[widths.indexOf(gpus) % COLOURS.length];
  draw(id, {
    label: "User speed against price", rows,
    columns: [
      ["gpu", (row) => row.gpu], ["gpus", (row) => row.gpus], ["tp", (row) => row.tp], ["concurrency", (row) => row.concurrency],
      ["bound", (row) => row.bound], ["output_tok_s_per_user", (row) => row.output_tok_s_per_user], ["blended_usd_per_mtok", (row) => row.usd],
    ],
    legend: [...widths.map((gpus) => ({ what: `${gpus} GPU${gpus > 1 ? "s" : ""}`, colour: colourOf(gpus) })), { what: "this quote", sign: "○" }],
    plot: {
      x: { label: "tokens/s for each user", tickSize: 3 },
      y: { type: "log", label: "USD per Mtok, blended", grid: true, ticks: logTicks([...rows.map((row) => row.usd), here.usd]), tickFormat: dollars, tickSize: 0 },
      marks: [
        Plot.line(rows, { x: "output_tok_s_per_user", y: "usd", strokeOpacity: 0.4 }),
        Plot.dot(rows, { x: "output_tok_s_per_user", y: "usd", fill: (row) => colourOf(row.gpus), r: 3.5, tip: true,
          title: (row) => `${row.gpus} × ${row.gpu}, ${number(row.concurrency)} at once\n${row.bound} binds\n${usd(row.usd)} per Mtok` }),
        Plot.dot([here], { x: "speed", y: "usd", stroke: "currentColor", strokeWidth: 2, r: 7 }),
      ],
    },
  });
}

const flops = (value) => (value >= 1e15 ? `${number(value / 1e15)} P` : value >= 1e12 ? `${number(value / 1e12)} T` : `${number(value / 1e9)} G`);

export function rooflineChart(id, answer) {
  const { peak_flops_per_s: peak, memory_bytes_per_s: bandwidth, ridge_flop_per_byte: ridge, points } = answer;
  const low = Math.min(1, ...points.map((p) => p.flop_per_byte)) / 2;
  const high = Math.max(ridge, ...points.map((p) => p.flop_per_byte)) * 3;
  const roof = [{ x: low, y: low * bandwidth }, { x: ridge, y: peak }, { x: high, y: peak }];
  const told = { x: "flop_per_byte", y: "flops_per_s", text: (point) => `${point.step}: ${flops(Number(point.flops_per_s.toPrecision(3)))}FLOP/s`, fill: "currentColor" };
  const slope = { x: Math.sqrt(low * ridge), text: `${number(bandwidth / 1e12)} TB/s` };
  draw(id, {
    label: "Roofline", rows: points,
    columns: [["step", (row) => row.step], ["flop_per_byte", (row) => row.flop_per_byte], ["flops_per_s", (row) => row.flops_per_s],
      ["flops", (row) => row.flops], ["moved_bytes", (row) => row.moved_bytes], ["step_s", (row) => row.step_s]],
    plot: {
      marginTop: 28,
      x: { type: "log", label: "FLOP per byte moved", ticks: logTicks([low, high]), tickFormat: "~s", tickSize: 3 },
      y: { type: "log", label: `FLOP/s in ${answer.arithmetic}`, ticks: logTicks([low * bandwidth, peak]), tickFormat: flops, tickSize: 0, grid: true },
      marks: [
        Plot.line(roof, { x: "x", y: "y", stroke: "currentColor", strokeWidth: 1.5 }),
        Plot.text([slope], { x: "x", y: slope.x * bandwidth, text: "text", dx: -8, dy: -6, textAnchor: "end", fill: "currentColor" }),
        Plot.text([{ x: high, y: peak }], { x: "x", y: "y", text: () => `${number(peak / 1e12)} TFLOP/s`, dy: -8, textAnchor: "end", fill: "currentColor" }),
        Plot.dot(points, { x: "flop_per_byte", y: "flops_per_s", fill: (point) => COLOURS[points.indexOf(point)], r: 6 }),
        Plot.text(points.filter((point) => point.flop_per_byte < ridge), { ...told, dx: 11, textAnchor: "start" }),
        Plot.text(points.filter((point) => point.flop_per_byte >= ridge), { ...told, dy: 18, dx: 8, textAnchor: "end" }),
      ],
    },
  });
}

// Where prompts come again: hits and savings against the memory that keeps them; else the price against the hit rate.
export async function prefixChart(id, given, signal) {
  const shares = Boolean(given.prefix_tokens || given.turns || given.profile);
  const name = shares ? "dram_gb_per_gpu" : "hit_rate";
  const steps = shares ? [0, 25, 50, 100, 200, 400, 800] : [0, 0.2, 0.4, 0.6, 0.8, 0.9];
  try {
    const quotes = await Promise.all(steps.map((step) => ask("/quote", { ...given, [name]: step }, signal)));
    const rows = quotes.map((quote, place) => ({
      step: steps[place], usd: Number(quote.prices.blended.usd_per_mtok), hit_rate: quote.prefix_caching.hit_rate,
      saved: quote.prefix_caching.savings?.share_of_bill, ttft_ms: quote.latency.ttft_ms,
    }));
    draw(id, {
      label: "Prefix cache", rows,
      columns: [[name, (row) => row.step], ["hit_rate", (row) => row.hit_rate], ["saved_share_of_bill", (row) => row.saved],
        ["blended_usd_per_mtok", (row) => row.usd], ["ttft_ms", (row) => row.ttft_ms]],
      ...(shares ? savings(rows) : priceByHits(rows)),
    });
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    clear(id, error.message);
  }
}

const prefixTip = (row) => `${share(row.hit_rate)} found again\n${row.saved == null ? "" : `${share(row.saved)} of the bill saved\n`}${usd(row.usd)} per Mtok`;

function savings(rows) {
  const parts = ["found again", "saved of the bill"];
  const lines = rows.flatMap((row) => [{ ...row, what: parts[0], part: row.hit_rate }, { ...row, what: parts[1], part: row.saved }])
    .filter((line) => line.part != null);
  return {
    legend: parts.map((what, place) => ({ what, colour: COLOURS[place] })),
    plot: {
      x: { label: "host memory for prefixes (GB per GPU)", tickSize: 3 }, y: { label: "%", percent: true, grid: true, zero: true, tickSize: 0 },
      color: { domain: parts, range: COLOURS },
      marks: [Plot.line(lines, { x: "step", y: "part", stroke: "what", strokeWidth: 2 }),
        Plot.dot(lines, { x: "step", y: "part", fill: "what", tip: true, title: prefixTip })],
    },
  };
}

function priceByHits(rows) {
  return {
    plot: {
      x: { label: "hit rate", tickSize: 3 }, y: { label: "USD per Mtok, blended", grid: true, zero: true, ticks: 5, tickFormat: dollars, tickSize: 0 },
      marks: [Plot.line(rows, { x: "step", y: "usd", stroke: COLOURS[0], strokeWidth: 2 }),
        Plot.dot(rows, { x: "step", y: "usd", fill: COLOURS[0], tip: true, title: prefixTip })],
    },
  };
}

const MOST_CARDS = 14;

export function cardsChart(id, answer, gpu) {
  const rows = answer.items.filter((item) => item.keeps_objectives).map((item) => ({
    ...item, usd: Number(item.blended_usd_per_mtok), low: Number(item.blended_low_usd_per_mtok), high: Number(item.blended_high_usd_per_mtok),
  }));
  const first = rows.slice(0, MOST_CARDS);
  const own = rows.find((row) => row.gpu === gpu);
  if (own && !first.includes(own)) first.splice(-1, 1, own);
  if (!first.length) { clear(id, "No card with a price keeps the objectives."); return; }
  draw(id, {
    label: "The same on every GPU", rows: answer.items,
    columns: [["gpu", (row) => row.gpu], ["gpus", (row) => row.gpus], ["tp", (row) => row.tp], ["concurrency", (row) => row.concurrency], ["bound", (row) => row.bound],
      ["tpot_ms", (row) => row.tpot_ms], ["ttft_ms", (row) => row.ttft_ms], ["keeps_objectives", (row) => String(row.keeps_objectives)],
      ["request_usd", (row) => Number(row.request_usd)], ["blended_usd_per_mtok", (row) => Number(row.blended_usd_per_mtok)],
      ["blended_low_usd_per_mtok", (row) => Number(row.blended_low_usd_per_mtok)], ["blended_high_usd_per_mtok", (row) => Number(row.blended_high_usd_per_mtok)],
      ["gpu_price_providers", (row) => row.gpu_price_providers]],
    legend: [{ what: "your GPU", colour: COLOURS[0] }, { what: "others", colour: COLOURS[5] }, { what: "low to high", sign: "–" }],
    plot: {
      height: 52 + 18 * first.length, marginLeft: 132, marginRight: 116, marginTop: 6, marginBottom: 42,
      x: { label: "USD per Mtok, blended", ticks: 4, tickFormat: dollars, grid: true, tickSize: 0 }, y: { label: null, domain: first.map((row) => row.gpu), tickSize: 0 },
      marks: [
        Plot.barX(first, { y: "gpu", x: "usd", fill: (row) => (row.gpu === gpu ? COLOURS[0] : COLOURS[5]), fillOpacity: (row) => (row.gpu === gpu ? 1 : 0.75), tip: true,
          title: (row) => `${row.gpus} × ${row.gpu}, ${row.concurrency} at once\n${usd(row.usd)} per Mtok\n${row.gpu_price_basis}` }),
        Plot.ruleY(first, { y: "gpu", x1: "low", x2: "high", stroke: "currentColor", strokeOpacity: 0.6 }),
        Plot.text(first, { y: "gpu", x: "high", text: (row) => `${counted(row.gpus, "GPU")}${row.gpu_price_providers === 1 ? ", one seller" : ""}`, dx: 5, textAnchor: "start", fill: "currentColor", fontSize: 11 }),
      ],
    },
  });
}
