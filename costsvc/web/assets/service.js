// Calls to the service, and how its numbers are written.

import { keyHeaders } from "./key.js";

export class Problem extends Error {
  constructor(problem) {
    super(problem.detail);
    this.said = problem;
    this.fields = (problem.errors || []).map((error) => error.field).filter(Boolean);
  }
}

// What is under way, said to readers of the screen.
let underWay = 0;
function busy(change) {
  underWay += change;
  document.body.setAttribute("aria-busy", underWay > 0);
}

const SILENT = {
  title: "No answer", status: 0,
  detail: "The service did not answer, or something between it and this page did in its place. Check that it runs and that you are connected, then try again.",
};

async function answerOf(address, signal) {
  try {
    const response = await fetch(address, { signal, headers: { Accept: "application/json", ...keyHeaders() } });
    return [response.ok, await response.json()];
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(SILENT);
  }
}

export async function ask(path, parameters, signal) {
  const query = new URLSearchParams(parameters).toString();
  busy(1);
  try {
    const [isGood, answer] = await answerOf(query ? `${path}?${query}` : path, signal);
    if (!isGood) throw new Problem(answer);
    return answer;
  } finally {
    // A moment later, when the answer has been drawn or has led to the next question.
    setTimeout(() => busy(-1), 0);
  }
}

// One question of a kind at a time: a newer one ends the older.
export function latest(use) {
  let running = new AbortController();
  return async (...given) => {
    running.abort();
    running = new AbortController();
    const { signal } = running;
    try {
      await use(signal, ...given);
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    }
  };
}

export function later(milliseconds, use) {
  let timer = null;
  return (...given) => {
    if (timer === null) busy(1);
    else clearTimeout(timer);
    timer = setTimeout(() => {
      timer = null;
      use(...given);
      busy(-1);
    }, milliseconds);
  };
}

const precise = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const brief = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export const counted = (value, what) => `${number(value)} ${what}${value === 1 ? "" : "s"}`;
export const number = (value) => (value == null ? "–" : Math.abs(value) >= 1e4 ? whole.format(value) : precise.format(value));
export const usd = (value) => (value == null ? "–" : `$${number(Number(value))}`);
export const share = (value) => (value == null ? "–" : `${brief.format(100 * value)} %`);
export const times = (value) => (value == null ? "–" : value < 1 ? `÷ ${brief.format(1 / value)}` : `× ${brief.format(value)}`);
export const gigabytes = (value) => `${precise.format(value / 1e9)} GB`;
export const milliseconds = (value) => (value >= 1000 ? `${brief.format(value / 1000)} s` : `${brief.format(value)} ms`);
