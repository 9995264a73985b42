// What a node says of a certificate that it cannot use, taken apart: nodes speak English, people need not.

/** What the edge says (agents/caddy/features/handshake), and what is said for it here. */
export const NODE_FAULTS = {
  'the pack does not have this certificate': 'noMaterial',
  'the certificate has no chain': 'noChain',
  'the chain begins with another certificate': 'otherLeaf',
  'cannot read the private key': 'keyForm',
  'the private key does not belong to the certificate': 'keyMismatch',
  'cannot read the certificate': 'unreadable',
} as const;
export type NodeFault = (typeof NODE_FAULTS)[keyof typeof NODE_FAULTS];

const MESSAGE = /^certificate "((?:[^"\\]|\\.)*)": ([^:]+)/;

/** The certificate and what is wrong with it; null for what nobody has words for. */
export function nodeFault(message: string): { name: string; fault: NodeFault } | null {
  const [, name = '', said = ''] = MESSAGE.exec(message) ?? [];
  if (!Object.hasOwn(NODE_FAULTS, said)) return null;
  return { name: name.replaceAll(/\\(["\\])/g, '$1'), fault: NODE_FAULTS[said as keyof typeof NODE_FAULTS] };
}
