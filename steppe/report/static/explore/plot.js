"use strict";
// Axes on a canvas, sliders, and points that can be dragged. No library.
(function (root) {
  const steppe = (root.steppe ??= {});
  const COLOURS = { blue: "#0072B2", orange: "#E69F00", green: "#009E73", pink: "#CC79A7", sky: "#56B4E9", red: "#D55E00" };

  // A plane with axes. `x` and `y` are ranges; `log` names the logarithmic axes.
  function plane(canvas, { x, y, log = "", xlabel = "", ylabel = "" }) {
    const scale = root.devicePixelRatio || 1, width = canvas.clientWidth || 420, height = canvas.clientHeight || 320;
    canvas.width = width * scale;
    canvas.height = height * scale;
    const c = canvas.getContext("2d"), ink = getComputedStyle(canvas).color, left = 54, bottom = 40, top = 12, right = 12;
    c.scale(scale, scale);
    c.font = "12px system-ui, sans-serif";
    const map = (v, [a, b], isLog) => (isLog ? Math.log(Math.max(v, 1e-300) / a) / Math.log(b / a) : (v - a) / (b - a));
    const px = (v) => left + map(v, x, log.includes("x")) * (width - left - right);
    const py = (v) => height - bottom - map(v, y, log.includes("y")) * (height - bottom - top);
    const back = (share, [a, b], isLog) => (isLog ? a * (b / a) ** share : a + share * (b - a));
    const value = (event) => {
      const box = canvas.getBoundingClientRect();
      return [back((event.clientX - box.left - left) / (width - left - right), x, log.includes("x")), back((height - bottom - event.clientY + box.top) / (height - bottom - top), y, log.includes("y"))];
    };
    const ticks = ([a, b], isLog) => {
      if (isLog) {
        const all = [];
        for (let k = Math.ceil(Math.log10(a) - 1e-9); k <= Math.log10(b) + 1e-9; k++) all.push(10 ** k);
        return all.filter((_, k) => k % Math.ceil(all.length / 6) === 0);
      }
      const raw = (b - a) / 5, power = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
      const all = [];
      for (let t = Math.ceil(a / step) * step; t <= b + 1e-9 * step; t += step) all.push(Math.abs(t) < 1e-9 * step ? 0 : t);
      return all;
    };
    const text = (t) => (Math.abs(t) >= 1e4 || (t && Math.abs(t) < 1e-3) ? t.toExponential(0) : String(Number(t.toPrecision(4))));
    c.strokeStyle = c.fillStyle = ink;
    c.globalAlpha = 0.15;
    c.beginPath();
    for (const t of ticks(x, log.includes("x"))) { c.moveTo(px(t), top); c.lineTo(px(t), height - bottom); }
    for (const t of ticks(y, log.includes("y"))) { c.moveTo(left, py(t)); c.lineTo(width - right, py(t)); }
    c.stroke();
    c.globalAlpha = 1;
    c.textAlign = "center";
    for (const t of ticks(x, log.includes("x"))) c.fillText(text(t), px(t), height - bottom + 16);
    c.fillText(xlabel, (left + width - right) / 2, height - 6);
    c.textAlign = "right";
    for (const t of ticks(y, log.includes("y"))) c.fillText(text(t), left - 6, py(t) + 4);
    c.save();
    c.translate(12, (top + height - bottom) / 2);
    c.rotate(-Math.PI / 2);
    c.textAlign = "center";
    c.fillText(ylabel, 0, 0);
    c.restore();
    c.save();
    c.beginPath();
    c.rect(left, top, width - left - right, height - top - bottom);
    c.clip();
    const colour = (name) => COLOURS[name] ?? (name === "ink" ? ink : name);
    const line = (points, name, { dash = [], thick = 1.8 } = {}) => {
      c.strokeStyle = colour(name);
      c.lineWidth = thick;
      c.setLineDash(dash);
      c.beginPath();
      let pen = false;
      for (const [a, b] of points) {
        if (!Number.isFinite(a) || !Number.isFinite(b)) { pen = false; continue; }
        if (pen) c.lineTo(px(a), py(b)); else c.moveTo(px(a), py(b));
        pen = true;
      }
      c.stroke();
      c.setLineDash([]);
    };
    const dots = (points, name, size = 3) => {
      c.fillStyle = colour(name);
      for (const [a, b] of points) { c.beginPath(); c.arc(px(a), py(b), size, 0, 2 * Math.PI); c.fill(); }
    };
    const note = (words, a, b, name = "ink") => { c.fillStyle = colour(name); c.textAlign = "left"; c.fillText(words, px(a) + 5, py(b) - 5); };
    return { line, dots, note, value, px, py };
  }

  // Drag on a canvas: `move(point)` gets the place in the plane's own numbers. Arrow keys do the same.
  function draggable(canvas, current, move) {
    let held = false;
    canvas.tabIndex = 0;
    canvas.addEventListener("pointerdown", (event) => { held = true; canvas.setPointerCapture(event.pointerId); move(current().value(event)); });
    canvas.addEventListener("pointermove", (event) => { if (held) move(current().value(event)); });
    canvas.addEventListener("pointerup", () => { held = false; });
  }

  // Sliders and boxes of a page: {name: element}. A logarithmic slider has data-log and runs over exponents of ten.
  function controls(form, changed) {
    const read = () => Object.fromEntries([...form.elements].filter((e) => e.name).map((e) => [e.name, e.type === "checkbox" ? e.checked : "log" in e.dataset ? 10 ** Number(e.value) : Number(e.value)]));
    const show = () => {
      const values = read();
      for (const shown of form.querySelectorAll("output[for]")) shown.value = Number(values[shown.htmlFor.value]).toPrecision(3);
      changed(values);
    };
    form.addEventListener("input", show);
    form.addEventListener("submit", (event) => event.preventDefault());
    return { read, show };
  }

  // The same random numbers on every machine (mulberry32), and normal ones from them.
  function random(seed) {
    let state = seed >>> 0;
    const uniform = () => {
      state = (state + 0x6d2b79f5) >>> 0;
      let t = state;
      t = Math.imul(t ^ (t >>> 15), t | 1);
      t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
    const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
    return { uniform, normal };
  }

  steppe.plot = { plane, draggable, controls, random };
})(globalThis);
