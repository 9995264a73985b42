// A node's rows of request logs, bounded. Nodes are authenticated, not trusted: a row that cannot be is set aside, and the
// others are stored.
import { createHash } from 'node:crypto';
import { fromBinary } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { BLOCK_REASONS, CACHE_STATUSES } from '../../contract/resources/logs.ts';
import type { LogRow, MissingReason } from '../../models/logs/log-row.ts';
import type { LogBatch } from '../../models/logs/log-writer.ts';
import {
  type LogRow as LogRowMessage,
  LogRowSchema,
  ReportLogsRequestSchema,
} from '../../proto/gen/svc/node/v1/logs_pb.js';

const MAX_ROWS = 2_000;
const MAX_BYTES = 4 * 1024 * 1024;
const MAX_LOSSES = 1_024;
const MAX_LOST = 2n ** 53n;
/** Times further ahead than this are a wrong clock. */
const AHEAD_MS = 5 * 60_000;
const MAX_COUNT = 2 ** 50;
const MAX_DURATION = 86_400_000;
const MAX_SAMPLE = 10_000;
const MAX_WAF_RULES = 16;
const MAX_RULES = 8;
const MAX_HEADERS = 8;
const LAST_WAF_RULE = 2 ** 31;
const RULE_ID = /^(platform:)?[A-Za-z0-9_-]{1,64}$/;
const COUNTRY = /^[A-Z]{2}$/;
const SITE_ID = /^[A-Za-z0-9_-]{1,64}$/;
const VERSIONS = ['1.0', '1.1', '2', '3'];
const TLS_VERSIONS = ['1.2', '1.3'];

/** Whose rows they are, and when they came. */
export interface LoggingNode {
  nodeId: string;
  clusterId: string;
  now: number;
}

/** Throws invalid_argument for what is no report, and for one beyond its limits. */
export function readLogReport(bytes: Uint8Array, { nodeId, clusterId, now }: LoggingNode): LogBatch {
  if (bytes.length > MAX_BYTES) throw invalid(`a report has at most ${MAX_BYTES} bytes`);
  const request = decoded(bytes);
  if (request.rows.length > MAX_ROWS || request.losses.length > MAX_LOSSES) {
    throw invalid(`a report has at most ${MAX_ROWS} rows and ${MAX_LOSSES} losses`);
  }
  const aside = new Map<string, { siteId: string; reason: MissingReason; rows: number }>();
  const names = rowNames(nodeId);
  const rows = request.rows.flatMap((encoded) => {
    const message = decodedRow(encoded);
    const row = message && readRow(message, nodeId, names, now);
    if (row) return [row];
    const siteId = message?.siteId ?? '';
    const sum = aside.get(siteId) ?? { siteId, reason: 'refused' as const, rows: 0 };
    sum.rows += 1;
    aside.set(siteId, sum);
    return [];
  });
  return {
    nodeId,
    clusterId,
    rows,
    aside: [...aside.values()],
    ring: BigInt.asIntN(64, request.ring),
    losses: request.losses.flatMap(({ siteId, rows: lost }) =>
      (siteId === '' || SITE_ID.test(siteId)) && lost < MAX_LOST ? [{ siteId, rows: Number(lost) }] : [],
    ),
  };
}

/** Rows of a report that are never stored, without those that cannot be. Throws invalid_argument beyond the limits. */
export function readTailRows(
  encoded: readonly Uint8Array[],
  { nodeId, now }: Omit<LoggingNode, 'clusterId'>,
): LogRow[] {
  const bytes = encoded.reduce((sum, row) => sum + row.length, 0);
  if (encoded.length > MAX_ROWS || bytes > MAX_BYTES) {
    throw invalid(`a report has at most ${MAX_ROWS} rows and ${MAX_BYTES} bytes`);
  }
  const names = rowNames(nodeId);
  return encoded.flatMap((each) => {
    const message = decodedRow(each);
    return (message && readRow(message, nodeId, names, now)) ?? [];
  });
}

function decoded(bytes: Uint8Array) {
  try {
    return fromBinary(ReportLogsRequestSchema, bytes);
  } catch {
    throw invalid('the message cannot be decoded');
  }
}

function decodedRow(encoded: Uint8Array): LogRowMessage | undefined {
  try {
    return fromBinary(LogRowSchema, encoded);
  } catch {
    return undefined;
  }
}

function invalid(message: string): ConnectError {
  return new ConnectError(message, Code.InvalidArgument);
}

/** Names rows by the node, its process and their number: no node can name a row of another one. */
function rowNames(nodeId: string): (boot: bigint, row: bigint) => string {
  const known = new Map<bigint, string>();
  return (boot, row) => {
    let prefix = known.get(boot);
    if (prefix === undefined) {
      prefix = createHash('sha256').update(`${nodeId} ${boot}`).digest('hex').slice(0, 16);
      known.set(boot, prefix);
    }
    const hex = prefix + BigInt.asUintN(64, row).toString(16).padStart(16, '0');
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
  };
}

/** Undefined for a row that cannot be. */
function readRow(
  message: LogRowMessage,
  nodeId: string,
  nameOf: ReturnType<typeof rowNames>,
  now: number,
): LogRow | undefined {
  const at = Number(message.atMs);
  const { siteId, status, sampleRate } = message;
  const counts = [Number(message.bytesSent), Number(message.bytesReceived)] as const;
  const possible =
    SITE_ID.test(siteId) &&
    at > 0 &&
    at <= now + AHEAD_MS &&
    (status === 0 || (status >= 100 && status < 600)) &&
    sampleRate >= 1 &&
    sampleRate <= MAX_SAMPLE &&
    message.durationMs <= MAX_DURATION &&
    counts.every((count) => count <= MAX_COUNT);
  if (!possible) return undefined;
  const upstreamStatus = message.upstreamStatus >= 100 && message.upstreamStatus < 600 ? message.upstreamStatus : null;
  const row: LogRow = {
    siteId,
    at,
    id: nameOf(message.boot, message.row),
    nodeId,
    clientIp: addressOf(message.client),
    method: message.method,
    host: message.host,
    path: message.path,
    status,
    bytesSent: counts[0],
    requestBytes: counts[1],
    durationMs: message.durationMs,
    sampleRate,
    requestId: message.requestId || null,
    cacheStatus: oneOf(CACHE_STATUSES, message.cacheStatus),
    ja4: message.ja4 || null,
    wafRuleIds: message.wafRuleIds.filter((id) => id < LAST_WAF_RULE).slice(0, MAX_WAF_RULES),
    wafBlocked: message.wafBlocked,
    userAgent: message.userAgent || null,
    referer: message.referer || null,
    ruleIds: message.ruleIds.filter((id) => RULE_ID.test(id)).slice(0, MAX_RULES),
    peerIp: addressOf(message.peer),
    httpVersion: oneOf(VERSIONS, message.httpVersion),
    secure: message.secure,
    country: COUNTRY.test(message.country) ? message.country : null,
    asn: message.asn || null,
    asName: message.asName || null,
    upstream: message.upstream || null,
    upstreamStatus,
    upstreamMs: message.upstream === '' ? null : Math.min(message.upstreamMs, MAX_DURATION),
    contentType: message.contentType || null,
    tlsVersion: oneOf(TLS_VERSIONS, message.tlsVersion),
    blockReason: oneOf(BLOCK_REASONS, message.blockReason),
    blockRuleId: RULE_ID.test(message.blockRuleId) ? message.blockRuleId : null,
    query: message.query || null,
    headers: message.headers.slice(0, MAX_HEADERS).map(({ name, value }) => ({ name, value })),
    errorCode: message.errorCode || null,
  };
  return fits(row) ? row : undefined;
}

/** Bytes of texts at most, as the data plane cuts them. */
const MOST: Partial<Record<keyof LogRow, number>> = {
  ...{ method: 32, host: 253, path: 2048, requestId: 128, ja4: 36, userAgent: 512, referer: 1024, asName: 128 },
  ...{ upstream: 64, contentType: 128, query: 2048, errorCode: 64 },
};
const MAX_NAME = 64;
const MAX_VALUE = 512;

function fits(row: LogRow): boolean {
  for (const [field, most] of Object.entries(MOST)) {
    const text = row[field as keyof LogRow] as string | null;
    if (text !== null && !isText(text, most)) return false;
  }
  return row.headers.every(({ name, value }) => isText(name, MAX_NAME) && isText(value, MAX_VALUE));
}

/** No database takes NUL, and halves of surrogate pairs are no text. */
function isText(text: string, most: number): boolean {
  return (
    text.length <= most &&
    text.isWellFormed() &&
    !text.includes('\0') &&
    (text.length * 3 <= most || Buffer.byteLength(text) <= most)
  );
}

function oneOf<T extends string>(known: readonly T[], text: string): T | null {
  return known.find((each) => each === text) ?? null;
}

const GROUPS = 8;

/** Null for what is no address. */
function addressOf(bytes: Uint8Array): string | null {
  if (bytes.length === 4) return bytes.join('.');
  if (bytes.length !== 2 * GROUPS) return null;
  const groups = Array.from({ length: GROUPS }, (_, index) =>
    ((bytes[2 * index]! << 8) | bytes[2 * index + 1]!).toString(16),
  );
  return groups.join(':');
}
