// Charts along the context, with the cliffs marked.

import { COLOURS, dollars, draw, logTicks } from "./charts.js";
import { counted, milliseconds, number } from "./service.js";

export const KINDS = {
  wider_replica: "more GPUs per replica", concurrency_halves: "concurrency halves", memory_ends: "memory ends",
  steps_must_shrink: "steps must shrink", objective_breaks: "objective breaks", api_tier_changes: "API prices change",
  window_ends: "window ends", rope_scaling_begins: "rope scaling begins",
};
const SIGNS = {
  wider_replica: "+", concurrency_halves: "½", memory_ends: "M", steps_must_shrink: "s", objective_breaks: "!", api_tier_changes: "$",
  window_ends: "W", rope_scaling_begins: "R",
};
const CLOSE = 0.055;
const ROWS = 3;

export const tokens = (count) => (count >= 1024 ? `${number(Number((count / 1024).toPrecision(3)))}k` : number(count));

function powersOfTwo(low, high) {
  const first = Math.ceil(Math.log2(low));
  const last = Math.floor(Math.log2(high));
  const step = Math.ceil((last - first + 1) / 8);
  return Array.from({ length: Math.max(Math.ceil((last - first + 1) / step), 1) }, (_, place) => 2 ** (first + step * place));
}

// Dashed lines, each with the sign of its kind above it; signs that would meet stand on two lines.
function cliffMarks(cliffs, low, high) {
  let before = -1;
  let row = 0;
  const placed = cliffs.map((cliff) => {
    const at = Math.log(cliff.ctx / low) / Math.log(high / low);
    row = at - before < CLOSE ? (row + 1) % ROWS : 0;
    before = at;
    return { ...cliff, row, sign: SIGNS[cliff.kind] ?? "•" };
  });
  return [
    Plot.ruleX(placed, { x: "ctx", stroke: "currentColor", strokeDasharray: "2,4", strokeOpacity: 0.45 }),
    ...Array.from({ length: ROWS }, (_, line) => line).map((line) => Plot.text(placed.filter((cliff) => cliff.row === line), {
      x: "ctx", text: "sign", frameAnchor: "top", dy: -5 - 11 * line, fontWeight: 700, fill: "currentColor" })),
    Plot.tip(placed, Plot.pointerX({ x: "ctx", title: (cliff) => `${cliff.ctx.toLocaleString("en")} tokens\n${cliff.what}`, frameAnchor: "top" })),
  ];
}

const signsOf = (cliffs) => [...new Set(cliffs.map((cliff) => cliff.kind))].map((kind) => ({ what: KINDS[kind] ?? kind, sign: SIGNS[kind] ?? "•" }));

function alongContext(curve, runs) {
  const [low, high] = [runs[0].ctx, runs.at(-1).ctx];
  const cliffs = curve.cliffs.filter((cliff) => cliff.ctx >= low && cliff.ctx <= high * 1.01);
  return {
    cliffs,
    marks: [...cliffMarks(cliffs, low, high), Plot.ruleX([curve.ctx], { stroke: "currentColor", strokeWidth: 1.5 })],
    options: { marginTop: 46, insetTop: 8, x: { type: "log", base: 2, label: "context (tokens)", ticks: powersOfTwo(low, high), tickFormat: tokens, tickSize: 3 } },
  };
}

const COLUMNS = [
  ["ctx_tokens", (row) => row.ctx], ["gpus", (row) => row.gpus], ["concurrency", (row) => row.concurrency],
  ["bound", (row) => row.bound], ["input_usd_per_mtok", (row) => Number(row.input_usd_per_mtok) || null],
  ["cached_input_usd_per_mtok", (row) => Number(row.cached_input_usd_per_mtok) || null],
  ["output_usd_per_mtok", (row) => Number(row.output_usd_per_mtok) || null],
  ["tpot_ms", (row) => row.tpot_ms], ["ttft_ms", (row) => row.ttft_ms], ["why", (row) => row.why],
];

// `band`: by how much prices may be lower and higher, as ratios.
export function curveChart(id, curve, band = { low_ratio: 1, high_ratio: 1 }) {
  const label = "Price against context";
  const runs = curve.items.filter((item) => !item.why);
  const parts = ["input", "cached input", "output"];
  const colourOf = (part) => COLOURS[parts.indexOf(part)];
  const lines = parts.flatMap((part) => runs.map((item) => ({ ctx: item.ctx, part, usd: Number(item[`${part.replace(" ", "_")}_usd_per_mtok`]) })));
  const along = alongContext(curve, runs);
  draw(id, {
    label, rows: curve.items, columns: COLUMNS,
    legend: [...parts.map((part) => ({ what: part, colour: colourOf(part) })), ...signsOf(along.cliffs)],
    plot: {
      ...along.options, color: { range: COLOURS, domain: parts },
      y: { type: "log", label: "USD per Mtok", grid: true, ticks: logTicks(lines.map((line) => line.usd)), tickFormat: dollars, tickSize: 0 },
      marks: [
        ...along.marks,
        Plot.areaY(lines, { x: "ctx", y1: (line) => line.usd * band.low_ratio, y2: (line) => line.usd * band.high_ratio, fill: "part", fillOpacity: 0.18 }),
        Plot.line(lines, { x: "ctx", y: "usd", stroke: "part", strokeWidth: 2 }),
        Plot.dot(lines, { x: "ctx", y: "usd", fill: "part", r: 2.5 }),
      ],
    },
  });
}

function oneLine(id, curve, { label, value, axis, colour, title }) {
  const runs = curve.items.filter((item) => !item.why);
  const along = alongContext(curve, runs);
  draw(id, {
    label, rows: curve.items, columns: COLUMNS, legend: signsOf(along.cliffs),
    plot: {
      ...along.options, y: { type: "log", grid: true, tickSize: 0, ticks: logTicks(runs.map(value)), ...axis },
      marks: [
        ...along.marks,
        Plot.line(runs, { x: "ctx", y: value, stroke: colour, strokeWidth: 2 }),
        Plot.dot(runs, { x: "ctx", y: value, fill: colour, r: 2.5, tip: true, title }),
      ],
    },
  });
}

export function concurrencyChart(id, curve) {
  oneLine(id, curve, {
    label: "Requests at once against context", value: (item) => item.concurrency, colour: COLOURS[2], axis: { label: "requests at once in a replica", tickFormat: number },
    title: (item) => `${number(item.concurrency)} at once on ${counted(item.gpus, "GPU")}\n${item.bound} binds`,
  });
}

export function waitChart(id, curve) {
  oneLine(id, curve, {
    label: "First token against context", value: (item) => item.ttft_ms / 1000, colour: COLOURS[3], axis: { label: "seconds to the first token", tickFormat: number },
    title: (item) => `first token in ${milliseconds(item.ttft_ms)}\nthen one each ${milliseconds(item.tpot_ms)}`,
  });
}
