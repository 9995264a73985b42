// SHA-256 of ASCII texts, for pages (plain HTTP has no WebCrypto, and one call of it for each try is slow) and workers.
var K = new Int32Array('428a2f9871374491b5c0fbcfe9b5dba53956c25b59f111f1923f82a4ab1c5ed5d807aa9812835b01243185be550c7dc372be5d7480deb1fe9bdc06a7c19bf174e49b69c1efbe47860fc19dc6240ca1cc2de92c6f4a7484aa5cb0a9dc76f988da983e5152a831c66db00327c8bf597fc7c6e00bf3d5a7914706ca63511429296727b70a852e1b21384d2c6dfc53380d13650a7354766a0abb81c2c92e92722c85a2bfe8a1a81a664bc24b8b70c76c51a3d192e819d6990624f40e3585106aa07019a4c1161e376c082748774c34b0bcb5391c0cb34ed8aa4a5b9cca4f682e6ff3748f82ee78a5636f84c878148cc7020890befffaa4506cebbef9a3f7c67178f2'.match(/.{8}/g).map(function (x) { return parseInt(x, 16) | 0; }));
var START = [1779033703, -1150833019, 1013904242, -1521486534, 1359893119, -1694144372, 528734635, 1541459225];
// One block: w holds it as 16 words and is used up; the state h moves on.
function block(h, w) {
  var a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], z = h[7], i, t, u, x, y;
  for (i = 16; i < 64; i++) {
    x = w[i - 15];
    y = w[i - 2];
    w[i] = (w[i - 16] + ((x >>> 7 | x << 25) ^ (x >>> 18 | x << 14) ^ x >>> 3) + w[i - 7] + ((y >>> 17 | y << 15) ^ (y >>> 19 | y << 13) ^ y >>> 10)) | 0;
  }
  for (i = 0; i < 64; i++) {
    t = (z + ((e >>> 6 | e << 26) ^ (e >>> 11 | e << 21) ^ (e >>> 25 | e << 7)) + (g ^ e & (f ^ g)) + K[i] + w[i]) | 0;
    u = (((a >>> 2 | a << 30) ^ (a >>> 13 | a << 19) ^ (a >>> 22 | a << 10)) + (a & b ^ c & (a ^ b))) | 0;
    z = g; g = f; f = e; e = d + t | 0; d = c; c = b; b = a; a = t + u | 0;
  }
  h[0] += a; h[1] += b; h[2] += c; h[3] += d; h[4] += e; h[5] += f; h[6] += g; h[7] += z;
}
// The words of a text from a byte on, with the padding of a message that is so many bytes long in all.
function words(text, from, size) {
  var n = text.length - from, w = new Int32Array(((n + 72) >> 6) * 16), i;
  for (i = 0; i <= n; i++) w[i >> 2] |= (i < n ? text.charCodeAt(from + i) : 128) << 24 - (i & 3) * 8;
  w[w.length - 1] = size * 8;
  return w;
}
function run(h, w) {
  var v = new Int32Array(64), i;
  for (i = 0; i < w.length; i += 16) {
    v.set(w.subarray(i, i + 16));
    block(h, v);
  }
  return h;
}
function digest(text) {
  var h = run(new Int32Array(START), words(text, 0, text.length)), s = '', i;
  for (i = 0; i < 8; i++) s += ('0000000' + (h[i] >>> 0).toString(16)).slice(-8);
  return s;
}
