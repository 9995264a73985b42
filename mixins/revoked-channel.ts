/** Redis channel on which the hash (hexadecimal SHA-256) of a revoked access key is told; prefixed like every name. */
export const REVOKED_CHANNEL = 'svc:revoked-keys';
