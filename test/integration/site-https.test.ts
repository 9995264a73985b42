// HTTPS and compression of sites through /api/v1: what is taken and kept, what nodes get of it, and what a rollback brings
// back.
import { fromBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { DEFAULT_COMPRESSION, DEFAULT_HTTPS } from '../../contract/resources/site-https.ts';
import { SiteCompressionSchema, SiteHttpsSchema } from '../../proto/gen/svc/config/v1/https_pb.js';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { Api, type Body } from '../helpers/resources.ts';
import { type TestCertificate, testCertificate } from '../helpers/site-certificates.ts';

let running: TestConsole;
let api: Api;
let made = 0;

test.before(async () => {
  running = await startTestConsole();
  api = new Api(running);
});
test.after.always(() => running?.stop());

async function upload(certificate: TestCertificate, name = `certificate-${made++}`): Promise<Body> {
  const { chainPem, privateKeyPem } = certificate;
  return api.ok('POST', '/certificates/upload', { name, chainPem, privateKeyPem });
}

/** A site in a cluster of its own. */
async function newSite(...more: string[]) {
  const name = `secure-${made++}`;
  const clusterId = await api.cluster(name);
  const main = `${name}.example`;
  const domains = [main, ...more.map((prefix) => `${prefix}${main}`)];
  const site = await api.site(clusterId, main, { domains });
  const path = `/sites/${site.id}/https`;
  return {
    id: site.id as string,
    main,
    clusterId,
    path,
    createdAt: site.createdAt as string,
    read: (): Promise<Body> => api.ok('GET', path),
    put: (settings: Body, rest: Body = {}): Promise<Body> => api.ok('PUT', path, { settings, ...rest }),
    refused: (t: Parameters<Api['refused']>[0], status: number, code: string, settings: Body, rest: Body = {}) =>
      api.refused(t, [status, code], 'PUT', path, { settings, ...rest }),
    async https() {
      const body = await api.entry(clusterId, 'site-https', site.id);
      return body ? fromBinary(SiteHttpsSchema, body) : null;
    },
    async compression() {
      const body = await api.entry(clusterId, 'site-compression', site.id);
      return body ? fromBinary(SiteCompressionSchema, body) : null;
    },
  };
}

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

test('a site has HTTP only, gets a certificate, and loses it again', async (t) => {
  const site = await newSite();
  const first = await site.read();
  t.deepEqual(first.settings, { ...DEFAULT_HTTPS, ...DEFAULT_COMPRESSION });
  t.is(first.updatedAt, site.createdAt);
  t.is(await site.https(), null);
  t.is(await site.compression(), null);
  const given = await testCertificate([site.main]);
  const { id, name } = await upload(given);
  const saved = await site.put({ certificateId: id, http3: true });
  t.regex(saved.revision, /^\d+$/);
  t.deepEqual(
    saved.certificates.map((one: Body) => [one.id, one.names]),
    [[id, [site.main]]],
  );
  const entry = (await site.https())!;
  t.deepEqual(
    entry.certificates.map((one) => [one.certificateId, hex(one.fingerprint), one.name]),
    [[id, given.fingerprint, name]],
  );
  t.true(entry.http3);
  t.is((await site.put({ certificateId: id, http3: true })).revision, null);
  t.like(await site.put({}), { settings: { certificateId: null, http3: false } });
  t.is(await site.https(), null);
});
