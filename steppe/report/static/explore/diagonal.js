"use strict";
// Gradient descent on the diagonal network ½(w₁²x₁ + w₂²x₂ − y)² (conflicting-biases).
(function (root) {
  const steppe = (root.steppe ??= {});

  const residual = (x, y, w) => w.reduce((sum, v, k) => sum + v * v * x[k], -y);
  const loss = (x, y, w) => 0.5 * residual(x, y, w) ** 2;
  const gradient = (x, y, w) => { const r = residual(x, y, w); return w.map((v, k) => 2 * r * x[k] * v); };

  // The largest eigenvalue of the Hessian 4(x⊙w)(x⊙w)ᵀ + 2r diag(x) of two weights.
  function sharpness(x, y, w) {
    const r = residual(x, y, w), [u, v] = w.map((value, k) => 2 * x[k] * value);
    const a = u * u + 2 * r * x[0], d = v * v + 2 * r * x[1], b = u * v;
    return (a + d) / 2 + Math.hypot((a - d) / 2, b);
  }

  // E ½(⟨w², x⟩ − y)² for x ~ N(0, I), y = ⟨1, x⟩ + noise of variance 1.
  const risk = (w) => 0.5 * w.reduce((s, v) => s + v ** 4, 0) - w.reduce((s, v) => s + v * v, 0) + 0.5 * (w.length + 1);

  // The iterates from w until the loss is at most `goal`; outcome "reached", "exhausted" or "diverged".
  function descend(x, y, w, rate, { goal = 1e-10, most = 5000 } = {}) {
    const path = [w];
    for (let k = 0; k < most; k++) {
      if (!(loss(x, y, w) < 1e12)) return { path, outcome: "diverged" };
      if (loss(x, y, w) <= goal) return { path, outcome: "reached" };
      const g = gradient(x, y, w);
      w = w.map((v, j) => v - rate * g[j]);
      path.push(w);
    }
    return { path, outcome: "exhausted" };
  }

  // The gradient flow: w_k(s) = w_k e^{−2 x_k s} for a rising or falling s, since all weights share the residual.
  function flow(x, y, w, count = 200) {
    const at = (s) => w.map((v, k) => v * Math.exp(2 * x[k] * s));
    let [low, high] = [0, 0];
    const sign = residual(x, y, w) < 0 ? 1 : -1;
    while (residual(x, y, at(high)) * sign < 0 && Math.abs(high) < 1e3) high += 0.05 * sign;
    for (let k = 0; k < 80; k++) { const middle = (low + high) / 2; if (residual(x, y, at(middle)) * sign < 0) low = middle; else high = middle; }
    return Array.from({ length: count }, (_, k) => at((high * k) / (count - 1)));
  }

  // The critical rate 2/s_GF: s_GF is the largest sharpness along the flow.
  const critical = (x, y, w) => 2 / Math.max(...flow(x, y, w, 2000).map((v) => sharpness(x, y, v)));

  function mount(page) {
    const { plane, draggable, controls } = steppe.plot;
    const x = [1, 2.2], y = 2;
    let start = [0.2, 0.15], shown;
    const [map, curve] = page.querySelectorAll("canvas"), said = page.querySelector("output.said");
    const knobs = controls(page.querySelector("form"), draw);
    function draw({ rate }) {
      const size = [0, 1.9], along = flow(x, y, start), { path, outcome } = descend(x, y, start, rate);
      shown = plane(map, { x: size, y: [0, 1.4], xlabel: "w₁", ylabel: "w₂" });
      const solutions = Array.from({ length: 200 }, (_, k) => { const a = (Math.sqrt(y / x[0]) * k) / 199; return [a, Math.sqrt(Math.max(0, (y - x[0] * a * a) / x[1]))]; });
      shown.line(solutions, "orange", { thick: 4 });
      const stable = Array.from({ length: 200 }, (_, k) => { const t = ((Math.PI / 2) * k) / 199, s = Math.sqrt(2 / rate) / 2; return [(s * Math.cos(t)) / x[0], (s * Math.sin(t)) / x[1]]; });
      shown.line(stable, "ink", { dash: [6, 4] });
      shown.line(along, "green", { thick: 3 });
      shown.line(path.slice(-400), "red", { thick: 0.8 });
      shown.dots(path.slice(-400), "red", 1.6);
      shown.dots([start], "blue", 6);
      const top = 4 / Math.max(...along.map((w) => sharpness(x, y, w))), rates = Array.from({ length: 160 }, (_, k) => (top * (k + 1)) / 80);
      const ends = rates.map((one) => { const run = descend(x, y, start, one); return run.outcome === "reached" ? [one, risk(run.path.at(-1))] : [one, NaN]; });
      const low = Math.min(...ends.map((e) => e[1]).filter(Number.isFinite)), high = Math.max(...ends.map((e) => e[1]).filter(Number.isFinite));
      const below = plane(curve, { x: [0, rates.at(-1)], y: [low - 0.1, high + 0.1], xlabel: "learning rate η", ylabel: "risk at the end" });
      below.dots(ends, "blue", 2.5);
      const edge = critical(x, y, start);
      below.line([[edge, low - 0.1], [edge, high + 0.1]], "ink", { dash: [3, 3] });
      below.note("η_c", edge, high);
      below.line([[rate, low - 0.1], [rate, high + 0.1]], "red", { thick: 1 });
      const end = path.at(-1);
      said.value = `${outcome} after ${path.length - 1} steps at w = (${end.map((v) => v.toFixed(3)).join(", ")}). Sharpness ${sharpness(x, y, end).toFixed(3)}, 2/η = ${(2 / rate).toFixed(3)}, η_c = ${edge.toFixed(4)}, risk ${risk(end).toFixed(3)}.`;
    }
    draggable(map, () => shown, (point) => { start = point.map((v) => Math.max(0.01, v)); knobs.show(); });
    knobs.show();
  }

  steppe.diagonal = { residual, loss, gradient, sharpness, risk, descend, flow, critical, mount };
})(globalThis);
