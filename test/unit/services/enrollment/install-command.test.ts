import { execFileSync } from 'node:child_process';
import test from 'ava';
import { installCommand } from '../../../../services/enrollment/install-command.ts';

const TOKEN = 'ewt_abc-DEF_123';

test('the command runs the installer of this console with everything a node needs', (t) => {
  t.is(
    installCommand({
      consoleUrl: 'https://c.example',
      serverUrl: 'https://e.example:8443',
      caSha256: 'ab',
      token: TOKEN,
    }),
    `curl -fsSL https://c.example/install.sh | SVC_TOKEN=${TOKEN} sh -s -- --server https://e.example:8443 --ca-sha256 ab`,
  );
});

for (const hostile of [
  'https://[::1]:8443',
  "https://a';touch x;'",
  'https://$(id)',
  'https://`id`',
  'https://a b',
  'https://a&b',
])
  test(`${hostile} is one word to the shell`, (t) => {
    const command = installCommand({ consoleUrl: hostile, serverUrl: hostile, caSha256: 'ab', token: TOKEN });
    const stand = 'curl() { printf "%s\\n" "$@" >&2; }; sh() { cat; printf "%s\\n" "$SVC_TOKEN" "$@" >&2; }';
    const told = execFileSync('sh', ['-c', `{ ${stand}; ${command}; } 2>&1 | sort`], { encoding: 'utf8' });
    const words = ['-fsSL', `${hostile}/install.sh`, TOKEN, '-s', '--', '--server', hostile, '--ca-sha256', 'ab'];
    t.deepEqual(told.trimEnd().split('\n').sort(), words.sort());
  });
