// Cache rules that are offered together under a name (docs/cache.md). Clients show what matches none as custom.
import { cacheConditionOf } from './expression/cache-builder.ts';
import { type CacheRule, DEFAULT_CACHE_RULE } from './resources/site-cache.ts';

export const CACHE_PRESETS = ['static', 'everything', 'wordpress', 'none'] as const;
export type CachePreset = (typeof CACHE_PRESETS)[number];

const HOUR = 3600;
const DAY = 24 * HOUR;
/** Files whose name changes with their content, or that seldom change. */
const STATIC_EXTENSIONS = [
  ...['avif', 'bmp', 'css', 'eot', 'gif', 'ico', 'jpeg', 'jpg', 'js', 'mjs', 'mp3', 'mp4'],
  ...['ogg', 'otf', 'pdf', 'png', 'svg', 'ttf', 'wasm', 'webm', 'webp', 'woff', 'woff2'],
];
/** Cookies of visitors for whom WordPress and WooCommerce make pages of their own; their names go on. */
const WORDPRESS_COOKIES = [
  'comment_author_',
  'woocommerce_cart_hash',
  'woocommerce_items_in_cart',
  'wordpress_logged_in_',
  'wp-postpass_',
  'wp_woocommerce_session_',
];
const LOGGED_IN = WORDPRESS_COOKIES.map((name) => `http.request.headers["cookie"] contains "${name}"`).join(' or ');

type Lists = Partial<Pick<CacheRule, 'pathPrefixes' | 'paths' | 'extensions'>>;

/** A rule with lists and the condition that they are. */
function rule(priority: number, lists: Lists, more: Partial<CacheRule> = {}): CacheRule {
  const built = { pathPrefixes: [], paths: [], extensions: [], ...lists };
  return { priority, ...DEFAULT_CACHE_RULE, ...built, expression: cacheConditionOf(built), ...more };
}

export const CACHE_PRESET_RULES: Readonly<Record<CachePreset, readonly CacheRule[]>> = {
  static: [rule(10, { extensions: STATIC_EXTENSIONS }, { edgeTtlSeconds: DAY })],
  everything: [rule(10, {})],
  wordpress: [
    rule(10, { pathPrefixes: ['/wp-admin/', '/wp-json/', '/wp-login.php', '/wp-cron.php'] }, { action: 'bypass' }),
    rule(20, { extensions: STATIC_EXTENSIONS }, { edgeTtlSeconds: DAY }),
    rule(30, {}, { expression: LOGGED_IN, action: 'bypass' }),
    rule(40, {}, { edgeTtlSeconds: 600, staleWhileRevalidateSeconds: 60, staleIfErrorSeconds: DAY }),
  ],
  none: [],
};
