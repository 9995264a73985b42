// A row of a request log, as it is written and read.

/** Null: the request had none. */
export interface LogRow {
  siteId: string;
  /** Milliseconds. */
  at: number;
  /** UUID of the row; a double has the same. */
  id: string;
  nodeId: string;
  clientIp: string | null;
  method: string;
  host: string;
  path: string;
  /** 0: no response began to leave. */
  status: number;
  bytesSent: number;
  requestBytes: number;
  durationMs: number;
  sampleRate: number;
  requestId: string | null;
  cacheStatus: string | null;
  ja4: string | null;
  wafRuleIds: readonly number[];
  wafBlocked: boolean;
  userAgent: string | null;
  referer: string | null;
  ruleIds: readonly string[];
  peerIp: string | null;
  httpVersion: string | null;
  secure: boolean;
  country: string | null;
  asn: number | null;
  asName: string | null;
  upstream: string | null;
  upstreamStatus: number | null;
  upstreamMs: number | null;
  contentType: string | null;
  tlsVersion: string | null;
  blockReason: string | null;
  blockRuleId: string | null;
  query: string | null;
  headers: readonly { name: string; value: string }[];
  errorCode: string | null;
}

export type MissingReason = 'no_room' | 'refused' | 'too_old';
