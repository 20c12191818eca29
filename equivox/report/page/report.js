"use strict";
const articles = [...document.querySelectorAll("article[data-task]")];
const chosen = { model: document.getElementById("by-model"), task: document.getElementById("by-task"), group: document.getElementById("by-group") };
const words = document.getElementById("by-words");
const shown = document.getElementById("shown");
const filter = () => {
  const sought = words.value.trim().toLowerCase();
  let count = 0;
  for (const article of articles) {
    const fits = Object.entries(chosen).every(([name, select]) => !select.value || article.dataset[name] === select.value)
      && (!sought || article.textContent.toLowerCase().includes(sought));
    article.hidden = !fits;
    count += fits;
  }
  shown.textContent = `${count} of ${articles.length} examples`;
};
if (articles.length) {
  for (const control of [...Object.values(chosen), words]) control.addEventListener("input", filter);
  filter();
}
