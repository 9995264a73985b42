// Conditions in the language of rules and in two others, by what they are made of, and the request they are about.

export interface Rule {
  /** In the language of rules, of expr and of CEL. */
  edge: string;
  expr: string;
  cel: string;
  holds: boolean;
}

export interface RuleClass {
  name: string;
  rules: readonly Rule[];
}

/** A request of a browser, by the names of its properties in the other languages. */
export const REQUEST = {
  host: 'www.example.com',
  method: 'GET',
  path: '/shop/Items/12345',
  query: 'page=2&sort=price',
  agent: 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36',
  referer: 'https://www.example.com/shop/',
  country: 'DE',
  asn: 64_500,
  port: 443,
  ssl: true,
  headers: { 'X-Api-Version': '2', Accept: '*/*', 'Accept-Language': 'de' },
  cookies: { beta: '1', session: 'abcdefghijklmnop' },
  client: '198.51.100.7',
} as const;

const HOST: Rule = {
  edge: 'http.host eq "www.example.com"',
  expr: 'host == "www.example.com"',
  cel: 'host == "www.example.com"',
  holds: true,
};
const METHODS: Rule = {
  edge: 'http.request.method in {"GET" "HEAD"}',
  expr: 'method in ["GET", "HEAD"]',
  cel: 'method in ["GET", "HEAD"]',
  holds: true,
};
const OFFICE: Rule = {
  edge: 'ip.src in {198.51.100.0/24}',
  expr: 'inOffice(client)',
  cel: 'inOffice(client)',
  holds: true,
};
const SHOP: Rule = {
  edge: 'starts_with(http.request.uri.path, "/shop/")',
  expr: 'path startsWith "/shop/"',
  cel: 'path.startsWith("/shop/")',
  holds: true,
};
const SSL: Rule = { edge: 'ssl eq true', expr: 'ssl == true', cel: 'ssl == true', holds: true };
const NOT_FRANCE: Rule = {
  edge: 'not ip.geoip.country eq "FR"',
  expr: 'not (country == "FR")',
  cel: '!(country == "FR")',
  holds: true,
};

/** All of them, joined by and. */
function joined(rules: readonly Rule[]): Rule {
  return {
    edge: rules.map(({ edge }) => edge).join(' and '),
    expr: rules.map(({ expr }) => expr).join(' and '),
    cel: rules.map(({ cel }) => cel).join(' && '),
    holds: rules.every(({ holds }) => holds),
  };
}

const same = (edge: string, other: string): Omit<Rule, 'holds'> => ({ edge, expr: other, cel: other });

/** Ten fields: what a rule asks of each, true and not. */
const FIELDS: readonly ((holds: boolean) => Omit<Rule, 'holds'>)[] = [
  (is) => same(`http.host ${is ? 'eq' : 'ne'} "www.example.com"`, `host ${is ? '==' : '!='} "www.example.com"`),
  (is) => same(`http.request.method eq "${is ? 'GET' : 'PUT'}"`, `method == "${is ? 'GET' : 'PUT'}"`),
  (is) => ({
    edge: `starts_with(http.request.uri.path, "/${is ? 'shop' : 'blog'}/")`,
    expr: `path startsWith "/${is ? 'shop' : 'blog'}/"`,
    cel: `path.startsWith("/${is ? 'shop' : 'blog'}/")`,
  }),
  (is) => same(`http.request.uri.query ne "${is ? '' : REQUEST.query}"`, `query != "${is ? '' : REQUEST.query}"`),
  (is) => ({
    edge: `http.user_agent contains "${is ? 'Chrome' : 'curl'}"`,
    expr: `agent contains "${is ? 'Chrome' : 'curl'}"`,
    cel: `agent.contains("${is ? 'Chrome' : 'curl'}")`,
  }),
  (is) => same(`http.referer ${is ? 'ne' : 'eq'} ""`, `referer ${is ? '!=' : '=='} ""`),
  (is) => same(`ip.geoip.country eq "${is ? 'DE' : 'FR'}"`, `country == "${is ? 'DE' : 'FR'}"`),
  (is) => same(`ip.geoip.asnum ${is ? 'ge' : 'lt'} 64496`, `asn ${is ? '>=' : '<'} 64496`),
  (is) => same(`edge.server_port eq ${is ? 443 : 80}`, `port == ${is ? 443 : 80}`),
  (is) => same(`ssl eq ${is}`, `ssl == ${is}`),
];

/** Rules of a site that matches none of them: each asks for all ten fields, and one of ten answers ends it. */
const SITE: readonly Rule[] = Array.from({ length: 64 }, (_, rule) => {
  const wrong = (rule * 7) % FIELDS.length;
  const order = FIELDS.map((_field, place) => (place + rule) % FIELDS.length);
  return joined(order.map((field) => ({ ...FIELDS[field]!(field !== wrong), holds: field !== wrong })));
});

export const SIX = 'six predicates';
export const SIXTY_FOUR = '64 rules of ten fields';

export const CLASSES: readonly RuleClass[] = [
  { name: 'eq', rules: [HOST] },
  { name: 'in a set', rules: [METHODS] },
  { name: 'in a network', rules: [OFFICE] },
  {
    name: 'pattern',
    rules: [
      {
        edge: 'http.user_agent matches "(Chrome|Firefox)/[0-9]+"',
        expr: 'agent matches "(Chrome|Firefox)/[0-9]+"',
        cel: 'agent.matches("(Chrome|Firefox)/[0-9]+")',
        holds: true,
      },
    ],
  },
  {
    name: 'pattern that is not there',
    rules: [
      {
        edge: 'http.user_agent matches "(curl|wget|python-requests)/"',
        expr: 'agent matches "(curl|wget|python-requests)/"',
        cel: 'agent.matches("(curl|wget|python-requests)/")',
        holds: false,
      },
    ],
  },
  {
    // The others have patterns for it.
    name: 'wildcard',
    rules: [
      {
        edge: 'http.request.uri.path wildcard "/shop/*/1*5"',
        expr: 'path matches "(?is)^/shop/.*/1.*5$"',
        cel: 'path.matches("(?is)^/shop/.*/1.*5$")',
        holds: true,
      },
    ],
  },
  { name: 'starts_with', rules: [SHOP] },
  {
    name: 'lower',
    rules: [
      {
        edge: 'lower(http.request.uri.path) eq "/shop/items/12345"',
        expr: 'lower(path) == "/shop/items/12345"',
        cel: 'lower(path) == "/shop/items/12345"',
        holds: true,
      },
    ],
  },
  {
    name: 'header',
    rules: [
      {
        edge: 'http.request.headers["x-api-version"] eq "2"',
        expr: 'headers["X-Api-Version"] == "2"',
        cel: 'headers["X-Api-Version"] == "2"',
        holds: true,
      },
    ],
  },
  {
    name: 'cookie',
    rules: [
      {
        edge: 'http.request.cookies["beta"] eq "1"',
        expr: 'cookies["beta"] == "1"',
        cel: 'cookies["beta"] == "1"',
        holds: true,
      },
    ],
  },
  { name: SIX, rules: [joined([HOST, METHODS, SHOP, OFFICE, SSL, NOT_FRANCE])] },
  { name: SIXTY_FOUR, rules: SITE },
];
