// Uploads whose chain lacks intermediates: completed from the CA where the outbound policy allows, else saved with a warning.
import 'reflect-metadata';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { X509Certificate as X509, X509Certificates } from '@peculiar/x509';
import test from 'ava';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { Api, type Body } from '../helpers/resources.ts';
import {
  type TestAuthority,
  type TestCertificate,
  testAuthority,
  testCertificate,
} from '../helpers/site-certificates.ts';

type Files = Record<string, { status?: number; body: Buffer | string; headers?: Record<string, string> } | 'silent'>;

const files: Files = {};
const asked: string[] = [];
const server = createServer((request, response) => {
  asked.push(request.url ?? '');
  const file = files[request.url ?? ''];
  if (file === 'silent') return;
  response.writeHead(file?.status ?? (file ? 200 : 404), file?.headers ?? {}).end(file?.body ?? '');
});

let running: TestConsole;
let closed: TestConsole;
let api: Api;
let base = '';
let made = 0;

test.before(async () => {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  running = await startTestConsole({ env: { SVC_OUTBOUND_ALLOW_CIDRS: '127.0.0.0/8' } });
  closed = await startTestConsole();
  api = new Api(running);
});
test.after.always(async () => {
  server.closeAllConnections();
  server.close();
  await closed?.stop();
  await running?.stop();
});

const derOf = ({ pem }: TestAuthority) => Buffer.from(new X509(pem).rawData);
const upload = ({ chainPem, privateKeyPem }: TestCertificate, at = api): Promise<Body> =>
  at.ok('POST', '/certificates/upload', { name: `chain-${made++}`, chainPem, privateKeyPem });
const subjects = ({ chain }: Body) => chain.slice(1).map(({ subject }: Body) => subject);
const incomplete = (issuer: string) => [
  {
    code: 'chain_incomplete',
    params: { issuer },
    message:
      `The chain ends before a CA that clients know: the certificate of ${issuer} is missing, and clients without it ` +
      'reject the certificate. Replace the certificate with its intermediates.',
  },
];

test('a certificate without its intermediate and without an address for it is saved with a warning', async (t) => {
  const middle = await testAuthority('Middle A', await testAuthority('Root A'));
  const saved = await upload(await testCertificate([`a${made}.example`], { issuer: middle }));
  t.like(saved, { status: 'ready', warnings: incomplete('CN=Middle A') });
  t.deepEqual((await api.ok('GET', `/certificates/${saved.id}`)).warnings, saved.warnings);
});

test('a chain with its intermediate, and a self-signed certificate, have no warning', async (t) => {
  const middle = await testAuthority('Middle B', await testAuthority('Root B'));
  const given = await testCertificate([`b${made}.example`], { issuer: middle, between: [middle] });
  t.deepEqual((await upload(given)).warnings, []);
  t.deepEqual((await upload(await testCertificate([`self${made}.example`]))).warnings, []);
});

const FORMS: Record<string, (middle: TestAuthority) => Buffer | string> = {
  DER: derOf,
  PEM: ({ pem }) => pem,
  'a PKCS #7 bundle': ({ pem }) => Buffer.from(new X509Certificates([new X509(pem)]).export('raw')),
};
for (const [form, bodyOf] of Object.entries(FORMS)) {
  test(`the intermediate is added from the address in the certificate, in ${form}`, async (t) => {
    const path = `/middle-${form.replaceAll(/\W/g, '')}`;
    const middle = await testAuthority(`Middle ${form}`, await testAuthority('Root C'));
    files[path] = { body: bodyOf(middle) };
    const saved = await upload(
      await testCertificate([`c${made}.example`], { issuer: middle, issuerUrl: `${base}${path}` }),
    );
    t.deepEqual([subjects(saved), saved.warnings], [[`CN=Middle ${form}`], []]);
  });
}

test('several intermediates are added, and the root is not', async (t) => {
  const root = await testAuthority('Root D');
  const upper = await testAuthority('Upper D', root, { issuerUrl: `${base}/root-d` });
  const lower = await testAuthority('Lower D', upper, { issuerUrl: `${base}/upper-d` });
  files['/root-d'] = { body: derOf(root) };
  files['/upper-d'] = { body: derOf(upper) };
  files['/lower-d'] = { body: derOf(lower) };
  const given = await testCertificate([`d${made}.example`], { issuer: lower, issuerUrl: `${base}/lower-d` });
  const saved = await upload(given);
  t.deepEqual(subjects(saved), ['CN=Lower D', 'CN=Upper D']);
  const replaced = await api.ok('PUT', `/certificates/${saved.id}`, {
    chainPem: given.chainPem,
    privateKeyPem: given.privateKeyPem,
  });
  t.deepEqual(subjects(replaced), ['CN=Lower D', 'CN=Upper D']);
});

test('what the address answers is added only when it issued the certificate', async (t) => {
  const other = await testAuthority('Middle E', await testAuthority('Root E'));
  const leaf = await testCertificate(['leaf.example']);
  const bad: Files = {
    '/other': { body: derOf(other) },
    '/leaf': { body: leaf.pem },
    '/text': { body: 'no certificate' },
    '/empty': { body: '' },
    '/gone': { status: 404, body: derOf(other) },
    '/moved': { status: 302, body: '', headers: { location: `${base}/other` } },
    '/large': { body: Buffer.alloc(70_000, '-----BEGIN CERTIFICATE-----') },
  };
  Object.assign(files, bad);
  for (const path of [...Object.keys(bad), '/absent']) {
    const middle = await testAuthority('Middle E');
    const unlisted = await testAuthority('Middle E2', middle);
    const given = await testCertificate([`e${made}.example`], { issuer: unlisted, issuerUrl: `${base}${path}` });
    const saved = await upload(given);
    t.deepEqual([subjects(saved), saved.warnings], [[], incomplete('CN=Middle E2')], path);
  }
});

test('an address that does not answer, or that is no web address, delays the upload by a bounded time', async (t) => {
  files['/silent'] = 'silent';
  const middle = await testAuthority('Middle F', await testAuthority('Root F'));
  for (const issuerUrl of [`${base}/silent`, 'ldap://127.0.0.1/cn=a', 'http://user:secret@127.0.0.1/', 'not a URL']) {
    const saved = await upload(await testCertificate([`f${made}.example`], { issuer: middle, issuerUrl }));
    t.deepEqual(saved.warnings, incomplete('CN=Middle F'), issuerUrl);
  }
});

test('an intermediate whose address names itself is fetched a bounded number of times', async (t) => {
  const a = await testAuthority('Loop', undefined, { issuerUrl: `${base}/loop` });
  files['/loop'] = { body: derOf(a) };
  const given = await testCertificate([`g${made}.example`], { issuer: a, issuerUrl: `${base}/loop` });
  await upload(given);
  t.is(asked.filter((path) => path === '/loop').length, 1);
});

test('without an allowance, private addresses are not asked', async (t) => {
  const middle = await testAuthority('Middle H', await testAuthority('Root H'));
  files['/middle-h'] = { body: derOf(middle) };
  const given = await testCertificate([`h${made}.example`], { issuer: middle, issuerUrl: `${base}/middle-h` });
  const saved = await upload(given, new Api(closed));
  t.deepEqual([subjects(saved), saved.warnings], [[], incomplete('CN=Middle H')]);
  t.false(asked.includes('/middle-h'));
});
