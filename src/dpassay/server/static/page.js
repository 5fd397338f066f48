// The page's state is its address. A change asks for a quick answer first, and for the rest when one has come to rest.
import { axis, shown } from "./draw.js";
import { beliefs, draw, noSanity, sanity } from "./pictures.js";

const $ = (id) => document.getElementById(id);
const form = $("claim");
const RESERVED = new Set(form.dataset.reserved.split(" "));
const KINDS = { dp: ["epsilon", "delta"], metric: ["epsilon", "metric"], renyi: ["epsilon", "order"], rho: ["rho"], mu: ["mu"] };
const SCALES = { epsilon: [1e-2, 1e2], delta: [1e-12, 0.1], rho: [1e-3, 1e2], mu: [1e-2, 1e2], order: [1.1, 1e3], dim: [1, 1e5] };
const DEFAULTS = { epsilon: "1", delta: "0", rho: "0.5", mu: "1", order: "2" };
const REST = 250; // milliseconds without a change before the rest is asked for

let values = {}; // of the names in the pipeline
let face = null, rest = null, looks = [];
let asking = null, running = null, timer = 0, resting = 0, ticking = 0;

// ── State and address ───────────────────────────────────────────────────────────────────────────

function names(text) {
  const found = text.matchAll(/(?<![\w.])([A-Za-z_]\w*)(?!\s*[\w(=])/g);
  return [...new Set([...found].map((match) => match[1]))].filter((name) => !RESERVED.has(name)).slice(0, 12);
}

function sorted(address) {
  const fields = new URLSearchParams(address);
  fields.sort();
  return fields.toString();
}

function query() {
  const asked = new URLSearchParams();
  asked.set("pipeline", $("pipeline").value.trim());
  for (const name of names($("pipeline").value)) if (values[name]) asked.append("set", `${name}=${values[name]}`);
  for (const name of ["dim", ...KINDS[$("kind").value]]) if ($(name).value.trim()) asked.set(name, $(name).value.trim());
  if (asked.get("delta") === "0") asked.delete("delta");
  if ($("neighbours").value) asked.set("neighbours", $("neighbours").value.replace("(n)", `(${$("count").value.trim()})`));
  return asked;
}

function load(address) {
  const given = new URLSearchParams(address);
  values = Object.fromEntries(given.getAll("set").map((setting) => setting.split("=", 2)));
  $("pipeline").value = given.get("pipeline") ?? "";
  const kind = given.has("rho") ? "rho" : given.has("mu") ? "mu" : given.has("metric") ? "metric" : given.has("order") ? "renyi" : "dp";
  $("kind").value = kind;
  for (const name of ["dim", "epsilon", "delta", "rho", "mu", "order"]) $(name).value = given.get(name) ?? DEFAULTS[name] ?? "";
  $("metric").value = given.get("metric") ?? "l2";
  const counted = (given.get("neighbours") ?? "").match(/^(words|tokens|group)\((\d{1,7})\)$/);
  const relation = counted ? `${counted[1]}(n)` : given.get("neighbours") ?? "";
  $("count").value = counted?.[2] ?? "2";
  if (relation && ![...$("neighbours").options].some((option) => option.value === relation)) {
    $("neighbours").add(new Option(relation, relation));
  }
  $("neighbours").value = relation;
  if (given.has("prior")) $("prior").value = String(Math.min(99, Math.max(1, Number(given.get("prior")) || 50)));
  if (kind !== "dp" || relation) $("more").open = true;
  showFields();
}

function showFields() {
  const used = new Set(KINDS[$("kind").value]);
  for (const name of ["epsilon", "delta", "rho", "mu", "order", "metric"]) {
    form.querySelector(`[data-field="${name}"]`).hidden = !used.has(name);
  }
  form.querySelector('[data-field="count"]').hidden = !$("neighbours").value.endsWith("(n)");
  for (const name of Object.keys(SCALES)) place(name);
  showParameters();
}

function showParameters() {
  const wanted = names($("pipeline").value), box = $("parameters");
  if (wanted.join() !== [...box.children].map((row) => row.dataset.name).join()) {
    box.replaceChildren(...wanted.map(parameterRow));
  }
  for (const name of wanted) {
    values[name] ??= "1";
    const field = $(`set-${name}`);
    if (document.activeElement !== field) field.value = values[name];
    slide($(`set-${name}-slider`), values[name], [1e-3, 1e3]);
  }
}

// What a parameter is, where it is the whole argument of a stage.
const MEANINGS = { clip: "clipping norm", laplace: "scale", gaussian: "standard deviation", radial: "scale", softmax: "temperature", poisson: "sampling rate", dropout: "dropout rate" };
function meaning(name) {
  const stage = $("pipeline").value.match(new RegExp(`(\\w+)\\((?:\\s*\\w+\\s*,)?\\s*${name}\\s*\\)`));
  return (stage && MEANINGS[stage[1]]) ?? "";
}

function parameterRow(name) {
  const row = document.createElement("div");
  row.className = "row";
  row.dataset.name = name;
  const label = document.createElement("label");
  label.htmlFor = `set-${name}`;
  label.textContent = `${meaning(name)} ${name}`.trim();
  const field = document.createElement("input");
  Object.assign(field, { id: `set-${name}`, className: "number", inputMode: "decimal", autocomplete: "off", spellcheck: false, maxLength: 40 });
  const slider = document.createElement("input");
  Object.assign(slider, { id: `set-${name}-slider`, type: "range", min: 0, max: 1000, step: 10 });
  slider.setAttribute("aria-label", `${label.textContent}, on a logarithmic scale`);
  field.addEventListener("input", () => { values[name] = field.value.trim(); changed(); });
  slider.addEventListener("input", () => { values[name] = field.value = valueAt(slider, [1e-3, 1e3]); changed(); });
  row.append(label, field, slider);
  return row;
}

// ── Sliders: logarithmic, with round numbers ────────────────────────────────────────────────────

function valueAt(slider, [low, high], whole = false) {
  const value = low * (high / low) ** (slider.value / 1000);
  const round = whole ? Math.round(Number(value.toPrecision(value < 100 ? 2 : 3))) : Number(value.toPrecision(2));
  return String(round);
}

function slide(slider, text, [low, high]) {
  const value = Number(text);
  const share = value > 0 ? Math.log(value / low) / Math.log(high / low) : 0;
  if (document.activeElement !== slider) slider.value = String(Math.round(1000 * Math.min(1, Math.max(0, share))));
  slider.setAttribute("aria-valuetext", text || "not given");
}

function place(name) {
  slide($(`${name}-slider`), $(name).value, SCALES[name]);
}

for (const [name, scale] of Object.entries(SCALES)) {
  $(name).addEventListener("input", () => { place(name); changed(); });
  $(`${name}-slider`).addEventListener("input", (event) => {
    const zero = name === "delta" && event.target.value === "0";
    $(name).value = zero ? "0" : valueAt(event.target, scale, name === "dim");
    event.target.setAttribute("aria-valuetext", $(name).value);
    changed();
  });
}

// ── Asking ──────────────────────────────────────────────────────────────────────────────────────

function changed() {
  const asked = query(), shownAt = new URLSearchParams(asked);
  if ($("prior").value !== "50") shownAt.set("prior", $("prior").value);
  history.replaceState(null, "", `?${shownAt}`);
  const same = sorted(asked);
  $("starter").value = [...$("starter").options].find((option) => option.value && sorted(option.value) === same)?.value ?? "";
  stopRun();
  say("");
  clearTimeout(timer);
  clearTimeout(resting);
  timer = setTimeout(ask, asking ? 120 : 15);
}

async function fetched(path, signal) {
  const response = await fetch(path, { signal });
  const data = await response.json();
  if (!response.ok) throw Object.assign(new Error(data.error), { at: data.at, told: true, status: response.status });
  return data;
}

async function ask() {
  asking?.abort();
  const mine = (asking = new AbortController()), asked = query().toString();
  try {
    progress("the verdict");
    const quick = await fetched(`/api/glance?${asked}`, mine.signal);
    face = quick;
    rest = null;
    showFace();
    if (mine.signal.aborted) return;
    progress("");
    resting = setTimeout(() => askRest(mine, asked), REST);
  } catch (error) {
    failed(error, mine);
  }
}

async function askRest(mine, asked) {
  try {
    progress("the counterexample, the repairs, and what holds instead");
    rest = await fetched(`/api/check?${asked}`, mine.signal);
    showRest();
    progress("");
    if (asking === mine) asking = null;
  } catch (error) {
    restFailed(error, mine);
  }
}

const UNREACHABLE = "The server does not answer. Is dpassay serve still running?";

// The verdict and the pictures stand; only the rest is missing.
function restFailed(error, mine) {
  if (mine.signal.aborted) return;
  if (!error.told) return failed(error, mine);
  progress("");
  asking = null;
  $("facts").replaceChildren();
  text(card($("facts"), "What is known"), "p", `The counterexample and the repairs are missing: ${error.message}`);
}

function failed(error, mine) {
  if (mine.signal.aborted) return;
  progress("");
  asking = null;
  const box = $("error"), text = $("pipeline").value;
  box.hidden = false;
  box.textContent = error.told ? error.message : UNREACHABLE;
  if (error.told && Number.isInteger(error.at)) {
    const start = Math.max(0, error.at - 24), place = document.createElement("pre");
    place.textContent = `${text.slice(start, start + 40).replace(/\s/g, " ")}\n${" ".repeat(error.at - start)}^`;
    box.append(place);
  }
  face = rest = null; // nothing of an earlier claim stays
  stopRun();
  $("evidence").hidden = true;
  $("facts").replaceChildren();
  $("verdict").dataset.word = "";
  $("badge").textContent = "";
  $("truth").textContent = "";
  const wrong = error.status === 400 ? "this claim cannot be checked as it is written" : "the server could not answer";
  $("headline").textContent = `No verdict: ${error.told ? wrong : "the server is not responding"}.`;
  $("meaning").textContent = "";
  $("reason").textContent = "";
}

// What is being computed, with the time it has taken, as soon as that is noticeable.
function progress(what) {
  clearInterval(ticking);
  $("progress").textContent = "";
  if (!what) return;
  const begun = performance.now();
  ticking = setInterval(() => {
    const seconds = (performance.now() - begun) / 1000;
    if (seconds > 0.4) $("progress").textContent = `computing ${what}: ${seconds.toFixed(1)} s`;
  }, 100);
}

// ── Showing ─────────────────────────────────────────────────────────────────────────────────────

const SIGNS = { proven: "✓ proven", refuted: "✗ refuted", open: "? open" };
const prior = () => Number($("prior").value) / 100;

function text(parent, tag, words, kind = "") {
  const made = document.createElement(tag);
  made.textContent = words;
  if (kind) made.className = kind;
  return parent.appendChild(made);
}

function showFace() {
  $("error").hidden = true;
  $("evidence").hidden = false; // before anything is drawn: drawings are as wide as their place
  $("verdict").dataset.word = face.word;
  $("badge").textContent = SIGNS[face.word];
  $("truth").textContent = `true ${face.letter} ${face.short}${face.delta ? ` at δ ${shown(face.delta)}` : face.unit}`;
  $("headline").textContent = face.headline;
  $("meaning").textContent = face.meaning;
  $("reason").textContent = "";
  $("axis").replaceChildren(axis(face));
  for (const kind of ["certificate", "report"]) $(kind).href = `/${kind}?${query()}`;
  document.querySelector('[data-copy="latex"]').disabled = true;
  draw(face, prior());
  if (!looks.length) noSanity("Press the button to run the pipeline on its worst known inputs.");
}

function card(box, title) {
  const made = box.appendChild(document.createElement("div"));
  text(made, "h2", title);
  return made;
}

function showRest() {
  $("reason").textContent = rest.reason;
  document.querySelector('[data-copy="latex"]').disabled = false;
  const box = $("facts");
  box.replaceChildren();
  const known = card(box, "What is known");
  text(known, "p", `${face.guarantee} between ${face.neighbours}.`);
  const between = (interval) => (interval.startsWith("[") ? `lies in ${interval}` : `is ${interval}`);
  const at = face.delta ? ` at δ ${shown(face.delta)}` : face.unit;
  text(known, "p", `The true ${face.letter} ${between(face.interval)}${at}.`);
  if (rest.true_delta) text(known, "p", `The true δ at the claimed ε ${between(rest.true_delta)}.`);
  if (rest.holds.length) {
    const rows = rest.holds.map(([delta, epsilon]) => `ε ${epsilon.replace("inf", "∞")} at δ ${delta}`);
    text(known, "p", `What holds instead: ${rows.join("; ")}.`);
  }
  const behind = text(known, "p", "Theorems: ", "soft");
  rest.theorems.forEach((name, i) => {
    behind.append(i ? ", " : "");
    text(behind, "a", name).href = `/proofs/${name}`;
  });
  for (const warning of rest.warnings) text(known, "p", warning, "warning");
  if (rest.witness) {
    const witness = card(box, "Counterexample");
    text(witness, "p", rest.witness.pair);
    if (rest.witness.event) text(witness, "p", rest.witness.event);
  }
  if (rest.repairs.length) {
    const repairs = card(box, "Repairs");
    repairs.className = "wide";
    const list = repairs.appendChild(document.createElement("ul"));
    for (const repair of rest.repairs) {
      const item = list.appendChild(document.createElement("li"));
      if (repair.mechanism) text(item, "code", repair.mechanism);
      const noise = repair.noise ? `, standard deviation ${repair.noise} per coordinate` : "";
      text(item, "div", `${repair.guarantee ? `${repair.guarantee}${noise}. ` : ""}${repair.advice}`, "soft");
    }
  }
}

// ── The sanity check ────────────────────────────────────────────────────────────────────────────

function stopRun() {
  running?.abort();
  running = null;
  looks = [];
  $("run").disabled = false;
}

$("run").addEventListener("click", async () => {
  stopRun();
  const mine = (running = new AbortController());
  $("run").disabled = true;
  noSanity("Looking for a pair of inputs…");
  try {
    const response = await fetch(`/api/audit?${query()}`, { signal: mine.signal });
    if (!response.ok) throw Object.assign(new Error((await response.json()).error), { told: true });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let left = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const lines = (left + value).split("\n");
      left = lines.pop();
      for (const line of lines) await look(JSON.parse(line));
      if (mine.signal.aborted) return;
    }
  } catch (error) {
    if (!mine.signal.aborted) noSanity(error.told ? error.message : UNREACHABLE);
  }
  if (running === mine) $("run").disabled = false;
});

async function look(data) {
  if (data.error) return noSanity(data.error);
  looks.push(data);
  const said = !data.last ? "" : data.refuted ? "That refutes the claim." : `${data.why} That does not refute the claim; it does not prove it either.`.trim();
  sanity(looks, face.claimed, said);
  await new Promise((resolve) => setTimeout(resolve, 40)); // so that one can watch
}

// ── Copying and downloading ─────────────────────────────────────────────────────────────────────

let saying = 0;
function say(words, seconds = 0) {
  clearTimeout(saying);
  $("said").textContent = words;
  if (seconds) saying = setTimeout(() => say(""), 1000 * seconds);
}

for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    const kind = button.dataset.copy;
    const words = kind === "link" ? location.href : kind === "latex" ? rest?.latex : face?.copy[kind];
    if (!words) return;
    try {
      await navigator.clipboard.writeText(words);
      say(`${kind} copied`, 2.5);
    } catch {
      window.prompt("Copy this:", words);
    }
  });
}

// A file is fetched first: what keeps it from being written is then a sentence on this page.
for (const kind of ["certificate", "report"]) {
  $(kind).addEventListener("click", async (event) => {
    const link = event.currentTarget;
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    say(`writing the ${kind}…`);
    try {
      const response = await fetch(link.href);
      if (!response.ok) throw Object.assign(new Error((await response.json()).error), { told: true });
      const file = document.createElement("a");
      file.href = URL.createObjectURL(await response.blob());
      file.download = link.download;
      file.click();
      setTimeout(() => URL.revokeObjectURL(file.href), 60_000);
      say(`${kind} written`, 2.5);
    } catch (error) {
      say(error.told ? `No ${kind}: ${error.message}` : UNREACHABLE);
    }
  });
}

// ── Begin ───────────────────────────────────────────────────────────────────────────────────────

form.addEventListener("submit", (event) => event.preventDefault());
$("starter").addEventListener("change", () => { if ($("starter").value) { load($("starter").value); changed(); } });
$("pipeline").addEventListener("input", () => { showParameters(); changed(); });
for (const name of ["kind", "metric", "neighbours"]) $(name).addEventListener("change", () => { showFields(); changed(); });
$("count").addEventListener("input", changed);
$("prior").addEventListener("input", () => {
  const address = query();
  if ($("prior").value !== "50") address.set("prior", $("prior").value);
  history.replaceState(null, "", `?${address}`);
  if (face) beliefs(face, prior());
});
let width = 0; // drawings are made for one width
new ResizeObserver(() => {
  const now = document.querySelector(".drawing").clientWidth;
  if (face && width && Math.abs(now - width) > 20) {
    $("axis").replaceChildren(axis(face));
    draw(face, prior());
    if (looks.length) sanity(looks, face.claimed, "");
  }
  width = now;
}).observe(document.querySelector(".pictures"));
load(new URLSearchParams(location.search).has("pipeline") ? location.search : $("starter").options[1].value);
changed();
