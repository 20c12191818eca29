"use strict";
// On paper nothing can be unfolded.
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  for (const details of folded) details.open = true;
});
addEventListener("afterprint", () => {
  for (const details of folded) details.open = false;
});
// A link to what is folded unfolds it.
const unfold = () => {
  for (let one = document.getElementById(location.hash.slice(1)); one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
  document.getElementById(location.hash.slice(1))?.scrollIntoView();
};
addEventListener("hashchange", unfold);
unfold();
const articles = [...document.querySelectorAll("article[data-task]")];
const chosen = { model: document.getElementById("by-model"), task: document.getElementById("by-task"), group: document.getElementById("by-group") };
const byAttribute = document.getElementById("by-attribute");
const byValue = document.getElementById("by-value");
const words = document.getElementById("by-words");
const shown = document.getElementById("shown");
// What was read of each example: pairs of attribute and value.
const read = new Map(articles.map((article) => [article, [...article.querySelectorAll("span[data-attribute]")].map((span) => [span.dataset.attribute, span.textContent])]));
const counted = (lists) => {
  const counts = new Map();
  for (const names of lists) for (const name of new Set(names)) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort(([a, m], [b, n]) => n - m || a.localeCompare(b));
};
const offer = (select, entries) => {
  select.replaceChildren(select.options[0], ...entries.map(([name, n]) => new Option(`${name} (${n})`, name)));
  select.value = "";
  select.disabled = !entries.length;
};
const offerValues = () => {
  const lists = [...read.values()].map((pairs) => pairs.filter(([name]) => name === byAttribute.value).map(([, value]) => value));
  offer(byValue, byAttribute.value ? counted(lists) : []);
};
const holds = (article) => !byAttribute.value
  || read.get(article).some(([name, value]) => name === byAttribute.value && (!byValue.value || value === byValue.value));
const filter = () => {
  const sought = words.value.trim().toLowerCase();
  let count = 0;
  for (const article of articles) {
    const fits = Object.entries(chosen).every(([name, select]) => !select.value || article.dataset[name] === select.value)
      && holds(article)
      && (!sought || article.textContent.toLowerCase().includes(sought));
    article.hidden = !fits;
    count += fits;
  }
  shown.textContent = `${count} of ${articles.length} examples`;
};
if (articles.length) {
  offer(byAttribute, counted([...read.values()].map((pairs) => pairs.map(([name]) => name))));
  byAttribute.addEventListener("input", offerValues);
  for (const control of [...Object.values(chosen), byAttribute, byValue, words]) control.addEventListener("input", filter);
  filter();
}
