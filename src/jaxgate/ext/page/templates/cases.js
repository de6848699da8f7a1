// The cases of a run: filter and search, and what is seen of a case when it is opened, made from compact numbers.
"use strict";
const cases = (() => {
  const { given, say, element, chart, sortTables } = page;
  const { names, layouts, words: shared, cases: all } = given.cases;
  const unitOf = (name) => name.slice(name.lastIndexOf("_") + 1);
  const scales = {
    ns: [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]],
    uj: [[1e-3, "nJ"], [1, "µJ"], [1e3, "mJ"], [1e6, "J"], [1e9, "kJ"]],
    bytes: [[1, "B"], [1e3, "kB"], [1e6, "MB"], [1e9, "GB"]],
    flops: [[1, "FLOP"], [1e3, "kFLOP"], [1e6, "MFLOP"], [1e9, "GFLOP"], [1e12, "TFLOP"]],
  };

  // The same words as in the terminal: report/units.py. A half is rounded to the even digit, as Python does it.
  function fixed(value, digits) {
    const power = 10 ** digits, scaled = value * power, below = Math.floor(scaled);
    const even = scaled - below === 0.5 && scaled / power === value;
    return even ? ((below + (below % 2)) / power).toFixed(digits) : value.toFixed(digits);
  }
  const grouped = (text) => text.replace(/^(-?\d+)/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ","));
  function show(name, value) {
    if (value === null || value === undefined) return "unknown";
    const found = scales[unitOf(name)];
    if (!name.includes("_") || !found) return grouped(fixed(value, Number.isInteger(value) ? 0 : 2));
    const [factor, unit] = found.toReversed().find(([least]) => Number(Math.abs(value).toPrecision(3)) >= least) ?? found[0];
    const scaled = value / factor;
    const digits = factor === found[0][0] ? 0 : Math.max(0, 3 - String(Math.trunc(Math.abs(scaled))).length);
    const text = fixed(scaled, digits);
    return `${text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text} ${unit}`;
  }
  const ratio = (now, against) => (!against ? "" : `${grouped(fixed(now / against, now / against < 100 ? 2 : 0))} ×`);

  function unpack(flat, base) {
    const side = new Map(base);
    for (let at = 0; at < (flat?.length ?? 0); at += 2) {
      if (flat[at + 1] === null) side.delete(names[flat[at]]);
      else side.set(names[flat[at]], flat[at + 1]);
    }
    return side;
  }
  function figures(one) {
    const [layout, ...values] = one.now ?? [];
    const now = new Map(values.map((value, at) => [names[layouts[layout][at]], value]));
    const side = (key, bit) => (one.known & bit ? unpack(one[key], now) : new Map());
    return { now, stored: side("stored", 2), reference: side("reference", 1) };
  }

  function plot(title, label, name, values, about = "") {
    if (typeof window.vegaEmbed !== "function") return [];
    const place = element("div", { class: "plot", role: "img", "aria-label": label });
    const spec = { ...structuredClone(given.specs[name]), data: { values } };
    const present = new Set(values.map((row) => row.side));
    for (const scale of [spec.encoding?.color, spec.encoding?.yOffset].filter((one) => one?.field === "side").map((one) => one.scale)) {
      if (scale.range) scale.range = scale.range.filter((_, at) => present.has(scale.domain[at]));
      scale.domain = scale.domain.filter((side) => present.has(side));
    }
    if (spec.height.step) spec.height = spec.height.step * present.size;
    chart(place, spec);
    const made = element("figure", { class: "chart" }, element("figcaption", {}, title), place);
    if (about) made.append(element("p", { class: "about" }, about));
    return [made];
  }

  function median(values) {
    const sorted = values.toSorted((a, b) => a - b), middle = sorted.length >> 1;
    return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  }

  function times(one) {
    if (!one.calls) return [];
    const [now, stored] = one.calls.slice(0, 2).map(([power, count, ...calls]) => calls.map((time) => time * 10 ** power));
    const counts = one.calls.slice(0, 2).map(([, count]) => count);
    const inTurn = one.calls[2];
    const rows = [], spoken = [];
    for (const [side, calls, count] of [["now", now, counts[0]], ["baseline", stored, counts[1]]]) {
      if (!calls.length) continue;
      const middle = median(calls);
      rows.push(...calls.map((time) => ({ side, x: time / 1e9, shown: show("_ns", time) })));
      rows.push({ side, x: middle / 1e9, shown: show("_ns", middle), median: true });
      spoken.push(`${side} ${calls.length === count ? count : `${calls.length} of ${count}`} calls, median ${show("_ns", middle)}, from ${show("_ns", Math.min(...calls))} to ${show("_ns", Math.max(...calls))}`);
    }
    const how = inTurn ? "Taken in turn, by a duel." : !now.length ? "Of the day of the baseline's recording; today nothing was timed." : stored.length ? "Taken on two days: the baseline's are of the day of its recording, and decide nothing." : "";
    const some = [["today's", now, counts[0]], ["the baseline's", stored, counts[1]]].filter(([, calls, count]) => calls.length < count);
    const drawn = some.map(([whose, calls, count]) => ` ${calls.length} of ${whose} ${count} are drawn.`).join("");
    return plot("Single calls, and their median", `Single calls: ${spoken.join("; ")}`, "times", rows, how + drawn);
  }

  function duel(one) {
    if (!one.duel) return [];
    const [at, low, high, margin, sees, pairs] = one.duel;
    const rows = [{ kind: "same", at: 1 }, { kind: "interval", at, low, high, shown: `${fixed(at, 2)} × [${fixed(low ?? at, 2)}, ${fixed(high ?? at, 2)}]` }];
    if (margin !== null) rows.push({ kind: "margin", low: 1 - margin, high: 1 + margin });
    if (sees !== null) rows.push({ kind: "sees", at: 1 + sees, shown: `${fixed(sees * 100, 1)} %` });
    for (const again of one.confirmed ?? []) rows.push({ kind: "confirmed", at: again, shown: `${fixed(again, 2)} ×` });
    const words = [`${pairs ?? "?"} pairs`];
    if (margin !== null) words.push(`grey: the margin of ${fixed(margin * 100, 1)} % that does not count`);
    if (sees !== null) words.push(`dashed: a slow-down of ${fixed(sees * 100, 1)} % would have been seen`);
    if (one.confirmed) words.push("diamonds: in fresh processes");
    return plot("Time as a multiple of the baseline's", `Ratio ${rows[1].shown}, ${words.join(", ")}`, "ratio", rows, `${words.join("; ")}.`);
  }

  const sides = [["now", "now"], ["baseline", "stored"], ["reference", "reference"]];
  function memory(found) {
    const rows = [];
    for (const [kind, name] of [["arguments", "argument_bytes"], ["outputs", "output_bytes"], ["temporary", "temp_bytes"], ["peak", "peak_bytes"]]) {
      for (const [side, key] of sides) {
        const value = found[key].get(name);
        if (value !== undefined) rows.push({ name: kind, side, x: value, shown: show(name, value) });
      }
    }
    const peaks = rows.filter((row) => row.name === "peak").map((row) => `${row.side} ${row.shown}`);
    return rows.some((row) => row.x > 0) ? plot("Memory of one device", `Peak memory: ${peaks.join(", ")}`, "memory", rows) : [];
  }

  function phases(found) {
    const rows = [];
    for (const [side, key] of sides) {
      ["trace", "lower", "compile", "first_call"].forEach((phase, place) => {
        const value = found[key].get(`${phase}_ns`);
        if (value !== undefined) rows.push({ side, phase: phase.replace("_", " "), place, x: value / 1e9, shown: show("_ns", value) });
      });
    }
    const spoken = rows.map((row) => `${row.side} ${row.phase} ${row.shown}`);
    return rows.length ? plot("Before the first result", `Phases: ${spoken.join(", ")}`, "phases", rows) : [];
  }

  function numbers(found, caption) {
    const body = element("tbody");
    const keys = names.filter((name) => found.now.has(name) || found.stored.has(name) || found.reference.has(name));
    for (const name of keys) {
      const [now, stored, reference] = ["now", "stored", "reference"].map((side) => found[side].get(name));
      const cells = [now, stored].map((value) => element("td", { class: "n", "data-v": value }, value === undefined ? "–" : show(name, value)));
      cells.push(element("td", { class: "n" }, now === undefined || now === stored ? "" : ratio(now, stored)));
      cells.push(element("td", { class: "n", "data-v": reference }, reference === undefined ? "–" : show(name, reference)));
      body.append(element("tr", {}, element("th", { scope: "row" }, name), ...cells));
    }
    const heads = ["quantity", "now", "baseline", "ratio", "reference"].map((name, at) => element("th", { scope: "col", class: at ? "n" : undefined }, name));
    const table = element("table", { class: "sorts" }, element("caption", { class: "hidden" }, caption), element("thead", {}, element("tr", {}, ...heads)), body);
    const whole = element("details", {}, element("summary", {}, `All ${keys.length} figures`), element("div", { class: "scroll", role: "region", "aria-label": caption, tabindex: "0" }, table));
    sortTables(whole);
    return whole;
  }

  function folded(title, lines, coloured = false) {
    if (!lines?.length) return [];
    const text = element("pre", coloured ? { class: "diff", tabindex: "0", role: "region", "aria-label": title } : {});
    for (const line of lines) {
      const sign = coloured ? { "+": "add", "-": "gone" }[line.trimStart()[0]] : undefined;
      text.append(sign ? element("span", { class: sign }, line) : line, "\n");
    }
    return [element("details", {}, element("summary", {}, title), text)];
  }

  function drawn(one) {
    if (!one.now && !one.calls && !one.duel) return [];
    const found = figures(one);
    return [element("div", { class: "charts" }, ...duel(one), ...times(one), ...memory(found), ...phases(found)), numbers(found, "All figures of the case")];
  }

  function words(one, row) {
    const made = [];
    const told = document.querySelector(`details.failure[data-case="${CSS.escape(row.id)}"]`);
    if (one.text) made.push(element("pre", {}, one.text));
    if (told) {
      const jump = element("a", { href: "#failed" }, "What failed, in words");
      jump.addEventListener("click", (event) => { event.preventDefault(); told.open = true; told.scrollIntoView(); told.querySelector("summary").focus(); });
      made.push(element("p", {}, jump));
    }
    const about = [];
    if (one.test) about.push(element("code", {}, one.test));
    if (one.baseline !== undefined) about.push(`baseline ${shared[one.baseline]}`);
    if (one.time !== undefined) about.push(`time: ${shared[one.time]}`);
    const line = element("p", { class: "note" });
    about.forEach((part, at) => line.append(at ? " · " : "", part));
    if (about.length) made.push(line);
    if (one.bundle) {
      const profiles = one.logdir === undefined ? [] : [", ", element("code", {}, `jaxgate tensorboard --logdir ${shared[one.logdir]}`), " opens its profiles"];
      made.push(element("p", {}, element("a", { href: one.page }, "Its report"), ", ", element("a", { href: one.bundle }, "its bundle"), ...profiles));
    }
    if (one.causes) made.push(element("p", {}, "Suspects, the one that explains most first:"), element("ol", {}, ...one.causes.map((cause) => element("li", {}, cause))));
    return made;
  }

  const table = document.getElementById("table");
  const rows = [...table.tBodies[0].rows];
  const place = new Map(rows.map((row, at) => [row.id, at]));

  function toggle(row, open = undefined) {
    const link = row.cells[0].querySelector("a"), after = row.nextElementSibling;
    const there = after?.classList.contains("detail") ? after : undefined;
    if (open ?? !there) {
      if (there) return;
      const one = all[place.get(row.id)];
      const inner = element("div", { class: "inner" }, ...words(one, row), ...drawn(one), ...folded("What changed in the program since its baseline", one.changes, true), ...folded("The largest buffers", one.buffers));
      if (one.environment !== undefined) {
        inner.append(element("p", { class: "note" }, `Environment ${one.environment + 1}`));
      }
      row.after(element("tr", { class: "detail" }, element("td", { colspan: String(row.cells.length) }, inner)));
    } else {
      there?.remove();
    }
    row.classList.toggle("opened", open ?? !there);
    link.setAttribute("aria-expanded", String(open ?? !there));
  }

  function filter() {
    const search = document.getElementById("search"), buttons = [...document.querySelectorAll(".filter [data-word]")];
    const texts = rows.map((row) => row.textContent.toLowerCase());
    const words = rows.map((row) => row.querySelector(".s").textContent.trim());
    const none = document.querySelector("[data-none]");
    const apply = () => {
      const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const pressed = new Set(buttons.filter((button) => button.getAttribute("aria-pressed") === "true").map((button) => button.dataset.word));
      let shown = 0;
      rows.forEach((row, at) => {
        const hit = (!pressed.size || pressed.has(words[at])) && wanted.every((word) => texts[at].includes(word));
        row.hidden = !hit;
        if (row.nextElementSibling?.classList.contains("detail")) row.nextElementSibling.hidden = !hit;
        shown += hit;
      });
      document.getElementById("count").textContent = `${shown} of ${rows.length}`;
      none.classList.toggle("hidden", shown > 0);
      say(`${shown} of ${rows.length} cases`);
    };
    let later;
    search.addEventListener("input", () => { clearTimeout(later); later = setTimeout(apply, 80); });
    for (const button of buttons) {
      button.addEventListener("click", () => {
        button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
        apply();
      });
    }
    document.querySelector(".filter").hidden = false;
    document.getElementById("count").textContent = `${rows.length} of ${rows.length}`;
    return () => { search.value = ""; for (const button of buttons) button.setAttribute("aria-pressed", "false"); apply(); };
  }

  function start() {
    const showAll = filter();
    for (const row of rows) row.cells[0].querySelector("a").setAttribute("aria-expanded", "false");
    table.addEventListener("click", (event) => {
      const link = event.target.closest("tbody > tr[id] > th > a");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      const row = link.closest("tr");
      toggle(row);
      history.replaceState(null, "", link.getAttribute("href"));
    });
    for (const told of document.querySelectorAll("details.failure")) {
      const fill = () => {
        const into = told.querySelector(".filled"), at = place.get(told.dataset.case);
        if (told.open && !into.hasChildNodes() && at !== undefined) into.append(...drawn(all[at]));
      };
      told.addEventListener("toggle", fill);
      fill();
    }
    const follow = () => {
      let wanted = location.hash.slice(1);
      try { wanted = decodeURIComponent(wanted); } catch { /* as it is */ }
      const at = place.get(wanted);
      if (at === undefined) return;
      if (rows[at].hidden) showAll();
      toggle(rows[at], true);
      rows[at].scrollIntoView({ block: "start" });
      rows[at].cells[0].querySelector("a").focus({ preventScroll: true });
    };
    window.addEventListener("hashchange", follow);
    window.addEventListener("load", follow); // later than the browser's own jump, which takes the focus
  }
  document.addEventListener("DOMContentLoaded", start);
  return { show };
})();
