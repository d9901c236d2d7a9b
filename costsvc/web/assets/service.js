// Calls to the service, and how its numbers are written.

export class Problem extends Error {
  constructor(problem) {
    super(problem.detail);
    this.fields = (problem.errors || []).map((error) => error.field).filter(Boolean);
  }
}

// What is under way, said to readers of the screen.
let underWay = 0;
function busy(change) {
  underWay += change;
  document.body.setAttribute("aria-busy", underWay > 0);
}

export async function ask(path, parameters, signal) {
  const query = new URLSearchParams(parameters).toString();
  busy(1);
  try {
    const response = await fetch(query ? `${path}?${query}` : path, { signal, headers: { Accept: "application/json" } });
    const answer = await response.json();
    if (!response.ok) throw new Problem(answer);
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
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export const number = (value) => (value == null ? "–" : Math.abs(value) >= 1e4 ? whole.format(value) : precise.format(value));
export const usd = (value) => (value == null ? "–" : `$${number(Number(value))}`);
export const share = (value) => (value == null ? "–" : `${precise.format(100 * value)} %`);
export const gigabytes = (value) => `${precise.format(value / 1e9)} GB`;
export const milliseconds = (value) => (value >= 1000 ? `${precise.format(value / 1000)} s` : `${precise.format(value)} ms`);
