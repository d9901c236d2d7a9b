// Charts by Observable Plot (global `Plot`, `d3`), each with its data as a table, CSV, SVG and PNG.

import { $, make, table } from "./elements.js";
import { number } from "./service.js";

const COLOURS = ["#3b7dd8", "#d1762d", "#2f9e6e", "#b0539f", "#8a6d3b", "#5a6b7b", "#c0392b", "#4aa3b8"];

// columns: [heading, row => value]; plot: options of Plot.plot
export function draw(id, { label, rows, columns, plot }) {
  const place = $(`#${id}`);
  const width = Math.max(Math.min(place.clientWidth || 420, 640), 280);
  const chart = Plot.plot({
    className: "plot", width, height: 260, marginLeft: 52, marginBottom: 40, ariaLabel: label,
    color: { range: COLOURS }, ...plot,
  });
  const svg = chart.tagName === "svg" ? chart : [...chart.children].findLast((child) => child.tagName === "svg");
  readable(chart, svg, label);
  place.replaceChildren(chart);
  const data = columns.map(([heading, value]) => [heading, (row) => shown(value(row)), true]);
  place.closest("figure").querySelector(".data").replaceChildren(table(label, data, rows));
  place.chart = { svg, rows, columns };
}

// One picture with one name; its numbers are in the table below it.
function readable(chart, svg, label) {
  for (const part of chart.querySelectorAll("[aria-label], [aria-description]")) {
    part.removeAttribute("aria-label");
    part.removeAttribute("aria-description");
  }
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", label);
}

export function clear(id, reason) {
  const place = $(`#${id}`);
  place.replaceChildren(make("p", {}, reason));
  place.closest("figure").querySelector(".data").replaceChildren();
  place.chart = null;
}

export function frame(id, title, caption) {
  const tools = ["PNG", "SVG", "CSV"].map((kind) =>
    make("button", { type: "button", "aria-label": `Download ${title} as ${kind}`, onclick: () => download(id, kind) }, kind));
  return make("figure", {}, make("h2", {}, title), make("div", { id }), make("figcaption", {}, caption),
    make("div", { class: "tools" }, ...tools),
    make("details", { class: "noprint" }, make("summary", {}, `Data: ${title}`), make("div", { class: "data" })));
}

const shown = (value) => (typeof value === "number" ? number(value) : value ?? "–");

function download(id, kind) {
  const { chart } = $(`#${id}`);
  if (!chart) return;
  if (kind === "CSV") return save(new Blob([csv(chart)], { type: "text/csv" }), `${id}.csv`);
  const image = new Blob([alone(chart.svg)], { type: "image/svg+xml" });
  if (kind === "SVG") return save(image, `${id}.svg`);
  return rasterise(image, chart.svg, (png) => save(png, `${id}.png`));
}

export function csv({ rows, columns }) {
  const cell = (value) => {
    const text = String(value ?? "");
    // A spreadsheet would run text that begins like a formula.
    const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const lines = [columns.map(([heading]) => cell(heading)), ...rows.map((row) => columns.map(([, value]) => cell(value(row))))];
  return `${lines.map((line) => line.join(",")).join("\r\n")}\r\n`;
}

// A chart that needs no style sheet of the page.
function alone(svg) {
  const copy = svg.cloneNode(true);
  const style = getComputedStyle(document.body);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("color", style.color);
  copy.setAttribute("font-family", "system-ui, sans-serif");
  copy.setAttribute("font-size", "12");
  const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  paper.setAttribute("width", "100%");
  paper.setAttribute("height", "100%");
  paper.setAttribute("fill", style.backgroundColor);
  copy.prepend(paper);
  return new XMLSerializer().serializeToString(copy);
}

function rasterise(blob, svg, use) {
  const image = new Image();
  const address = URL.createObjectURL(blob);
  image.onload = () => {
    const scale = 2;
    const canvas = make("canvas", { width: svg.width.baseVal.value * scale, height: svg.height.baseVal.value * scale });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(address);
    canvas.toBlob(use, "image/png");
  };
  image.src = address;
}

function save(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = make("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

// Marks that several charts share.
export const KINDS = {
  wider_replica: "more GPUs per replica", concurrency_halves: "concurrency halves", memory_ends: "memory ends",
  objective_breaks: "objective breaks", api_tier_changes: "API prices change", window_ends: "window ends",
  rope_scaling_begins: "rope scaling begins",
};

const tokens = (count) => (count >= 1024 ? `${number(count / 1024)}k` : number(count));

export function cliffMarks(cliffs) {
  const marked = cliffs.map((cliff) => ({ ...cliff, kind: KINDS[cliff.kind] ?? cliff.kind }));
  return [
    Plot.ruleX(marked, { x: "ctx", stroke: "kind", strokeDasharray: "3,3", strokeOpacity: 0.8 }),
    Plot.tip(marked, Plot.pointerX({ x: "ctx", title: (cliff) => `${cliff.ctx.toLocaleString("en")} tokens\n${cliff.what}`, frameAnchor: "top" })),
  ];
}

// `band`: by how much prices may be lower and higher, as ratios.
export function curveChart(id, curve, band = { low_ratio: 1, high_ratio: 1 }) {
  const label = "Price against context";
  const runs = curve.items.filter((item) => !item.why);
  const lines = ["input", "cached_input", "output"].flatMap((part) =>
    runs.map((item) => ({ ctx: item.ctx, part: part.replace("_", " "), usd: Number(item[`${part}_usd_per_mtok`]) })));
  const cliffs = curve.cliffs.filter((cliff) => cliff.ctx <= runs.at(-1).ctx * 1.01);
  draw(id, {
    label, rows: curve.items,
    columns: [
      ["ctx_tokens", (row) => row.ctx], ["gpus", (row) => row.gpus], ["concurrency", (row) => row.concurrency],
      ["bound", (row) => row.bound], ["input_usd_per_mtok", (row) => Number(row.input_usd_per_mtok) || null],
      ["cached_input_usd_per_mtok", (row) => Number(row.cached_input_usd_per_mtok) || null],
      ["output_usd_per_mtok", (row) => Number(row.output_usd_per_mtok) || null],
      ["tpot_ms", (row) => row.tpot_ms], ["ttft_ms", (row) => row.ttft_ms], ["why", (row) => row.why],
    ],
    plot: {
      x: { type: "log", base: 2, label: "context (tokens)", ticks: 6, tickFormat: tokens },
      y: { type: "log", label: "USD per Mtok", grid: true, ticks: 4, tickFormat: "~g" },
      color: { legend: true, range: COLOURS, domain: [...new Set([...lines.map((line) => line.part), ...cliffs.map((cliff) => KINDS[cliff.kind])])] },
      marks: [
        ...cliffMarks(cliffs),
        Plot.areaY(lines, { x: "ctx", y1: (line) => line.usd * band.low_ratio, y2: (line) => line.usd * band.high_ratio,
          fill: "part", fillOpacity: 0.15 }),
        Plot.line(lines, { x: "ctx", y: "usd", stroke: "part", strokeWidth: 2 }),
        Plot.dot(lines, { x: "ctx", y: "usd", fill: "part", r: 2.5 }),
        Plot.ruleX([curve.ctx], { stroke: "currentColor", strokeWidth: 1.5 }),
      ],
    },
  });
}
