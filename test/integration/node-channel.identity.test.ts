import test from 'ava';
import { createCertificateRequest } from '../../agents/kit/certificate-request.ts';
import type { Identity } from '../../bench/fleet/connection.ts';
import { consoleIssuer, foreignIssuer, type Issuer, issueLeaf } from '../helpers/certificates.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { connectAs, enrollOne } from '../helpers/fleet.ts';
import { Api } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let clusterId: string;
let issuer: Issuer;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
  clusterId = await api.cluster('identity');
  issuer = await consoleIssuer(running.running.runtime);
});
test.after.always('stop', () => running?.stop());

const DAY_MS = 86_400_000;

/** What a heartbeat with these credentials is answered. */
async function heartbeat(
  identity: Identity,
  credentials?: { keyPem: string; certificatePem: string },
): Promise<string> {
  const connection = connectAs(running, identity, credentials);
  try {
    await connection.call('heartbeat', {});
    return 'accepted';
  } catch (error) {
    return (error as Error).message;
  } finally {
    connection.destroy();
  }
}

/** What opening a stream is answered. */
function watch(identity: Identity, credentials: { keyPem: string; certificatePem: string }): Promise<string> {
  const connection = connectAs(running, identity, credentials);
  return new Promise<string>((resolve) => {
    connection.watch(
      {},
      () => resolve('accepted'),
      (reason) => resolve(reason?.message ?? 'ended'),
    );
  }).finally(() => connection.destroy());
}

const authError = async (nodeId: string) => (await api.ok('GET', `/nodes/${nodeId}`)).authError;

async function record(serial: string, nodeId: string, more: object = {}): Promise<void> {
  await api.sql('node_certificate').insert({
    serial,
    node_id: nodeId,
    state: 'active',
    not_after: new Date(Date.now() + DAY_MS),
    fingerprint: serial,
    ...more,
  });
}

test('a call without a certificate is refused, in the form its protocol has', async (t) => {
  const identity = await enrollOne(running, clusterId);
  const nobody = { keyPem: '', certificatePem: '' };
  const connection = connectAs(running, identity, nobody);
  t.teardown(() => connection.destroy());
  for (const name of [
    'heartbeat',
    'getConfig',
    'getBans',
    'applied',
    'reportStats',
    'reportBans',
    'renewCertificate',
  ] as const) {
    await t.throwsAsync(connection.call(name, {}), { message: /^unauthenticated: CERT_MISSING$/ }, name);
  }
  t.is(await watch(identity, nobody), 'unauthenticated: CERT_MISSING');
});

test('a certificate of another authority is refused; nobody can put words on a node that way', async (t) => {
  const identity = await enrollOne(running, clusterId);
  const leaf = await issueLeaf(await foreignIssuer(running.running.runtime), { nodeId: identity.nodeId });
  t.is(await heartbeat(identity, leaf), 'unauthenticated: CERT_OTHER_AUTHORITY');
  t.is(await watch(identity, leaf), 'unauthenticated: CERT_OTHER_AUTHORITY');
  t.is(await heartbeat(identity), 'accepted');
  t.is(await authError(identity.nodeId), null);
});

test('refused certificates of a node show their reason until its next heartbeat', async (t) => {
  const identity = await enrollOne(running, clusterId);
  const { nodeId } = identity;
  const past = { notBefore: new Date(Date.now() - 2 * DAY_MS), notAfter: new Date(Date.now() - DAY_MS) };
  const future = { notBefore: new Date(Date.now() + DAY_MS), notAfter: new Date(Date.now() + 2 * DAY_MS) };
  const cases: [string, Parameters<typeof issueLeaf>[1], boolean][] = [
    ['CERT_HAS_EXPIRED', { nodeId, ...past }, true],
    ['CERT_NOT_YET_VALID', { nodeId, ...future }, true],
    ['CERT_WRONG_ORGANISATION', { nodeId, organisation: 'Edge Delivery Console Probe' }, true],
    ['CERT_UNKNOWN_SERIAL', { nodeId }, false],
  ];
  for (const [reason, subject, known] of cases) {
    const leaf = await issueLeaf(issuer, subject);
    if (known) await record(leaf.serial, nodeId);
    t.is(await heartbeat(identity, leaf), `unauthenticated: ${reason}`);
    await eventually(async () => (await authError(nodeId)) === reason, { what: reason });
    t.is(await heartbeat(identity), 'accepted');
    await eventually(async () => (await authError(nodeId)) === null, { what: `no ${reason} any more` });
  }
});

test('revoked and replaced serials, and certificates of nodes that are gone, are refused', async (t) => {
  const identity = await enrollOne(running, clusterId);
  for (const [state, reason] of [
    ['revoked', 'CERT_REVOKED'],
    ['superseded', 'CERT_SUPERSEDED'],
  ] as const) {
    const leaf = await issueLeaf(issuer, { nodeId: identity.nodeId });
    await record(leaf.serial, identity.nodeId, { state });
    t.is(await heartbeat(identity, leaf), `unauthenticated: ${reason}`);
  }
  const nobody = '01a00000-0000-7000-8000-000000000001';
  const leaf = await issueLeaf(issuer, { nodeId: nobody });
  await record(leaf.serial, nobody);
  t.is(await heartbeat(identity, leaf), 'unauthenticated: NODE_NOT_FOUND');
});

test('a serial speaks for the node it was issued to and no other', async (t) => {
  const [mine, other] = [await enrollOne(running, clusterId), await enrollOne(running, clusterId)];
  const leaf = await issueLeaf(issuer, { nodeId: other.nodeId });
  await record(leaf.serial, mine.nodeId);
  t.is(await heartbeat(mine, leaf), 'unauthenticated: CERT_UNKNOWN_SERIAL');
});

test('renewal: the old certificate works until the new one is first used', async (t) => {
  const identity = await enrollOne(running, clusterId);
  const connection = connectAs(running, identity);
  t.teardown(() => connection.destroy());
  await connection.call('heartbeat', {});
  const { keyPem, csrPem } = await createCertificateRequest('renewed');
  const { certificatePem, notAfter } = await connection.call('renewCertificate', { csrPem });
  t.true(notAfter > BigInt(Math.floor((Date.now() + 29 * DAY_MS) / 1000)));
  t.is(await heartbeat(identity), 'accepted');
  t.is(await heartbeat(identity, { keyPem, certificatePem }), 'accepted');
  t.is(await heartbeat(identity), 'unauthenticated: CERT_SUPERSEDED');
  await t.throwsAsync(connection.call('heartbeat', {}), { message: /CERT_SUPERSEDED/ });
  t.deepEqual(
    (await api.audit(identity.nodeId)).map(({ action }) => action),
    ['node.enroll', 'node.certificate_renew'],
  );
});

test('answers of renewals that got lost leave one usable certificate behind', async (t) => {
  const identity = await enrollOne(running, clusterId);
  const connection = connectAs(running, identity);
  t.teardown(() => connection.destroy());
  await connection.call('heartbeat', {});
  const renewed = [];
  for (let round = 0; round < 3; round++) {
    const { keyPem, csrPem } = await createCertificateRequest('renewed');
    renewed.push({ keyPem, ...(await connection.call('renewCertificate', { csrPem })) });
  }
  t.is(await heartbeat(identity, renewed[0]!), 'unauthenticated: CERT_SUPERSEDED');
  t.is(await heartbeat(identity), 'accepted');
  t.is(await heartbeat(identity, renewed[2]!), 'accepted');
  const { rows } = await api.sql.raw(
    "select count(*)::int from node_certificate where node_id = ? and state = 'active'",
    [identity.nodeId],
  );
  t.is(rows[0].count, 1);
});

test('a node gets at most 24 certificates in a day', async (t) => {
  const identity = await enrollOne(running, clusterId);
  const connection = connectAs(running, identity);
  t.teardown(() => connection.destroy());
  const { csrPem } = await createCertificateRequest('renewed');
  const renew = () => connection.call('renewCertificate', { csrPem });
  for (let issued = 1; issued < 24; issued++)
    await record(`${identity.nodeId}-${issued}`, identity.nodeId, { state: 'superseded' });
  await t.throwsAsync(renew(), { message: /resource_exhausted: the node has got 24 certificates/ });
  await api
    .sql('node_certificate')
    .where({ node_id: identity.nodeId })
    .update({ issued_at: new Date(Date.now() - DAY_MS) });
  await t.notThrowsAsync(renew());
});

test('a certificate near its end is asked to be renewed', async (t) => {
  const identity = await enrollOne(running, clusterId);
  const connection = connectAs(running, identity);
  t.teardown(() => connection.destroy());
  t.false((await connection.call('heartbeat', {})).renewCertificate);
  const leaf = await issueLeaf(issuer, { nodeId: identity.nodeId, notAfter: new Date(Date.now() + 9 * DAY_MS) });
  await record(leaf.serial, identity.nodeId, { not_after: new Date(Date.now() + 9 * DAY_MS) });
  const near = connectAs(running, identity, leaf);
  t.teardown(() => near.destroy());
  t.true((await near.call('heartbeat', {})).renewCertificate);
});

test('a status that changes in the database alone is noticed within seconds', async (t) => {
  const identity = await enrollOne(running, clusterId);
  const connection = connectAs(running, identity);
  t.teardown(() => connection.destroy());
  await connection.call('heartbeat', {});
  await api.sql('node').where({ id: identity.nodeId }).update({ status: 'disabled' });
  await eventually(() =>
    connection.call('heartbeat', {}).then(
      () => false,
      (error: Error) => error.message.includes('NODE_DISABLED'),
    ),
  );
  t.pass();
});
