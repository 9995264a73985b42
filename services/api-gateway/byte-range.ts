// Range (RFC 9110, 14.2): one range of bytes. What is not understood, several ranges included, means the whole.

export interface ByteRange {
  start: number;
  length: number;
}

const SINGLE = /^bytes=[ \t]*([0-9]*)-([0-9]*)[ \t]*$/i;

/** The range asked for; null for the whole, 'unsatisfiable' when nothing of it exists. */
export function byteRange(header: string | undefined, size: number): ByteRange | 'unsatisfiable' | null {
  const [, first = '', last = ''] = SINGLE.exec(header ?? '') ?? [];
  if (first === '' && last === '') return null;
  if (first === '') {
    const length = Math.min(Number(last), size);
    return length === 0 ? 'unsatisfiable' : { start: size - length, length };
  }
  const start = Number(first);
  const end = last === '' ? Number.POSITIVE_INFINITY : Number(last);
  if (end < start) return null;
  return start < size ? { start, length: Math.min(end, size - 1) - start + 1 } : 'unsatisfiable';
}
