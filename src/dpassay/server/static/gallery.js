// The gallery's search: claims that hold every word of the query stay, in the figure and in the list.
const filter = document.getElementById("filter");
const found = document.getElementById("found");
const rows = [...document.querySelectorAll(".claims li")];
const bars = rows.map((row) => document.querySelector(`.chart a[href="${row.querySelector("a").getAttribute("href")}"]`));
const texts = rows.map((row) => (row.closest(".system").querySelector("h2").textContent + " " + row.textContent).toLowerCase());

function search() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  rows.forEach((row, i) => {
    row.hidden = !words.every((word) => texts[i].includes(word));
    bars[i].hidden = row.hidden;
    count += !row.hidden;
  });
  for (const section of document.querySelectorAll(".system")) {
    section.hidden = !section.querySelector("li:not([hidden])");
  }
  found.textContent = words.length ? `${count} of ${rows.length}` : "";
  history.replaceState(null, "", words.length ? `?q=${encodeURIComponent(filter.value)}` : location.pathname);
}

document.getElementById("search").addEventListener("submit", (event) => event.preventDefault());
filter.addEventListener("input", search);
filter.value = new URLSearchParams(location.search).get("q") ?? "";
if (filter.value) search();
