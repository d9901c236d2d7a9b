// The accuracy figures as tables and, by regime, as charts.

import { draw, frame } from "./charts.js";
import { $, fill, make, table } from "./elements.js";
import { ask, number, Problem, share } from "./service.js";

const COLUMNS = [
  ["quantity", (row) => row.quantity], ["regime", (row) => row.regime], ["points", (row) => number(row.points), true],
  ["median error", (row) => share(row.median_error_share), true], ["90th percentile", (row) => share(row.p90_error_share), true],
  ["bias", (row) => share(row.bias_share), true]];

function regimeChart(kind, rows) {
  draw(`by-${kind}`, {
    label: `Held-out error by ${kind}`, rows,
    columns: [["regime", (row) => row.regime], ["points", (row) => row.points], ["median_error_share", (row) => row.median_error_share],
      ["p90_error_share", (row) => row.p90_error_share], ["bias_share", (row) => row.bias_share]],
    plot: {
      height: 60 + 22 * rows.length, marginLeft: 136,
      x: { label: "error of output tokens/s: median to 90th percentile", percent: true, grid: true, zero: true }, y: { label: null, type: "band", domain: rows.map((row) => row.regime) },
      marks: [
        Plot.ruleY(rows, { y: "regime", x1: "median_error_share", x2: "p90_error_share", stroke: "#5a6b7b", strokeWidth: 2 }),
        Plot.dot(rows, { y: "regime", x: "median_error_share", fill: "#3b7dd8", r: 5, tip: true,
          title: (row) => `${row.regime}: median ${share(row.median_error_share)} of ${row.points} points` }),
        Plot.tickX(rows, { y: "regime", x: "p90_error_share", stroke: "#d1762d", strokeWidth: 2 }),
      ],
    },
  });
}

async function start() {
  try {
    const found = await ask("/validation");
    const { points, inside_share: inside, median_half_width_share: width } = found.bands;
    $("#bands").textContent = `${number(found.points)} points are used, ${number(found.left_out)} rows left out. Of ${number(points)} held-out points `
      + `${share(inside)} lie inside their band, whose median half-width is ${share(width)}.`;
    fill("#held-out", table("On configurations that the fit had not seen", COLUMNS, found.held_out));
    fill("#in-sample", table("On the points it was fitted to", COLUMNS, found.headline));
    fill("#left-out", table("Rows that no prediction is compared with", [
      ["rows", (row) => number(row.rows), true], ["reason", (row) => row.reason]], found.reasons_left_out));
    const kinds = Object.entries(found.held_out_regimes);
    fill("#charts", ...kinds.map(([kind]) => frame(`by-${kind}`, `By ${kind}`, "Dot: median. Tick: 90th percentile.")));
    for (const [kind, rows] of kinds) regimeChart(kind, rows);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    $("#problem").textContent = error.message;
    fill("#charts", make("p", {}, ""));
  }
}

start();
