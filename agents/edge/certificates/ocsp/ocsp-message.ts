// What a responder is asked of a certificate, and whether its answer may be shown to clients (RFC 6960).
import { createHash, createPublicKey, type KeyObject, verify, X509Certificate } from 'node:crypto';
import {
  BasicOCSPResponse,
  CertID,
  id_kp_OCSPSigning,
  id_pkix_ocsp_basic,
  OCSPRequest,
  OCSPResponse,
  OCSPResponseStatus,
  Request,
  type ResponderID,
  type SingleResponse,
  TBSRequest,
} from '@peculiar/asn1-ocsp';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import { AlgorithmIdentifier, Certificate, ExtendedKeyUsage, id_ce_extKeyUsage } from '@peculiar/asn1-x509';

const SHA1 = '1.3.14.3.2.26';
const SKEW_MS = 5 * 60_000;
const DER_NULL = new Uint8Array([5, 0]).buffer;
/** Those that authorities sign answers with. */
const HASHES: Record<string, string> = {
  '1.2.840.10045.4.3.2': 'sha256',
  '1.2.840.10045.4.3.3': 'sha384',
  '1.2.840.10045.4.3.4': 'sha512',
  '1.2.840.113549.1.1.11': 'sha256',
  '1.2.840.113549.1.1.12': 'sha384',
  '1.2.840.113549.1.1.13': 'sha512',
};

/** A certificate and its issuer, as a responder names them. */
export interface Subject {
  leaf: Certificate;
  issuer: Certificate;
  issuerKey: KeyObject;
}

export function subjectOf(leafDer: Uint8Array, issuerDer: Uint8Array): Subject {
  const issuer = new X509Certificate(issuerDer);
  if (!new X509Certificate(leafDer).checkIssued(issuer)) throw new Error('the chain does not contain the issuer');
  return {
    leaf: AsnConvert.parse(leafDer, Certificate),
    issuer: AsnConvert.parse(issuerDer, Certificate),
    issuerKey: issuer.publicKey,
  };
}

/** Address of the responder of a certificate that is asked without TLS; undefined when it names none. */
export function responderOf(leafDer: Uint8Array): string | undefined {
  return /^OCSP - URI:(http:\/\/\S+)$/m.exec(new X509Certificate(leafDer).infoAccess ?? '')?.[1];
}

/** A request in DER. */
export function encodeRequest(subject: Subject): Buffer {
  const reqCert = new CertID({
    hashAlgorithm: new AlgorithmIdentifier({ algorithm: SHA1, parameters: DER_NULL }),
    issuerNameHash: new OctetString(sha1(AsnConvert.serialize(subject.leaf.tbsCertificate.issuer))),
    issuerKeyHash: new OctetString(keyHash(subject.issuer)),
    serialNumber: subject.leaf.tbsCertificate.serialNumber,
  });
  const tbsRequest = new TBSRequest({ requestList: [new Request({ reqCert })] });
  return Buffer.from(AsnConvert.serialize(new OCSPRequest({ tbsRequest })));
}

/** Until when an answer in DER says that the certificate is good, Unix ms. Throws when it may not be shown to clients. */
export function checkAnswer(answer: Uint8Array, subject: Subject, nowMs: number): number {
  const { responseStatus, responseBytes } = AsnConvert.parse(answer, OCSPResponse);
  if (responseStatus !== OCSPResponseStatus.successful || responseBytes?.responseType !== id_pkix_ocsp_basic)
    throw new Error(`the OCSP responder responds with status ${responseStatus}`);
  const basic = AsnConvert.parse(responseBytes.response.buffer, BasicOCSPResponse);
  checkSignature(basic, subject, nowMs);
  const single = basic.tbsResponseData.responses.find(({ certID }) => isOf(certID, subject));
  if (!single) throw new Error('the OCSP response is for another certificate');
  return endOf(single, nowMs);
}

function endOf({ certStatus, thisUpdate, nextUpdate }: SingleResponse, nowMs: number): number {
  if (certStatus.revoked) throw new Error('the certificate is revoked');
  if (certStatus.good === undefined) throw new Error('the OCSP responder does not know the certificate');
  if (!nextUpdate) throw new Error('the OCSP response has no expiry');
  if (thisUpdate.getTime() > nowMs + SKEW_MS) throw new Error('the OCSP response is not valid yet');
  if (nextUpdate.getTime() <= nowMs) throw new Error('the OCSP response has expired');
  return nextUpdate.getTime();
}

function isOf(certID: CertID, { leaf, issuer }: Subject): boolean {
  return (
    certID.hashAlgorithm.algorithm === SHA1 &&
    same(certID.issuerNameHash.buffer, sha1(AsnConvert.serialize(leaf.tbsCertificate.issuer))) &&
    same(certID.issuerKeyHash.buffer, keyHash(issuer)) &&
    same(certID.serialNumber, leaf.tbsCertificate.serialNumber)
  );
}

/** The issuer signed it, or one that the issuer lets sign. */
function checkSignature(basic: BasicOCSPResponse, subject: Subject, nowMs: number): void {
  const { responderID } = basic.tbsResponseData;
  const signed = (key: KeyObject): boolean => {
    const hash = HASHES[basic.signatureAlgorithm.algorithm];
    const data = Buffer.from(basic.tbsResponseDataRaw ?? AsnConvert.serialize(basic.tbsResponseData));
    return hash !== undefined && verify(hash, data, key, Buffer.from(basic.signature));
  };
  if (isResponder(responderID, subject.issuer) && signed(subject.issuerKey)) return;
  const delegate = basic.certs?.find((certificate) => isResponder(responderID, certificate));
  if (delegate && mayAnswer(delegate, subject, nowMs) && signed(keyOf(delegate))) return;
  throw new Error('the OCSP response is signed neither by the issuer nor by its delegate');
}

function isResponder({ byName, byKey }: ResponderID, certificate: Certificate): boolean {
  if (byKey) return same(byKey.buffer, keyHash(certificate));
  const { subject } = certificate.tbsCertificate;
  return byName !== undefined && same(AsnConvert.serialize(byName), AsnConvert.serialize(subject));
}

function mayAnswer(delegate: Certificate, { issuer, issuerKey }: Subject, nowMs: number): boolean {
  const der = Buffer.from(AsnConvert.serialize(delegate));
  const certificate = new X509Certificate(der);
  if (nowMs < certificate.validFromDate.getTime() || nowMs > certificate.validToDate.getTime()) return false;
  const usage = delegate.tbsCertificate.extensions?.find(({ extnID }) => extnID === id_ce_extKeyUsage);
  if (!usage || !AsnConvert.parse(usage.extnValue.buffer, ExtendedKeyUsage).includes(id_kp_OCSPSigning)) return false;
  return (
    certificate.checkIssued(new X509Certificate(Buffer.from(AsnConvert.serialize(issuer)))) &&
    certificate.verify(issuerKey)
  );
}

function keyOf(certificate: Certificate): KeyObject {
  const key = Buffer.from(AsnConvert.serialize(certificate.tbsCertificate.subjectPublicKeyInfo));
  return createPublicKey({ key, format: 'der', type: 'spki' });
}

function keyHash(certificate: Certificate): Buffer {
  return sha1(certificate.tbsCertificate.subjectPublicKeyInfo.subjectPublicKey);
}

function sha1(bytes: ArrayBuffer): Buffer {
  return createHash('sha1').update(Buffer.from(bytes)).digest();
}

function same(left: ArrayBuffer, right: ArrayBuffer | Uint8Array): boolean {
  return Buffer.from(left).equals(right instanceof Uint8Array ? right : Buffer.from(right));
}
