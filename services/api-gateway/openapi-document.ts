import { PROCEDURES } from '../../contract/index.ts';
import { openApi } from '../../contract/openapi.ts';

/** The OpenAPI document of this console. */
export function openApiDocument(publicUrl: string, version: string): object {
  return openApi(PROCEDURES.values(), { server: `${publicUrl}/api/v1`, version });
}
