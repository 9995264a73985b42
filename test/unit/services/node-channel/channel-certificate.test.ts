import test from 'ava';
import { certificateNames } from '../../../../services/node-channel/channel-certificate.ts';

test('the certificate names the channel, this machine, and nothing twice', (t) => {
  t.deepEqual(certificateNames(['edge.example', '2001:db8::1', 'localhost', 'edge.example'], 'Host-1'), [
    'edge.example',
    '2001:db8::1',
    'localhost',
    '127.0.0.1',
    '::1',
    'host-1',
  ]);
});

test('names that no certificate can hold are left out', (t) => {
  t.deepEqual(certificateNames(['a b', '*.x', ''], 'host name'), ['localhost', '127.0.0.1', '::1']);
});
