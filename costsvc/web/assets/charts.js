// Charts by Observable Plot (global `Plot`), each with its legend, its data as a table, CSV, and SVG and PNG that stand alone.

import { $, draw as svg, make, table } from "./elements.js";
import { number } from "./service.js";

export const COLOURS = ["#3b7dd8", "#d1762d", "#2f9e6e", "#b0539f", "#8a6d3b", "#7b8794", "#d0453a", "#3f9db0"];
const SHORTEST = 280;
const LONGEST = 680;

// What pictures that leave the page say of where they come from.
let origin = "";
export function cite(text) { origin = text; }

// Round values of a log axis, no more than some eight.
export function logTicks(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  for (const steps of [[1, 2, 5], [1, 3], [1]]) {
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
      for (const step of steps) ticks.push(Number((step * 10 ** power).toPrecision(1)));
    }
    const kept = ticks.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
    if (kept.length <= 7) return kept;
  }
  return undefined;
}

// The library's own log axis leaves out labels that it finds too many; here every tick that was asked for has its own.
function withAxes({ marks, ...plot }) {
  const axes = [];
  for (const [name, axis, grid] of [["x", Plot.axisX, Plot.gridX], ["y", Plot.axisY, Plot.gridY]]) {
    const { type, ticks, tickFormat, tickSize, grid: isRuled } = plot[name] ?? {};
    if (type !== "log" || !ticks) continue;
    const text = typeof tickFormat === "string" ? d3.format(tickFormat) : tickFormat;
    if (isRuled) axes.push(grid(ticks));
    axes.push(axis(ticks, { text, tickSize }));
    plot[name] = { ...plot[name], grid: false };
  }
  return { ...plot, marks: [...axes, ...marks] };
}

export const dollars = (value) => `$${number(value)}`;

// columns: [heading, row => value]; plot: options of Plot.plot; legend: [{ what, colour or sign }]
// `told`: how many rows the table shows; the CSV has all.
export function draw(id, { label, rows, columns, plot, legend = [], told = rows.length }) {
  const place = $(`#${id}`);
  const width = Math.round(Math.max(Math.min(place.clientWidth || 420, LONGEST), SHORTEST));
  const chart = Plot.plot({ className: "plot", width, height: 270, marginLeft: 52, marginBottom: 40, ariaLabel: label, ...withAxes(plot) });
  readable(chart, label);
  place.replaceChildren(chart);
  const figure = place.closest("figure");
  figure.querySelector(".legend").replaceChildren(...legend.map(({ what, ...sign }) => make("li", {}, shownSign(sign), what)));
  const data = columns.map(([heading, value]) => [heading, (row) => shown(value(row)), true]);
  figure.querySelector(".data").replaceChildren(table(rows.length > told ? `${label}: the first ${told} of ${rows.length}, all in the CSV` : label, data, rows.slice(0, told)));
  place.chart = { svg: chart, rows, columns, label, legend };
}

function shownSign({ colour, sign }) {
  if (sign) return make("b", {}, sign);
  return svg("svg", { width: 11, height: 11, "aria-hidden": "true" }, svg("rect", { width: 11, height: 11, rx: 2, fill: colour }));
}

// One picture with one name; its numbers are in the table below it.
function readable(chart, label) {
  for (const part of chart.querySelectorAll("[aria-label], [aria-description]")) {
    part.removeAttribute("aria-label");
    part.removeAttribute("aria-description");
  }
  chart.setAttribute("role", "img");
  chart.setAttribute("aria-label", `${label}. Its numbers are in the table below it.`);
}

export function clear(id, reason) {
  const place = $(`#${id}`);
  place.replaceChildren(make("p", { class: "none" }, reason));
  const figure = place.closest("figure");
  for (const part of [".data", ".legend"]) figure.querySelector(part).replaceChildren();
  place.chart = null;
}

export function frame(id, title, caption) {
  const tools = ["PNG", "SVG", "CSV"].map((kind) =>
    make("button", { type: "button", "aria-label": `Download ${title} as ${kind}`, onclick: () => download(id, kind) }, kind));
  return make("figure", {}, make("h2", {}, title), make("figcaption", {}, caption), make("ul", { class: "legend" }), make("div", { id }),
    make("div", { class: "tools" }, ...tools),
    make("details", {}, make("summary", {}, `Data: ${title}`), make("div", { class: "data" })));
}

const shown = (value) => (typeof value === "number" ? number(value) : value ?? "–");

function download(id, kind) {
  const { chart } = $(`#${id}`);
  if (!chart) return;
  if (kind === "CSV") return save(new Blob([csv(chart)], { type: "text/csv" }), `${id}.csv`);
  const picture = alone(chart);
  const image = new Blob([new XMLSerializer().serializeToString(picture)], { type: "image/svg+xml" });
  if (kind === "SVG") return save(image, `${id}.svg`);
  return rasterise(image, picture, (png) => save(png, `${id}.png`));
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

// A picture that needs nothing of the page: title, legend, chart, and where its numbers come from.
function alone({ svg: chart, label, legend }) {
  const style = getComputedStyle(document.body);
  const figure = getComputedStyle($("figure"));
  const [width, height] = [Number(chart.getAttribute("width")), Number(chart.getAttribute("height"))];
  const edge = 14;
  const parts = [svg("text", { x: edge, y: 26, "font-size": 15, "font-weight": 600, text: label })];
  let [x, y] = [edge, 46];
  for (const { what, colour, sign } of legend) {
    const wide = 30 + 6.4 * what.length;
    if (x > edge && x + wide > width) [x, y] = [edge, y + 17];
    parts.push(sign ? svg("text", { x, y, "font-weight": 700, text: sign }) : svg("rect", { x, y: y - 9, width: 10, height: 10, rx: 2, fill: colour }),
      svg("text", { x: x + 16, y, text: what }));
    x += wide;
  }
  const top = y + (legend.length ? 10 : -10);
  const inner = chart.cloneNode(true);
  inner.setAttribute("x", edge / 2);
  inner.setAttribute("y", top);
  const whole = svg("svg", {
    width: width + edge, height: top + height + 26, viewBox: `0 0 ${width + edge} ${top + height + 26}`, color: style.color, fill: style.color,
    "font-family": "system-ui, sans-serif", "font-size": 12,
  }, svg("rect", { width: "100%", height: "100%", fill: figure.backgroundColor }), ...parts, inner,
  svg("text", { x: edge, y: top + height + 16, "font-size": 10, opacity: 0.75, text: origin }));
  whole.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return whole;
}

function rasterise(blob, picture, use) {
  const image = new Image();
  const address = URL.createObjectURL(blob);
  image.onload = () => {
    const scale = 2;
    const canvas = make("canvas", { width: scale * picture.getAttribute("width"), height: scale * picture.getAttribute("height") });
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
