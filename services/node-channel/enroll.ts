// Enrollment: a one-time token and a certificate request become a node. Token, node, certificate and audit entry
// commit together, so a token that was used has a node and a node that exists has a certificate.
import { createHash } from 'node:crypto';
import { Code, ConnectError } from '@connectrpc/connect';
import {
  type CertificateAuthority,
  CertificateRequestRefused,
  type IssuedCertificate,
} from '../../mixins/certificate-authority.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { EnrollmentToken } from '../../models/nodes/enrollment-token.ts';
import { Node } from '../../models/nodes/node.ts';
import { replaceNodeAddresses } from '../../models/nodes/node-address.ts';
import { NodeCertificate } from '../../models/nodes/node-certificate.ts';
import { NodeGroup } from '../../models/nodes/node-group.ts';
import { NodeState } from '../../models/nodes/node-state.ts';
import type { EnrollRequest } from '../../proto/gen/svc/node/v1/node_pb.js';
import type { Actor, Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { type Tx, write } from '../../runtime/write.ts';
import { addressEntries, readCapabilities, readInfo, text } from './heartbeat.ts';

/** Certificates of one node in a day; an agent renews once in 20 days, and again when an answer got lost. */
const MAX_RENEWALS = 24;
const RENEWALS_MS = 86_400_000;
const TOKEN = /^ewt_[A-Za-z0-9_-]{43}$/;

export interface Enrolled {
  nodeId: string;
  clusterId: string;
  nodeName: string;
  certificate: IssuedCertificate;
}

/** Throws ConnectError: permission_denied for the token, invalid_argument for the request. */
export async function enroll(
  runtime: Runtime,
  authority: CertificateAuthority,
  request: EnrollRequest,
  remoteAddress: string | null,
): Promise<Enrolled> {
  if (!TOKEN.test(request.token))
    throw new ConnectError('the enrollment token is not valid; create a new one in the console', Code.PermissionDenied);
  const secretHash = createHash('sha256').update(request.token).digest();
  const call = nodeCall(null, remoteAddress);
  return write(runtime, call, {}, async (tx) => {
    // The group before the token, as whoever deletes the group: that sets the token's group free.
    const nodeGroupId = await groupOf(tx, usable(await EnrollmentToken.byHash(tx.sql, secretHash), tx.now));
    const token = usable(await EnrollmentToken.lockedByHash(tx.sql, secretHash), tx.now);
    const name = token.nodeName ?? defaultName(request);
    const { rows } = await tx.sql.raw('select uuidv7()::text as id');
    const nodeId = rows[0].id as string;
    call.actor = { type: 'node', id: nodeId, name };
    const certificate = await issue(authority, nodeId, request.csrPem, tx.now);
    await Node.query(tx.sql).insert({
      id: nodeId,
      clusterId: token.clusterId,
      nodeGroupId,
      name,
      enrolledAt: tx.now,
      createdAt: tx.now,
      updatedAt: tx.now,
    });
    await NodeState.query(tx.sql).insert({
      nodeId,
      info: readInfo(request.info),
      features: readCapabilities(request.info),
      remoteAddress,
    });
    await replaceNodeAddresses(tx.sql, nodeId, addressEntries(request.info, remoteAddress));
    await storeCertificate(tx, nodeId, certificate);
    await EnrollmentToken.query(tx.sql).patch({ usedAt: tx.now, nodeId }).where({ id: token.id });
    await recordAudit(
      tx,
      'node.enroll',
      { type: 'node', id: nodeId, name },
      { clusterId: token.clusterId, tokenId: token.id },
    );
    return { nodeId, clusterId: token.clusterId, nodeName: name, certificate };
  });
}

function usable(token: EnrollmentToken | undefined, now: Date): EnrollmentToken {
  if (!token)
    throw new ConnectError('the enrollment token is not valid; create a new one in the console', Code.PermissionDenied);
  if (token.usedAt !== null)
    throw new ConnectError(
      'the enrollment token was already used; create a new one in the console',
      Code.PermissionDenied,
    );
  if (token.expiresAt <= now)
    throw new ConnectError('the enrollment token has expired; create a new one in the console', Code.PermissionDenied);
  return token;
}

/** The token's group, kept from deletion, or the default group when it names none or its group was deleted. */
async function groupOf(tx: Tx, { nodeGroupId, clusterId }: EnrollmentToken): Promise<string> {
  const kept = nodeGroupId === null ? undefined : await NodeGroup.query(tx.sql).findById(nodeGroupId).forKeyShare();
  const group = kept ?? (await NodeGroup.defaultOf(tx.sql, clusterId));
  if (!group) throw new ConnectError('the cluster of the enrollment token was deleted', Code.PermissionDenied);
  return group.id;
}

function defaultName(request: EnrollRequest): string {
  const name = text((request.info?.hostname ?? '').trim(), 64).trim();
  return name === '' ? 'node' : name;
}

/** The next certificate of a node. The one it uses stays valid until the new one is first used. */
export async function renewCertificate(
  runtime: Runtime,
  authority: CertificateAuthority,
  node: { nodeId: string; name: string; serial: string },
  csrPem: string,
  remoteAddress: string | null,
): Promise<IssuedCertificate> {
  const call = nodeCall({ type: 'node', id: node.nodeId, name: node.name }, remoteAddress);
  return write(runtime, call, {}, async (tx) => {
    if (!(await Node.locked(tx.sql, node.nodeId))) throw new ConnectError('the node was deleted', Code.Unauthenticated);
    const since = new Date(tx.now.getTime() - RENEWALS_MS);
    if ((await NodeCertificate.issuedSince(tx.sql, node.nodeId, since)) >= MAX_RENEWALS) {
      throw new ConnectError(
        `the node has got ${MAX_RENEWALS} certificates in the last 24 hours; renew later`,
        Code.ResourceExhausted,
      );
    }
    const certificate = await issue(authority, node.nodeId, csrPem, tx.now);
    // Certificates whose answer got lost: of those never used, only the newest stays.
    await NodeCertificate.query(tx.sql)
      .patch({ state: 'superseded' })
      .where({ node_id: node.nodeId, state: 'active' })
      .whereNull('first_used_at')
      .whereNot('serial', node.serial);
    await storeCertificate(tx, node.nodeId, certificate);
    await recordAudit(tx, 'node.certificate_renew', { type: 'node', id: node.nodeId, name: node.name });
    return certificate;
  });
}

async function issue(
  authority: CertificateAuthority,
  nodeId: string,
  csrPem: string,
  now: Date,
): Promise<IssuedCertificate> {
  try {
    return await authority.issueNode(nodeId, csrPem, now);
  } catch (error) {
    if (error instanceof CertificateRequestRefused) throw new ConnectError(error.message, Code.InvalidArgument);
    throw error;
  }
}

async function storeCertificate(tx: Tx, nodeId: string, certificate: IssuedCertificate): Promise<void> {
  const { serial, notAfter, fingerprint } = certificate;
  await NodeCertificate.query(tx.sql).insert({
    serial,
    nodeId,
    state: 'active',
    issuedAt: tx.now,
    notAfter,
    fingerprint,
  });
}

function nodeCall(actor: Actor | null, ip: string | null): Call {
  return {
    actor: actor ?? { type: 'node', id: null, name: '' },
    ip,
    userAgent: null,
    requestId: 'node-channel',
    idempotency: null,
    changes: [],
  };
}
