// Written by `npm run generate` from the files it imports. Changes here are lost.
import { alidnsAdapter } from '../dns/adapters/alidns/alidns.adapter.ts';
import { cloudflareAdapter } from '../dns/adapters/cloudflare/cloudflare.adapter.ts';
import { dnspodAdapter } from '../dns/adapters/dnspod/dnspod.adapter.ts';
import { huaweicloudAdapter } from '../dns/adapters/huaweicloud/huaweicloud.adapter.ts';
import { powerdnsAdapter } from '../dns/adapters/powerdns/powerdns.adapter.ts';
import { rfc2136Adapter } from '../dns/adapters/rfc2136/rfc2136.adapter.ts';
import { route53Adapter } from '../dns/adapters/route53/route53.adapter.ts';
import { tencentcloudAdapter } from '../dns/adapters/tencentcloud/tencentcloud.adapter.ts';
import { webhookAdapter } from '../dns/adapters/webhook/webhook.adapter.ts';

export const DNS_ADAPTERS = [
  alidnsAdapter,
  cloudflareAdapter,
  dnspodAdapter,
  huaweicloudAdapter,
  powerdnsAdapter,
  rfc2136Adapter,
  route53Adapter,
  tencentcloudAdapter,
  webhookAdapter,
] as const;
