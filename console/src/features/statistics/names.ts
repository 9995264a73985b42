// What the names of dimensions are called. Products keep their names in every language.
const PRODUCTS: Readonly<Record<string, string>> = {
  chrome: 'Chrome',
  edge: 'Edge',
  safari: 'Safari',
  firefox: 'Firefox',
  opera: 'Opera',
  samsung: 'Samsung Internet',
  yandex: 'Yandex',
  uc: 'UC Browser',
  qq: 'QQ Browser',
  wechat: 'WeChat',
  ie: 'Internet Explorer',
  windows: 'Windows',
  macos: 'macOS',
  ios: 'iOS',
  android: 'Android',
  linux: 'Linux',
  chromeos: 'ChromeOS',
  harmonyos: 'HarmonyOS',
};
const WORDS = ['desktop', 'mobile', 'tablet', 'crawler', 'other', 'none', 'webview'] as const;
const PREFIX: Readonly<Record<string, string>> = { httpVersions: 'HTTP/', tlsVersions: 'TLS ' };

/** The text of a name of a list; block reasons are words of the API. */
export function nameText(list: string, name: string, t: (key: string) => string): string {
  if (list === 'blockReasons') return name;
  const word = WORDS.find((known) => known === name);
  if (word) return t(`statistics.name.${word}`);
  return PRODUCTS[name] ?? `${PREFIX[list] ?? ''}${name}`;
}
