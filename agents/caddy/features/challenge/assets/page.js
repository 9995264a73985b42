(function () {
  var d = document, id = function (x) { return d.getElementById(x); }, o = id('o').dataset, button = id('b'), answer = '', retry;
  function say(text) { id('s').textContent = text; }
  function bar(part) {
    id('i').style.width = part * 100 + '%';
    id('p').setAttribute('aria-valuenow', Math.round(part * 100));
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
  // HERE: begin() finds the answer, dismiss() ends what still looks for it.
  function start() {
    id('e').hidden = button.hidden = true;
    answer = '';
    say(o.working);
    bar(0);
    begin();
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
  else if (o.n) stop(o.n, start);
  else if (often()) stop(o.often, start);
  else start();
})();
