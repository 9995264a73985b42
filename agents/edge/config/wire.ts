// Just enough of the protobuf wire format to read and write journal records without decoding the entries in them: an
// entry keeps the bytes it came with and is found again by its place in the file.

/** Calls `onField` for every length-delimited field of buffer[start, end); throws a RangeError when it is no protobuf. */
export function readFields(
  buffer: Uint8Array,
  start: number,
  end: number,
  onField: (number: number, start: number, end: number) => void,
): void {
  let at = start;
  const varint = (): number => {
    let value = 0;
    let scale = 1;
    for (let count = 0; count < 10; count++) {
      if (at >= end) throw new RangeError('record ends inside a number');
      const byte = buffer[at++]!;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
    }
    throw new RangeError('number too long');
  };
  while (at < end) {
    const tag = varint();
    const type = tag % 8;
    if (type === 2) {
      const length = varint();
      if (length > end - at) throw new RangeError('field longer than its record');
      onField(Math.floor(tag / 8), at, at + length);
      at += length;
    } else if (type === 0) {
      varint();
    } else if (type === 1) {
      at += 8;
    } else if (type === 5) {
      at += 4;
    } else {
      throw new RangeError('unknown wire type');
    }
  }
  if (at !== end) throw new RangeError('record ends inside a field');
}

/** Tag and length of a length-delimited field, to be followed by its content. */
export function fieldHeader(number: number, length: number): Buffer {
  const bytes: number[] = [];
  for (let value of [number * 8 + 2, length]) {
    while (value >= 128) {
      bytes.push((value % 128) | 128);
      value = Math.floor(value / 128);
    }
    bytes.push(value);
  }
  return Buffer.from(bytes);
}
