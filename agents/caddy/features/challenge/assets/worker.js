// Tries every so many-th stretch of numbers, says after each how far it is, and at the end the answer.
onmessage = function (e) {
  var m = e.data, size = 32768, from = (m.i || 0) * size, step = (m.k || 1) * size, find, n;
  try { find = lanes(m.t, m.d); } catch (x) { find = search(m.t, m.d); }
  for (; !(n = find(from, size)); from += step) postMessage({ c: size });
  postMessage({ n: n });
};
