import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import test from 'ava';
import { installScript } from '../../../../services/api-gateway/install-script.ts';

const PLACE = '@CONSOLE_URL@';
const installer = readFileSync(new URL('../../../../services/api-gateway/install.sh', import.meta.url), 'utf8');

for (const url of [
  'https://console.example',
  'https://console.example:8443',
  'http://[::1]:3000',
  'http://127.0.0.1:1',
])
  test(`${url} is put into the installer, once and between quotes`, (t) => {
    const script = installScript(url);
    t.is(script, installer.replace(`CONSOLE_URL='${PLACE}'`, `CONSOLE_URL='${url}'`));
    t.notThrows(() => execFileSync('sh', ['-n'], { input: script }));
  });

for (const url of [
  "https://a'b",
  'https://$(id)',
  'https://`id`',
  'https://a b',
  'https://a\nid',
  'https://a;id',
  'https://a/path',
  'https://a?b',
  'https://user@a',
  'https://a:123456',
  'ftp://a',
  '',
])
  test(`${JSON.stringify(url)} is not put into a script`, (t) => {
    t.throws(() => installScript(url), { instanceOf: TypeError });
  });

test('a script that arrived in part does nothing', (t) => {
  const lines = installScript('https://console.example').split('\n');
  for (let count = 1; count < lines.length - 2; count += 7) {
    const part = lines.slice(0, count).join('\n');
    try {
      const told = execFileSync('sh', [], { input: part, encoding: 'utf8', stdio: ['pipe', 'pipe', 'ignore'] });
      t.is(told, '', `${count} lines`);
    } catch (error) {
      // Cut inside a function: the shell refuses it.
      t.is((error as { status: number; stdout: string }).stdout, '', `${count} lines`);
    }
  }
});
