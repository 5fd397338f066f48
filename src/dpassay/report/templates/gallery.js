// The gallery: search, filters and order. Whatever shows a claim has its name as data-claim; the entries of the list
// also have what is filtered and sorted by. The state is in the address.
const control = (id) => document.getElementById(id);
const entries = [...document.querySelectorAll("[data-claim][data-word]")];
const others = new Map(); // by claim: what else shows it, such as its line in the figure
for (const shown of document.querySelectorAll("[data-claim]:not([data-word])")) {
  others.set(shown.dataset.claim, [...(others.get(shown.dataset.claim) ?? []), shown]);
}
const FILTERS = ["verdict", "system", "guarantee"];
const places = new Map([...entries, ...[...others.values()].flat()].map((shown) => [shown, [shown.parentNode, shown.nextSibling]]));
const texts = entries.map((entry) => `${entry.dataset.system} ${entry.textContent}`.toLowerCase());
const number = (text) => (text === "inf" ? Infinity : Number(text));
const ORDERS = {
  name: (a, b) => a.dataset.title.localeCompare(b.dataset.title),
  claimed: (a, b) => number(a.dataset.claimed) - number(b.dataset.claimed),
  true: (a, b) => number(b.dataset.true) - number(a.dataset.true),
  factor: (a, b) => number(b.dataset.factor) - number(a.dataset.factor),
};

function search() {
  const words = control("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const chosen = FILTERS.map((name) => control(name).value);
  let count = 0;
  entries.forEach((entry, i) => {
    const fits = [entry.dataset.word, entry.dataset.system, entry.dataset.guarantee];
    const hidden = !words.every((word) => texts[i].includes(word)) || chosen.some((one, k) => one && one !== fits[k]);
    entry.hidden = hidden;
    for (const other of others.get(entry.dataset.claim) ?? []) other.hidden = hidden;
    count += !hidden;
  });
  arrange();
  for (const section of document.querySelectorAll("[data-section]")) {
    section.hidden = control("order").value !== "" || !entries.some((entry) => !entry.hidden && entry.dataset.system === section.dataset.section);
  }
  const all = !words.length && !chosen.some(Boolean);
  control("found").textContent = all ? "" : `${count} of ${entries.length}`;
  const state = new URLSearchParams();
  for (const [name, id] of [["q", "filter"], ...FILTERS.map((one) => [one, one]), ["order", "order"]]) {
    if (control(id).value) state.set(name, control(id).value);
  }
  history.replaceState(null, "", `${location.pathname}${String(state) && `?${state}`}${location.hash}`);
}

// In order of a number or of the names, without the systems; or as it was.
let arranged = "";
function arrange() {
  const order = control("order").value, list = control("sorted");
  if (order === arranged) return;
  arranged = order;
  for (const [shown, [parent, before]] of [...places].reverse()) parent.insertBefore(shown, before);
  if (!order) return;
  const sorted = [...entries].sort(ORDERS[order]);
  list.append(...sorted);
  for (const entry of sorted) {
    for (const other of others.get(entry.dataset.claim) ?? []) if (other.matches("a")) other.parentNode.append(other);
  }
}

const given = new URLSearchParams(location.search);
for (const [name, id] of [["q", "filter"], ...FILTERS.map((one) => [one, one]), ["order", "order"]]) {
  const value = given.get(name) ?? "";
  if (id === "filter" || [...control(id).options].some((option) => option.value === value)) control(id).value = value;
  control(id).addEventListener("input", search);
}
control("search").addEventListener("submit", (event) => event.preventDefault());
control("search").hidden = false;
search();
