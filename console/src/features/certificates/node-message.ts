// What a node says of a certificate that it cannot use, taken apart: nodes speak English, people need not.

/** What the edge says (agents/caddy/features/handshake), and what is said for it here. */
export const NODE_FAULTS = {
  'there is no material of it': 'noMaterial',
  'it has no chain': 'noChain',
  'its chain begins with another certificate': 'otherLeaf',
  'its key cannot be read': 'keyForm',
  "its key is another one's": 'keyMismatch',
  'it cannot be read': 'unreadable',
} as const;
export type NodeFault = (typeof NODE_FAULTS)[keyof typeof NODE_FAULTS];

const MESSAGE = /^certificate "((?:[^"\\]|\\.)*)": ([^:]+)/;

/** The certificate and what is wrong with it; null for what nobody has words for. */
export function nodeFault(message: string): { name: string; fault: NodeFault } | null {
  const [, name = '', said = ''] = MESSAGE.exec(message) ?? [];
  if (!Object.hasOwn(NODE_FAULTS, said)) return null;
  return { name: name.replaceAll(/\\(["\\])/g, '$1'), fault: NODE_FAULTS[said as keyof typeof NODE_FAULTS] };
}
