import test from 'ava';
import { parseServerUrl } from '../../../../agents/kit/pinned-tls.ts';

const ADDRESSES: [text: string, url: string, host: string, port: number][] = [
  ['https://console.example', 'https://console.example:443', 'console.example', 443],
  ['https://console.example/', 'https://console.example:443', 'console.example', 443],
  ['https://console.example:443', 'https://console.example:443', 'console.example', 443],
  ['https://console.example:8443', 'https://console.example:8443', 'console.example', 8443],
  ['https://[2001:db8::1]:9000', 'https://[2001:db8::1]:9000', '2001:db8::1', 9000],
];
for (const [text, url, host, port] of ADDRESSES) {
  test(`${text} is ${url}`, (t) => t.deepEqual(parseServerUrl(text), { url, host, port, serverName: host }));
}

for (const text of ['console.example', 'http://console.example', 'https://u@console.example', 'https://c.example/x']) {
  test(`${text} is refused`, (t) => t.throws(() => parseServerUrl(text), { instanceOf: TypeError }));
}
