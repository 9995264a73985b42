import { createPrivateKey, X509Certificate } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { ContractError } from '../../../../contract/errors.ts';
import { checkChain, readAuthorities } from '../../../../models/certificates/certificate-check.ts';
import { type TestKey, testAuthority, testCertificate } from '../../../helpers/site-certificates.ts';

// Made by OpenSSL with -param_enc explicit, which nothing here can make; valid for a hundred years.
const SPELT_OUT_KEY = `-----BEGIN EC PRIVATE KEY-----
MIIBaAIBAQQg/JqZCn8rKrLomRJPqKIuGRWK8IwuQzADfAGOKpdwG8eggfowgfcC
AQEwLAYHKoZIzj0BAQIhAP////8AAAABAAAAAAAAAAAAAAAA////////////////
MFsEIP////8AAAABAAAAAAAAAAAAAAAA///////////////8BCBaxjXYqjqT57Pr
vVV2mIa8ZR0GsMxTsPY7zjw+J9JgSwMVAMSdNgiG5wSTamZ44ROdJreBn36QBEEE
axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54W
K84zV2sxXs7LtkBoN79R9QIhAP////8AAAAA//////////+85vqtpxeehPO5ysL8
YyVRAgEBoUQDQgAE/1auV0DuFerZCy3z5WMazhrlJ1K118uGKuKZNelD+FOCzb39
QgdDDiE9LH/gxjMvObiD1OOI11zZtm4eMDbDpg==
-----END EC PRIVATE KEY-----`;
const SPELT_OUT = `-----BEGIN CERTIFICATE-----
MIIChTCCAiygAwIBAgIUExjvPfQFvkM+GhsZCDtNodA9AlowCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJYS5leGFtcGxlMCAXDTI2MTEyMzE5MjMzNFoYDzIxMjYxMDMw
MTkyMzM0WjAUMRIwEAYDVQQDDAlhLmV4YW1wbGUwggFLMIIBAwYHKoZIzj0CATCB
9wIBATAsBgcqhkjOPQEBAiEA/////wAAAAEAAAAAAAAAAAAAAAD/////////////
//8wWwQg/////wAAAAEAAAAAAAAAAAAAAAD///////////////wEIFrGNdiqOpPn
s+u9VXaYhrxlHQawzFOw9jvOPD4n0mBLAxUAxJ02CIbnBJNqZnjhE50mt4GffpAE
QQRrF9Hy4SxCR/i85uVjpEDydwN9gS3rM6D0oTlF2JjClk/jQuL+Gn+bjufrSnwP
nhYrzjNXazFezsu2QGg3v1H1AiEA/////wAAAAD//////////7zm+q2nF56E87nK
wvxjJVECAQEDQgAE/1auV0DuFerZCy3z5WMazhrlJ1K118uGKuKZNelD+FOCzb39
QgdDDiE9LH/gxjMvObiD1OOI11zZtm4eMDbDpqNmMGQwHQYDVR0OBBYEFGvbxAfh
ch1Z377fL9ThWHHHnrZJMB8GA1UdIwQYMBaAFGvbxAfhch1Z377fL9ThWHHHnrZJ
MBQGA1UdEQQNMAuCCWEuZXhhbXBsZTAMBgNVHRMBAf8EAjAAMAoGCCqGSM49BAMC
A0cAMEQCIDRRWNvgNIQLKEMSsDnwyvMowkkPmyp8R3YTs6teHyxMAiApH6Ji2etj
tJfZEMJWcGUXgCfK42t+Jh4JoSaAuW5qdA==
-----END CERTIFICATE-----`;
const WITH_PARAMETERS_KEY = `-----BEGIN EC PARAMETERS-----
BggqhkjOPQMBBw==
-----END EC PARAMETERS-----
-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIDMU1NLNo8mjpHwCrlUvYUux8KjwS+dnGIzOvO46yKnOoAoGCCqGSM49
AwEHoUQDQgAEO/tmdNEUY0tQZ9TpYoSEJbjSVbt6xfplcNpN0COxHwE++y94399G
FzyWqTe9HcO9KEwVChN8KdaBtgApxebV+A==
-----END EC PRIVATE KEY-----`;
const WITH_PARAMETERS = `-----BEGIN CERTIFICATE-----
MIIBkzCCATigAwIBAgIUP4ZVUfLSVwxfsGyoNxs+jiIfvqgwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJYS5leGFtcGxlMCAXDTI2MTEyMzE5MjMzNFoYDzIxMjYxMDMw
MTkyMzM0WjAUMRIwEAYDVQQDDAlhLmV4YW1wbGUwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQ7+2Z00RRjS1Bn1OlihIQluNJVu3rF+mVw2k3QI7EfAT77L3jf30YX
PJapN70dw70oTBUKE3wp1oG2ACnF5tX4o2YwZDAdBgNVHQ4EFgQU4iRMSkqFu4oD
HMbN493QpV2KfNkwHwYDVR0jBBgwFoAU4iRMSkqFu4oDHMbN493QpV2KfNkwFAYD
VR0RBA0wC4IJYS5leGFtcGxlMAwGA1UdEwEB/wQCMAAwCgYIKoZIzj0EAwIDSQAw
RgIhAMDjUar+n2WZ3qvIc2EGwgcYYCU1YK2eB3f3OhUysR1VAiEArdy38bLklhYZ
Ad55Tc15ZZFGl2/mymhddwKwg1wQf8w=
-----END CERTIFICATE-----`;

const DAY_MS = 86_400_000;
const now = new Date();

function refusal(t: ExecutionContext, chainPem: string, privateKeyPem: string): ContractError {
  const error = t.throws(() => checkChain(chainPem, privateKeyPem, now), { instanceOf: ContractError })!;
  // Nothing of what was sent comes back.
  for (const secret of [chainPem, privateKeyPem].flatMap((pem) => pem.split('\n').filter((line) => line.length > 40))) {
    t.false(JSON.stringify(error.data).includes(secret));
  }
  return error;
}

for (const key of ['p256', 'p384', 'p521', 'rsa'] as const satisfies TestKey[]) {
  test(`a chain with a key of the type ${key} is kept as it was read`, async (t) => {
    const root = await testAuthority('Root');
    const middle = await testAuthority('Middle', root);
    const names = ['Shop.example.net', '*.example.org', 'shop.example.net'];
    const { chainPem, privateKeyPem, fingerprint } = await testCertificate(names, {
      issuer: middle,
      between: [middle],
      key,
    });
    const given = `Bag Attributes\n  friendlyName: shop\n${chainPem}\n`;
    const material = checkChain(given, privateKeyPem, now);
    t.deepEqual(material.names, ['shop.example.net', '*.example.org']);
    t.is(material.keyType, key);
    t.is(material.issuer, 'CN=Middle');
    t.is(material.fingerprint.toString('hex'), fingerprint);
    t.is(material.chain.length, 2);
    t.is(new X509Certificate(material.chain[1]!).subject, 'CN=Middle');
    const kept = createPrivateKey({ key: material.privateKey, format: 'der', type: 'pkcs8' });
    t.true(new X509Certificate(material.chain[0]!).checkPrivateKey(kept));
  });
}

test('what is no chain, or not in order, is refused by what is wrong', async (t) => {
  const root = await testAuthority('Root');
  const middle = await testAuthority('Middle', root);
  const other = await testAuthority('Middle');
  const leaf = await testCertificate(['a.example'], { issuer: middle, between: [middle] });
  const key = leaf.privateKeyPem;
  const code = (chainPem: string) => {
    const { type, data } = refusal(t, chainPem, key);
    return [type, data];
  };
  t.deepEqual(code('nothing of the kind, and long enough for it'), ['CERTIFICATE_CHAIN_UNREADABLE', { index: 0 }]);
  t.deepEqual(code(leaf.chainPem.slice(0, -40)), ['CERTIFICATE_CHAIN_UNREADABLE', { index: 1 }]);
  t.deepEqual(code(`${leaf.pem}\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----`), [
    'CERTIFICATE_CHAIN_UNREADABLE',
    { index: 1 },
  ]);
  t.deepEqual(code(`${leaf.pem}\n${key}`), ['CERTIFICATE_CHAIN_FOREIGN_BLOCK', { label: 'PRIVATE KEY' }]);
  t.deepEqual(code(`${leaf.pem}\n${root.pem}`), ['CERTIFICATE_CHAIN_ORDER', { index: 1 }]);
  t.deepEqual(code(`${leaf.pem}\n${other.pem}`), ['CERTIFICATE_CHAIN_ORDER', { index: 1 }]);
  t.deepEqual(code(`${middle.pem}\n${leaf.pem}`), ['CERTIFICATE_INVALID', { reason: 'authority', index: 0 }]);
  t.deepEqual(code(`${leaf.pem}\n${leaf.pem}`), ['CERTIFICATE_INVALID', { reason: 'not_authority', index: 1 }]);
  t.deepEqual(code(Array(11).fill(leaf.pem).join('\n')), ['CERTIFICATE_INVALID', { reason: 'too_long', limit: 10 }]);
});

test('a certificate that no browser takes is refused', async (t) => {
  const code = async (names: string[], wanted: Parameters<typeof testCertificate>[1]) => {
    const { chainPem, privateKeyPem } = await testCertificate(names, wanted);
    const { type, data } = refusal(t, chainPem, privateKeyPem);
    return [type, data];
  };
  t.deepEqual(await code(['a.example'], { authority: true }), [
    'CERTIFICATE_INVALID',
    { reason: 'authority', index: 0 },
  ]);
  t.deepEqual(await code([], {}), ['CERTIFICATE_NO_DNS_NAMES', {}]);
  const [begun, ended] = [-90, -1].map((days) => new Date(Math.floor(now.getTime() / 1000) * 1000 + days * DAY_MS));
  t.deepEqual(await code(['a.example'], { notBefore: begun!, notAfter: ended! }), [
    'CERTIFICATE_NOT_CURRENTLY_VALID',
    { notBefore: begun!.toISOString(), notAfter: ended!.toISOString() },
  ]);
  const [type] = await code(['a.example'], { notBefore: new Date(now.getTime() + DAY_MS) });
  t.is(type, 'CERTIFICATE_NOT_CURRENTLY_VALID');
  t.deepEqual(await code(['a.example'], { key: 'rsa1024' }), [
    'CERTIFICATE_KEY_TYPE_UNSUPPORTED',
    { type: 'rsa', bits: 1024 },
  ]);
  t.deepEqual(await code(['a.example'], { key: 'ed25519' }), ['CERTIFICATE_KEY_TYPE_UNSUPPORTED', { type: 'ed25519' }]);
});

test('a key has to be there once, open, and that of the certificate', async (t) => {
  const one = await testCertificate(['a.example']);
  const other = await testCertificate(['a.example']);
  const code = (key: string) => refusal(t, one.chainPem, key).type;
  const opened = createPrivateKey(one.privateKeyPem);
  const locked = opened.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' }).toString();
  t.is(code(other.privateKeyPem), 'CERTIFICATE_KEY_MISMATCH');
  t.is(code(locked), 'CERTIFICATE_KEY_UNREADABLE');
  t.is(code(one.chainPem), 'CERTIFICATE_KEY_UNREADABLE');
  t.is(code(one.privateKeyPem + other.privateKeyPem), 'CERTIFICATE_KEY_UNREADABLE');
  t.is(code('-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----'), 'CERTIFICATE_KEY_UNREADABLE');
  const old = opened.export({ type: 'sec1', format: 'pem' }).toString();
  t.is(checkChain(one.chainPem, old, now).fingerprint.toString('hex'), one.fingerprint);
});

test('a curve that is spelt out is refused, in certificates and keys', async (t) => {
  const named = await testCertificate(['a.example']);
  t.is(refusal(t, SPELT_OUT, SPELT_OUT_KEY).type, 'CERTIFICATE_CHAIN_EXPLICIT_CURVE');
  t.is(refusal(t, named.chainPem, SPELT_OUT_KEY).type, 'CERTIFICATE_KEY_EXPLICIT_CURVE');
  t.is(readAuthorities(SPELT_OUT, 1), 'not_authority');
  // As OpenSSL writes a key with its curve before it.
  t.is(checkChain(WITH_PARAMETERS, WITH_PARAMETERS_KEY, now).keyType, 'p256');
});

test('authorities of clients are read whole or not at all', async (t) => {
  const [one, two] = [await testAuthority('One'), await testAuthority('Two')];
  const leaf = await testCertificate(['a.example']);
  t.is(readAuthorities(`${one.pem}\n${two.pem}`, 2).length, 2);
  t.is(readAuthorities(`${one.pem}\n${two.pem}`, 1), 'too_many');
  t.is(readAuthorities('', 2), 'none');
  t.is(readAuthorities(`${one.pem}\n${leaf.pem}`, 2), 'not_authority');
  t.is(readAuthorities(`${one.pem}\n${leaf.privateKeyPem}`, 2), 'foreign_block');
  t.is(readAuthorities('-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----', 2), 'unreadable');
});
