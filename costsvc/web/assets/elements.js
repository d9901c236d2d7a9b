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

// The same in SVG, where text is given as an attribute of its own.
export function draw(name, { text, ...attributes } = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) if (value != null) element.setAttribute(key, value);
  if (text != null) element.textContent = text;
  element.append(...children);
  return element;
}

// columns: [heading, row => cell, is it a number, or a class]; `named`: row => id of its line. Where a table is narrow its rows are
// blocks (see the style sheet), so each part says its role.
const styled = (kind) => (kind === true ? "number" : kind || null);

export function table(caption, columns, rows, named = () => null) {
  const head = columns.map(([name, , numeric]) => make("th", { scope: "col", role: "columnheader", class: styled(numeric) }, name));
  const body = rows.map((row) =>
    make("tr", { role: "row", id: named(row) }, ...columns.map(([heading, cell, numeric], place) => {
      const content = cell(row) ?? "–";
      return place ? make("td", { role: "cell", class: styled(numeric), "data-of": heading }, make("span", {}, content))
        : make("th", { scope: "row", role: "rowheader", class: styled(numeric) }, content);
    })));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    make("table", { role: "table" }, make("caption", {}, caption), make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, ...head)),
      make("tbody", { role: "rowgroup" }, ...body)));
}

export function fill(selector, ...children) {
  $(selector).replaceChildren(...children.filter((child) => child != null));
}

export async function copy(text, button) {
  button.dataset.says ??= button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    window.prompt("Copy this:", text);
  }
  clearTimeout(button.timer);
  button.timer = setTimeout(() => { button.textContent = button.dataset.says; }, 1500);
}
