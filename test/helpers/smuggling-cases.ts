// Requests that two readers could divide in different places: each with what must come of it. In the bytes, {id} is an id
// of the case, {host} the host of a site, and /smuggled-{id} a request that no origin must ever see.

/** What the one request at the origin must be; the host is always the site's. */
export interface Passed {
  method?: string;
  /** Of the target after /case-{id}. */
  suffix?: string;
  body?: string;
}

export interface SmugglingCase {
  name: string;
  bytes: string;
  /** The status of a refusal, or what the origin sees exactly once. */
  want: number | Passed;
  /** Whether another request on the same connection is answered afterwards. */
  after: 'served' | 'never';
}

const SMUGGLED = 'GET /smuggled-{id} HTTP/1.1\r\nHost: {host}\r\n\r\n';

/** A POST with these header lines behind Host and this body. */
const post = (lines: string, body = '') => `POST /case-{id} HTTP/1.1\r\nHost: {host}\r\n${lines}\r\n\r\n${body}`;
/** A GET with these header lines behind Host. */
const get = (lines: string) => `GET /case-{id} HTTP/1.1\r\nHost: {host}\r\n${lines}${lines === '' ? '' : '\r\n'}\r\n`;
/** A GET with this request line and nothing odd behind it. */
const line = (text: string) => `${text}\r\nHost: {host}\r\n\r\n`;
const chunked = (body: string, lines = '') => post(`${lines}Transfer-Encoding: chunked`, body);
const HELLO = '5\r\nhello\r\n0\r\n\r\n';

const refused = (status: number, name: string, bytes: string): SmugglingCase => ({
  name,
  bytes,
  want: status,
  after: 'never',
});
/** A refusal of what ends where everybody reads its end. */
const refusedAlone = (status: number, name: string, bytes: string): SmugglingCase => ({
  ...refused(status, name, bytes),
  after: 'served',
});
const last = (name: string, bytes: string, want: Passed = {}): SmugglingCase => ({ name, bytes, want, after: 'never' });
const goesOn = (name: string, bytes: string, want: Passed = {}): SmugglingCase => ({
  name,
  bytes,
  want,
  after: 'served',
});

const POSTED = { method: 'POST' };
const SAID_HELLO = { method: 'POST', body: 'hello' };

const twoLengths: SmugglingCase[] = [
  last('CL.TE', post('Content-Length: 6\r\nTransfer-Encoding: chunked', '0\r\n\r\nG'), POSTED),
  last(
    'CL.TE with a whole request behind',
    post('Content-Length: 100\r\nTransfer-Encoding: chunked', `0\r\n\r\n${SMUGGLED}`),
    POSTED,
  ),
  last('TE.CL', post('Transfer-Encoding: chunked\r\nContent-Length: 4', HELLO), SAID_HELLO),
  last('TE.CL of length 0', post('Transfer-Encoding: chunked\r\nContent-Length: 0', HELLO), SAID_HELLO),
  refused(400, 'a length that is none beside chunks', post('Content-Length: abc\r\nTransfer-Encoding: chunked', HELLO)),
  refused(400, 'two lengths', post('Content-Length: 5\r\nContent-Length: 0', `hello${SMUGGLED}`)),
  refused(400, 'two lengths, the shorter first', post('Content-Length: 0\r\nContent-Length: 5', 'hello')),
  goesOn('the same length twice', post('Content-Length: 5\r\ncontent-length: 5', 'hello'), SAID_HELLO),
  goesOn('a request as a body', post('Content-Length: {smuggled}', SMUGGLED), { method: 'POST', body: SMUGGLED }),
  goesOn('a body of a GET', get('Content-Length: {smuggled}') + SMUGGLED, { body: SMUGGLED }),
];

const lengths: SmugglingCase[] = [
  ...['5, 5', '5,6', '+5', '-5', '0x5', '5.0', '5e0', '5;', '1_0', '', '5 5', '\xb25', '5\x0b', '"5"', '٥']
    .concat('9223372036854775808', '18446744073709551616', '18446744073709551621', '99999999999999999999999')
    .map((value) => refused(400, `length ${JSON.stringify(value)}`, post(`Content-Length: ${value}`, 'hello'))),
  ...['05', '  5', '5 \t', '0000000000000000000005'].map((value) =>
    goesOn(`length ${JSON.stringify(value)}`, post(`Content-Length: ${value}`, 'hello'), SAID_HELLO),
  ),
];

const encodings: SmugglingCase[] = [
  ...[
    'xchunked',
    'chunked, identity',
    'identity, chunked',
    'identity',
    'gzip, chunked',
    'chunked, chunked',
    '"chunked"',
  ]
    .concat('chunked;q=1', 'chunked,', ',chunked', 'chunkedx', 'chunk\xe9d', 'chunked foo', '')
    .map((value) => refused(501, `encoding ${JSON.stringify(value)}`, chunkedAs(`Transfer-Encoding: ${value}`))),
  ...['\x0bchunked', 'chunked\x0b', '\0chunked', 'chunked\r', 'chun\rked', '\x7fchunked'].map((value) =>
    refused(400, `encoding ${JSON.stringify(value)}`, chunkedAs(`Transfer-Encoding: ${value}`)),
  ),
  ...['CHUNKED', 'cHunKeD', ' chunked ', '\tchunked', 'chunked\t'].map((value) =>
    last(`encoding ${JSON.stringify(value)}`, chunkedAs(`Transfer-Encoding:${value}`), SAID_HELLO),
  ),
  refused(501, 'encoding twice', chunkedAs('Transfer-Encoding: chunked\r\nTransfer-encoding: chunked')),
  refused(501, 'encoding twice, one other', chunkedAs('Transfer-Encoding: chunked\r\nTransfer-Encoding: cow')),
  refused(
    501,
    'encoding twice, the first other',
    chunkedAs('Transfer-Encoding: identity\r\nTransfer-Encoding: chunked'),
  ),
  ...['Transfer-Encoding : chunked', 'Transfer-Encoding\t: chunked', 'Transfer-Encoding\0: chunked']
    .concat('Transfer-Encoding\xa0: chunked', 'Transfer Encoding: chunked', 'Transfer-Encoding chunked')
    .concat('Transfer-Encoding\r: chunked', '\x0bTransfer-Encoding: chunked', 'X: y\rTransfer-Encoding: chunked')
    .map((text) => refused(400, `line ${JSON.stringify(text)}`, chunkedAs(text))),
  last('a fold before the encoding', chunkedAs('Transfer-Encoding:\r\n chunked'), SAID_HELLO),
  refused(501, 'a fold behind the encoding', chunkedAs('Transfer-Encoding: chunked\r\n x')),
  last('the encoding behind a bare LF', chunkedAs('X: y\nTransfer-Encoding: chunked'), SAID_HELLO),
  goesOn(
    'the encoding in a fold',
    post('Content-Length: 5\r\nX: y\r\n Transfer-Encoding: chunked', 'hello'),
    SAID_HELLO,
  ),
  ...['Transfer_Encoding', 'Transfer.Encoding', 'X-Transfer-Encoding'].map((name) =>
    goesOn(`an encoding named ${name}`, post(`Content-Length: 5\r\n${name}: chunked`, 'hello'), SAID_HELLO),
  ),
  ...['Content_Length', 'Content.Length'].map((name) =>
    goesOn(`a length named ${name}`, post(`${name}: 100\r\nContent-Length: 5`, 'hello'), SAID_HELLO),
  ),
];

/** Chunks beside a length that would leave a smuggled request. */
function chunkedAs(lines: string): string {
  return post(`Content-Length: 5\r\n${lines}`, HELLO);
}

const chunks: SmugglingCase[] = [
  last('chunks', chunked(HELLO), SAID_HELLO),
  last('a request in a chunk', chunked(`{smuggledHex}\r\n${SMUGGLED}\r\n0\r\n\r\n`), {
    method: 'POST',
    body: SMUGGLED,
  }),
  ...['5;x=y', '5;x', '5;', '5;x="y;z"', '05', '5 ', '5\t', '5;x=\xe9'].map((size) =>
    last(`chunk ${JSON.stringify(size)}`, chunked(`${size}\r\nhello\r\n0\r\n\r\n`), SAID_HELLO),
  ),
  ...[
    '+5',
    '-5',
    '0x5',
    '5_',
    '5.',
    '5,',
    'g',
    '',
    ' ',
    '5 5',
    '５',
    '5\x0b',
    '5\0',
    '"5"',
    '5\n',
    '5;x\n',
    '5;\ny\r',
    '5\r',
  ]
    .concat('fffffffffffffffff', '10000000000000005', '00000000000000005', '5 ;x', `5;${'x'.repeat(20_000)}`)
    .map((size) =>
      refused(400, `chunk ${JSON.stringify(size.slice(0, 30))}`, chunked(`${size}\r\nhello\r\n0\r\n\r\n${SMUGGLED}`)),
    ),
  refused(400, 'a chunk longer than its size', chunked(`4\r\nhello\r\n0\r\n\r\n${SMUGGLED}`)),
  refused(400, 'a chunk that ends with LF', chunked(`5\r\nhello\n0\r\n\r\n${SMUGGLED}`)),
  refused(400, 'a chunk that ends with two others', chunked(`5\r\nhelloXX0\r\n\r\n${SMUGGLED}`)),
  last('an end spelled longer', chunked('5\r\nhello\r\n000\r\n\r\n'), SAID_HELLO),
  last('an end with an extension', chunked('5\r\nhello\r\n0;x\r\n\r\n'), SAID_HELLO),
  last('trailers', chunked('5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n', 'Trailer: X-Sum\r\n'), SAID_HELLO),
  last('a length as a trailer', chunked('5\r\nhello\r\n0\r\nContent-Length: 50\r\n\r\n'), SAID_HELLO),
  refused(400, 'a length as a trailer that is announced', chunked(HELLO, 'Trailer: Content-Length\r\n')),
  refused(400, 'a trailer without a name', chunked(`5\r\nhello\r\n0\r\n: x\r\n\r\n${SMUGGLED}`)),
  last('bytes behind the end', chunked(`${HELLO}X`), SAID_HELLO),
];

const oldVersion = (lines: string, body = '') => `POST /case-{id} HTTP/1.0\r\nHost: {host}\r\n${lines}\r\n\r\n${body}`;

const versions: SmugglingCase[] = [
  last('HTTP/1.0', 'GET /case-{id} HTTP/1.0\r\nHost: {host}\r\n\r\n'),
  last('HTTP/1.0 that would go on', 'GET /case-{id} HTTP/1.0\r\nHost: {host}\r\nConnection: keep-alive\r\n\r\n'),
  last('HTTP/1.0 with a body', oldVersion('Connection: keep-alive\r\nContent-Length: 5', 'hello'), SAID_HELLO),
  last('HTTP/1.0 with chunks', oldVersion('Connection: keep-alive\r\nTransfer-Encoding: chunked', HELLO), POSTED),
  last(
    'HTTP/1.0 with chunks and a length',
    oldVersion('Connection: keep-alive\r\nTransfer-Encoding: chunked\r\nContent-Length: 3', `0\r\n${SMUGGLED}`),
    { method: 'POST', body: '0\r\n' },
  ),
  ...['HTTP/1.1 ', 'HTTP/1.1x', 'http/1.1', 'HTTP/1', 'HTTP/1.10', 'HTTP/1.+1', 'HTTP /1.1', 'HTTP/ 1.1', '']
    .concat('HTTP/1.1 HTTP/1.1', 'HTTP/1.1\0', 'HTTP/1,1')
    .map((version) => refused(400, `version ${JSON.stringify(version)}`, line(`GET /case-{id} ${version}`))),
  refused(400, 'no version', line('GET /case-{id}')),
];

const requestLines: SmugglingCase[] = [
  goesOn('a path', line('GET /case-{id}?x HTTP/1.1'), { suffix: '?x' }),
  goesOn('lines that end with LF', 'GET /case-{id} HTTP/1.1\nHost: {host}\n\n'),
  goesOn('the absolute form', 'GET http://{host}/case-{id} HTTP/1.1\r\nHost: {host}\r\n\r\n'),
  goesOn('the absolute form beside another host', 'GET http://{host}/case-{id} HTTP/1.1\r\nHost: b.test\r\n\r\n'),
  goesOn('the absolute form in capitals', 'GET HTTP://{host}/case-{id} HTTP/1.1\r\nHost: b.test\r\n\r\n'),
  goesOn('the absolute form with a port', 'GET http://{host}:80/case-{id} HTTP/1.1\r\nHost: b.test\r\n\r\n'),
  goesOn('line breaks that are encoded', line('GET /case-{id}?%0d%0aX:%20y HTTP/1.1'), { suffix: '?%0d%0aX:%20y' }),
  ...['GET  /case-{id} HTTP/1.1', 'GET\t/case-{id} HTTP/1.1', 'GET /case-{id}\tHTTP/1.1', ' GET /case-{id} HTTP/1.1']
    .concat('GET /case-{id}  HTTP/1.1', 'GET /case-{id} x HTTP/1.1', 'GET /ca\0se-{id} HTTP/1.1', 'G\0ET / HTTP/1.1')
    .concat('GET /case-{id}\x7f HTTP/1.1', 'GET /case-{id}\rHTTP/1.1', '\0GET / HTTP/1.1', 'G(T / HTTP/1.1')
    .concat('G\xe9T / HTTP/1.1', 'GET case-{id} HTTP/1.1', 'GET ://{host}/ HTTP/1.1', 'GET HTTP/1.1')
    .map((text) => refused(400, `request line ${JSON.stringify(text)}`, line(text))),
  ...['GET http:/case-{id} HTTP/1.1', 'GET ftp://{host}/case-{id} HTTP/1.1', 'PRI * HTTP/2.0'].map((text) =>
    refusedAlone(400, `request line ${JSON.stringify(text)}`, line(text)),
  ),
];

const fields: SmugglingCase[] = [
  ...['X Y: z', ': z', 'X\0: z', 'X\x7f: z', 'X(: z', 'X', 'X\xe9: z', 'X@Y: z', '"X": z', 'X : z', 'X\t: z', 'X,Y: z']
    .concat(
      'X: a\0b',
      'X: a\rb',
      'X: a\x08b',
      'X: a\x7fb',
      'X: y\r',
      'Content-Length : 5',
      'Host: {host}',
      'Host: b.test',
    )
    .concat('Host : b.test', 'host: b.test')
    .map((text) => refused(400, `line ${JSON.stringify(text)}`, get(text))),
  refused(400, 'a fold before the first line', 'GET /case-{id} HTTP/1.1\r\n Host: {host}\r\nHost: {host}\r\n\r\n'),
  refused(400, 'no host', 'GET /case-{id} HTTP/1.1\r\nX: y\r\n\r\n'),
  refusedAlone(400, 'an empty host', 'GET /case-{id} HTTP/1.1\r\nHost:\r\n\r\n'),
  refused(400, 'a host with a path', 'GET /case-{id} HTTP/1.1\r\nHost: {host}/x\r\n\r\n'),
  refused(400, 'a host with another in a fold', 'GET /case-{id} HTTP/1.1\r\nHost: {host}\r\n b.test\r\n\r\n'),
  goesOn('a fold', get('X: y\r\n\tz')),
  goesOn('an empty value', get('X:')),
  goesOn('a value of other letters', get('X: \xe9')),
  goesOn(
    'the body as a field of one hop',
    post('Connection: Content-Length\r\nContent-Length: 5', 'hello'),
    SAID_HELLO,
  ),
  goesOn('the host as a field of one hop', get('Connection: Host, X-Y\r\nX-Y: z')),
  last('the encoding as a field of one hop', chunked(HELLO, 'Connection: Transfer-Encoding\r\n'), SAID_HELLO),
  goesOn('a change to HTTP/2', get('Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk')),
  goesOn(
    'a WebSocket of no version',
    get('Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 777\r\nSec-WebSocket-Key: x'),
  ),
  refused(431, 'a header that is too large', get(`X: ${'y'.repeat(120_000)}`)),
];

const expectations: SmugglingCase[] = [
  ...['100-continue', '100-Continue', '100-continue '].map((value) =>
    goesOn(`expects ${JSON.stringify(value)}`, post(`Expect: ${value}\r\nContent-Length: 5`, 'hello'), SAID_HELLO),
  ),
  ...['200-ok', '100', '100-continu', '100-continue=x', 'x'].map((value) =>
    refused(417, `expects ${JSON.stringify(value)}`, post(`Expect: ${value}\r\nContent-Length: 5`, 'hello')),
  ),
  refused(417, 'expects two things', post('Expect: x\r\nExpect: y\r\nContent-Length: 5', 'hello')),
  goesOn('expects to go on without a body', get('Expect: 100-continue')),
];

export const smugglingCases: readonly SmugglingCase[] = [
  ...twoLengths,
  ...lengths,
  ...encodings,
  ...chunks,
  ...versions,
  ...requestLines,
  ...fields,
  ...expectations,
];

/** The bytes of a case for a site; latin1. */
export function bytesOf(text: string, id: string, host: string): string {
  const fill = (part: string) => part.replaceAll('{id}', id).replaceAll('{host}', host);
  const { length } = fill(SMUGGLED);
  return fill(text.replaceAll('{smuggled}', String(length)).replaceAll('{smuggledHex}', length.toString(16)));
}
