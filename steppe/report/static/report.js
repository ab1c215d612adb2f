"use strict";
// Charts are drawn when they come into view; filters hide rows; every chart can be saved.
(() => {
  const specs = JSON.parse(document.getElementById("specs").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const views = new Map();

  function config() {
    const ink = dark.matches ? "#e6e9ed" : "#1d2126", line = dark.matches ? "#3a424b" : "#e4e4e4";
    return {
      aria: false, background: "transparent", font: "system-ui, sans-serif", view: { stroke: "transparent" },
      axis: { labelColor: ink, titleColor: ink, gridColor: line, domainColor: ink, tickColor: ink, labelFontSize: 11, titleFontSize: 12, titleFontWeight: "normal" },
      legend: { labelColor: ink, labelFontSize: 11, symbolOpacity: 1 }, title: { color: ink, fontSize: 12, fontWeight: 600 }, text: { color: ink },
    };
  }

  function themed(spec) {
    // Ink is black on white: on a dark page it takes the colour of the text.
    return dark.matches ? JSON.parse(JSON.stringify(spec).replaceAll('"#222222"', '"#e6e9ed"')) : spec;
  }

  const tip = document.createElement("div");
  tip.id = "vg-tooltip";
  tip.hidden = true;
  document.body.append(tip);
  function hover(_, event, __, value) {
    tip.hidden = !value;
    if (!value) return;
    tip.textContent = typeof value === "object" ? Object.entries(value).map(([k, v]) => `${k}: ${v}`).join("\n") : value;
    tip.style.whiteSpace = "pre";
    tip.style.left = `${Math.min(event.pageX + 12, scrollX + innerWidth - 220)}px`;
    tip.style.top = `${event.pageY + 12}px`;
  }

  async function draw(chart) {
    const spec = vegaLite.compile(themed(specs[chart.dataset.spec]), { config: config() }).spec;
    const view = new vega.View(vega.parse(spec, null, { ast: true }), {
      expr: vega.expressionInterpreter, renderer: "svg", container: chart, hover: true, tooltip: hover, loader: { load: () => Promise.reject() },
    });
    views.get(chart)?.finalize();
    views.set(chart, view);
    await view.runAsync();
    chart.dataset.drawn = "true";
  }

  const charts = [...document.querySelectorAll(".chart")];
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (isIntersecting) { seen.unobserve(target); draw(target); }
    }
  }, { rootMargin: "300px" });
  charts.forEach((chart) => seen.observe(chart));
  dark.addEventListener("change", () => views.forEach((_, chart) => draw(chart)));
  addEventListener("beforeprint", () => charts.filter((c) => !views.has(c)).forEach(draw));

  const columns = ["series", "x", "y", "low", "high", "note"];
  function table(spec) {
    const numbers = spec.data.values;
    const used = columns.filter((name) => numbers.some((row) => name in row));
    return [used, ...numbers.map((row) => used.map((name) => row[name] ?? ""))];
  }

  function save(name, url) {
    const link = Object.assign(document.createElement("a"), { download: name, href: url });
    link.click();
    if (url.startsWith("blob:")) setTimeout(() => URL.revokeObjectURL(url), 1000);
  }

  document.addEventListener("click", async (event) => {
    const kind = event.target.dataset?.save;
    if (!kind) return;
    const chart = event.target.closest(".panel").querySelector(".chart");
    const stem = `${event.target.closest("figure").id.replace("figure-", "")}-${chart.dataset.spec}`;
    if (kind === "csv") {
      const quoted = table(specs[chart.dataset.spec]).map((row) => row.map((cell) => /[",\n]/.test(cell) ? `"${String(cell).replaceAll('"', '""')}"` : cell).join(","));
      save(`${stem}.csv`, URL.createObjectURL(new Blob([quoted.join("\n") + "\n"], { type: "text/csv" })));
      return;
    }
    if (!views.has(chart)) await draw(chart);
    save(`${stem}.${kind}`, await views.get(chart).toImageURL(kind, kind === "png" ? 3 : 1));
  });

  document.querySelectorAll("details[data-table]").forEach((details) => {
    details.addEventListener("toggle", () => {
      if (!details.open || details.querySelector("table")) return;
      const [head, ...body] = table(specs[details.dataset.table]);
      const box = document.createElement("div"), shown = document.createElement("table");
      box.tabIndex = 0;
      for (const [tag, row] of [["th", head], ...body.map((row) => ["td", row])]) {
        const line = shown.insertRow();
        row.forEach((cell) => {
          const made = document.createElement(tag);
          if (tag === "th") made.scope = "col";
          made.textContent = cell;
          line.append(made);
        });
      }
      box.append(shown);
      details.append(box);
    }, { once: false });
  });

  const form = document.getElementById("filters"), rows = [...document.querySelectorAll("tr[data-state]")];
  const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
  function filter() {
    const on = (name) => new Set([...form.querySelectorAll(`input[name=${name}]:checked`)].map((box) => box.value));
    const papers = on("paper"), states = on("state"), words = document.getElementById("words").value.toLowerCase().split(/\s+/);
    let count = 0;
    rows.forEach((row) => {
      row.hidden = !papers.has(row.dataset.paper) || !states.has(row.dataset.state) || !words.every((word) => texts.get(row).includes(word));
      count += !row.hidden && Boolean(row.id);
    });
    document.querySelectorAll("section.paper").forEach((section) => { section.hidden = !papers.has(section.dataset.paper); });
    document.getElementById("count").textContent = `${count} of ${rows.filter((row) => row.id).length} claims shown`;
  }
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  filter();
})();
