// Who may call: certificates of the internal authority, of the right organisation, with a serial on record that is
// neither revoked nor replaced nor expired, of a node that exists. Checked before anything of a request is read.
//
// Answers are kept per serial and looked up again together every 2 s and at every hint, so a node that is disabled or
// deleted is out within 2 s at the latest.
import type { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import type { CertificateAuthority } from '../../mixins/certificate-authority.ts';
import { NODE_ORGANISATION } from '../../mixins/certificate-authority.ts';
import {
  type CertificateState,
  certificateStates,
  certificateTroubles,
  markFirstUse,
} from '../../models/nodes/node-certificate.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { NodeIdentity } from './identity.ts';

/** Why a certificate is refused, as people see it in `authError`. */
export type RefusalReason =
  | 'CERT_MISSING'
  | 'CERT_OTHER_AUTHORITY'
  | 'CERT_WRONG_ORGANISATION'
  | 'CERT_HAS_EXPIRED'
  | 'CERT_NOT_YET_VALID'
  | 'CERT_UNKNOWN_SERIAL'
  | 'CERT_REVOKED'
  | 'CERT_SUPERSEDED'
  | 'NODE_NOT_FOUND'
  | 'NODE_DISABLED';

/** A call refused. `nodeId` is the node that a certificate of ours names; null when nobody vouches for the name. */
export class Refused extends Error {
  readonly reason: RefusalReason;
  readonly nodeId: string | null;

  constructor(reason: RefusalReason, nodeId: string | null = null) {
    super(reason);
    this.name = 'Refused';
    this.reason = reason;
    this.nodeId = nodeId;
  }
}

interface Peer {
  serial: string;
  nodeId: string;
  notBefore: number;
  notAfter: number;
}

interface Known {
  identity: NodeIdentity | null;
  refusal: RefusalReason | null;
  usedAt: number;
}

const FORGET_MS = 5 * 60_000;
const MAX_KNOWN = 20_000;

export class Authenticator {
  readonly #runtime: Runtime;
  readonly #authority: CertificateAuthority;
  readonly #peers = new WeakMap<TLSSocket, Peer | Refused>();
  readonly #known = new Map<string, Known>();
  readonly #looking = new Map<string, Promise<Known>>();

  constructor(runtime: Runtime, authority: CertificateAuthority) {
    this.#runtime = runtime;
    this.#authority = authority;
  }

  /** The node behind the connection. Throws {@link Refused}. */
  async identify(socket: TLSSocket, options: { renewing: boolean }): Promise<NodeIdentity> {
    const peer = this.#peerOf(socket);
    if (peer instanceof Refused) throw peer;
    const now = Date.now();
    if (peer.notAfter <= now) throw new Refused('CERT_HAS_EXPIRED', peer.nodeId);
    if (peer.notBefore > now) throw new Refused('CERT_NOT_YET_VALID', peer.nodeId);
    const known = this.#known.get(peer.serial) ?? (await this.#look(peer.serial));
    known.usedAt = now;
    const { identity, refusal } = known;
    if (refusal !== null) throw new Refused(refusal, peer.nodeId);
    if (identity === null || identity.nodeId !== peer.nodeId) throw new Refused('CERT_UNKNOWN_SERIAL', peer.nodeId);
    if (identity.status === 'disabled' && !options.renewing) throw new Refused('NODE_DISABLED', peer.nodeId);
    return identity;
  }

  /** Looks everything up again, and forgets what was not used for 5 minutes. */
  async refresh(): Promise<void> {
    const forgotten = Date.now() - FORGET_MS;
    for (const [serial, known] of this.#known) if (known.usedAt < forgotten) this.#known.delete(serial);
    const serials = [...this.#known.keys()];
    if (serials.length === 0) return;
    // Only what is wrong is answered: with a thousand nodes everything else would be read for nothing.
    const wrong = await certificateTroubles(this.#runtime.pools.channel, serials);
    for (const serial of serials) {
      const known = this.#known.get(serial);
      if (!known) continue;
      const trouble = wrong.get(serial) ?? null;
      if (known.identity) known.identity.status = trouble === 'disabled' ? 'disabled' : 'active';
      known.refusal = trouble === null || trouble === 'disabled' ? null : REFUSALS[trouble];
    }
  }

  /** Whether calls with this identity are still accepted. */
  isAccepted(identity: NodeIdentity): boolean {
    const known = this.#known.get(identity.serial);
    return known === undefined || (known.refusal === null && identity.status === 'active');
  }

  /** Keeps the certificate's state fresh although nothing is called. */
  touch(identity: NodeIdentity): void {
    const known = this.#known.get(identity.serial);
    if (known) known.usedAt = Date.now();
  }

  #peerOf(socket: TLSSocket): Peer | Refused {
    let peer = this.#peers.get(socket);
    if (!peer) {
      peer = readPeer(socket.getPeerX509Certificate(), this.#authority);
      this.#peers.set(socket, peer);
    }
    return peer;
  }

  async #look(serial: string): Promise<Known> {
    let looking = this.#looking.get(serial);
    if (!looking) {
      looking = this.#lookUp(serial).finally(() => this.#looking.delete(serial));
      this.#looking.set(serial, looking);
    }
    return looking;
  }

  async #lookUp(serial: string): Promise<Known> {
    const state = (await certificateStates(this.#runtime.pools.channel, [serial])).get(serial);
    const known = toKnown(state);
    if (known.identity && state && !state.used) {
      await markFirstUse(this.#runtime.pools.channel, serial);
      // The certificate before it ends here; connections that still use it are to be told.
      await this.refresh();
    }
    // Serials are only known to holders of our certificates, so the bound is never met by strangers.
    if (this.#known.size < MAX_KNOWN) this.#known.set(serial, known);
    return known;
  }
}

const REFUSALS = {
  unknown: 'CERT_UNKNOWN_SERIAL',
  revoked: 'CERT_REVOKED',
  superseded: 'CERT_SUPERSEDED',
  deleted: 'NODE_NOT_FOUND',
} as const satisfies Record<string, RefusalReason>;

/** What the database says of a serial at its first use here. */
function toKnown(state: CertificateState | undefined): Known {
  const usedAt = Date.now();
  if (!state) return { identity: null, refusal: REFUSALS.unknown, usedAt };
  const { serial, nodeId, clusterId, name, status, notAfter, features } = state;
  if (state.state !== 'active') return { identity: null, refusal: REFUSALS[state.state], usedAt };
  if (nodeId === null || clusterId === null || status === null) {
    return { identity: null, refusal: REFUSALS.deleted, usedAt };
  }
  const identity: NodeIdentity = {
    nodeId,
    clusterId,
    serial,
    certificateNotAfter: notAfter,
    name: name ?? '',
    principals: ['node'],
    status,
    features: new Set(features),
  };
  return { identity, refusal: null, usedAt };
}

/** Reads a certificate that the TLS handshake accepted without judging it. */
export function readPeer(certificate: X509Certificate | undefined, authority: CertificateAuthority): Peer | Refused {
  if (!certificate) return new Refused('CERT_MISSING');
  if (!authority.hasSigned(certificate)) return new Refused('CERT_OTHER_AUTHORITY');
  const { CN: nodeId, O: organisation } = certificate.toLegacyObject().subject as { CN?: unknown; O?: unknown };
  if (typeof nodeId !== 'string' || nodeId === '') return new Refused('CERT_WRONG_ORGANISATION');
  if (organisation !== NODE_ORGANISATION) return new Refused('CERT_WRONG_ORGANISATION', nodeId);
  return {
    serial: certificate.serialNumber,
    nodeId,
    notBefore: Date.parse(certificate.validFrom),
    notAfter: Date.parse(certificate.validTo),
  };
}
