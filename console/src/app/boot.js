// Runs before the first paint: theme and language, so that nothing flashes, and words where the Web UI itself does not
// load. Kept without imports.
(() => {
  const root = document.documentElement;
  const stored = (key) => {
    try {
      return localStorage.getItem(key);
    } catch {
      return null;
    }
  };
  const theme = stored('svc.theme');
  const dark = theme === 'dark' || (theme !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches);
  root.classList.toggle('dark', dark);
  root.dataset.density = stored('svc.density') === 'compact' ? 'compact' : 'comfortable';
  const chosen = stored('svc.language');
  // The first of the languages there are, whatever others somebody reads better.
  const known = (navigator.languages ?? []).find((language) => /^(zh|en)(-|$)/i.test(language)) ?? 'en';
  root.lang = chosen === 'en' || chosen === 'zh-CN' ? chosen : /^zh/i.test(known) ? 'zh-CN' : 'en';

  const chinese = root.lang === 'zh-CN';
  // Loads the page again, once in a minute: a browser ends all requests when the network of its machine changes.
  const retry = () => {
    try {
      if (Date.now() - Number(sessionStorage.getItem('svc.retried')) < 60_000) return false;
      sessionStorage.setItem('svc.retried', String(Date.now()));
    } catch {
      return false;
    }
    location.reload();
    return true;
  };
  const tellFailure = () => {
    const app = document.getElementById('app');
    if (!app || app.childElementCount > 0 || retry()) return;
    const text = document.createElement('p');
    text.textContent = chinese ? '控制台页面未能加载。' : 'The console did not load.';
    const button = document.createElement('button');
    button.textContent = chinese ? '重试' : 'Try again';
    button.addEventListener('click', () => location.reload());
    const note = document.createElement('main');
    note.setAttribute('role', 'alert');
    note.append(text, button);
    app.append(note);
  };
  window.addEventListener('error', ({ target }) => target instanceof HTMLScriptElement && tellFailure(), true);
  window.addEventListener('svc-start-failed', tellFailure);
})();
