// "What is ε?": the lecture's pictures. Everything is computed here, from closed forms.
import { Plot, shown } from "./draw.js";

const $ = (id) => document.getElementById(id);

// ── Numbers ─────────────────────────────────────────────────────────────────────────────────────

// P(Z > x) of a standard normal variable: the Taylor series of erf near 0, a continued fraction in the tail.
function above(x) {
  if (x < 0) return 1 - above(-x);
  const z = x / Math.SQRT2;
  if (z < 2) {
    let term = z, sum = z;
    for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum) && n < 200; n++) {
      term *= (-z * z) / n;
      sum += term / (2 * n + 1);
    }
    return 0.5 - sum / Math.sqrt(Math.PI);
  }
  let fraction = 0;
  for (let n = 60; n > 0; n--) fraction = n / 2 / (z + fraction);
  return Math.exp(-z * z) / (2 * Math.sqrt(Math.PI) * (z + fraction));
}

// Gaussian noise on a count: the least δ at ε, and the probability that the loss exceeds ε.
const tailOf = (sigma, epsilon) => above(epsilon * sigma - 1 / (2 * sigma));
const deltaOf = (sigma, epsilon) => Math.max(0, tailOf(sigma, epsilon) - Math.exp(epsilon) * above(epsilon * sigma + 1 / (2 * sigma)));

// The least ε of k answers, each ε₀-DP, at δ: that of k randomized responses (Kairouz, Oh and Viswanath 2015).
function composed(k, each, delta) {
  const p = 1 / (1 + Math.exp(-each)), first = [], losses = [];
  let log = k * Math.log(1 - p);
  for (let j = 0; j <= k; j++) {
    first.push(Math.exp(log));
    losses.push((2 * j - k) * each);
    log += Math.log((k - j) / (j + 1)) + Math.log(p / (1 - p));
  }
  const least = (epsilon) => first.reduce((sum, mass, j) => sum + (losses[j] > epsilon ? mass * -Math.expm1(epsilon - losses[j]) : 0), 0);
  let low = 0, high = k * each;
  if (least(0) <= delta) return 0;
  for (let i = 0; i < 60; i++) {
    const middle = (low + high) / 2;
    if (least(middle) > delta) low = middle;
    else high = middle;
  }
  return high;
}

// ── Pictures ────────────────────────────────────────────────────────────────────────────────────

const range = (from, to, count) => Array.from({ length: count + 1 }, (_, i) => from + ((to - from) * i) / count);
const up = (value) => { // few digits, rounded up, so that what is said to hold does
  if (!(value > 0)) return shown(value);
  const unit = 10 ** (Math.floor(Math.log10(value)) - (value < 1e-4 ? 2 : 4));
  return shown(Math.ceil(value / unit) * unit, 5);
};
const percent = (p) => `${shown(100 * p, 3)}%`;

function put(id, plot, caption) {
  const figure = $(id);
  figure.querySelector(".drawing").replaceChildren(plot.svg, plot.reading);
  figure.querySelector("figcaption").textContent = caption;
}

function response({ p }) {
  const epsilon = Math.log(p / (1 - p));
  const caption = `With p = ${shown(p)}, each answer is at most ${shown(p / (1 - p), 3)} times as likely under one truth as under the other: ε = ln(p / (1 − p)) = ${shown(epsilon, 4)}.`;
  const plot = new Plot({ x: [0, 1], y: [0, 1], yLabel: "probability", title: caption });
  for (const tick of [...plot.svg.querySelectorAll(".tick.mid, line.frame")]) tick.remove();
  const floor = plot.height - plot.bottom, width = (plot.width - plot.left - plot.right) / 2;
  const places = ["yes", "no"].map((answer, i) => {
    const at = plot.left + width * (i + 0.5), heights = [i ? 1 - p : p, i ? p : 1 - p];
    heights.forEach((value, side) => {
      plot.add("rect", { class: `bar${side + 1}`, x: at + (side - 1) * 42, y: plot.py(value), width: 40, height: floor - plot.py(value) });
    });
    plot.add("text", { class: "tick mid", x: at, y: floor + 18 }, `answer “${answer}”`);
    return { at, words: `answer “${answer}”: ${percent(heights[0])} if the truth is yes, ${percent(heights[1])} if it is no` };
  });
  plot.legend([["bar1", "truth: yes"], ["bar2", "truth: no"]]);
  put("response", plot.stops(places), caption);
}

function laplace({ b }) {
  const x = range(-6, 8, 280), density = (center) => x.map((t) => Math.exp(-Math.abs(t - center) / b) / (2 * b));
  const first = density(0), second = density(1);
  const caption = `The count is 0 without A and 1 with A. At every output, the two densities differ by a factor of at most e^(1/b) = ${shown(Math.exp(1 / b), 4)}, so ε = 1/b = ${shown(1 / b, 4)}. At the outputs up to 0 (shaded) the factor is exactly that.`;
  const plot = new Plot({ x: [-6, 8], y: [0, 1.1 / (2 * b)], xLabel: "released count", yLabel: "density", title: caption });
  plot.area(x, first, -6, 0);
  plot.line(x, first, "first", "without A");
  plot.line(x, second, "second", "with A");
  plot.legend([["first", "without A"], ["second", "with A"]]);
  put("laplace", plot.readable("output"), caption);
}

function delta({ sigma, epsilon }) {
  const top = 4, x = range(0, top, 160), least = x.map((e) => deltaOf(sigma, e)), tail = x.map((e) => tailOf(sigma, e));
  const low = 1e-9, caption = `At ε = ${shown(epsilon)}, the mechanism satisfies (ε, δ)-DP for δ = ${up(deltaOf(sigma, epsilon))}. The loss exceeds ε with probability ${shown(tailOf(sigma, epsilon), 4)}, which is larger.`;
  const plot = new Plot({ x: [0, top], y: [low, 1], logY: true, xLabel: "ε", yLabel: "probability", title: caption });
  plot.line(x, least.map((v) => Math.max(v, low)), "first", "least δ");
  plot.line(x, tail.map((v) => Math.max(v, low)), "tail", "P(loss > ε)");
  plot.curves[0].y = least;
  plot.curves[1].y = tail;
  plot.upright(epsilon, "ε", epsilon > 3.5);
  plot.legend([["first", "least δ"], ["tail", "P(loss > ε)"]]);
  put("delta", plot.readable("ε"), caption);
}

function somebody({ n, power }) {
  const each = 10 ** power, leaks = (people) => -Math.expm1(people * Math.log1p(-each));
  const x = range(0, 9, 90).map((k) => 10 ** k);
  const caption = `With δ = ${shown(each)} and ${shown(10 ** n)} people, some row is published with probability ${percent(leaks(10 ** n))}. On average, the number of published rows is ${shown(each * 10 ** n, 3)}.`;
  const plot = new Plot({ x: [1, 1e9], y: [0, 1], logX: true, xLabel: "people", yLabel: "probability that a row is published", title: caption });
  plot.line(x, x.map(leaks), "first", "probability");
  plot.upright(10 ** n, "", false);
  put("somebody", plot.readable("people"), caption);
}

function composition({ k, each }) {
  const target = 1e-6, most = 200, x = range(0, most, 40), exact = x.map((count) => (count ? composed(count, each, target) : 0));
  const caption = `${k} ${k === 1 ? "answer" : "answers"}, each ${shown(each)}-DP: together, they satisfy ${shown(k * each)}-DP, and (${up(composed(k, each, target))}, 10⁻⁶)-DP.`;
  const plot = new Plot({ x: [0, most], y: [0, 1.05 * most * each], xLabel: "answers", yLabel: "ε of all together", title: caption });
  plot.line(x, exact, "first", "exact, δ = 10⁻⁶");
  plot.line(x, x.map((count) => count * each), "tail", "sum, δ = 0");
  plot.upright(k, "", false);
  plot.legend([["first", "δ = 10⁻⁶"], ["tail", "sum"]]);
  put("composition", plot.readable("answers"), caption);
}

function bayes({ prior, epsilon }) {
  const after = (p, e) => (p * Math.exp(e)) / (p * Math.exp(e) + 1 - p), x = range(0, 1, 100);
  const caption = `Before: ${percent(prior)}, odds ${shown(prior / (1 - prior), 3)}. After any output: between ${percent(after(prior, -epsilon))} and ${percent(after(prior, epsilon))}, because the odds change by a factor of at most e^ε = ${shown(Math.exp(epsilon), 4)}.`;
  const plot = new Plot({ x: [0, 1], y: [0, 1], xLabel: "belief before", yLabel: "belief after", title: caption });
  plot.line([0, 1], [0, 1], "tail");
  plot.line(x, x.map((p) => after(p, epsilon)), "first", "at most");
  plot.line(x, x.map((p) => after(p, -epsilon)), "second", "at least");
  plot.upright(prior, "");
  plot.legend([["first", "at most"], ["second", "at least"]]);
  put("bayes", plot.readable("belief before"), caption);
}

// ── Sliders ─────────────────────────────────────────────────────────────────────────────────────

const DRAWN = { response, laplace, delta, somebody, composition, bayes };

function drawn(id) {
  const given = {};
  for (const slider of document.querySelectorAll(`#${id} input[type="range"]`)) {
    given[slider.name] = Number(slider.value);
    const power = slider.dataset.power !== undefined, value = power ? shown(10 ** slider.value) : slider.value;
    slider.nextElementSibling.textContent = value;
    slider.setAttribute("aria-valuetext", value);
  }
  DRAWN[id](given);
}

for (const id of Object.keys(DRAWN)) {
  for (const slider of document.querySelectorAll(`#${id} input[type="range"]`)) slider.addEventListener("input", () => drawn(id));
}
let width = 0; // drawings are made for one width
new ResizeObserver(() => {
  const now = document.querySelector(".drawing").clientWidth;
  if (Math.abs(now - width) > 20) {
    width = now;
    Object.keys(DRAWN).forEach(drawn);
  }
}).observe(document.querySelector("main"));
