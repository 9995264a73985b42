import test from 'ava';
import { errorCodeOf } from '../../../../contract/errors.ts';
import { toAddress } from '../../../../models/nodes/node-channel-setting.ts';
import { bareHttpsOrigin } from '../../../../services/node-channel-settings/settings.ts';

test('an address is saved as its origin', (t) => {
  t.is(bareHttpsOrigin('https://Edge.Example:8443'), 'https://edge.example:8443');
  t.is(bareHttpsOrigin('https://edge.example/'), 'https://edge.example');
  t.is(bareHttpsOrigin('https://edge.example:443'), 'https://edge.example');
  t.is(bareHttpsOrigin('https://[2001:DB8::1]:8443'), 'https://[2001:db8::1]:8443');
});

test('anything beyond https, host and port is refused', (t) => {
  const bad = [
    'http://edge.example',
    'edge.example:8443',
    'https://',
    'https://edge.example/path',
    'https://edge.example?',
    'https://edge.example/?a=b',
    'https://edge.example#',
    'https://edge.example/#a',
    'https://a@edge.example',
    'https://a:b@edge.example',
    'https://edge.example:0',
    'https://edge.example:65536',
    'https://edge.example:',
    ' https://edge.example',
    'https://edge.example\n',
    'https:\\\\edge.example',
    'https://edge.example\\path',
    'https://300.1.1.1',
    'https://[::1',
    'wss://edge.example',
  ];
  for (const text of bad) {
    const error = t.throws(() => bareHttpsOrigin(text), undefined, text);
    t.is(errorCodeOf(error), 'BAD_REQUEST', text);
  }
});

test('a saved address wins over the environment, which wins over the public host', (t) => {
  const env = { publicUrl: 'https://console.example', nodeApiUrl: 'https://edge.example:9443' };
  t.like(toAddress({ url: 'https://saved.example' }, env), {
    url: 'https://saved.example',
    effectiveUrl: 'https://saved.example',
    source: 'setting',
  });
  t.like(toAddress({ url: '' }, env), { url: '', effectiveUrl: 'https://edge.example:9443', source: 'environment' });
  t.like(toAddress({}, { ...env, nodeApiUrl: null }), {
    url: '',
    effectiveUrl: 'https://console.example:8443',
    source: 'default',
  });
});
