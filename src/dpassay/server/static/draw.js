// Drawings as SVG: axes with round ticks, lines, bars. Text goes in as text only.
const NAMESPACE = "http://www.w3.org/2000/svg";

export function node(name, attributes = {}, text) {
  const made = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const UP = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
export const raised = (exponent) => [...String(exponent)].map((c) => UP[c]).join("");

export function shown(value, digits = 4) {
  if (value === null || value === Infinity) return "∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) {
    const [factor, exponent] = value.toExponential(Math.min(2, digits - 1)).split("e");
    const power = `10${raised(Number(exponent))}`;
    return Number(factor) === 1 ? power : `${Number(factor)}×${power}`;
  }
  return String(Number(value.toPrecision(digits))).replace(/\B(?=(\d{3})+(?!\d))(?<!\.\d*)/g, ",");
}

// Ticks at 1, 2 or 5 times a power of ten.
export function ticks(low, high, about = 5) {
  const raw = (high - low) / about || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(Number((k * step).toPrecision(12)));
  return found;
}

function powers(low, high) {
  const from = Math.ceil(Math.log10(low) - 1e-9), to = Math.floor(Math.log10(high) + 1e-9);
  const step = Math.max(1, Math.ceil((to - from + 1) / 6));
  const found = [];
  for (let k = to; k >= from; k -= step) found.push(10 ** k);
  return found;
}

const power = (value) => {
  const k = Math.round(Math.log10(value));
  return k >= -2 && k <= 4 ? shown(value) : `10${raised(k)}`;
};

const LEFT = 52, RIGHT = 14; // margins of a plot
const pen = document.createElement("canvas").getContext("2d");
function wide(words) {
  pen.font = "13px system-ui, -apple-system, 'Segoe UI', sans-serif";
  return pen.measureText(words).width;
}

// As wide as the place for it, so that letters have one size everywhere.
function room() {
  const box = document.querySelector(".drawing");
  return Math.round(Math.min(560, Math.max(280, box?.clientWidth || 460)));
}

// The part of a plot's width that a label beside an upright line takes.
export function share(words) {
  return (wide(words) + 10) / (room() - LEFT - RIGHT);
}

export class Plot {
  constructor({ x, y, logY = false, logX = false, xLabel = "", yLabel = "", width = room(), height = 250, title = "" }) {
    Object.assign(this, { logX, logY, width, height });
    this.left = LEFT; this.right = RIGHT; this.top = 22; this.bottom = 40;
    this.x0 = x[0]; this.x1 = x[1]; this.y0 = y[0]; this.y1 = y[1];
    this.svg = node("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
    this.reading = document.createElement("p"); // the values where the reader points
    this.reading.className = "reading";
    this.curves = [];
    const floor = height - this.bottom;
    for (const tick of logY ? powers(this.y0, this.y1) : ticks(this.y0, this.y1, 4)) {
      this.add("line", { class: "grid", x1: this.left, x2: width - this.right, y1: this.py(tick), y2: this.py(tick) });
      this.add("text", { class: "tick far", x: this.left - 6, y: this.py(tick) + 4 }, logY ? power(tick) : shown(tick));
    }
    for (const tick of logX ? powers(this.x0, this.x1) : ticks(this.x0, this.x1, 5)) {
      this.add("line", { class: "frame", x1: this.px(tick), x2: this.px(tick), y1: floor, y2: floor + 4 });
      this.add("text", { class: "tick mid", x: this.px(tick), y: floor + 18 }, logX ? power(tick) : shown(tick));
    }
    this.add("path", { class: "frame", d: `M${this.left} ${this.top - 6}V${floor}H${width - this.right}` });
    this.add("text", { class: "label far", x: width - this.right, y: height - 4 }, xLabel);
    this.add("text", { class: "label", x: 4, y: 12 }, yLabel);
  }

  add(name, attributes, text) {
    return this.svg.appendChild(node(name, attributes, text));
  }

  px(value) {
    const [v, a, b] = this.logX ? [value, this.x0, this.x1].map((n) => Math.log(Math.max(n, 1e-300))) : [value, this.x0, this.x1];
    const share = Math.min(1, Math.max(0, (v - a) / (b - a || 1)));
    return Number((this.left + share * (this.width - this.left - this.right)).toFixed(1));
  }

  py(value) {
    const [v, a, b] = this.logY ? [value, this.y0, this.y1].map((n) => Math.log(Math.max(n, 1e-300))) : [value, this.y0, this.y1];
    const share = Math.min(1, Math.max(0, (v - a) / (b - a || 1)));
    return Number((this.height - this.bottom - share * (this.height - this.bottom - this.top)).toFixed(1));
  }

  line(x, y, kind, name = "") {
    if (name) this.curves.push({ x, y, kind, name });
    const points = x.map((v, i) => `${this.px(v)},${this.py(y[i])}`).join(" ");
    return this.add("polyline", { class: kind, points });
  }

  steps(x, y, kind, name = "") {
    if (name) this.curves.push({ x, y, kind, name });
    let d = "";
    x.forEach((v, i) => { d += i ? `H${this.px(v)}V${this.py(y[i])}` : `M${this.px(v)} ${this.py(y[i])}`; });
    return this.add("path", { class: kind, d });
  }

  area(x, y, from, to) {
    const inside = x.map((v, i) => [v, y[i]]).filter(([v]) => v >= from && v <= to);
    if (!inside.length) return;
    const floor = this.height - this.bottom;
    const points = inside.map(([v, w]) => `${this.px(v)},${this.py(w)}`).join(" ");
    this.add("polygon", { class: "area", points: `${this.px(inside[0][0])},${floor} ${points} ${this.px(inside.at(-1)[0])},${floor}` });
  }

  upright(x, words, far = false) {
    const at = this.px(x);
    this.add("line", { class: "mark", x1: at, x2: at, y1: this.top, y2: this.height - this.bottom });
    this.add("text", { class: `halo${far ? " far" : ""}`, x: at + (far ? -5 : 5), y: this.top + 10 }, words);
  }

  flat(y, words) {
    const at = this.py(y);
    this.add("line", { class: "mark", x1: this.left, x2: this.width - this.right, y1: at, y2: at });
    this.add("text", { class: "halo", x: this.left + 6, y: at - 5 }, words);
  }

  legend(entries) {
    let x = this.width - this.right;
    for (const [kind, words] of [...entries].reverse()) {
      this.add("text", { class: "far", x, y: 12 }, words);
      x -= wide(words) + 6;
      if (kind.startsWith("bar")) this.add("rect", { class: kind, x: x - 12, y: 2, width: 12, height: 10 });
      else this.add("line", { class: kind, x1: x - 22, x2: x, y1: 8, y2: 8 });
      x -= 40;
    }
  }

  // The values of all named curves, to be read by pointing at the plot or, once it has the focus, with the arrow keys.
  readable(what) {
    const [first] = this.curves;
    if (!first) return this;
    return this.stops(first.x.map((v, i) => {
      const known = this.curves.filter((curve) => i < curve.y.length);
      const words = known.map((curve) => `${curve.name} ${shown(curve.y[i])}`).join(", ");
      return { at: this.px(v), words: `${what} ${shown(v)}: ${words}`, dots: known.map((curve) => this.py(curve.y[i])) };
    }));
  }

  // Places that can be read: where they are, what they say, and the heights that are marked.
  stops(places) {
    const { svg, reading } = this, cursor = node("g", { class: "cursor" });
    let now = 0;
    const show = (i) => {
      now = Math.max(0, Math.min(places.length - 1, i));
      const { at, words, dots = [] } = places[now];
      cursor.replaceChildren(node("line", { x1: at, x2: at, y1: this.top, y2: this.height - this.bottom }));
      for (const y of dots) cursor.append(node("circle", { cx: at, cy: y, r: 4 }));
      svg.append(cursor);
      reading.textContent = words;
      svg.setAttribute("aria-valuenow", now);
      svg.setAttribute("aria-valuetext", words);
    };
    const hide = () => { cursor.remove(); reading.textContent = ""; };
    for (const [name, value] of Object.entries({ role: "slider", tabindex: 0, "aria-valuemin": 0, "aria-valuemax": places.length - 1, "aria-valuenow": 0, "aria-valuetext": places[0].words })) svg.setAttribute(name, value);
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect(), at = ((event.clientX - box.left) / box.width) * this.width;
      show(places.reduce((best, place, i) => (Math.abs(place.at - at) < Math.abs(places[best].at - at) ? i : best), 0));
    });
    svg.addEventListener("pointerleave", () => { if (document.activeElement !== svg) hide(); });
    svg.addEventListener("focus", () => show(now));
    svg.addEventListener("blur", hide);
    svg.addEventListener("keydown", (event) => {
      const far = Math.max(2, Math.round(places.length / 20));
      const to = { ArrowLeft: now - 1, ArrowDown: now - 1, ArrowRight: now + 1, ArrowUp: now + 1, PageDown: now - far, PageUp: now + far, Home: 0, End: places.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      show(to);
    });
    return this;
  }
}

// Claimed and true on one logarithmic axis; an infinite end is an arrow.
export function axis(face) {
  const width = 640, low = face.lower ?? Infinity, high = face.upper ?? Infinity;
  const finite = [face.claimed, low, high].filter((v) => v > 0 && Number.isFinite(v));
  const narrow = document.documentElement.clientWidth < 600;
  const w = narrow ? 360 : width;
  const from = 10 ** Math.floor(Math.log10(Math.min(...finite, finite.length ? Infinity : 1)) - 0.15);
  const to = 10 ** (Math.ceil(Math.log10(Math.max(...finite, from)) + 0.15));
  const place = (v) => 20 + (w - 60) * (Math.log10(Math.min(Math.max(v, from), to) / from) / Math.log10(to / from));
  const words = Number.isFinite(low) ? face.short : "∞";
  const svg = node("svg", { viewBox: `0 0 ${w} 92`, role: "img", "aria-label": `claimed ${face.letter} ${shown(face.claimed)}, true ${words}` });
  svg.append(node("line", { class: "frame", x1: 20, x2: w - 20, y1: 52, y2: 52 }));
  const marks = powers(from, to);
  for (const tick of marks) {
    svg.append(node("line", { class: "frame", x1: place(tick), x2: place(tick), y1: 49, y2: 55 }));
    svg.append(node("text", { class: "tick mid", x: place(tick), y: 70 }, power(tick)));
  }
  const a = Number.isFinite(low) ? place(low) : w - 26, b = Number.isFinite(high) ? place(high) : w - 22;
  svg.append(node("line", { class: `${face.word} thick`, x1: a, x2: Math.max(b, a + 0.1), y1: 34, y2: 34 }));
  if (!Number.isFinite(high)) svg.append(node("path", { class: face.word, d: `M${w - 22} 26L${w - 6} 34L${w - 22} 42Z` }));
  const inside = (at, label) => Math.min(Math.max(at, wide(label) / 2 + 4), w - wide(label) / 2 - 4);
  svg.append(node("text", { class: "mid", x: inside((a + b) / 2, `true ${words}`), y: 20 }, `true ${words}`));
  const c = place(face.claimed);
  svg.append(node("circle", { class: "claimed", cx: c, cy: 52, r: 6 }));
  const claimed = `claimed ${shown(face.claimed, 6)}`;
  svg.append(node("text", { class: "mid halo", x: inside(c, claimed), y: 88 }, claimed));
  return svg;
}
