"use strict";
// The table of runs, the curves of the chosen ones, and what differs between them. The view is in the address.
(() => {
  const $ = (id) => document.getElementById(id);
  const PALETTE = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"];
  const FIRST = ["id", "kind", "seed", "outcome", "seconds", "finished"];
  const ROW = 28, MOST_CHOSEN = 60;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let runs = [], shown = [], stamp = null, chart = null, drawn = [];
  const curves = new Map(), abouts = new Map(), byId = new Map();

  // ---- the view, kept in the address -------------------------------------------------------------------------
  const view = { words: "", sort: "finished", up: false, group: "", columns: [], picked: [], x: "step", y: "loss", logx: false, logy: true, smooth: 0, bands: false };
  function load() {
    const given = new URLSearchParams(location.hash.slice(1));
    for (const [key, value] of given) {
      if (!(key in view)) continue;
      if (Array.isArray(view[key])) view[key] = value ? value.split("~") : [];
      else if (typeof view[key] === "boolean") view[key] = value === "1";
      else if (typeof view[key] === "number") view[key] = Number(value) || 0;
      else view[key] = value;
    }
  }
  function keep() {
    const said = new URLSearchParams();
    for (const [key, value] of Object.entries(view)) said.set(key, Array.isArray(value) ? value.join("~") : typeof value === "boolean" ? (value ? "1" : "0") : value);
    history.replaceState(null, "", `#${said}`);
  }

  // ---- runs ---------------------------------------------------------------------------------------------------
  const field = (run, name) => (name in run && name !== "spec" && name !== "result" ? run[name] : name.startsWith("result.") ? run.result[name.slice(7)] : run.spec[name]);
  async function ask(path) {
    const answer = await fetch(path);
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${(await answer.text()).slice(0, 200)}`);
    return answer.json();
  }
  async function refresh() {
    try {
      const found = await ask(`/api/runs${stamp ? `?since=${stamp}` : ""}`);
      $("live").textContent = "live";
      if (found.stamp === stamp) return;
      stamp = found.stamp;
      runs = found.runs;
      byId.clear();
      for (const run of runs) {
        byId.set(run.id, run);
        run.text = [run.id, run.kind, run.outcome, run.damaged, ...Object.entries(run.spec).map(([k, v]) => `${k}=${v}`)].join(" ").toLowerCase();
      }
      choices();
      filter();
      await curvesOf();
    } catch (error) {
      $("live").textContent = `not connected: ${error.message}`;
    }
  }

  function names() {
    const found = new Set(FIRST);
    for (const run of runs) {
      for (const key of Object.keys(run.spec)) if (key !== "kind") found.add(key);
      for (const key of Object.keys(run.result)) found.add(`result.${key}`);
    }
    return [...found];
  }
  function options(select, values, chosen, first) {
    select.replaceChildren(...[...(first ?? []), ...values.map((v) => [v, v])].map(([value, text]) => new Option(text, value, false, value === chosen)));
  }
  function choices() {
    const all = names();
    options($("group"), all.filter((name) => name !== "id"), view.group, [["", "nothing"]]);
    options($("add"), all.filter((name) => !columns().includes(name)), "", [["", "add…"]]);
  }
  const columns = () => [...FIRST, ...view.columns.filter((name) => !FIRST.includes(name))];

  function matches(run, words) {
    return words.every((word) => {
      const rule = /^([\w.]+)(<=|>=|:|=|<|>)(.*)$/.exec(word);
      if (!rule) return run.text.includes(word);
      const [, name, sign, wanted] = rule, found = field(run, name), number = Number(wanted);
      if (found === undefined || found === null) return false;
      if (sign === ":") return String(found).toLowerCase().includes(wanted);
      if (sign === "=") return String(found).toLowerCase() === wanted || (wanted !== "" && Number(found) === number);
      return { "<": Number(found) < number, ">": Number(found) > number, "<=": Number(found) <= number, ">=": Number(found) >= number }[sign];
    });
  }
  const before = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a ?? "").localeCompare(String(b ?? ""), "en", { numeric: true }));
  function filter() {
    const words = view.words.toLowerCase().split(/\s+/).filter(Boolean);
    const found = runs.filter((run) => matches(run, words));
    found.sort((a, b) => before(field(a, view.sort), field(b, view.sort)) * (view.up ? 1 : -1) || before(a.id, b.id));
    $("count").textContent = `${found.length} of ${runs.length} runs`;
    shown = view.group ? grouped(found) : found.map((run) => ({ run }));
    header();
    rows();
    if ($("parallel-box").open) parallel(found);
  }
  function grouped(found) {
    const groups = new Map();
    for (const run of found) {
      const key = String(field(run, view.group) ?? "—");
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(run);
    }
    return [...groups].flatMap(([key, members]) => [{ key, members }, ...members.map((run) => ({ run }))]);
  }

  // ---- the table: only the rows in view are in the page ---------------------------------------------------------
  function header() {
    const cells = [document.createElement("td")];
    for (const name of columns()) {
      const cell = document.createElement("th"), button = document.createElement("button");
      cell.scope = "col";
      cell.ariaSort = view.sort === name ? (view.up ? "ascending" : "descending") : "none";
      button.textContent = name + (view.sort === name ? (view.up ? " ▲" : " ▼") : "");
      button.title = "sort; with Shift: remove the column";
      button.onclick = (event) => {
        if (event.shiftKey && view.columns.includes(name)) view.columns = view.columns.filter((other) => other !== name);
        else if (view.sort === name) view.up = !view.up;
        else Object.assign(view, { sort: name, up: true });
        keep();
        choices();
        filter();
      };
      cell.append(button);
      cells.push(cell);
    }
    $("head").replaceChildren(...cells);
  }
  function number(value) {
    return typeof value !== "number" ? String(value ?? "") : Number.isInteger(value) ? String(value) : value.toPrecision(4).replace(/\.?0+(e|$)/, "$1");
  }
  function row({ run, key, members }) {
    const line = document.createElement("tr"), box = document.createElement("td"), tick = document.createElement("input");
    tick.type = "checkbox";
    const mine = members ? members.map((one) => one.id) : [run.id];
    tick.checked = mine.every((id) => view.picked.includes(id));
    tick.ariaLabel = members ? `choose the group ${key}` : `choose run ${run.id}`;
    tick.onchange = () => {
      view.picked = tick.checked ? [...new Set([...view.picked, ...mine])].slice(-MOST_CHOSEN) : view.picked.filter((id) => !mine.includes(id));
      keep();
      rows();
      curvesOf();
    };
    box.append(tick);
    line.append(box);
    line.classList.toggle("picked", tick.checked);
    for (const name of columns()) {
      const cell = document.createElement("td");
      const value = members ? average(members, name, key) : field(run, name);
      cell.textContent = name === "id" && run ? run.id.slice(0, 10) : number(value);
      cell.title = String(value ?? "");
      if (typeof value === "number") cell.className = "number";
      if (run?.damaged) { cell.classList.add("damaged"); cell.title = run.damaged; }
      line.append(cell);
    }
    return line;
  }
  function average(members, name, key) {
    if (name === view.group) return key;
    if (name === "id") return `${members.length} runs`;
    const values = members.map((run) => field(run, name)).filter((value) => typeof value === "number");
    return values.length && name !== "seed" ? values.reduce((a, b) => a + b, 0) / values.length : "";
  }
  function rows() {
    const box = $("scroll"), from = Math.max(0, Math.floor(box.scrollTop / ROW) - 10), to = Math.min(shown.length, from + Math.ceil(box.clientHeight / ROW) + 25);
    const space = (height) => {
      const line = document.createElement("tr");
      line.className = "spacer";
      line.ariaHidden = "true";
      line.style.height = `${height}px`;
      return line;
    };
    $("body").replaceChildren(space(from * ROW), ...shown.slice(from, to).map(row), space((shown.length - to) * ROW));
  }

  // ---- the curves of the chosen runs ----------------------------------------------------------------------------
  async function curvesOf() {
    view.picked = view.picked.filter((id) => byId.has(id));
    await Promise.all(view.picked.flatMap((id) => [
      curves.has(id) ? null : ask(`/api/runs/${id}/curves`).then((found) => curves.set(id, found), () => curves.set(id, {})),
      abouts.has(id) ? null : ask(`/api/runs/${id}`).then((found) => abouts.set(id, found), () => abouts.set(id, {})),
    ]));
    const every = [...new Set(view.picked.flatMap((id) => Object.keys(curves.get(id))))].sort();
    const times = view.picked.some((id) => times_of(id)) ? ["time η·steps"] : [];
    const ys = every.filter((name) => !["step", "epoch", "time", "gradients"].includes(name));
    if (ys.length && !ys.includes(view.y)) view.y = ["loss", "train_loss", "sharpness"].find((name) => ys.includes(name)) ?? ys[0];
    const xs = [...["step", "epoch", "time", "gradients"].filter((name) => every.includes(name)), ...times, ...every.filter((n) => ys.includes(n))];
    if (xs.length && !xs.includes(view.x)) view.x = xs[0];
    options($("y"), ys, view.y);
    options($("x"), xs, view.x);
    draw();
    details();
  }
  const lr = (id) => { const found = byId.get(id)?.spec; const value = found && (found.lr ?? found["dynamics.lr"] ?? found.rate); return typeof value === "number" ? value : null; };
  const times_of = (id) => (lr(id) !== null && curves.get(id)?.step ? curves.get(id).step.map((s) => s * lr(id)) : null);
  const column = (id, name) => (name === "time η·steps" ? times_of(id) : curves.get(id)?.[name]);

  function smoothed(values) {
    const half = view.smooth;
    if (!half) return values;
    return values.map((_, k) => {
      const near = values.slice(Math.max(0, k - half), k + half + 1).filter((v) => v !== null);
      return near.length ? near.reduce((a, b) => a + b, 0) / near.length : null;
    });
  }
  function named(id) {
    const run = byId.get(id), differing = differences().slice(0, 3).map(([name]) => `${name}=${number(field(run, name))}`);
    return differing.join(", ") || id.slice(0, 8);
  }
  function differences() {
    const keys = new Set(view.picked.flatMap((id) => Object.keys(byId.get(id).spec)));
    return [...keys].map((key) => [key, view.picked.map((id) => byId.get(id).spec[key])]).filter(([, values]) => new Set(values.map(String)).size > 1);
  }
  function numbers() {
    const rows = [];
    for (const id of view.picked) {
      const xs = column(id, view.x), ys = column(id, view.y);
      if (!xs || !ys) continue;
      const label = view.bands ? bandLabel(id) : named(id);
      smoothed(ys).forEach((y, k) => {
        if (y !== null && xs[k] !== null && (!view.logx || xs[k] > 0) && (!view.logy || y > 0)) rows.push({ x: xs[k], y, series: label, id });
      });
    }
    return view.bands ? bands(rows) : rows;
  }
  function bandLabel(id) {
    const run = byId.get(id);
    return differences().filter(([name]) => !/seed/.test(name)).slice(0, 3).map(([name]) => `${name}=${number(field(run, name))}`).join(", ") || run.kind;
  }
  function bands(rows) {
    const places = new Map();
    for (const { x, y, series } of rows) {
      const key = `${series}\u0000${x}`;
      if (!places.has(key)) places.set(key, { x, series, all: [] });
      places.get(key).all.push(y);
    }
    const most = new Map();
    for (const { series, all } of places.values()) most.set(series, Math.max(most.get(series) ?? 0, all.length));
    return [...places.values()].filter(({ series, all }) => all.length === most.get(series)).map(({ x, series, all }) => {
      all.sort((a, b) => a - b);
      const middle = all.length / 2;
      return { x, series, id: series, y: all.length % 2 ? all[Math.floor(middle)] : (all[middle - 1] + all[middle]) / 2, low: all[0], high: all.at(-1), seeds: all.length };
    });
  }
  function limits() {
    if (!/sharpness|lambda/.test(view.y)) return [];
    return [...new Set(view.picked.map(lr).filter((rate) => rate > 0))].map((rate) => ({ y: 2 / rate, text: `2/η, η = ${number(rate)}` }));
  }
  const ink = () => (dark.matches ? "#e6e9ed" : "#1d2126");
  function config() {
    const line = dark.matches ? "#3a424b" : "#e4e4e4";
    return {
      aria: false, background: "transparent", font: "system-ui, sans-serif", view: { stroke: "transparent" }, text: { color: ink() },
      axis: { labelColor: ink(), titleColor: ink(), gridColor: line, domainColor: ink(), tickColor: ink(), titleFontWeight: "normal", labelOverlap: true },
      legend: { labelColor: ink(), titleColor: ink() },
    };
  }
  function tooltip(_, event, __, value) {
    const tip = $("tip");
    tip.hidden = !value;
    if (!value) return;
    tip.textContent = Object.entries(value).map(([k, v]) => `${k}: ${v}`).join("\n");
    tip.style.left = `${Math.min(event.clientX + 12, innerWidth - 220)}px`;
    tip.style.top = `${event.clientY + 12}px`;
  }
  async function show(spec, where) {
    const compiled = vegaLite.compile(spec, { config: config() }).spec;
    const made = new vega.View(vega.parse(compiled, null, { ast: true }), { expr: vega.expressionInterpreter, renderer: "svg", container: where, hover: true, tooltip, loader: { load: () => Promise.reject() } });
    await made.runAsync();
    return made;
  }
  async function draw() {
    drawn = numbers();
    chart?.finalize();
    chart = null;
    if (!drawn.length) {
      $("chart").textContent = view.picked.length ? "The chosen runs have no such curve." : "Choose runs in the table: their curves are shown here.";
      return;
    }
    $("chart").replaceChildren();
    const series = [...new Set(drawn.map((row) => row.series))];
    const scale = (log) => (log ? { type: "log", nice: false } : { zero: false });
    const x = { field: "x", type: "quantitative", title: view.x, scale: scale(view.logx) }, y = { field: "y", type: "quantitative", title: view.y, scale: scale(view.logy) };
    const color = { field: "series", type: "nominal", scale: { domain: series, range: series.map((_, k) => PALETTE[k % PALETTE.length]) }, legend: series.length > 12 ? null : { title: null, orient: "bottom", columns: 2, labelLimit: 300 } };
    const opacity = { condition: { param: "shown", value: 1 }, value: 0.05 };
    const tip = [{ field: "series" }, { field: "x", title: view.x, format: ".5g" }, { field: "y", title: view.y, format: ".5g" }];
    const layers = [{ mark: { type: "line", strokeWidth: 1.6 }, encoding: { x, y, color, opacity, detail: { field: "id" } } }, { mark: { type: "point", size: 50, opacity: 0 }, encoding: { x, y, tooltip: tip } }];
    if (view.bands) layers.unshift({ mark: { type: "area", opacity: 0.18 }, encoding: { x, y: { ...y, field: "low" }, y2: { field: "high" }, color } });
    for (const { y: at, text } of limits()) {
      const once = { data: { values: [{}] } };
      layers.push({ ...once, mark: { type: "rule", strokeDash: [4, 3], color: ink() }, encoding: { y: { datum: at, type: "quantitative" } } });
      layers.push({ ...once, mark: { type: "text", text, align: "left", dx: 4, dy: -5 }, encoding: { x: { value: 0 }, y: { datum: at, type: "quantitative" } } });
    }
    layers[0].params = [{ name: "zoom", select: "interval", bind: "scales" }, { name: "shown", select: { type: "point", fields: ["series"] }, bind: "legend" }];
    chart = await show({ width: Math.min(560, Math.max(260, $("chart").clientWidth - 90)), height: 280, data: { values: drawn }, layer: layers }, $("chart"));
  }
  async function parallel(found) {
    const chosen = [...new Set(["seconds", ...view.columns])].filter((name) => found.some((run) => typeof field(run, name) === "number"));
    $("parallel").replaceChildren();
    if (chosen.length < 2) {
      $("parallel").textContent = "Add two or more columns of numbers to the table.";
      return;
    }
    const values = found.slice(0, 1000).flatMap((run) => chosen.map((name) => ({ id: run.id, name, value: field(run, name), picked: view.picked.includes(run.id) })).filter((one) => typeof one.value === "number"));
    const range = new Map(chosen.map((name) => { const all = values.filter((v) => v.name === name).map((v) => v.value); return [name, [Math.min(...all), Math.max(...all)]]; }));
    for (const one of values) { const [low, high] = range.get(one.name); one.share = high > low ? (one.value - low) / (high - low) : 0.5; }
    const y = { field: "share", type: "quantitative", axis: null }, x = { field: "name", type: "nominal", sort: chosen, title: null, axis: { labelAngle: 0, grid: true } };
    await show({ width: 500, height: 220, data: { values }, layer: [
      { mark: { type: "line", strokeWidth: 1 }, encoding: { x, y, detail: { field: "id" }, color: { field: "picked", type: "nominal", scale: { domain: [false, true], range: ["#56B4E9", "#D55E00"] }, legend: null }, opacity: { value: 0.5 } } },
      { mark: { type: "point", opacity: 0, size: 60 }, encoding: { x, y, tooltip: [{ field: "name" }, { field: "value", format: ".5g" }, { field: "id" }] } },
    ] }, $("parallel"));
  }

  // ---- what the chosen runs are, and what differs ----------------------------------------------------------------
  function table(head, body) {
    const made = document.createElement("table");
    for (const [tag, cells] of [["th", head], ...body.map((line) => ["td", line])]) {
      const line = made.insertRow();
      for (const text of cells) { const cell = document.createElement(tag); cell.textContent = text; if (tag === "th") cell.scope = "col"; line.append(cell); }
    }
    return made;
  }
  function heading(text) { const made = document.createElement("h2"); made.textContent = text; return made; }
  function details() {
    const parts = [];
    if (view.picked.length > 1) {
      parts.push(heading("What differs"), table(["field", ...view.picked.slice(0, 8).map((id) => id.slice(0, 8))], differences().map(([name, values]) => [name, ...values.slice(0, 8).map(number)])));
    }
    for (const id of view.picked.slice(0, 8)) {
      const about = abouts.get(id) ?? {}, line = document.createElement("p"), code = document.createElement("code"), copy = document.createElement("button");
      code.textContent = about.command ?? "";
      copy.textContent = "copy command";
      copy.onclick = () => navigator.clipboard.writeText(about.command ?? "");
      line.append(code, " ", copy);
      const versions = Object.entries(about.versions ?? {}).map(([k, v]) => `${k} ${v}`).join(", ");
      const results = Object.entries(byId.get(id).result).map(([k, v]) => [k, number(v)]);
      parts.push(heading(`Run ${id}`), line, document.createTextNode(`${number(about.seconds)} s · ${about.finished ?? ""} · ${versions}`));
      if (view.picked.length === 1) parts.push(table(["field", "value"], [...Object.entries(byId.get(id).spec), ...results.map(([k, v]) => [`result.${k}`, v])].map(([k, v]) => [k, number(v)])));
    }
    $("details").replaceChildren(...parts);
  }

  // ---- controls -------------------------------------------------------------------------------------------------
  function wire() {
    $("words").value = view.words;
    for (const id of ["logx", "logy", "bands"]) { $(id).checked = view[id]; $(id).onchange = () => { view[id] = $(id).checked; keep(); draw(); }; }
    $("smooth").value = view.smooth;
    $("smooth").oninput = () => { view.smooth = Number($("smooth").value); keep(); draw(); };
    for (const id of ["x", "y"]) $(id).onchange = () => { view[id] = $(id).value; keep(); draw(); };
    $("words").oninput = () => { view.words = $("words").value; keep(); $("scroll").scrollTop = 0; filter(); };
    $("group").onchange = () => { view.group = $("group").value; keep(); filter(); };
    $("add").onchange = () => { if ($("add").value) view.columns.push($("add").value); keep(); choices(); filter(); };
    $("scroll").onscroll = rows;
    $("axes").onsubmit = (event) => event.preventDefault();
    $("parallel-box").ontoggle = filter;
    addEventListener("resize", rows);
    addEventListener("hashchange", () => { load(); wireValues(); filter(); curvesOf(); });
    dark.addEventListener("change", draw);
    document.addEventListener("click", async (event) => {
      const kind = event.target.dataset?.save;
      if (!kind || !chart) return;
      const quoted = (cell) => (/[",\n]/.test(cell) ? `"${String(cell).replaceAll('"', '""')}"` : cell);
      const heads = ["id", "series", view.x, view.y], csv = () => [heads.map(quoted), ...drawn.map((r) => [r.id, r.series, r.x, r.y].map(quoted))].map((r) => r.join(",")).join("\n") + "\n";
      const url = kind === "csv" ? URL.createObjectURL(new Blob([csv()], { type: "text/csv" })) : await chart.toImageURL(kind, kind === "png" ? 3 : 1);
      Object.assign(document.createElement("a"), { download: `steppe.${kind}`, href: url }).click();
    });
  }
  function wireValues() {
    $("words").value = view.words;
    for (const id of ["logx", "logy", "bands"]) $(id).checked = view[id];
    $("smooth").value = view.smooth;
    choices();
  }

  load();
  wire();
  draw();
  refresh();
  setInterval(() => { if (!document.hidden) refresh(); }, 3000);
})();
