import { badField } from '../../../contract/errors.ts';

/** Throws BAD_REQUEST for what is no URL of http or https, has credentials, or is not on the host where one is named. */
export function assertUrl(text: string, host?: string): void {
  const url = URL.parse(text) ?? badField('/config/url', 'url');
  if (url.username !== '' || url.password !== '' || url.hash !== '') badField('/config/url', 'url');
  if (url.protocol !== 'https:' && (host !== undefined || url.protocol !== 'http:')) badField('/config/url', 'https');
  if (host !== undefined && url.host !== host) badField('/config/url', 'host', { host });
}
