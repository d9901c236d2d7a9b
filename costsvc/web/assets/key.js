// The key of this tab: asked for where the service wants one, kept until the tab is closed, sent as a header alone.

import { $, make } from "./elements.js";

const NAME = "costsvc-key";

export const hasKey = () => Boolean(sessionStorage.getItem(NAME));

export function keyHeaders() {
  const key = sessionStorage.getItem(NAME);
  return key ? { "X-API-Key": key } : {};
}

function keep(key) {
  if (key) sessionStorage.setItem(NAME, key);
  else sessionStorage.removeItem(NAME);
  location.reload();
}

// An address is seen, kept and passed on by many; a key that came in one is taken out, and not used.
export function cleanAddress() {
  const given = new URLSearchParams(location.search);
  if (!given.has("api_key")) return;
  given.delete("api_key");
  history.replaceState(null, "", given.size ? `?${given}` : location.pathname);
}

export function keyForm() {
  const field = make("input", { type: "password", name: "key", required: true, autocomplete: "off", spellcheck: "false" });
  return make("form", {
    "aria-label": "API key",
    onsubmit: (event) => {
      event.preventDefault();
      // A header holds visible ASCII alone; nothing else was ever a key.
      const key = field.value.trim();
      field.setCustomValidity(/^[\x21-\x7e]+$/.test(key) ? "" : "A key has letters, digits and signs, without spaces.");
      if (field.reportValidity()) keep(key);
    },
    oninput: () => field.setCustomValidity(""),
  }, make("label", {}, "API key, kept in this tab until it is closed", field), make("button", { type: "submit" }, "Use this key"));
}

export function showKey() {
  if (!hasKey()) return;
  $("#key").replaceChildren("With your key. ", make("button", { type: "button", class: "plain", onclick: () => keep(null) }, "Forget it"));
}
