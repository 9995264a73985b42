// Fields of credentials.
import type { CredentialField } from './adapter.ts';

const FIELD: Omit<CredentialField, 'key'> = {
  type: 'text',
  secret: false,
  required: true,
  placeholder: '',
  pattern: '^[!-~]+$',
  maxLength: 256,
  options: [],
  default: '',
};

export function textField(key: string, more: Partial<CredentialField> = {}): CredentialField {
  return { ...FIELD, key, ...more };
}

export function secretField(key: string, more: Partial<CredentialField> = {}): CredentialField {
  return { ...FIELD, key, type: 'secret', secret: true, ...more };
}
