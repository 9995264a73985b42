(function () {
  var d = document, id = function (x) { return d.getElementById(x); }, main = id('m'), o = main.dataset, button = id('b'), answer = '', workers = [], alone = false, retry;
  function say(text) { id('s').textContent = text; }
  function bar(part) {
    id('i').style.width = part * 100 + '%';
    id('p').setAttribute('aria-valuenow', Math.round(part * 100));
  }
  function dismiss() {
    workers.forEach(function (w) { w.terminate(); });
    workers = [];
  }
  // Everything that may fail ends here: what happened, and a button that tries again.
  function stop(text, again) {
    dismiss();
    say('');
    id('e').textContent = text;
    id('e').hidden = button.hidden = false;
    retry = again;
  }
  function leave() {
    if (o.r) location.replace(o.r);
    else location.reload();
  }
  function send() {
    var body = 't=' + o.t + '&a=' + answer;
    say(o.sending);
    fetch(o.v, { method: 'POST', body: body, redirect: 'manual', credentials: 'same-origin', headers: { 'Content-Type': 'application/x-www-form-urlencoded' } }).then(function (r) {
      if (r.type !== 'opaqueredirect') return stop(o.refused, leave);
      say(o.done);
      bar(1);
      leave();
    }, function () { stop(o.offline, send); });
  }
  function found(n) {
    dismiss();
    answer = n;
    send();
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
  function work() {
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
  function start() {
    id('e').hidden = button.hidden = true;
    answer = '';
    say(o.working);
    bar(0);
    if (o.k === 'js') found(digest(o.t));
    else work();
  }
  // A third time within a minute is not by chance: somebody has to look at it.
  function often() {
    var now = Date.now(), times;
    try {
      times = (sessionStorage.__ew_tries || '').split(',').filter(function (x) { return x && now - x < 60000; });
      times.push(now);
      sessionStorage.__ew_tries = times.join();
      return times.length > 3;
    } catch (e) { return false; }
  }
  button.onclick = function () { (retry || start)(); };
  if (!navigator.cookieEnabled) stop(o.cookies, leave);
  else if (o.m) { button.hidden = false; say(''); }
  else if (often()) stop(o.often, start);
  else start();
})();
