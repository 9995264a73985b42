// Identity of a node on disk: node.key, node.crt, ca.crt and identity.json, which is written last and so says that the
// others are complete. A renewal first writes node.next.key and node.next.crt; whatever moment it is interrupted at, one
// of the pairs matches.
import { X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import type { NodeIdentity } from './channel-client.ts';
import { disk } from './disk.ts';
import { readTextIfPresent, removeFile, stageFile, syncFolder, writeFileAtomic } from './files.ts';
import { certificatePin, keyMatches } from './pinned-tls.ts';

const KEY = 'node.key';
const CERTIFICATE = 'node.crt';
const AUTHORITY = 'ca.crt';
const NEXT_KEY = 'node.next.key';
const NEXT_CERTIFICATE = 'node.next.crt';
const IDENTITY = 'identity.json';

interface IdentityFile {
  node_id: string;
  cluster_id: string;
  node_name: string;
  server_url: string;
  server_name: string;
  ca_sha256: string;
  enrolled_at: string;
}

export function identityPath(stateDir: string): string {
  return join(stateDir, IDENTITY);
}

/**
 * Puts an identity in place of the one before. Everything is written under other names first: a disk that refuses to write
 * costs a node nothing of the identity that it has.
 */
export function saveIdentity(stateDir: string, identity: NodeIdentity, now: Date): void {
  const file: IdentityFile = {
    node_id: identity.nodeId,
    cluster_id: identity.clusterId,
    node_name: identity.nodeName,
    server_url: identity.serverUrl,
    server_name: identity.serverName,
    ca_sha256: identity.caSha256,
    enrolled_at: now.toISOString(),
  };
  const files: [name: string, text: string, mode: number][] = [
    [KEY, identity.keyPem, 0o600],
    [CERTIFICATE, identity.certificatePem, 0o644],
    [AUTHORITY, identity.authorityPem, 0o644],
    // Last: it says that the others are complete.
    [IDENTITY, `${JSON.stringify(file, null, 2)}\n`, 0o600],
  ];
  const stagedPath = (name: string): string => join(stateDir, `${name}.enrolled`);
  try {
    for (const [name, text, mode] of files) {
      removeFile(stagedPath(name));
      stageFile(stagedPath(name), text, mode);
    }
    for (const [name] of files) {
      // The name that makes the identity valid is there for good only after those of the others.
      if (name === IDENTITY) syncFolder(stateDir);
      disk.rename(stagedPath(name), join(stateDir, name));
      // From here on the old identity does not fit. Without its file nobody takes it for the new one.
      if (name === KEY) for (const old of [IDENTITY, NEXT_KEY, NEXT_CERTIFICATE]) removeFile(join(stateDir, old));
    }
    syncFolder(stateDir);
  } catch (error) {
    for (const [name] of files) removeFile(stagedPath(name));
    throw error;
  }
}

/** The identity in `stateDir`, or undefined when the node is not enrolled. Throws when its files do not fit together. */
export function loadIdentity(stateDir: string): NodeIdentity | undefined {
  const text = readTextIfPresent(join(stateDir, IDENTITY));
  if (text === undefined) return undefined;
  const file = parseIdentity(text);
  const authorityPem = readTextIfPresent(join(stateDir, AUTHORITY)) ?? '';
  if (authorityPem === '' || certificatePin(authorityPem) !== file.ca_sha256) {
    throw new Error(`${AUTHORITY} differs from the certificate authority of the enrollment; enroll again`);
  }
  const pairs = [
    [KEY, CERTIFICATE],
    [KEY, NEXT_CERTIFICATE],
    [NEXT_KEY, NEXT_CERTIFICATE],
  ] as const;
  for (const [keyName, certificateName] of pairs) {
    const keyPem = readTextIfPresent(join(stateDir, keyName));
    const certificatePem = readTextIfPresent(join(stateDir, certificateName));
    if (keyPem === undefined || certificatePem === undefined || !fits(certificatePem, keyPem)) continue;
    return {
      nodeId: file.node_id,
      clusterId: file.cluster_id,
      nodeName: file.node_name,
      serverUrl: file.server_url,
      serverName: file.server_name,
      caSha256: file.ca_sha256,
      keyPem,
      certificatePem,
      authorityPem,
    };
  }
  throw new Error('no certificate of this node matches its key; enroll again');
}

function parseIdentity(text: string): IdentityFile {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error(`${IDENTITY} is not valid JSON; enroll again`);
  }
  const file = value as Record<string, unknown> | null;
  for (const name of ['node_id', 'cluster_id', 'node_name', 'server_url', 'server_name', 'ca_sha256']) {
    if (typeof file?.[name] !== 'string') throw new Error(`${IDENTITY} lacks ${name}; enroll again`);
  }
  return file as unknown as IdentityFile;
}

function fits(certificatePem: string, keyPem: string): boolean {
  try {
    return keyMatches(certificatePem, keyPem);
  } catch {
    return false;
  }
}

/** Keeps the key of a renewal before its certificate is asked for, so that an issued certificate is never useless. */
export function saveNextKey(stateDir: string, keyPem: string): void {
  writeFileAtomic(join(stateDir, NEXT_KEY), keyPem, 0o600);
}

/** Puts the renewed certificate and its key in place of the old ones. */
export function promoteNext(stateDir: string, certificatePem: string): void {
  writeFileAtomic(join(stateDir, NEXT_CERTIFICATE), certificatePem, 0o644);
  disk.rename(join(stateDir, NEXT_KEY), join(stateDir, KEY));
  disk.rename(join(stateDir, NEXT_CERTIFICATE), join(stateDir, CERTIFICATE));
  syncFolder(stateDir);
}

/** Validity of a certificate, Unix ms. */
export function validityOf(certificatePem: string): { notBefore: number; notAfter: number } {
  const { validFromDate, validToDate } = new X509Certificate(certificatePem);
  return { notBefore: validFromDate.getTime(), notAfter: validToDate.getTime() };
}

/** Whether less than a third of the lifetime is left. */
export function renewalDue(certificatePem: string, nowMs: number): boolean {
  const { notBefore, notAfter } = validityOf(certificatePem);
  return notAfter - nowMs < (notAfter - notBefore) / 3;
}
