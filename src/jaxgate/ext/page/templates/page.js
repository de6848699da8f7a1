// What every page does: the theme, tables that sort, charts that are drawn when they come into view.
// Texts of a run are only ever given to textContent; addresses of links come from the page as it was written.
"use strict";
const page = (() => {
  const given = JSON.parse(document.getElementById("data").textContent);
  const say = (text) => { document.getElementById("said").textContent = text; };

  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== undefined && value !== null) made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  }

  const themes = ["as the system", "light", "dark"];
  function followTheme() {
    const button = document.getElementById("theme");
    let chosen = 0;
    try { chosen = Math.max(0, themes.indexOf(localStorage.getItem("jaxgate-theme"))); } catch { /* a page from a file */ }
    const show = () => {
      if (chosen) document.documentElement.dataset.theme = themes[chosen];
      else delete document.documentElement.dataset.theme;
      button.textContent = `Theme: ${themes[chosen]}`;
    };
    button.hidden = false;
    button.addEventListener("click", () => {
      chosen = (chosen + 1) % themes.length;
      try { localStorage.setItem("jaxgate-theme", themes[chosen]); } catch { /* likewise */ }
      show();
    });
    show();
  }

  // A row keeps the row of its details, which follows it.
  // A column of numbers is one of which a cell says its number; what is not known comes last.
  function sort(table, column, descending) {
    const body = table.tBodies[0];
    const rows = [...body.rows].filter((row) => !row.classList.contains("detail"));
    const keyed = rows.map((row, place) => {
      const cell = row.cells[column];
      const text = cell.textContent;
      const number = cell.dataset.v !== undefined ? Number(cell.dataset.v) : Number.parseFloat(text.replaceAll(",", ""));
      const isNumber = cell.dataset.v !== undefined || (cell.classList.contains("n") && !Number.isNaN(number));
      return { row, place, text, number: isNumber ? number : undefined, after: row.nextElementSibling };
    });
    const sign = descending ? -1 : 1;
    const numeric = keyed.some(({ number }) => number !== undefined);
    keyed.sort((a, b) => {
      if (numeric && (a.number === undefined) !== (b.number === undefined)) return a.number === undefined ? 1 : -1; // unknown last
      const by = numeric && a.number !== undefined ? a.number - b.number : a.text.localeCompare(b.text, "en", { numeric: true });
      return sign * by || a.place - b.place;
    });
    const whole = document.createDocumentFragment();
    for (const { row, after } of keyed) {
      whole.append(row);
      if (after?.classList.contains("detail")) whole.append(after);
    }
    body.append(whole);
  }

  function sortTables(root) {
    for (const table of root.querySelectorAll("table.sorts")) {
      if (table.tBodies[0].rows.length < 3 && table.id !== "table") continue;
      const heads = [...table.tHead.rows[0].cells];
      heads.forEach((head, column) => {
        const name = head.textContent;
        const button = element("button", { type: "button" }, name);
        head.replaceChildren(button);
        button.addEventListener("click", () => {
          const before = head.getAttribute("aria-sort");
          const descending = before ? before === "ascending" : head.classList.contains("n");
          for (const other of heads) other.removeAttribute("aria-sort");
          head.setAttribute("aria-sort", descending ? "descending" : "ascending");
          sort(table, column, descending);
          say(`sorted by ${name}, ${descending ? "largest first" : "smallest first"}`);
        });
      });
    }
  }

  const tip = element("div", { id: "tip", "aria-hidden": "true", hidden: "" });
  function tooltip(_handler, event, _item, value) {
    if (value === null || value === undefined || value === "") { tip.hidden = true; return; }
    const lines = typeof value === "object" ? Object.entries(value).map(([name, text]) => (name.trim() ? `${name}: ${text}` : text)) : [value];
    tip.textContent = lines.join("\n");
    tip.hidden = false;
    const { innerWidth: width, innerHeight: height } = window;
    tip.style.left = `${Math.min(event.clientX + 12, width - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(event.clientY + 14, height - tip.offsetHeight - 8)}px`;
  }

  let last = Promise.resolve();
  function draw(plot, spec) {
    last = last.then(async () => {
      try {
        const canvas = element("div", { "aria-hidden": "true" }); // the plot around it says in words what is drawn
        plot.replaceChildren(canvas);
        await window.vegaEmbed(canvas, spec, {
          mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false, config: given.config, tooltip,
          logLevel: 1, // errors
        });
        plot.dataset.drawn = "";
      } catch (error) {
        plot.textContent = `This chart could not be drawn: ${error.message}`;
      }
    });
  }

  // One after another, so that the page stays quick; most charts of a page are never looked at.
  const waiting = new Map();
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting || !waiting.has(target)) continue;
      const spec = waiting.get(target);
      waiting.delete(target);
      seen.unobserve(target);
      draw(target, spec);
    }
  }, { rootMargin: "300px" });
  function chart(plot, spec) {
    waiting.set(plot, spec);
    seen.observe(plot);
  }

  function start() {
    followTheme();
    sortTables(document);
    document.body.append(tip);
    if (typeof window.vegaEmbed !== "function") {
      document.documentElement.classList.add("without");
      return;
    }
    for (const figure of document.querySelectorAll("figure[data-chart]")) {
      chart(figure.querySelector(".plot"), given.charts[figure.dataset.chart]);
    }
    window.addEventListener("beforeprint", () => {
      for (const [plot, spec] of waiting) draw(plot, spec);
      waiting.clear();
    });
  }
  document.addEventListener("DOMContentLoaded", start);
  return { given, say, element, chart, sortTables };
})();
