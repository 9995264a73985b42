import { createHash, X509Certificate } from 'node:crypto';
import test from 'ava';
import { createCertificateRequest } from '../../agents/kit/certificate-request.ts';
import { fetchPinnedAuthority, parseServerUrl } from '../../agents/kit/pinned-tls.ts';
import { Connection } from '../../bench/fleet/connection.ts';
import { systemCall } from '../../runtime/call.ts';
import { write } from '../../runtime/write.ts';
import { requestWith } from '../helpers/certificates.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { newToken } from '../helpers/fleet.ts';
import { Api, type Body } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let clusterId: string;
let connection: Connection;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
  clusterId = await api.cluster('enrolled');
  const { caSha256 } = await newToken(running, { clusterId });
  connection = new Connection(
    running.nodeApiUrl,
    await fetchPinnedAuthority(parseServerUrl(running.nodeApiUrl), caSha256),
  );
});
test.after.always('stop', async () => {
  connection?.destroy();
  await running?.stop();
});

const MISSING = '01a00000-0000-7000-8000-000000000000';

async function enroll(token: string, more: Body = {}): Promise<Body> {
  const { csrPem } = await createCertificateRequest('test');
  return connection.call('enroll', { token, csrPem, info: { hostname: 'host-1', features: ['bans-v1'] }, ...more });
}

test('a token is answered once with everything a node needs; only its hash is kept', async (t) => {
  const before = Date.now();
  const created = await api.ok('POST', '/enrollment-tokens', { clusterId, ttlMinutes: 5 });
  t.regex(created.token, /^ewt_[A-Za-z0-9_-]{43}$/);
  t.regex(created.caSha256, /^[0-9a-f]{64}$/);
  t.is(created.serverUrl, 'https://localhost:8443');
  t.true(created.installCommand.includes(created.token) && created.installCommand.includes(created.caSha256));
  t.deepEqual(created.warnings, [
    'console_url_local',
    'console_url_insecure',
    'node_api_url_local',
    'node_package_missing',
  ]);
  const left = Date.parse(created.expiresAt) - before;
  t.true(left > 4 * 60_000 && left < 6 * 60_000);
  const [row] = await api.sql('enrollment_token').where({ id: created.tokenId });
  t.true(createHash('sha256').update(created.token).digest().equals(row.secret_hash));
  t.false(JSON.stringify(row).includes(created.token));
  const audits = JSON.stringify(await api.audit(clusterId));
  t.true(audits.includes('enrollment_token.create') && !audits.includes(created.token));
  t.deepEqual(await api.ok('GET', `/enrollment-tokens/${created.tokenId}`), {
    tokenId: created.tokenId,
    clusterId,
    expiresAt: created.expiresAt,
    usedAt: null,
    node: null,
  });
});

test('errors of tokens', async (t) => {
  const path = '/enrollment-tokens';
  await api.refused(t, [404, 'CLUSTER_NOT_FOUND'], 'POST', path, { clusterId: MISSING });
  await api.refused(t, [404, 'NODE_GROUP_NOT_FOUND'], 'POST', path, { clusterId, nodeGroupId: MISSING });
  const foreign = await api.ok('POST', '/node-groups', { clusterId: await api.cluster('elsewhere'), name: 'x' });
  await api.refused(t, [400, 'NODE_GROUP_CLUSTER_MISMATCH'], 'POST', path, { clusterId, nodeGroupId: foreign.id });
  for (const ttlMinutes of [4, 10_081, 1.5, '60'])
    await api.badField(t, '/ttlMinutes', 'POST', path, { clusterId, ttlMinutes });
  await api.badField(t, '/nodeName', 'POST', path, { clusterId, nodeName: 'n'.repeat(65) });
  await api.refused(t, [404, 'ENROLLMENT_TOKEN_NOT_FOUND'], 'GET', `${path}/${MISSING}`);
  const answer = await api.call('POST', path, { clusterId }, { 'idempotency-key': 'k' });
  t.is(answer.body.code, 'IDEMPOTENCY_KEY_UNSUPPORTED');
});

test('a node enrolls into the cluster, group and name of its token', async (t) => {
  const group = await api.ok('POST', '/node-groups', { clusterId, name: 'bound' });
  const { tokenId, token } = await newToken(running, { clusterId, nodeGroupId: group.id, nodeName: 'given' });
  const answer = await enroll(token);
  t.is(answer.clusterId, clusterId);
  t.is(answer.nodeName, 'given');
  t.like(await api.ok('GET', `/nodes/${answer.nodeId}`), {
    name: 'given',
    clusterId,
    nodeGroupId: group.id,
    hostname: 'host-1',
    status: 'active',
    online: false,
    lastSeenAt: null,
    remoteAddress: '127.0.0.1',
    appliedRevision: null,
    applyState: 'applying',
  });
  const progress = await api.ok('GET', `/enrollment-tokens/${tokenId}`);
  t.like(progress.node, { id: answer.nodeId, name: 'given', online: false, applied: false });
  t.not(progress.usedAt, null);
  t.deepEqual(await api.audit(answer.nodeId), [
    { action: 'node.enroll', metadata: { clusterId, tokenId }, actorType: 'node' },
  ]);
});

test('the certificate: subject, purpose, dates, authority', async (t) => {
  const { token } = await newToken(running, { clusterId });
  const answer = await enroll(token);
  t.is(answer.nodeName, 'host-1');
  const certificate = new X509Certificate(answer.certificatePem);
  const authority = new X509Certificate(answer.caCertificatePem);
  t.true(certificate.verify(authority.publicKey));
  t.is(certificate.subject, `CN=${answer.nodeId}\nO=Edge Delivery Console Node`);
  t.deepEqual(certificate.keyUsage, ['1.3.6.1.5.5.7.3.2']);
  t.false(certificate.ca);
  t.true(authority.ca);
  const day = 86_400_000;
  const life = Date.parse(certificate.validTo) - Date.parse(certificate.validFrom);
  t.true(Math.abs(life - 30 * day - 3_600_000) < 5000);
  t.is(answer.notAfter, BigInt(Date.parse(certificate.validTo) / 1000));
  const years = (Date.parse(authority.validTo) - Date.parse(authority.validFrom)) / (365 * day);
  t.true(years > 9.9 && years < 10.1);
  const [row] = await api.sql('node_certificate').where({ node_id: answer.nodeId });
  t.is(row.serial, certificate.serialNumber);
});

test('a token is used once, also by two nodes at the same moment', async (t) => {
  const { token } = await newToken(running, { clusterId, nodeName: 'once' });
  const answers = await Promise.allSettled([enroll(token), enroll(token), enroll(token)]);
  t.is(answers.filter(({ status }) => status === 'fulfilled').length, 1);
  await t.throwsAsync(enroll(token), { message: /permission_denied: the enrollment token was already used/ });
  t.is((await api.sql('node').where({ name: 'once' })).length, 1);
});

test('tokens that are expired, unknown or malformed are refused', async (t) => {
  const { tokenId, token } = await newToken(running, { clusterId });
  await api
    .sql('enrollment_token')
    .where({ id: tokenId })
    .update({ expires_at: new Date(Date.now() - 1000) });
  await t.throwsAsync(enroll(token), { message: /permission_denied: the enrollment token has expired/ });
  const unknown = `ewt_${'A'.repeat(43)}`;
  for (const bad of [unknown, '', 'ewt_short', `ewk_${'A'.repeat(43)}`]) {
    await t.throwsAsync(enroll(bad), { message: /permission_denied: the enrollment token is not valid/ });
  }
});

test('a token of a deleted cluster is gone with it', async (t) => {
  const gone = await api.cluster('gone');
  const { token } = await newToken(running, { clusterId: gone });
  await api.ok('DELETE', `/clusters/${gone}`);
  await t.throwsAsync(enroll(token), { message: /permission_denied/ });
});

test('a group that was deleted meanwhile means the default group', async (t) => {
  const group = await api.ok('POST', '/node-groups', { clusterId, name: 'short-lived' });
  const { token } = await newToken(running, { clusterId, nodeGroupId: group.id });
  await api.ok('DELETE', `/node-groups/${group.id}`);
  const { nodeId } = await enroll(token);
  t.is((await api.ok('GET', `/nodes/${nodeId}`)).nodeGroupName, 'default');
});

test('a group that is being deleted while a node enrolls means the default group', async (t) => {
  const group = await api.ok('POST', '/node-groups', { clusterId, name: 'vanishing' });
  const { token } = await newToken(running, { clusterId, nodeGroupId: group.id });
  const enrolling = await write(running.running.runtime, systemCall('test'), {}, async (tx) => {
    await tx.sql('node_group').where({ id: group.id }).forUpdate();
    const under = enroll(token).then((identity) => identity.nodeId);
    await eventually(async () => {
      const { rows } = await api.sql.raw(
        `select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%node_group%for key share%'`,
      );
      return rows.length > 0;
    });
    await tx.sql('node_group').where({ id: group.id }).delete();
    return { under };
  });
  t.is((await api.ok('GET', `/nodes/${await enrolling.under}`)).nodeGroupName, 'default');
});

test('a refused request uses neither the token nor creates a node', async (t) => {
  const { tokenId, token } = await newToken(running, { clusterId, nodeName: 'refused' });
  const p256 = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const good = await requestWith(p256);
  const rsa = {
    name: 'RSASSA-PKCS1-v1_5',
    modulusLength: 2048,
    publicExponent: new Uint8Array([1, 0, 1]),
    hash: 'SHA-256',
  };
  const der = Buffer.from(good.split('\n').slice(1, -1).join(''), 'base64');
  // The last byte belongs to the signature.
  der[der.length - 1]! ^= 1;
  const forged = `-----BEGIN CERTIFICATE REQUEST-----\n${der.toString('base64')}\n-----END CERTIFICATE REQUEST-----`;
  const cases: [string, RegExp][] = [
    ['', /certificate request is not in PEM/],
    ['nonsense', /certificate request is not in PEM/],
    [await requestWith({ ...p256, namedCurve: 'P-384', hash: 'SHA-384' }), /not ECDSA P-256/],
    [await requestWith(rsa), /not ECDSA P-256/],
    [forged, /signature/],
    [`${good}${' '.repeat(9000)}`, /too large/],
  ];
  for (const [csrPem, message] of cases) await t.throwsAsync(enroll(token, { csrPem }), { message });
  t.is((await api.ok('GET', `/enrollment-tokens/${tokenId}`)).usedAt, null);
  t.is((await api.sql('node').where({ name: 'refused' })).length, 0);
  t.is((await enroll(token, { csrPem: good })).nodeName, 'refused');
});

test('a body above 64 KiB is refused before anybody is known', async (t) => {
  await t.throwsAsync(enroll('x'.repeat(70_000)), { message: /resource_exhausted/ });
});

test('the addresses of an enrolled node are protected from its first moment', async (t) => {
  const { token } = await newToken(running, { clusterId });
  await enroll(token, { info: { hostname: 'h', ipAddresses: ['203.0.113.77', 'nonsense'] } });
  const data = await api.refused(t, [400, 'BAN_PROTECTED_ADDRESS'], 'POST', '/bans', {
    scope: 'platform',
    cidr: '203.0.113.0/24',
    reason: 'abuse',
    durationSeconds: 60,
  });
  t.is(data.address, '203.0.113.77');
});
