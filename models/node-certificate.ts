// Certificates of nodes. A serial is `active` until the next one is first used (then `superseded`) or the node is
// deleted (then `revoked`); rows outlive their nodes, so a revoked serial stays known.
import type { Knex } from 'knex';
import { BaseModel } from './base.ts';

export class NodeCertificate extends BaseModel {
  static override tableName = 'node_certificate';
  static override idColumn = 'serial';

  declare serial: string;
  declare nodeId: string | null;
  declare state: 'active' | 'superseded' | 'revoked';
  declare issuedAt: Date;
  declare notAfter: Date;
  declare firstUsedAt: Date | null;
  declare revokedAt: Date | null;
  declare fingerprint: string;

  static async revokeAll(sql: Knex, nodeId: string, now: Date): Promise<void> {
    await NodeCertificate.query(sql)
      .patch({ state: 'revoked', revokedAt: now })
      .where({ node_id: nodeId })
      .whereNot('state', 'revoked');
  }
}
