// Part of the page of proofs of work: several workers where there are cores for them.
var workers = [], alone = false;
function dismiss() {
  workers.splice(0).forEach(function (w) { w.terminate(); });
}
// Without workers: in slices, so that the page stays alive.
function slices(tried) {
  var find = search(o.t, +o.d), from = 0, n;
  (function slice() {
    if (n = find(from, 8192)) return found(n);
    from += 8192;
    tried(8192);
    setTimeout(slice, 0);
  })();
}
function begin() {
  var tries = 0, cores = o.d < 18 ? 1 : Math.max(1, Math.min(8, (navigator.hardwareConcurrency || 2) - 1 | 0)), w, i;
  function tried(count) {
    tries += count;
    // The chance to have found it by now.
    bar(1 - Math.exp(-tries / Math.pow(2, o.d)));
  }
  function fallback() {
    if (answer || alone) return;
    alone = true;
    dismiss();
    slices(tried);
  }
  alone = false;
  try {
    for (i = 0; i < cores; i++) {
      w = new Worker(o.w);
      w.onmessage = function (e) {
        if (e.data.n) return answer || found(e.data.n);
        tried(e.data.c);
      };
      w.onerror = fallback;
      workers.push(w);
      w.postMessage({ t: o.t, d: +o.d, i: i, k: cores });
    }
  } catch (e) { fallback(); }
}
