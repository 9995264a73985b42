import test from 'ava';
import { addressWarnings } from '../../../../services/enrollment/address-warnings.ts';

const CASES: readonly (readonly [string, string, readonly string[]])[] = [
  ['https://console.example', 'https://edge.example:8443', []],
  [
    'http://localhost:3000',
    'https://localhost:8443',
    ['console_url_local', 'console_url_insecure', 'node_api_url_local'],
  ],
  ['https://[::1]', 'https://127.0.0.2', ['console_url_local', 'node_api_url_local']],
  ['https://10.0.0.1', 'https://[fd00::1]:8443', ['console_url_private', 'node_api_url_private']],
  ['https://demo.localhost', 'https://8.8.8.8', ['console_url_local']],
];

test('addresses that only some machines reach are warned of', (t) => {
  for (const [consoleUrl, nodeApiUrl, warnings] of CASES)
    t.deepEqual(addressWarnings(consoleUrl, nodeApiUrl), warnings);
});
