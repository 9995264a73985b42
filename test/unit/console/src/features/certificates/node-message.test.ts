import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { root } from '../../../../../../bin/lib/root.ts';
import { NODE_FAULTS, nodeFault } from '../../../../../../console/src/features/certificates/node-message.ts';
import { LANGUAGES, messages } from '../../../../../helpers/console-sources.ts';

test('what the edge says of a certificate is known, with its name', (t) => {
  t.deepEqual(nodeFault('certificate "Shop": the pack does not have this certificate'), {
    name: 'Shop',
    fault: 'noMaterial',
  });
  t.deepEqual(nodeFault(String.raw`certificate "a \"b\" \\ c": cannot read the private key`), {
    name: 'a "b" \\ c',
    fault: 'keyForm',
  });
  t.deepEqual(nodeFault('certificate "x": cannot read the certificate: x509: malformed certificate'), {
    name: 'x',
    fault: 'unreadable',
  });
  t.is(nodeFault('the cipher profile is unknown'), null);
  t.is(nodeFault('certificate "x": something new'), null);
});

test('the edge says nothing of a certificate that has no words in a language', (t) => {
  const folder = join(root, 'agents/caddy/features/handshake');
  const source = readdirSync(folder)
    .filter((name) => name.endsWith('.go') && !name.endsWith('_test.go'))
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('\n');
  const said = [
    ...source.matchAll(
      /\b(?:errNoMaterial|errNoChain|errOtherLeaf|errKeyForm|errKeyMismatch|errPanicked)\s*=\s*errors\.New\("([^"]+)"\)/g,
    ),
  ];
  t.deepEqual(said.map(([, text]) => text!).sort(), Object.keys(NODE_FAULTS).sort());
  for (const language of LANGUAGES) {
    for (const fault of Object.values(NODE_FAULTS))
      t.true(messages(language).has(`certificates.nodes.fault.${fault}`), fault);
  }
});
