// Runs before the first paint: theme and language, so that nothing flashes. Kept without imports.
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
})();
