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

// The weights of an alias: a slider beside each number, and a bar of the split that they make.
const weights = document.querySelector("[data-split]");
if (weights) {
  const rows = [...weights.children].map((row) => ({
    slider: row.querySelector("[type=range]"),
    number: row.querySelector("[type=number]"),
    share: row.querySelector(".share"),
    before: Number(row.querySelector("[type=number]").defaultValue),
    version: row.querySelector("[type=number]").name.slice("weight-".length),
  }));
  const then = document.getElementById(weights.dataset.split);
  const bar = then.querySelector("svg");
  const order = (row) => (/^\d+$/.test(row.version) ? Number(row.version) : Infinity);
  const draw = () => {
    const total = rows.reduce((sum, row) => sum + Math.max(0, Number(row.number.value)), 0);
    const taken = new Set();
    let x = 0;
    bar.replaceChildren();
    const names = [];
    for (const row of [...rows].sort((one, other) => order(one) - order(other))) {
      const share = total ? Math.max(0, Number(row.number.value)) / total : 0;
      row.share.textContent = `${Math.round(share * 1000) / 10}%`;
      row.share.classList.toggle("zero", !share);
      if (!share) continue;
      let tone = order(row) === Infinity ? 5 : order(row) % 6; // as the server chooses the colours of versions
      while (taken.has(tone) && taken.size < 6) tone = (tone + 1) % 6;
      taken.add(tone);
      const arm = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      for (const [name, value] of Object.entries({ class: `arm-${tone}`, x, width: share * 100, height: 10 }))
        arm.setAttribute(name, value);
      bar.append(arm);
      x += share * 100;
      names.push(`${row.version} ${row.share.textContent}`);
    }
    bar.setAttribute("aria-label", `Then: ${names.join(", ")}`);
    then.hidden = !total || rows.every((row) => Number(row.number.value) === row.before);
  };
  for (const row of rows) {
    row.slider.hidden = false;
    row.slider.addEventListener("input", () => { row.number.value = row.slider.value; draw(); });
    row.number.addEventListener("input", () => {
      row.slider.max = Math.max(100, Number(row.number.value));
      row.slider.value = row.number.value || 0;
      draw();
    });
  }
  draw();
}
