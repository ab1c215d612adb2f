"use strict";
// A ReLU network of one input, f(x) = Σ w₂ relu(w₁x + b₁) + b₂, trained on (1/2n) Σ (f − y)² (mulayoff2021).
(function (root) {
  const steppe = (root.steppe ??= {});

  // Parameters are {w1, b1, w2, b2}: three lists and a number.
  const apply = (p, x) => p.w1.reduce((sum, w, k) => sum + p.w2[k] * Math.max(0, w * x + p.b1[k]), p.b2);
  const loss = (p, x, y) => x.reduce((sum, v, i) => sum + (apply(p, v) - y[i]) ** 2, 0) / (2 * x.length);

  function gradient(p, x, y) {
    const k = p.w1.length, g = { w1: new Array(k).fill(0), b1: new Array(k).fill(0), w2: new Array(k).fill(0), b2: 0 }, n = x.length;
    x.forEach((v, i) => {
      const r = (apply(p, v) - y[i]) / n;
      g.b2 += r;
      for (let j = 0; j < k; j++) {
        const h = p.w1[j] * v + p.b1[j];
        if (h > 0) { g.w2[j] += r * h; g.w1[j] += r * p.w2[j] * v; g.b1[j] += r * p.w2[j]; }
      }
    });
    return g;
  }

  const moved = (p, g, t) => ({ w1: p.w1.map((v, k) => v + t * g.w1[k]), b1: p.b1.map((v, k) => v + t * g.b1[k]), w2: p.w2.map((v, k) => v + t * g.w2[k]), b2: p.b2 + t * g.b2 });

  // The Hessian times d: (1/n) Σ ∇f(∇f·d) + r ∇²f d. Where no example is on a kink this is exact.
  function product(p, x, y, d) {
    const k = p.w1.length, out = { w1: new Array(k).fill(0), b1: new Array(k).fill(0), w2: new Array(k).fill(0), b2: 0 }, n = x.length;
    x.forEach((v, i) => {
      const r = (apply(p, v) - y[i]) / n;
      let along = d.b2;
      for (let j = 0; j < k; j++) { const h = p.w1[j] * v + p.b1[j]; if (h > 0) along += d.w2[j] * h + p.w2[j] * (d.w1[j] * v + d.b1[j]); }
      along /= n;
      out.b2 += along;
      for (let j = 0; j < k; j++) {
        const h = p.w1[j] * v + p.b1[j];
        if (h <= 0) continue;
        out.w2[j] += along * h + r * (d.w1[j] * v + d.b1[j]);
        out.w1[j] += (along * p.w2[j] + r * d.w2[j]) * v;
        out.b1[j] += along * p.w2[j] + r * d.w2[j];
      }
    });
    return out;
  }

  const dot = (a, b) => a.b2 * b.b2 + ["w1", "b1", "w2"].reduce((s, name) => s + a[name].reduce((t, v, k) => t + v * b[name][k], 0), 0);

  // λ_max by power iteration on H + shift; `from` is a start vector, which is returned for the next call.
  function sharpness(p, x, y, { from = null, steps = 60 } = {}) {
    let v = from ?? { w1: p.w1.map((_, k) => Math.sin(k + 1)), b1: p.b1.map((_, k) => Math.cos(k + 2)), w2: p.w2.map((_, k) => Math.sin(2 * k + 3)), b2: 1 };
    const zero = moved(v, v, -1);
    v = moved(zero, v, 1 / Math.sqrt(dot(v, v)));
    let value = 0;
    for (let k = 0; k < steps; k++) {
      const shift = 0.1 * Math.abs(value), Hv = product(p, x, y, v);
      value = dot(v, Hv);
      const next = moved(Hv, v, shift), size = Math.sqrt(dot(next, next));
      if (!(size > 0)) break;
      v = moved(zero, next, 1 / size);
    }
    return { value, vector: v };
  }

  // The weight g of the bound λ_max ≥ 1 + 2∫|f″|g: the smaller of its two sides at t.
  function weight(x, t) {
    const side = (chosen) => {
      if (!chosen.length) return 0;
      const share = chosen.length / x.length, mean = chosen.reduce((a, b) => a + b, 0) / chosen.length;
      return share * share * Math.abs(mean - t) * Math.sqrt(1 + mean * mean);
    };
    return Math.min(side(x.filter((v) => v > t)), side(x.filter((v) => v < t)));
  }

  // ∫|f″|g: the sum over neurons, those with the same kink put together.
  function roughness(p, x) {
    const jumps = new Map();
    p.w1.forEach((w, k) => { if (w !== 0) { const t = -p.b1[k] / w; jumps.set(t, (jumps.get(t) ?? 0) + Math.abs(w) * p.w2[k]); } });
    return [...jumps].reduce((sum, [t, jump]) => sum + Math.abs(jump) * weight(x, t), 0);
  }

  function init(width, scale, seed) {
    const { uniform } = steppe.plot.random(seed), draw = (bound) => (2 * uniform() - 1) * bound * scale, outer = 1 / Math.sqrt(width);
    const list = (bound) => Array.from({ length: width }, () => draw(bound));
    return { w1: list(1), b1: list(1), w2: list(outer), b2: draw(outer) };
  }

  function mount(page) {
    const { plane, draggable, controls } = steppe.plot;
    let x = [-1.6, -1.0, -0.3, 0.4, 1.1, 1.7], y = [0.6, -0.3, -0.5, 0.5, 0.1, -0.6], p, step, record, vector, shown, rate, target = 0.1, running = true;
    const [graph, curve] = page.querySelectorAll("canvas"), said = page.querySelector("output.said");
    // The step size grows slowly to the chosen one: a jump far above 2/sharpness would throw the network away.
    const restart = () => { p = init(40, 3, 1); step = 0; record = []; vector = null; rate = 0.005; };
    const knobs = controls(page.querySelector("form"), (values) => { target = values.rate; });
    page.querySelector("[name=restart]").onclick = restart;
    page.querySelector("[name=pause]").onclick = (event) => { running = !running; event.target.textContent = running ? "Pause" : "Go on"; };
    draggable(graph, () => shown, ([a, b]) => {
      const near = x.reduce((best, v, k) => (Math.abs(v - a) < Math.abs(x[best] - a) ? k : best), 0);
      x = x.with(near, a);
      y = y.with(near, b);
    });
    function frame() {
      if (!page.isConnected) return;
      if (running) rate = Math.min(target, rate * 1.01);
      if (running) for (let k = 0; k < 200; k++, step++) p = moved(p, gradient(p, x, y), -rate);
      if (!Number.isFinite(loss(p, x, y)) || loss(p, x, y) > 1e6) { restart(); }
      const top = sharpness(p, x, y, { from: vector, steps: vector ? 8 : 200 });
      vector = top.vector;
      if (running) record.push([Math.max(1, step), top.value]);
      if (record.length > 600) record = record.filter((_, k) => k % 2 === 0);
      const grid = Array.from({ length: 300 }, (_, k) => -2.2 + (4.4 * k) / 299);
      shown = plane(graph, { x: [-2.2, 2.2], y: [-1.5, 1.5], xlabel: "x (drag the points)", ylabel: "f(x)" });
      shown.line(grid.map((v) => [v, apply(p, v)]), "blue");
      shown.dots(x.map((v, i) => [v, y[i]]), "ink", 5);
      const most = Math.max(2.4 / rate, ...record.map((r) => r[1])), right = Math.max(10, step);
      const below = plane(curve, { x: [1, right], y: [0.5, 2 * most], log: "xy", xlabel: "steps", ylabel: "sharpness" });
      below.line(record, "blue");
      below.line([[1, 2 / rate], [right, 2 / rate]], "ink", { dash: [6, 4] });
      below.note("2/η", 1, 2 / rate);
      const rough = roughness(p, x);
      said.value = `Step ${step}, η = ${rate.toPrecision(3)}: loss ${loss(p, x, y).toExponential(1)}, sharpness ${top.value.toFixed(2)}, 2/η = ${(2 / rate).toFixed(2)}. Roughness ∫|f″|g = ${rough.toFixed(3)}; a stable minimum has at most 1/η − ½ = ${(1 / rate - 0.5).toFixed(2)}.`;
      root.requestAnimationFrame(frame);
    }
    restart();
    knobs.show();
    frame();
  }

  steppe.relu = { apply, loss, gradient, moved, product, sharpness, weight, roughness, init, mount };
})(globalThis);
