// What comes before the number: the text with its zeros, where its last block begins, and the state before that.
function before(text) {
  var rest = text.length + 1 & 63, p = { zeros: rest > 56 ? '0000000'.slice(rest - 57) : '', mid: new Int32Array(START) }, i;
  p.text = text + ':' + p.zeros;
  p.head = p.text.length & ~63;
  for (i = 0; i < p.head; i += 64) run(p.mid, words(p.text.slice(i, i + 64), 0, 0).subarray(0, 16));
  return p;
}
// A search for n such that the digest of "text:n" starts with so many zero bits. Only what changes is hashed each time:
// n has nine digits, after zeros that fill a block where there are few bytes left of it. The function returned tries
// `count` numbers from `from` on and returns the answer, or "" when it is not among them.
function search(text, bits) {
  var p = before(text), v = new Int32Array(64), h = new Int32Array(8);
  return function (from, count) {
    var number = ('00000000' + from).slice(-9), w = words(p.text + number, p.head, p.text.length + 9), two = w.length > 16, last = p.text.length + 8 - p.head, at, tries, i;
    for (tries = 0; tries < count; tries++) {
      h.set(p.mid);
      for (i = 0; i < 16; i++) v[i] = w[i];
      block(h, v);
      if (two) {
        for (i = 0; i < 16; i++) v[i] = w[16 + i];
        block(h, v);
      }
      if (h[0] >>> 32 - bits === 0) return p.zeros + ('00000000' + (from + tries)).slice(-9);
      for (at = last; (w[at >> 2] >>> 24 - (at & 3) * 8 & 15) === 9; at--) w[at >> 2] -= 9 << 24 - (at & 3) * 8;
      w[at >> 2] += 1 << 24 - (at & 3) * 8;
    }
    return '';
  };
}
