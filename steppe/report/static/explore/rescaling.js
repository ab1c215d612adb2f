"use strict";
// Rescaling neurons of a two-layer ReLU network leaves its function as it is and makes it as sharp as you like.
(function (root) {
  const steppe = (root.steppe ??= {});

  // Parameters {W, a}: rows of first-layer weights and outer weights; f(x) = Σ a_j relu(W_j·x).
  const inner = (w, x) => w.reduce((s, v, k) => s + v * x[k], 0);
  const apply = (p, x) => p.a.reduce((s, a, j) => s + a * Math.max(0, inner(p.W[j], x)), 0);
  const rescaled = (p, factors) => ({ W: p.W.map((w, j) => w.map((v) => v * factors[j])), a: p.a.map((a, j) => a / factors[j]) });

  // A_j = mean relu(W_j·x)² and a_j² B_j = a_j² mean 1[W_j·x > 0]‖x‖²: the trace of the Gauss-Newton matrix of the mean of ½(f − y)² is their sum.
  function parts(p, points) {
    return p.W.map((w, j) => {
      let A = 0, B = 0;
      for (const x of points) { const h = inner(w, x); if (h > 0) { A += h * h; B += inner(x, x); } }
      return [A / points.length, (p.a[j] ** 2 * B) / points.length];
    });
  }
  const trace = (p, points) => parts(p, points).reduce((s, [A, B]) => s + A + B, 0);

  // The factors with the least trace: A β² + B β⁻² is least at β⁴ = B/A, where it is 2√(AB).
  const flattest = (p, points) => parts(p, points).map(([A, B]) => (A > 0 && B > 0 ? (B / A) ** 0.25 : 1));
  const least = (p, points) => parts(p, points).reduce((s, [A, B]) => s + 2 * Math.sqrt(A * B), 0);

  function mount(page) {
    const { plane, controls, random } = steppe.plot;
    const { normal } = random(3), points = Array.from({ length: 30 }, () => [normal(), normal(), 1]);
    const original = { W: Array.from({ length: 6 }, () => [normal(), normal(), normal()]), a: Array.from({ length: 6 }, normal) };
    const [graph, curve] = page.querySelectorAll("canvas"), said = page.querySelector("output.said"), form = page.querySelector("form");
    let balanced = false;
    const knobs = controls(form, draw);
    page.querySelector("[name=flatten]").onclick = () => { balanced = true; draw(knobs.read()); };
    form.addEventListener("input", () => { balanced = false; });
    function draw({ factor }) {
      const odd = original.a.map((_, j) => (j % 2 ? factor : 1 / factor)), start = rescaled(original, odd);
      const p = balanced ? rescaled(start, flattest(start, points)) : start;
      const grid = Array.from({ length: 200 }, (_, k) => -3 + (6 * k) / 199);
      const shown = plane(graph, { x: [-3, 3], y: [-6, 6], xlabel: "x₁ (x₂ = 0)", ylabel: "f" });
      shown.line(grid.map((v) => [v, apply(original, [v, 0, 1])]), "orange", { thick: 5 });
      shown.line(grid.map((v) => [v, apply(p, [v, 0, 1])]), "blue", { thick: 1.5 });
      const all = Array.from({ length: 80 }, (_, k) => 10 ** (-2 + (4 * k) / 79));
      const floor = least(original, points), below = plane(curve, { x: [0.01, 100], y: [floor / 2, 1e5 * floor], log: "xy", xlabel: "factor of every second neuron", ylabel: "trace of the Gauss-Newton matrix" });
      below.line(all.map((f) => [f, trace(rescaled(original, original.a.map((_, j) => (j % 2 ? f : 1 / f))), points)]), "blue");
      below.line([[0.01, floor], [100, floor]], "green", { dash: [6, 4] });
      below.note("least over all rescalings", 0.01, floor, "green");
      below.dots([[factor, trace(p, points)]], "red", 6);
      const change = Math.max(...points.map((x) => Math.abs(apply(p, x) - apply(original, x))));
      said.value = `Trace ${trace(p, points).toPrecision(5)}, the least is ${floor.toPrecision(5)}. Largest change of the function on the data: ${change.toExponential(1)}.`;
    }
    knobs.show();
  }

  steppe.rescaling = { apply, rescaled, parts, trace, flattest, least, mount };
})(globalThis);
