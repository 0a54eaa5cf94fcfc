// The page: uploads with progress, a viewer, and deletion. Everything that it shows of a file comes from the server.

import { md5 } from "./md5.js";

const AT_ONCE = 2;
const find = (selector) => document.querySelector(selector);
const tiles = find("#tiles");
const waiting = [];
let running = 0;

// --- talking to the server -------------------------------------------------------------------------------

async function ask(method, path, body) {
  const reply = await fetch(path, {
    method,
    headers: { "content-type": "application/json" },
    body: body && JSON.stringify(body),
  });
  if (reply.ok) return reply;
  throw new Error(describe(reply.status, await reply.text()));
}

// Refusals are problems (RFC 9457), whose detail is meant for people.
function describe(status, text) {
  try {
    const problem = JSON.parse(text);
    return problem.detail.split("\n")[0] || problem.title;
  } catch {
    return `The server answered with ${status}.`;
  }
}

// fetch does not report the progress of an upload.
function put({ url, headers }, file, progress) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("PUT", url);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.upload.onprogress = (event) => progress(event.loaded / (event.total || 1));
    request.onload = () =>
      request.status < 300 ? resolve() : reject(new Error(describe(request.status, request.responseText)));
    request.onerror = () => reject(new Error("The connection was lost."));
    request.send(file);
  });
}

// --- uploads ---------------------------------------------------------------------------------------------

function enqueue(files) {
  for (const file of files) {
    const tile = find("#upload").content.firstElementChild.cloneNode(true);
    tile.querySelector(".name").textContent = file.name;
    tile.querySelector("progress").setAttribute("aria-label", `Upload of ${file.name}`);
    tiles.prepend(tile);
    waiting.push([file, tile]);
  }
  work();
}

async function work() {
  while (running < AT_ONCE && waiting.length) {
    running += 1;
    upload(...waiting.shift()).finally(() => {
      running -= 1;
      work();
    });
  }
}

async function upload(file, tile) {
  const bar = tile.querySelector("progress");
  const note = tile.querySelector(".size");
  try {
    note.textContent = "Preparing…";
    const stated = { filename: file.name, content_type: file.type, byte_size: file.size, checksum: await md5(file) };
    const reply = await ask("POST", "/attachments/direct_uploads", { blob: stated });
    const blob = await reply.json();
    await put(blob.direct_upload, file, (part) => {
      bar.value = part;
      note.textContent = `${Math.round(part * 100)} %`;
    });
    const added = await ask("POST", "/files", { signed_id: blob.signed_id });
    const holder = document.createElement("template");
    holder.innerHTML = await added.text();
    tile.replaceWith(holder.content);
    announce(`${file.name} was added.`);
  } catch (error) {
    tile.remove();
    complain(`${file.name}: ${error.message}`);
  }
  count();
}

// --- the page --------------------------------------------------------------------------------------------

function count() {
  const number = tiles.querySelectorAll(".tile:not(.upload)").length;
  find("#count").textContent = number === 1 ? "1 file" : `${number} files`;
}

function announce(text) {
  find("#news").textContent = text;
}

function complain(text) {
  const line = document.createElement("p");
  const close = document.createElement("button");
  line.append(text, close);
  close.textContent = "Dismiss";
  close.className = "button quiet";
  close.onclick = () => line.remove();
  find("#problems").append(line);
}

function view(button) {
  const viewer = find("#viewer");
  const name = button.closest(".tile").dataset.name;
  const { kind, original, download, large } = button.dataset;
  const shown = document.createElement(kind === "video" ? "video" : "img");
  if (kind === "video") Object.assign(shown, { src: original, controls: true, poster: large ?? "" });
  else Object.assign(shown, { src: large ?? original, alt: name });
  viewer.querySelector(".stage").replaceChildren(shown);
  find("#viewer-name").textContent = name;
  find("#viewer-download").href = download;
  viewer.onclose = () => viewer.querySelector(".stage").replaceChildren();
  viewer.showModal();
}

function question(text) {
  const dialog = find("#question");
  find("#question-text").textContent = text;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.onclose = () => resolve(dialog.returnValue === "yes");
  });
}

async function remove(tile) {
  const { id, name } = tile.dataset;
  if (!(await question(`Delete “${name}”?`))) return;
  try {
    await ask("DELETE", `/files/${id}`);
    const neighbour = tile.nextElementSibling ?? tile.previousElementSibling;
    tile.remove();
    (neighbour?.querySelector(".open") ?? find("#choose")).focus();
    announce(`${name} was deleted.`);
  } catch (error) {
    complain(`${name}: ${error.message}`);
  }
  count();
}

tiles.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.matches(".open")) view(button);
  if (button?.matches(".delete")) remove(button.closest(".tile"));
});

// A file of which no picture can be made shows its name.
tiles.addEventListener(
  "error",
  ({ target }) => {
    const note = document.createElement("span");
    note.className = "no-picture";
    note.textContent = target.alt;
    target.replaceWith(note);
  },
  true,
);

find("#choose").addEventListener("change", ({ target }) => {
  enqueue(target.files);
  target.value = "";
});

addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.classList.add("dropping");
});
for (const end of ["dragleave", "drop"]) addEventListener(end, () => document.body.classList.remove("dropping"));
addEventListener("drop", (event) => {
  event.preventDefault();
  enqueue(event.dataTransfer.files);
});
