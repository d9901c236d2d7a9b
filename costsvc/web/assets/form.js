// The form and the address say the same: a link is a quote.

import { combobox } from "./combobox.js";
import { $ } from "./elements.js";
import { ask, gigabytes, number, usd } from "./service.js";

const form = () => $("form.asked");
const named = () => [...form().elements].filter((field) => field.name);
const fieldOf = (name) => form().elements.namedItem(name);

// Parameters of the address that have no field here, such as a region, stay as they are.
function others() {
  return [...new URLSearchParams(location.search)].filter(([name]) => !fieldOf(name));
}

// What a field cannot show, such as a word for a number, is asked all the same: the service says what is wrong with it.
const textOf = (field) => (field.validity.badInput ? "not a number" : field.value.trim() || field.dataset.unshown || "");

export function asked() {
  const given = Object.fromEntries(others());
  for (const field of named()) {
    const text = textOf(field);
    if (text) given[field.name] = text;
  }
  return given;
}

function put(field, value) {
  field.value = value;
  delete field.dataset.unshown;
  if (value && !field.value) field.dataset.unshown = value;
  if (field.role === "combobox") field.dataset.chosen = value;
}

export function fromAddress(defaults) {
  const given = new URLSearchParams(location.search);
  const known = given.size ? Object.fromEntries(given) : defaults;
  for (const field of named()) put(field, known[field.name] ?? "");
  for (const range of form().querySelectorAll("input[type=range]")) followNumber(range);
  const more = form().querySelector("details");
  if ([...more.querySelectorAll("[name]")].some((field) => textOf(field))) more.open = true;
}

export function toAddress(isNew) {
  const address = `?${new URLSearchParams(asked())}`;
  if (address === location.search) return;
  history[isNew ? "pushState" : "replaceState"](null, "", address);
}

export function mark(fields) {
  for (const field of named()) {
    const isWrong = fields.includes(field.name);
    field.setAttribute("aria-invalid", isWrong);
    if (isWrong) field.setAttribute("aria-describedby", "problem");
    else field.removeAttribute("aria-describedby");
    if (isWrong) field.closest("details")?.setAttribute("open", "");
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
  put(field, range.dataset.scale === "log" ? String(Math.round(2 ** Number(range.value))) : range.value);
  range.setAttribute("aria-valuetext", field.value);
}

// `changed(isDone)` while fields move and when they rest; a rest is an entry of the history.
export function watch(changed) {
  const follow = ({ target }) => {
    if (target.type === "range") return followRange(target);
    delete target.dataset.unshown;
    const slider = form().querySelector(`input[type=range][data-of="${target.name}"]`);
    return slider && followNumber(slider);
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

// What the ways out of a problem may do with the form.
export function hands(changed) {
  const after = () => {
    for (const range of form().querySelectorAll("input[type=range]")) followNumber(range);
    toAddress(true);
    changed(true);
  };
  return {
    has: (name) => Boolean(fieldOf(name)),
    value: (name) => textOf(fieldOf(name)),
    isOptional: (name) => !fieldOf(name).required,
    label: (name) => fieldOf(name).labels[0].firstChild.textContent.trim(),
    set: (name, value) => { put(fieldOf(name), String(value)); after(); fieldOf(name).focus(); },
    show: (name) => { fieldOf(name).closest("details")?.setAttribute("open", ""); fieldOf(name).focus(); },
    drop: (name) => {
      const given = new URLSearchParams(location.search);
      given.delete(name);
      history.pushState(null, "", `?${given}`);
      changed(true);
    },
  };
}

// Search as you type over the catalog.
export async function searchable(moreGpus = []) {
  const [models, gpus, profiles] = await Promise.all([ask("/models"), ask("/gpus"), ask("/profiles")]);
  const of = {
    models: models.items.map((model) => ({ ...model, note: `${number(model.max_context_tokens / 1024)}k window` })),
    gpus: [...moreGpus, ...gpus.items.map((gpu) => ({
      ...gpu, note: `${gigabytes(gpu.memory_bytes)}, ${gpu.reference_usd_per_gpu_hour ? `${usd(gpu.reference_usd_per_gpu_hour)}/h` : "no price"}`,
    }))],
    profiles: profiles.items,
  };
  for (const field of form().querySelectorAll("[data-search]")) combobox(field, of[field.dataset.search]);
}
