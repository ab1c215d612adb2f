"use strict";
// 1-SAM on y = x₁x₂ over the cube {−1, 1}^d, with a two-layer ReLU network with or without a bias (wen2023).
(function (root) {
  const steppe = (root.steppe ??= {});

  // Parameters {W1, b1, W2}: rows, a list (or null without a bias), a list. The loss of one example is (f − y)².
  function hidden(p, x) {
    return p.W1.map((w, j) => w.reduce((s, v, k) => s + v * x[k], p.b1 ? p.b1[j] : 0));
  }
  const output = (p, h) => h.reduce((s, v, j) => s + p.W2[j] * Math.max(0, v), 0);
  const apply = (p, x) => output(p, hidden(p, x));

  // One step on one example, in place: w ← w − η ∇ℓ(w + ρ ∇ℓ(w)/‖∇ℓ(w)‖).
  function step(p, x, y, rate, rho) {
    const h = hidden(p, x), r = output(p, h) - y, size = x.length + (p.b1 ? 1 : 0);
    if (r === 0) return;
    let squared = 0;
    for (let j = 0; j < h.length; j++) if (h[j] > 0) squared += p.W2[j] ** 2 * size + h[j] ** 2;
    if (squared === 0) return;
    // ∇ℓ is 2r∇f: the perturbation is c∇f, and moves h by c W₂‖x′‖² and W₂ by c relu(h).
    const c = (Math.sign(r) * rho) / Math.sqrt(squared);
    const up = h.map((v, j) => v + (v > 0 ? c * p.W2[j] * size : 0)), outer = p.W2.map((v, j) => v + c * Math.max(0, h[j]));
    const wrong = 2 * (up.reduce((s, v, j) => s + outer[j] * Math.max(0, v), 0) - y);
    for (let j = 0; j < h.length; j++) {
      if (up[j] <= 0) continue;
      const change = rate * wrong * outer[j], row = p.W1[j];
      for (let k = 0; k < x.length; k++) row[k] -= change * x[k];
      if (p.b1) p.b1[j] -= change;
      p.W2[j] -= rate * wrong * up[j];
    }
  }

  // tr ∇²L of the mean of (f − y)²: (2/n) Σ ‖∇f(xᵢ)‖².
  function trace(p, points) {
    let sum = 0;
    for (const x of points) hidden(p, x).forEach((v, j) => { if (v > 0) sum += p.W2[j] ** 2 * (x.length + (p.b1 ? 1 : 0)) + v * v; });
    return (2 * sum) / points.length;
  }
  const accuracy = (p, points, labels) => points.reduce((s, x, i) => s + (apply(p, x) * labels[i] > 0), 0) / points.length;
  const loss = (p, points, labels) => points.reduce((s, x, i) => s + (apply(p, x) - labels[i]) ** 2, 0) / points.length;

  // PyTorch's start, the first layer times `scale`.
  function init(d, width, { bias, scale, draw }) {
    const uniform = (bound) => (2 * draw.uniform() - 1) * bound, inner = scale / Math.sqrt(d), outer = 1 / Math.sqrt(width);
    return {
      W1: Array.from({ length: width }, () => Array.from({ length: d }, () => uniform(inner))),
      b1: bias ? Array.from({ length: width }, () => uniform(inner)) : null,
      W2: Array.from({ length: width }, () => uniform(outer)),
    };
  }

  function mount(page) {
    const { plane, controls, random } = steppe.plot, d = 30, n = 70, width = 60;
    const [above, below] = page.querySelectorAll("canvas"), said = page.querySelector("output.said");
    let draw, p, data, test, seen, record, values;
    const cube = (count) => Array.from({ length: count }, () => Array.from({ length: d }, () => (draw.uniform() < 0.5 ? -1 : 1)));
    const labels = (points) => points.map((x) => x[0] * x[1]);
    function restart() {
      draw = random(values.seed);
      data = cube(n);
      test = cube(500);
      p = init(d, width, { bias: values.bias, scale: values.scale, draw });
      seen = 0;
      record = [];
    }
    const knobs = controls(page.querySelector("form"), (now) => {
      const fresh = !values || ["bias", "scale", "seed"].some((name) => now[name] !== values[name]);
      values = now;
      if (fresh) restart();
    });
    function frame() {
      if (!page.isConnected) return;
      const until = performance.now() + 20, y = labels(data);
      while (performance.now() < until) {
        for (let k = 0; k < n; k++) { const i = Math.floor(draw.uniform() * n); step(p, data[i], y[i], 0.01, values.rho); }
        seen++;
      }
      const least = 4 * Math.sqrt(d + (values.bias ? 1 : 0)), point = [Math.max(1, seen), accuracy(p, test, labels(test)), trace(p, data) / least];
      record.push(point);
      if (record.length > 500) record = record.filter((_, k) => k % 2 === 0);
      const right = Math.max(10, seen);
      const top = plane(above, { x: [1, right], y: [0.4, 1.03], log: "x", xlabel: "epochs", ylabel: "test accuracy" });
      top.line(record.map(([e, a]) => [e, a]), "green");
      const bottom = plane(below, { x: [1, right], y: [0.5, 20], log: "xy", xlabel: "epochs", ylabel: values.bias ? "trace / its lower bound" : "trace / 4√d" });
      bottom.line(record.map(([e, , t]) => [e, t]), "orange");
      bottom.line([[1, 1], [right, 1]], "ink", { dash: [6, 4] });
      said.value = `${seen} epochs: training loss ${loss(p, data, y).toExponential(1)}, test accuracy ${point[1].toFixed(3)}, trace ${point[2].toFixed(2)} times ${values.bias ? "its lower bound" : "4√d"}.`;
      root.requestAnimationFrame(frame);
    }
    knobs.show();
    frame();
  }

  steppe.xor = { apply, step, trace, accuracy, loss, init, mount };
})(globalThis);
