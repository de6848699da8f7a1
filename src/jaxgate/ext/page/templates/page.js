// Tables sort, the cases are searched, and a link opens what it leads to. The page can be read without this script.
"use strict";
for (const table of document.querySelectorAll("table.sorts")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const number = head.classList.contains("n");
      const down = head.getAttribute("aria-sort") ? head.getAttribute("aria-sort") === "ascending" : number;
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const keyed = [...table.tBodies[0].rows].map((row) => {
        const cell = row.cells[column], text = cell.textContent;
        const value = cell.dataset.v ?? (number ? text.replaceAll(",", "") : text);
        return { row, text, value: Number.parseFloat(value) };
      });
      const numeric = keyed.some(({ row }) => row.cells[column].dataset.v !== undefined) || number;
      keyed.sort((a, b) => {
        if (numeric && Number.isNaN(a.value) !== Number.isNaN(b.value)) return Number.isNaN(a.value) ? 1 : -1; // unknown last
        const by = numeric && !Number.isNaN(a.value) ? a.value - b.value : a.text.localeCompare(b.text, "en", { numeric: true });
        return down ? -by : by;
      });
      table.tBodies[0].append(...keyed.map(({ row }) => row));
    });
  });
}

const bar = document.querySelector(".filter");
if (bar) {
  const rows = [...document.getElementById("table").tBodies[0].rows];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const words = rows.map((row) => row.querySelector(".s").textContent);
  const search = document.getElementById("search"), buttons = [...bar.querySelectorAll("[data-word]")];
  const filter = () => {
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const pressed = buttons.filter((one) => one.getAttribute("aria-pressed") === "true").map((one) => one.dataset.word);
    rows.forEach((row, at) => {
      row.hidden = (pressed.length && !pressed.includes(words[at])) || !wanted.every((word) => texts[at].includes(word));
    });
    document.getElementById("count").textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} cases`;
  };
  search.addEventListener("input", filter);
  for (const one of buttons) {
    one.addEventListener("click", () => {
      one.setAttribute("aria-pressed", String(one.getAttribute("aria-pressed") !== "true"));
      filter();
    });
  }
  bar.hidden = false;
  filter();
}

function follow() {
  let key = location.hash.slice(1);
  try { key = decodeURIComponent(key); } catch { /* as it is */ }
  const fold = document.getElementById(key)?.querySelector("details");
  if (!fold) return;
  fold.closest("tr").hidden = false;
  fold.open = true;
  fold.scrollIntoView();
  fold.querySelector("summary").focus({ preventScroll: true });
}
addEventListener("hashchange", follow);
addEventListener("load", follow); // later than the browser's own jump
