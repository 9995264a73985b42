// SHA-256 of ASCII texts, for pages (plain HTTP has no WebCrypto, and one call of it for each try is slow) and workers.
// The constants are the fractions of the square and cube roots of the first primes, smaller to send as their rule. No root
// is so near to the next 32-bit value that the last bit of a double could change it.
var START = new Int32Array(8), K = new Int32Array(64);
(function () {
  for (var n = 2, i = 0, d; i < 64; n++) {
    for (d = 2; d * d <= n && n % d; d++);
    if (d * d > n) {
      if (i < 8) START[i] = Math.sqrt(n) % 1 * 4294967296;
      K[i++] = Math.pow(n, 1 / 3) % 1 * 4294967296;
    }
  }
})();
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
