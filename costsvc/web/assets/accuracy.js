// The accuracy figures as tables and charts: every point, and the errors by regime.

import { cite, clear, COLOURS, draw, frame, logTicks } from "./charts.js";
import { $, fill, make, table } from "./elements.js";
import { cleanAddress, showKey } from "./key.js";
import { showProblem } from "./problem.js";
import { ask, number, Problem, share } from "./service.js";

const COLUMNS = [
  ["quantity", (row) => row.quantity], ["regime", (row) => row.regime], ["points", (row) => number(row.points), true],
  ["median error", (row) => share(row.median_error_share), true], ["90th percentile", (row) => share(row.p90_error_share), true],
  ["bias", (row) => share(row.bias_share), true]];
const PARTS = [{ what: "median", colour: COLOURS[0] }, { what: "90th percentile", colour: COLOURS[1] }];
const POINTS = [
  ["id", (row) => row.id], ["model", (row) => row.model], ["gpu", (row) => row.gpu], ["gpus", (row) => row.gpus], ["stack", (row) => row.stack], ["weights", (row) => row.weights],
  ["measured_output_tok_s", (row) => row.measured_output_tok_s], ["predicted_output_tok_s", (row) => row.predicted_output_tok_s],
  ["predicted_over_measured", (row) => row.predicted_over_measured]];
const MOST_TOLD = 200;

function regimeChart(kind, rows) {
  draw(`by-${kind}`, {
    label: `Held-out error by ${kind}`, rows, legend: PARTS,
    columns: [["regime", (row) => row.regime], ["points", (row) => row.points], ["median_error_share", (row) => row.median_error_share],
      ["p90_error_share", (row) => row.p90_error_share], ["bias_share", (row) => row.bias_share]],
    plot: {
      height: 52 + 20 * rows.length, marginLeft: 16 + 6.6 * Math.max(...rows.map((row) => row.regime.length)), marginTop: 8,
      x: { label: "error of output tokens/s (%)", percent: true, grid: true, zero: true, ticks: 5, tickSize: 0 },
      y: { label: null, type: "band", domain: rows.map((row) => row.regime), tickSize: 0 },
      marks: [
        Plot.ruleY(rows, { y: "regime", x1: "median_error_share", x2: "p90_error_share", stroke: COLOURS[5], strokeWidth: 2 }),
        Plot.dot(rows, { y: "regime", x: "median_error_share", fill: PARTS[0].colour, r: 5, tip: true,
          title: (row) => `${row.regime}: median ${share(row.median_error_share)} of ${row.points} points` }),
        Plot.tickX(rows, { y: "regime", x: "p90_error_share", stroke: PARTS[1].colour, strokeWidth: 2.5 }),
      ],
    },
  });
}

function generationsOf(points) {
  const found = [...new Set(points.map((point) => point.generation))].sort();
  return found.map((what, place) => ({ what, colour: d3.schemeTableau10[place % d3.schemeTableau10.length] }));
}

function scatter(points) {
  const known = points.filter((point) => point.measured_output_tok_s);
  const generations = generationsOf(known);
  const colourOf = new Map(generations.map(({ what, colour }) => [what, colour]));
  const ends = d3.extent(known, (point) => point.measured_output_tok_s);
  const ticks = logTicks(ends);
  draw("predicted", {
    label: "Predicted against measured output tokens/s", rows: known, columns: POINTS, legend: generations, told: MOST_TOLD,
    plot: {
      height: 380, marginLeft: 60,
      x: { type: "log", label: "measured output tokens/s", ticks, tickFormat: "~s", grid: true, tickSize: 0 },
      y: { type: "log", label: "predicted", ticks, tickFormat: "~s", grid: true, tickSize: 0 },
      marks: [
        Plot.dot(known, { x: "measured_output_tok_s", y: "predicted_output_tok_s", fill: (point) => colourOf.get(point.generation), fillOpacity: 0.6, r: 2, tip: true,
          title: (point) => `${point.model} on ${point.gpus} × ${point.gpu}, ${point.stack}\nmeasured ${number(point.measured_output_tok_s)}, predicted ${number(point.predicted_output_tok_s)}` }),
        Plot.line(ends.map((end) => ({ end })), { x: "end", y: "end", stroke: "currentColor", strokeWidth: 1.5 }),
      ],
    },
  });
}

function histogram(points) {
  const [least, most] = [0.25, 4];
  const near = points.map((point) => ({ ...point, at: Math.min(Math.max(point.predicted_over_measured, least), most) }));
  draw("ratios", {
    label: "Predicted over measured", rows: points, columns: POINTS, told: MOST_TOLD,
    plot: {
      height: 380,
      x: { type: "log", label: "predicted / measured; the ends hold all beyond them", ticks: [0.25, 0.5, 0.8, 1, 1.25, 2, 4], tickFormat: "~g", tickSize: 3, domain: [least, most] },
      y: { label: "points", grid: true, ticks: 5, tickSize: 0 },
      marks: [
        Plot.rectY(near, Plot.binX({ y: "count" }, { x: "at", fill: COLOURS[0], inset: 0.5, thresholds: d3.range(-2, 2.01, 0.1).map((power) => 2 ** power), tip: true })),
        Plot.ruleX([1], { stroke: "currentColor", strokeWidth: 1.5 }),
        Plot.ruleY([0]),
      ],
    },
  });
}

async function drawPoints() {
  fill("#plots", frame("predicted", "Predicted against measured", "Output tokens/s of every held-out point; on the line, the prediction is exact."),
    frame("ratios", "Predicted over measured", "How many held-out points were predicted how far off. Line: exact."));
  try {
    const { items } = await ask("/validation/points");
    const points = items.map((point) => ({ ...point, predicted_output_tok_s: point.measured_output_tok_s && point.measured_output_tok_s * point.predicted_over_measured }));
    scatter(points);
    histogram(points);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    for (const id of ["predicted", "ratios"]) clear(id, error.message);
  }
}

async function start() {
  cleanAddress();
  showKey();
  try {
    const found = await ask("/validation");
    const { points, inside_share: inside, median_half_width_share: width } = found.bands;
    const [first] = found.held_out;
    cite("costsvc · held-out error on published measurements");
    fill("#heads", ...[
      ["Median error, held out", share(first.median_error_share), first.quantity], ["90th percentile, held out", share(first.p90_error_share), first.quantity],
      ["Inside their band", share(inside), `of ${number(points)} points; half-width ${share(width)}`],
      ["Measured points", number(found.points), `${number(found.left_out)} rows left out`],
    ].map(([name, value, small]) => make("div", {}, make("dt", {}, name), make("dd", {}, value, make("small", {}, small)))));
    $("#bands").textContent = `${number(found.points)} points are used, ${number(found.left_out)} rows left out. Of ${number(points)} held-out points `
      + `${share(inside)} lie inside their band, whose median half-width is ${share(width)}.`;
    fill("#held-out", table("On configurations that the fit had not seen", COLUMNS, found.held_out));
    fill("#in-sample", table("On the points it was fitted to", COLUMNS, found.headline));
    fill("#left-out", table("Rows that no prediction is compared with", [
      ["reason", (row) => row.reason], ["rows", (row) => number(row.rows), true]], found.reasons_left_out));
    const kinds = Object.entries(found.held_out_regimes);
    fill("#charts", ...kinds.map(([kind]) => frame(`by-${kind}`, `By ${kind}`, "Held-out error of output tokens/s.")));
    const inOrder = (rows) => [...rows].sort((a, b) => a.regime.localeCompare(b.regime, "en", { numeric: true }));
    for (const [kind, rows] of kinds) regimeChart(kind, inOrder(rows));
    await drawPoints();
  } catch (error) {
    showProblem(error, { start: "/accuracy" });
  }
}

start();
