// The internal certificate authority that vouches for nodes and the node channel. Its private key is sealed; what signs
// with it is mixins/certificate-authority.ts.
import type { Knex } from 'knex';
import type { SecretPlace } from '../../runtime/sealer.ts';
import { BaseModel } from '../db/base.ts';

export class CertificateAuthorityRow extends BaseModel {
  static override tableName = 'certificate_authority';

  declare id: string;
  declare certificatePem: string;
  declare certificateSha256: Buffer;
  declare privateKey: string;
  declare createdAt: Date;

  /** The authority in use; undefined before the first start of a node channel or enrollment service. */
  static async current(sql: Knex): Promise<CertificateAuthorityRow | undefined> {
    return CertificateAuthorityRow.query(sql).orderBy('created_at', 'desc').first();
  }
}

export function authorityKeyPlace(id: string): SecretPlace {
  return { table: 'certificate_authority', column: 'private_key', row: id };
}
