// Logs: one JSON object a line on standard output, a constant lower-case message and fields.
import type { Writable } from 'node:stream';
import { type BrokerOptions, Loggers } from 'moleculer';
import { type Logger, pino } from 'pino';

// Whoever logs a whole object by mistake does not log its secrets.
const SECRET_FIELDS = [
  'password',
  'currentPassword',
  'newPassword',
  'secret',
  'token',
  'masterKey',
  'privateKey',
  'headers.cookie',
  'headers["x-api-key"]',
  'headers.authorization',
];
const REDACTED = SECRET_FIELDS.flatMap((field) => [field, `*.${field}`]);

/** The root logger of a process. */
export function createLog(level: string, destination?: Writable): Logger {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: (error: unknown) => describeError(error) },
    redact: { paths: REDACTED, censor: '[secret]' },
  };
  return destination ? pino(options, destination) : pino(options);
}

interface LoggedError {
  type: string;
  message: string;
  stack?: string | undefined;
  code?: unknown;
  cause?: LoggedError;
}

/** What is written of an error. Not its other fields: errors of drivers carry whole connections. */
function describeError(error: unknown, depth = 0): unknown {
  if (!(error instanceof Error)) return error;
  const { code, cause, message, stack } = error as Error & { code?: unknown };
  return {
    type: error.name,
    message,
    ...(code === undefined ? {} : { code }),
    stack,
    ...(cause instanceof Error && depth < 3 ? { cause: describeError(cause, depth + 1) as LoggedError } : {}),
  };
}

// The broker tells the story of its own start at info; that is detail here.
const LEVELS = { fatal: 'fatal', error: 'error', warn: 'warn', info: 'debug', debug: 'trace', trace: 'trace' } as const;
type BrokerLevel = keyof typeof LEVELS;

/** Carries the broker's own lines into our log. */
export function brokerLogger(log: Logger): NonNullable<BrokerOptions['logger']> {
  class BrokerLog extends Loggers.Base<object> {
    override getLogHandler(bindings: { mod?: string } | null) {
      const child = log.child({ component: bindings?.mod ?? 'broker' });
      return (type: string, args: unknown[]) => {
        const level = LEVELS[type as BrokerLevel] ?? 'debug';
        if (!child.isLevelEnabled(level)) return;
        const err = args.find((arg) => arg instanceof Error);
        const detail = args.filter((arg) => typeof arg === 'string' || typeof arg === 'number').join(' ');
        child[level](err ? { detail, err } : { detail }, 'broker');
      };
    }
  }
  return new BrokerLog({}) as unknown as NonNullable<BrokerOptions['logger']>;
}
