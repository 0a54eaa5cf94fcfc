// MD5 (RFC 1321) of a file, read in slices: direct uploads state it, so that the service refuses bytes that got damaged.

const SHIFTS = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21];
const SINES = Int32Array.from({ length: 64 }, (_, i) => Math.floor(Math.abs(Math.sin(i + 1)) * 2 ** 32));
const SLICE = 64 * 32768;

function mix(state, words, from) {
  let [a, b, c, d] = state;
  for (let i = 0; i < 64; i++) {
    const round = i >> 4;
    let bits, place;
    if (round === 0) [bits, place] = [(b & c) | (~b & d), i];
    else if (round === 1) [bits, place] = [(d & b) | (~d & c), (5 * i + 1) & 15];
    else if (round === 2) [bits, place] = [b ^ c ^ d, (3 * i + 5) & 15];
    else [bits, place] = [c ^ (b | ~d), (7 * i) & 15];
    const sum = (a + bits + SINES[i] + words[from + place]) | 0;
    const shift = SHIFTS[round * 4 + (i & 3)];
    [a, d, c, b] = [d, c, b, (b + ((sum << shift) | (sum >>> (32 - shift)))) | 0];
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
}

// The last block is filled up, and ends with the number of bits.
function pad(bytes, size) {
  const padded = new Uint8Array((Math.floor((bytes.length + 8) / 64) + 1) * 64);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  new DataView(padded.buffer).setBigUint64(padded.length - 8, BigInt(size) * 8n, true);
  return padded;
}

export async function md5(file) {
  const state = Int32Array.of(0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476);
  for (let start = 0; start <= file.size; start += SLICE) {
    let bytes = new Uint8Array(await file.slice(start, start + SLICE).arrayBuffer());
    if (start + SLICE > file.size) bytes = pad(bytes, file.size);
    const words = new Int32Array(bytes.buffer);
    for (let from = 0; from < words.length; from += 16) mix(state, words, from);
  }
  return btoa(String.fromCharCode(...new Uint8Array(state.buffer)));
}
