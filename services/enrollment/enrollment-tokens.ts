import { createHash, randomBytes } from 'node:crypto';
import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { enrollmentTokens } from '../../contract/resources/enrollment-tokens.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { Cluster } from '../../models/clusters/cluster.ts';
import { CertificateAuthorityRow } from '../../models/nodes/certificate-authority.ts';
import { EnrollmentToken, enrollmentProgress } from '../../models/nodes/enrollment-token.ts';
import { nodeChannelAddress } from '../../models/nodes/node-channel-setting.ts';
import { NodeGroup } from '../../models/nodes/node-group.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { type Tx, write } from '../../runtime/write.ts';
import { addressWarnings } from './address-warnings.ts';
import { installCommand } from './install-command.ts';
import { offersNodePackage } from './node-package.ts';

const PREFIX = 'ewt_';
const SHOWN_CHARS = 10;
const MINUTE_MS = 60_000;

export async function createEnrollmentToken(
  runtime: Runtime,
  input: Input<typeof enrollmentTokens.create>,
  call: Call,
): Promise<Output<typeof enrollmentTokens.create>> {
  const token = `${PREFIX}${randomBytes(32).toString('base64url')}`;
  const packaged = await offersNodePackage(runtime.env.downloadsDir);
  return write(runtime, call, { status: 201 }, async (tx) => {
    const cluster = (await Cluster.query(tx.sql).findById(input.clusterId).forKeyShare()) ?? fail('CLUSTER_NOT_FOUND');
    const nodeGroupId = input.nodeGroupId ?? null;
    if (nodeGroupId !== null) await assertGroup(tx, nodeGroupId, cluster.id);
    const nodeName = input.nodeName ?? null;
    const expiresAt = new Date(tx.now.getTime() + (input.ttlMinutes ?? 60) * MINUTE_MS);
    const { id } = await EnrollmentToken.query(tx.sql)
      .insert({
        clusterId: cluster.id,
        nodeGroupId,
        nodeName,
        prefix: token.slice(0, SHOWN_CHARS),
        secretHash: tokenHash(token),
        createdAt: tx.now,
        expiresAt,
      })
      .returning('id');
    await recordAudit(
      tx,
      'enrollment_token.create',
      { type: 'cluster', id: cluster.id, name: cluster.name },
      { tokenId: id, nodeGroupId, nodeName, expiresAt: expiresAt.toISOString() },
    );
    const authority =
      (await CertificateAuthorityRow.current(tx.sql)) ?? fail('SERVICE_UNAVAILABLE', { retryAfterSeconds: 1 });
    const caSha256 = authority.certificateSha256.toString('hex');
    const { effectiveUrl } = await nodeChannelAddress(tx.sql, runtime.env);
    return {
      tokenId: id,
      token,
      expiresAt: expiresAt.toISOString(),
      serverUrl: effectiveUrl,
      caSha256,
      installCommand: installCommand({ consoleUrl: runtime.env.publicUrl, serverUrl: effectiveUrl, caSha256, token }),
      warnings: [
        ...addressWarnings(runtime.env.publicUrl, effectiveUrl),
        ...(packaged ? [] : (['node_package_missing'] as const)),
      ],
    };
  });
}

async function assertGroup(tx: Tx, nodeGroupId: string, clusterId: string): Promise<void> {
  const group = (await NodeGroup.query(tx.sql).findById(nodeGroupId).forKeyShare()) ?? fail('NODE_GROUP_NOT_FOUND');
  if (group.clusterId !== clusterId) fail('NODE_GROUP_CLUSTER_MISMATCH');
}

export async function getEnrollmentToken(
  runtime: Runtime,
  input: Input<typeof enrollmentTokens.get>,
): Promise<Output<typeof enrollmentTokens.get>> {
  const row = (await enrollmentProgress(runtime.pools.api, input.id)) ?? fail('ENROLLMENT_TOKEN_NOT_FOUND');
  const { node_id: id, node_name: name, online, applied, auth_error: authError } = row;
  return {
    tokenId: row.id,
    clusterId: row.cluster_id,
    expiresAt: row.expires_at.toISOString(),
    usedAt: row.used_at?.toISOString() ?? null,
    node: id === null || name === null ? null : { id, name, online, applied, authError },
  };
}

/** What is kept of a token. */
export function tokenHash(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
