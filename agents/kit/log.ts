// Structured logs: one JSON object per line on stderr. Nothing that looks like a secret leaves through here.
export type LogLevel = 'debug' | 'info' | 'warn' | 'error';
export type LogFields = Record<string, unknown>;

export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** The same log with `fields` on every line. */
  child(fields: LogFields): Log;
}

const ORDER: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 };
const SECRET_NAME = /token|secret|password|authorization|private|keypem/i;
const SECRET_TEXT = /\bew[tp]_[A-Za-z0-9_-]+/g;
const PEM_KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----/g;
const MAX_TEXT = 2000;

/** The text without enrollment tokens and private keys, at most 2,000 characters. */
export function redact(text: string): string {
  return text.replace(SECRET_TEXT, '[redacted]').replace(PEM_KEY, '[redacted]').slice(0, MAX_TEXT);
}

/** A short description of anything thrown, with its causes; never a stack. */
export function errorText(error: unknown): string {
  const parts: string[] = [];
  let current: unknown = error;
  while (current !== undefined && current !== null && parts.length < 4) {
    const text = current instanceof Error ? current.message || current.name : String(current);
    if (!parts.some((part) => part.includes(text))) parts.push(text);
    current = current instanceof Error ? current.cause : undefined;
  }
  return redact(parts.join(': '));
}

function present(name: string, value: unknown): unknown {
  if (SECRET_NAME.test(name)) return '[redacted]';
  if (value instanceof Error) return errorText(value);
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'string') return redact(value);
  return value;
}

/** A log writing lines of `level` and above to `write` (default: stderr). */
export function createLog(
  level: LogLevel = 'info',
  base: LogFields = {},
  write: (line: string) => void = (line) => {
    process.stderr.write(line);
  },
): Log {
  const emit = (at: LogLevel, message: string, fields: LogFields = {}): void => {
    if (ORDER[at] < ORDER[level]) return;
    const line: LogFields = { time: new Date().toISOString(), level: at, message };
    for (const [name, value] of Object.entries({ ...base, ...fields })) line[name] = present(name, value);
    write(`${JSON.stringify(line, (_key, value) => (typeof value === 'bigint' ? value.toString() : value))}\n`);
  };
  return {
    debug: (message, fields) => emit('debug', message, fields),
    info: (message, fields) => emit('info', message, fields),
    warn: (message, fields) => emit('warn', message, fields),
    error: (message, fields) => emit('error', message, fields),
    child: (fields) => createLog(level, { ...base, ...fields }, write),
  };
}
