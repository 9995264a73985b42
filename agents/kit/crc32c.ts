// CRC-32C (Castagnoli, reflected), eight bytes a step. zlib.crc32 computes another polynomial.
const POLYNOMIAL = 0x82f63b78;
const TABLES = buildTables();

function buildTables(): Int32Array {
  const tables = new Int32Array(8 * 256);
  for (let index = 0; index < 256; index++) {
    let value = index;
    for (let bit = 0; bit < 8; bit++) value = (value & 1) !== 0 ? (value >>> 1) ^ POLYNOMIAL : value >>> 1;
    tables[index] = value;
  }
  for (let index = 0; index < 256; index++) {
    let value = tables[index]!;
    for (let table = 1; table < 8; table++) {
      value = tables[value & 0xff]! ^ (value >>> 8);
      tables[table * 256 + index] = value;
    }
  }
  return tables;
}

/** CRC-32C of `bytes` as an unsigned 32-bit number. */
export function crc32c(bytes: Uint8Array): number {
  const t = TABLES;
  const length = bytes.length;
  let crc = -1;
  let at = 0;
  for (const end = length - 7; at < end; at += 8) {
    const low = crc ^ (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24));
    crc =
      t[1792 + (low & 0xff)]! ^
      t[1536 + ((low >>> 8) & 0xff)]! ^
      t[1280 + ((low >>> 16) & 0xff)]! ^
      t[1024 + (low >>> 24)]! ^
      t[768 + bytes[at + 4]!]! ^
      t[512 + bytes[at + 5]!]! ^
      t[256 + bytes[at + 6]!]! ^
      t[bytes[at + 7]!]!;
  }
  for (; at < length; at++) crc = t[(crc ^ bytes[at]!) & 0xff]! ^ (crc >>> 8);
  return ~crc >>> 0;
}
