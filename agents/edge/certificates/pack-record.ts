// Records of the pack of certificates.
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { type CertificateRecord, CertificateRecordSchema } from '../../../proto/gen/svc/edge/v1/edge_pb.js';
import type { CertificateMaterial, CertificateStaple } from '../../../proto/gen/svc/node/v1/certificates_pb.js';
import { readFields } from '../config/wire.ts';
import { FINGERPRINT_BYTES, type Fingerprint } from './fingerprint.ts';

const RECORD_MATERIAL = 1;
const RECORD_STAPLE = 2;
const MATERIAL_FINGERPRINT = 2;
const STAPLE_FINGERPRINT = 1;
/** Caddy takes anything longer for no record at all. */
export const MAX_PAYLOAD_BYTES = 1024 * 1024;

export function encodeMaterial(value: CertificateMaterial): Uint8Array {
  return toBinary(CertificateRecordSchema, create(CertificateRecordSchema, { record: { case: 'material', value } }));
}

export function encodeStaple(value: CertificateStaple): Uint8Array {
  return toBinary(CertificateRecordSchema, create(CertificateRecordSchema, { record: { case: 'staple', value } }));
}

export function decodeRecord(payload: Uint8Array): CertificateRecord['record'] {
  return fromBinary(CertificateRecordSchema, payload).record;
}

/** What a record is of, without a copy of what is secret in it; undefined when it is not one. */
export function kindOfRecord(payload: Buffer): { fingerprint: Fingerprint; isStaple: boolean } | undefined {
  let fingerprint: Fingerprint | undefined;
  let isStaple = false;
  try {
    readFields(payload, 0, payload.length, (number, start, end) => {
      if (number !== RECORD_MATERIAL && number !== RECORD_STAPLE) return;
      isStaple = number === RECORD_STAPLE;
      const wanted = isStaple ? STAPLE_FINGERPRINT : MATERIAL_FINGERPRINT;
      readFields(payload, start, end, (inner, from, to) => {
        if (inner === wanted && to - from === FINGERPRINT_BYTES) fingerprint = payload.toString('latin1', from, to);
      });
    });
  } catch {
    return undefined;
  }
  return fingerprint === undefined ? undefined : { fingerprint, isStaple };
}
