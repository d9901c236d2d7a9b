// The form and the address say the same: a link is a quote.

import { $ } from "./elements.js";

const form = () => $("form.asked");

// Parameters of the address that have no field here, such as a region, stay as they are.
function others() {
  return [...new URLSearchParams(location.search)].filter(([name]) => !form().elements.namedItem(name));
}

export function asked() {
  const given = Object.fromEntries(others());
  for (const [name, value] of new FormData(form())) {
    const text = String(value).trim();
    if (text) given[name] = text;
  }
  return given;
}

export function fromAddress(defaults) {
  const given = new URLSearchParams(location.search);
  const known = given.size ? Object.fromEntries(given) : defaults;
  for (const field of form().elements) {
    if (field.name) field.value = known[field.name] ?? "";
  }
  for (const range of form().querySelectorAll("input[type=range]")) followNumber(range);
}

export function toAddress(isNew) {
  const address = `?${new URLSearchParams(asked())}`;
  if (address === location.search) return;
  history[isNew ? "pushState" : "replaceState"](null, "", address);
}

export function mark(fields) {
  for (const field of form().elements) {
    if (field.name) field.setAttribute("aria-invalid", fields.includes(field.name));
  }
}

// A slider beside a number; logarithmic where it says so. Only the number is part of the question.
function followNumber(range) {
  const field = form().elements[range.dataset.of];
  const value = Number(field.value) || Number(range.dataset.empty);
  range.value = range.dataset.scale === "log" ? Math.log2(value) : value;
  range.setAttribute("aria-valuetext", field.value || range.dataset.empty);
}

function followRange(range) {
  const field = form().elements[range.dataset.of];
  field.value = range.dataset.scale === "log" ? Math.round(2 ** Number(range.value)) : range.value;
  range.setAttribute("aria-valuetext", field.value);
}

// `changed(isDone)` while fields move and when they rest; a rest is an entry of the history.
export function watch(changed) {
  const follow = (event) => {
    const range = event.target;
    if (range.type === "range") followRange(range);
    else {
      const slider = form().querySelector(`input[type=range][data-of="${range.name}"]`);
      if (slider) followNumber(slider);
    }
  };
  let isFresh = true;
  form().addEventListener("input", (event) => {
    follow(event);
    toAddress(isFresh);
    isFresh = false;
    changed(false);
  });
  form().addEventListener("change", (event) => {
    follow(event);
    toAddress(isFresh);
    isFresh = true;
    changed(true);
  });
  form().addEventListener("submit", (event) => { event.preventDefault(); changed(true); });
}
