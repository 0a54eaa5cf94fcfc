// Small comforts; every page works without them.
"use strict";

// A page that waits for figures looks again by itself.
const waiting = document.querySelector("[data-reload]");
if (waiting) setTimeout(() => location.reload(), Number(waiting.dataset.reload) * 1000);

// A choice that selects another form is sent as soon as it is made.
for (const choice of document.querySelectorAll("[data-submit]"))
  choice.addEventListener("change", () => choice.form.requestSubmit());

// Of the two ends of a range, the second is shown only when it is needed.
for (const choice of document.querySelectorAll("[data-range]")) {
  const second = document.getElementById(choice.dataset.range);
  const update = () => { second.hidden = choice.value !== "between"; };
  choice.addEventListener("change", update);
  update();
}
