// The page's pictures. The server computes their data; here they are drawn and put into words.
import { Plot, node, raised as exponent, share, shown } from "./draw.js";

// A plot with its reading, a drawing, or nothing but a line that says why.
function put(id, made, caption, below = "") {
  const figure = document.getElementById(id);
  const box = figure.querySelector(".drawing");
  if (made === null) {
    const line = document.createElement("p");
    line.className = "none";
    line.textContent = caption;
    box.replaceChildren(line);
    figure.querySelector("figcaption").textContent = below;
    return;
  }
  box.replaceChildren(...(made instanceof Plot ? [made.svg, made.reading] : [made]));
  figure.querySelector("figcaption").textContent = caption;
}

const ratio = (p, q) => (q > 0 ? `${shown(p / q, 3)} times as likely` : "which the second never gives");

function outputs(data) {
  if (data.kind === "none") return put("outputs", null, data.note);
  const top = 1.12 * Math.max(...data.first, ...data.second);
  const said = data.p > 0 ? ` Probability ${shown(data.p, 3)} against ${shown(data.q, 3)}: ${ratio(data.p, data.q)}.` : "";
  const caption = `${data.note} Shaded: ${data.shaded}.${said}`.trim();
  if (data.kind === "bars") return put("outputs", bars(data, top), caption);
  const plot = new Plot({ x: [data.x[0], data.x.at(-1)], y: [0, top], xLabel: "output", yLabel: "density", title: caption });
  for (const [from, to] of data.event) plot.area(data.x, data.first, from, to);
  plot.line(data.x, data.second, "second", "second input");
  plot.line(data.x, data.first, "first", "first input");
  plot.curves.reverse();
  plot.legend([["first", "first input"], ["second", "second"]]);
  return put("outputs", plot.readable("output"), caption);
}

function bars(data, top) {
  const count = data.labels.length;
  const plot = new Plot({ x: [0, 1], y: [0, Math.min(1, top)], yLabel: "probability", title: data.shaded });
  for (const tick of [...plot.svg.querySelectorAll(".tick.mid, line.frame")]) tick.remove();
  const width = (plot.width - plot.left - plot.right) / count, floor = plot.height - plot.bottom;
  const every = Math.ceil(count / 10), turned = !every || Math.max(...data.labels.map((l) => l.length)) * 7 > width * every;
  data.labels.forEach((label, i) => {
    const at = plot.left + width * i + width * 0.15;
    const faint = data.event.includes(i) ? "" : " faint";
    [["bar1", data.first[i], 0], ["bar2", data.second[i], 1]].forEach(([kind, value, side]) => {
      const y = plot.py(value);
      plot.add("rect", { class: kind + faint, x: at + side * width * 0.36, y, width: width * 0.34, height: Math.max(0.5, floor - y) });
    });
    if (i % every === 0) plot.add("text", { class: "tick mid", x: at + width * 0.35, y: floor + (turned && i % 2 ? 34 : 18) }, label);
  });
  plot.legend([["bar1", "first input"], ["bar2", "second"]]);
  return plot.stops(data.labels.map((label, i) => ({
    at: plot.left + width * (i + 0.5),
    words: `${label}: first input ${shown(data.first[i])}, second input ${shown(data.second[i])}`,
  })));
}

function loss(data) {
  if (data.kind === "none") return put("loss", null, data.note);
  const ends = [...data.x, data.epsilon ?? 0, data.mean ?? 0, 0];
  let low = Math.min(...ends), high = Math.max(...ends);
  const pad = 0.06 * (high - low) || 1;
  low -= pad;
  high += pad;
  // Of two lines the left one has its name on its left, so the picture is made wide enough for both names.
  const marks = [[data.mean, "mean"], [data.epsilon, "claimed ε"]].filter(([at]) => at !== null).sort(([a], [b]) => a - b);
  for (let i = 0; i < 8; i++) {
    marks.forEach(([at, words], k) => {
      const needed = share(words) * (high - low);
      if (k < marks.length - 1) low = Math.min(low, at - needed);
      else high = Math.max(high, at + needed);
    });
  }
  const top = 1.15 * Math.max(...data.y);
  const beyond = data.infinite > 0 ? ` With probability ${shown(data.infinite, 3)} it is infinite.` : "";
  const tail = data.tail === null ? "" : ` It exceeds the claimed ε with probability ${shown(data.tail, 3)} (shaded)${data.delta ? ", which is not δ" : ""}.`;
  const comb = data.kind === "stems" ? "Each bar is a value that the loss takes with positive probability." : data.atoms ? "Peaks are values that the loss takes with positive probability; the curve is a histogram." : "";
  const caption = `Log-likelihood ratio of the output (first input versus second) when the first input was used. Its mean is ${shown(data.mean)}.${tail}${beyond} ${comb} ${data.note}`.replace(/ +/g, " ").trim();
  const plot = new Plot({ x: [low, high], y: [0, top], xLabel: "loss", yLabel: "probability", title: caption });
  if (data.kind === "stems") {
    const floor = plot.height - plot.bottom;
    data.x.forEach((v, i) => {
      const faint = data.epsilon !== null && v <= data.epsilon * (1 + 1e-9) ? " faint" : "";
      plot.add("rect", { class: "bar1" + faint, x: plot.px(v) - 3, y: plot.py(data.y[i]), width: 6, height: floor - plot.py(data.y[i]) });
    });
  } else {
    if (data.epsilon !== null) plot.area(data.x, data.y, data.epsilon, Infinity);
    plot.line(data.x, data.y, "first", "probability");
  }
  marks.forEach(([at, words], k) => plot.upright(at, words, k < marks.length - 1));
  if (data.kind === "stems") {
    plot.stops(data.x.map((v, i) => ({ at: plot.px(v), words: `loss ${shown(v)}: probability ${shown(data.y[i])}`, dots: [plot.py(data.y[i])] })));
  } else plot.readable("loss");
  return put("loss", plot, caption);
}

function curve(data, word) {
  if (data.kind === "none") return put("curve", null, data.note);
  const seen = [...data.pair, ...(data.tail ?? []), data.claimed?.[1] ?? 0].filter((v) => v > data.least);
  const low = 10 ** Math.floor(Math.log10(Math.min(...seen, 0.1)));
  const keep = (values) => {
    const end = values.findIndex((v) => v < low);
    const upto = end < 0 ? values.length : end + 1;
    return [data.x.slice(0, upto), values.slice(0, upto)];
  };
  const ends = data.points.length ? " The bars show certified bounds." : " Computed on a grid; approximate, not a certified bound.";
  const caption = `δ for the worst pair that is known, and the probability of a loss above ε, which is never smaller and is often mistaken for δ.${ends} ${data.note}`.trim();
  const plot = new Plot({ x: [0, data.x.at(-1)], y: [low, 1], logY: true, xLabel: "ε", yLabel: "δ", title: caption });
  if (data.tail) plot.line(...keep(data.tail), "tail", "P(loss > ε)");
  plot.line(...keep(data.pair), `truth ${word}`, "δ");
  plot.curves.reverse();
  for (const [e, a, b] of data.points) {
    if (b < low) continue;
    const x = plot.px(e), y0 = plot.py(Math.max(a, low)), y1 = plot.py(b);
    plot.add("path", { class: "ends", d: `M${x - 3} ${y0}H${x + 3}M${x} ${y0}V${y1}M${x - 3} ${y1}H${x + 3}` });
  }
  const mark = (point, words, kind, lift) => {
    if (!point || point[0] > data.x.at(-1)) return;
    const x = plot.px(point[0]), y = plot.py(Math.max(point[1], low)), far = x > plot.width * 0.7;
    plot.add("circle", { class: kind, cx: x, cy: y, r: 5.5 });
    plot.add("text", { class: `halo${far ? " far" : ""}`, x: x + (far ? -9 : 9), y: y + lift }, words);
  };
  mark(data.true, "true", word, 16);
  mark(data.claimed, "claimed", "claimed", -8);
  plot.legend([[`truth ${word}`, "δ"], ...(data.tail ? [["tail", "P(loss > ε)"]] : [])]);
  return put("curve", plot.readable("ε"), caption);
}

const odds = (p) => (p >= 1 ? "certainty" : p >= 0.5 ? `${shown(p / (1 - p), 3)}:1` : `1:${shown((1 - p) / p, 3)}`);
const after = (prior, epsilon) => {
  if (prior === 0) return 0; // also where e^-epsilon is 0 as a double
  if (epsilon === null) return 1;
  return prior / (prior + (1 - prior) * Math.exp(-epsilon));
};

// Three digits, rounded up (direction 1) or down (-1), as in the verdict's sentence about the odds.
function rounded(value, direction) {
  const near = Number(value.toPrecision(3));
  const unit = 10 ** (Math.floor(Math.log10(value)) - 2);
  return direction * (near - value) >= 0 ? near : Number((near + direction * unit).toPrecision(3));
}

// What a claim allows is rounded up (direction 1); what an output can do is rounded down (-1).
function raised(prior, epsilon, direction) {
  if (epsilon === null) return "certainty";
  const before = prior / (1 - prior), value = before * Math.exp(epsilon), power = (epsilon + Math.log(before)) / Math.LN10;
  if (epsilon === 0) return odds(prior);
  if (power > 9) return `10${exponent(direction > 0 ? Math.ceil(power) : Math.floor(power))}:1`;
  const off = direction * 1e-14; // the exponential is off by less than this
  if (value < 1) return `1:${shown(rounded((1 / value) * (1 - off), -direction), 3)}`;
  return `${rounded(value * (1 + off), direction).toLocaleString("en-US", { maximumSignificantDigits: 3 })}:1`;
}

export function beliefs(face, prior) {
  document.getElementById("prior-shown").textContent = `${Math.round(prior * 100)}%`;
  if (!face.odds) return put("odds", null, "The odds follow from ε and δ; this guarantee is stated otherwise.");
  const truth = face.lower, before = `Odds of ${odds(prior)} that it was the first input.`;
  const least = face.upper === face.lower || face.upper === null ? "" : "at least ";
  const proven = face.word === "proven";
  const really = proven ? `, and the true limit is ${raised(prior, face.upper, 1)}` : `; the true limit is ${least}${raised(prior, truth, -1)}`;
  const single = `The claim limits them to ${raised(prior, face.claimed, 1)} after any output${really}.`;
  const sets = `(ε, δ)-DP does not bound the odds after single outputs. For comparison, a factor of e^ε turns them into ${raised(prior, face.claimed, 1)} at the claimed ε, and into ${raised(prior, proven ? face.upper : truth, proven ? 1 : -1)} at the true one.`;
  const caption = `${before} ${face.delta ? sets : single}`;
  const plot = new Plot({ x: [0, 1], y: [0, 1], xLabel: "belief before", yLabel: "belief after", title: caption });
  const x = Array.from({ length: 101 }, (_, i) => i / 100);
  plot.line([0, 1], [0, 1], "tail");
  plot.line(x, x.map((p) => after(p, truth)), `truth ${face.word}`, "true");
  plot.line(x, x.map((p) => after(p, face.claimed)), "stated", "claimed");
  plot.curves.reverse();
  plot.upright(prior, "");
  for (const [epsilon, kind] of [[truth, face.word], [face.claimed, "claimed"]]) {
    plot.add("circle", { class: kind, cx: plot.px(prior), cy: plot.py(after(prior, epsilon)), r: 5 });
  }
  plot.legend([["stated", "claimed"], [`truth ${face.word}`, "true"]]);
  return put("odds", plot.readable("belief before"), caption);
}

const OUTLINES = { l1: "M0 -1L1 0L0 1L-1 0Z", l2: "M1 0A1 1 0 1 1 -1 0A1 1 0 1 1 1 0Z", linf: "M-1 -1H1V1H-1Z" };

function balls(data) {
  if (data.kind === "none") return put("balls", null, data.note);
  const size = Math.min(150, Math.max(100, document.querySelector("#balls .drawing").clientWidth / 3)), svg = node("svg", { viewBox: `0 0 ${3 * size} 205`, role: "img" });
  data.balls.forEach((ball, i) => {
    const group = node("g", { transform: `translate(${size * (i + 0.5)} 92) scale(${Math.round(size * 0.37)} ${-Math.round(size * 0.37)})` });
    group.append(node("path", { class: `shape${ball.own ? " own" : ""}`, d: OUTLINES[ball.norm], "vector-effect": "non-scaling-stroke" }));
    const [a, b] = [ball.first, ball.second];
    group.append(node("line", { class: "second", x1: a[0], y1: a[1], x2: b[0], y2: b[1], "vector-effect": "non-scaling-stroke" }));
    group.append(node("circle", { class: "bar1", cx: a[0], cy: a[1], r: 0.085 }), node("circle", { class: "bar2", cx: b[0], cy: b[1], r: 0.085 }));
    svg.append(group);
    const middle = size * (i + 0.5);
    svg.append(node("text", { class: "mid", x: middle, y: 16 }, ball.own ? `${ball.norm}: clipped here` : ball.norm));
    svg.append(node("text", { class: "mid label", x: middle, y: 174 }, `${shown(ball.distance)} apart in ${data.norm}`));
    if (data.dim > 2) svg.append(node("text", { class: "mid label", x: middle, y: 193 }, `${shown(ball.full)} in ${shown(data.dim)} dims`));
  });
  const caption = `The farthest pair of each ball of radius ${shown(data.radius)} in two dimensions, by the ${data.norm} distance, which is what this noise must hide. ${data.note}`.trim();
  svg.setAttribute("aria-label", caption);
  return put("balls", svg, caption);
}

export function draw(face, prior) {
  outputs(face.pictures.outputs);
  loss(face.pictures.loss);
  curve(face.pictures.curve, face.word);
  beliefs(face, prior);
  balls(face.pictures.balls);
}

// The sanity check so far: the lower bound on ε against the number of runs.
export function sanity(looks, claimed, said) {
  const last = looks.at(-1);
  const runs = Math.max(100, last.runs), top = 1.2 * Math.max(claimed, ...looks.map((look) => look.bound ?? 0)) || 1;
  const words = `${shown(last.right, 6)} of ${shown(last.right + last.wrong, 6)} guesses correct in ${shown(last.runs, 6)} runs: ε is at least ${shown(Math.floor((last.bound ?? 0) * 1e3) / 1e3)} (error probability ${last.alpha}). ${said}`.trim();
  const plot = new Plot({ x: [10, runs], y: [0, top], logX: true, xLabel: "runs", yLabel: "lower bound on ε", title: words });
  plot.flat(claimed, "claimed ε");
  plot.steps(looks.map((look) => Math.max(10, look.runs)), looks.map((look) => look.bound ?? top), `truth ${last.refuted ? "refuted" : "open"}`, "ε at least");
  put("audit", plot.readable("runs"), words);
}

const GAME = document.querySelector("#audit figcaption").textContent;

export function noSanity(words) {
  put("audit", null, words, GAME);
}
