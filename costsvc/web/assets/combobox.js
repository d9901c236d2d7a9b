// Search as you type over a list: the editable combobox of the ARIA patterns. What is typed is kept, known or not;
// the service has the last word.

import { make } from "./elements.js";

const MOST_SHOWN = 40;
const plain = (text) => text.toLowerCase().replaceAll(/[^a-z0-9.]+/g, " ");

// items: {id, name, aliases, note}. Resolves to nothing; `input` keeps its name and stays part of its form.
export function combobox(input, items) {
  const list = make("ul", { role: "listbox", id: `${input.name}-list`, hidden: true, "aria-label": input.labels[0].firstChild.textContent.trim() });
  const box = make("span", { class: "combobox" });
  input.replaceWith(box);
  box.append(input, list);
  for (const [name, value] of Object.entries({ role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id, autocomplete: "off" })) {
    input.setAttribute(name, value);
  }
  const searched = items.map((item) => ({ ...item, text: plain([item.id, item.name, ...(item.aliases ?? [])].join(" ")) }));
  const ids = new Set(items.map((item) => item.id));
  let active = -1;

  const shown = () => [...list.children].filter((child) => child.dataset.id);
  const isOpen = () => !list.hidden;

  function point(place) {
    const options = shown();
    active = options.length ? (place + options.length) % options.length : -1;
    options.forEach((option, at) => option.setAttribute("aria-selected", at === active));
    if (active < 0) input.removeAttribute("aria-activedescendant");
    else {
      input.setAttribute("aria-activedescendant", options[active].id);
      options[active].scrollIntoView({ block: "nearest" });
    }
  }

  function close() {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    point(-1);
    input.removeAttribute("aria-activedescendant");
  }

  function open(query) {
    const words = plain(query).split(" ").filter(Boolean);
    const found = searched.filter((item) => words.every((word) => item.text.includes(word)));
    // What begins with the words comes first, then what has words that begin so, the shortest before longer ones.
    const said = words.join(" ");
    const rank = (item) => item.id.length + ([item.id, item.name].some((name) => plain(name).startsWith(said)) ? 0
      : words.every((word) => ` ${plain(`${item.id} ${item.name}`)}`.includes(` ${word}`)) ? 1e3 : 2e3);
    if (words.length) found.sort((a, b) => rank(a) - rank(b));
    list.replaceChildren(...found.slice(0, MOST_SHOWN).map((item, place) =>
      make("li", { role: "option", id: `${list.id}-${place}`, "data-id": item.id, "aria-selected": "false" }, make("span", {}, item.name), make("span", {}, item.note ?? item.id))));
    if (found.length > MOST_SHOWN) list.append(make("li", { role: "option", "aria-disabled": "true", "aria-selected": "false" }, make("span", {}, `${found.length - MOST_SHOWN} more: type to narrow`)));
    list.hidden = !found.length;
    input.setAttribute("aria-expanded", found.length > 0);
    point(words.length && query !== input.dataset.chosen ? 0 : found.findIndex((item) => item.id === input.value));
  }

  function choose(id) {
    input.value = id;
    input.dataset.chosen = id;
    close();
    input.dispatchEvent(new Event("change", { bubbles: true }));
  }

  input.addEventListener("input", (event) => {
    open(input.value);
    // Half a name is no question yet.
    if (!ids.has(input.value)) event.stopPropagation();
  });
  input.addEventListener("focus", () => input.select());
  input.addEventListener("click", () => open(""));
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const step = event.key === "ArrowDown" ? 1 : -1;
      if (isOpen()) point(active < 0 && step < 0 ? -1 : active + step);
      else open("");
      event.preventDefault();
    } else if (event.key === "Enter" && isOpen() && active >= 0) {
      choose(shown()[active].dataset.id);
      event.preventDefault();
    } else if (event.key === "Escape" && isOpen()) {
      close();
      event.preventDefault();
    }
  });
  // Before the blur of the field, which closes the list.
  list.addEventListener("mousedown", (event) => event.preventDefault());
  list.addEventListener("click", (event) => {
    const id = event.target.closest("[data-id]")?.dataset.id;
    if (id) choose(id);
  });
}
