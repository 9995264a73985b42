// `enroll`: trades a one-time token for the node's identity. Nothing is written before the console has answered.

import { rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { ConnectError } from '@connectrpc/connect';
import { enroll, type NodeIdentity } from '../../kit/channel-client.ts';
import { ensurePrivateFolder } from '../../kit/files.ts';
import { loadIdentity, saveIdentity, validityOf } from '../../kit/identity.ts';
import { beforePath } from '../../kit/journal-before.ts';
import { lockFile } from '../../kit/locks.ts';
import { createLog, errorText, type Log } from '../../kit/log.ts';
import { interfaceAddresses, machineInfo } from '../../kit/machine.ts';
import { UsageError } from '../../kit/options.ts';
import { adoptOldLayout } from '../old-layout.ts';
import type { Options } from '../options.ts';
import { edgePaths } from '../paths.ts';
import { AGENT_VERSION } from '../version.ts';

const TOKEN = /^ewt_[A-Za-z0-9_-]{8,200}$/;
const MAX_INPUT_BYTES = 4096;

export async function enrollCommand(options: Options): Promise<number> {
  const log = createLog(options.logLevel);
  const stateDir = resolve(options.required('state-dir'));
  const serverUrl = options.required('server');
  const caSha256 = options.required('ca-sha256');
  const token = await takeToken(options);
  ensurePrivateFolder(stateDir);
  const lock = lockFile(edgePaths(stateDir).agentLock);
  if (!lock) {
    log.error('agent is running in this folder, stop it before enrolling again', { stateDir });
    return 1;
  }
  try {
    const before = existing(stateDir);
    if (before !== undefined && !options.flag('force')) {
      log.error('node is already enrolled, use --force to replace its identity', { stateDir });
      return 1;
    }
    const machine = machineInfo();
    const serverName = options.text('server-name');
    const identity = await enroll({
      serverUrl,
      caSha256,
      token,
      ...(serverName === undefined ? {} : { serverName }),
      info: {
        ...machine,
        hostname: options.text('node-name') ?? machine.hostname,
        agentVersion: AGENT_VERSION,
        engine: 'caddy',
        ipAddresses: interfaceAddresses(),
      },
      signal: AbortSignal.timeout(60_000),
    });
    if (before !== undefined && before?.clusterId !== identity.clusterId) dropState(stateDir, log);
    saveIdentity(stateDir, identity, new Date());
    log.info('node enrolled', {
      nodeId: identity.nodeId,
      nodeName: identity.nodeName,
      clusterId: identity.clusterId,
      certificateNotAfter: new Date(validityOf(identity.certificatePem).notAfter).toISOString(),
    });
    return 0;
  } catch (error) {
    const refused =
      error instanceof ConnectError ? { code: error.code, reason: error.rawMessage } : { reason: errorText(error) };
    log.error('enrollment failed', refused);
    return 1;
  } finally {
    // A machine that could not join keeps nothing.
    if (existing(stateDir) === undefined) lock.remove();
    else lock.release();
  }
}

/** The identity there is, null when there is one that cannot be read. */
function existing(stateDir: string): NodeIdentity | null | undefined {
  try {
    return loadIdentity(stateDir);
  } catch {
    return null;
  }
}

/** Configuration, bans and keys of another cluster must not be served in the name of this one. */
function dropState(stateDir: string, log: Log): void {
  const paths = edgePaths(stateDir);
  // An older version may have left them in another place.
  adoptOldLayout(paths, log);
  const { configJournal, banJournal, securityJournal, challengeKeys, oldStatsLedger, statsFolder, logsDir } = paths;
  const former = [configJournal, banJournal].map(beforePath);
  for (const path of [configJournal, banJournal, securityJournal, challengeKeys, oldStatsLedger, ...former])
    rmSync(path, { force: true });
  for (const folder of [statsFolder, logsDir]) rmSync(folder, { recursive: true, force: true });
  log.info('configuration and bans of the previous cluster removed');
}

async function takeToken(options: Options): Promise<string> {
  const given = options.text('token') ?? (process.stdin.isTTY ? '' : await readInput());
  delete process.env.SVC_TOKEN;
  const token = given.trim();
  if (token === '') throw new UsageError('no enrollment token: use --token, SVC_TOKEN or standard input');
  if (!TOKEN.test(token)) throw new UsageError('the enrollment token does not have the form ewt_…');
  return token;
}

async function readInput(): Promise<string> {
  let text = '';
  for await (const chunk of process.stdin.setEncoding('utf8')) {
    text += chunk;
    if (text.length > MAX_INPUT_BYTES) throw new UsageError('standard input is too long for an enrollment token');
  }
  return text;
}
