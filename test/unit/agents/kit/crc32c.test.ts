import test from 'ava';
import { crc32c } from '../../../../agents/kit/crc32c.ts';

test('known values of CRC-32C', (t) => {
  t.is(crc32c(Buffer.from('')), 0);
  t.is(crc32c(Buffer.from('123456789')), 0xe3069283);
  t.is(crc32c(Buffer.alloc(32)), 0x8a9136aa);
  t.is(crc32c(Buffer.alloc(32, 0xff)), 0x62a8ab43);
  t.is(crc32c(Buffer.from(Array.from({ length: 32 }, (_, index) => index))), 0x46dd794e);
});
