// Uploads a file with tus-js-client as npm has it: node tus_client.cjs PACKAGE ENDPOINT FILE [URL].
// URL is that of an upload to resume; else one is created, and its URL is the first line.
// The last line is JSON: the offsets from which bytes were sent, and the signed id of the result.
const fs = require("node:fs");
const [, , package_, endpoint, path, uploadUrl] = process.argv;
const tus = require(package_);
const sent = [];

const upload = new tus.Upload(fs.createReadStream(path), {
  endpoint,
  uploadUrl: uploadUrl || null,
  retryDelays: Array(100).fill(50),
  metadata: { filename: "film.mp4", filetype: "video/mp4" },
  onBeforeRequest(request) {
    if (request.getMethod() === "PATCH") sent.push(Number(request.getHeader("Upload-Offset")));
  },
  onUploadUrlAvailable() {
    if (!uploadUrl) console.log(upload.url);
  },
  onError(error) {
    console.error(String(error));
    process.exit(1);
  },
  onSuccess({ lastResponse }) {
    console.log(JSON.stringify({ sent, signedId: lastResponse.getHeader("Holdall-Signed-Id") }));
    process.exit(0); // it keeps connections open for a while
  },
});
upload.start();
