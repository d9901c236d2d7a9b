// Elements from data. Text is always text: nothing that was fetched is read as HTML.

export const $ = (selector) => document.querySelector(selector);

export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value != null) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

// columns: [heading, row => cell, is it a number]
export function table(caption, columns, rows) {
  const head = columns.map(([name, , numeric]) => make("th", { scope: "col", class: numeric ? "number" : null }, name));
  const body = rows.map((row) =>
    make("tr", {}, ...columns.map(([, cell, numeric], place) => {
      const content = cell(row) ?? "–";
      return make(place ? "td" : "th", { scope: place ? null : "row", class: numeric ? "number" : null }, content);
    })));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    make("table", {}, make("caption", {}, caption), make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body)));
}

export function fill(selector, ...children) {
  $(selector).replaceChildren(...children.filter((child) => child != null));
}

export function options(list, rows) {
  list.replaceChildren(...rows.map((row) => make("option", { value: row.id }, row.name)));
}

export async function copy(text, button) {
  const said = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    window.prompt("Copy this:", text);
  }
  setTimeout(() => { button.textContent = said; }, 1500);
}
