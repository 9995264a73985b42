// A source cut into what is drawn in one colour, and the part that is wrong. Pure.
import { FUNCTIONS } from '../../../../../contract/expression/functions.ts';
import { tokensOf } from '../../../../../contract/expression/lexer.ts';
import { operatorStartingWith } from '../../../../../contract/expression/operators.ts';

export type SegmentKind = 'blank' | 'field' | 'function' | 'keyword' | 'string' | 'number' | 'list' | 'sign' | 'plain';

export interface Segment {
  text: string;
  kind: SegmentKind;
  wrong: boolean;
}

interface Piece {
  at: number;
  end: number;
  kind: SegmentKind;
}

const KEYWORDS = ['and', 'or', 'not', 'true', 'false', 'strict'];

/** All of the source, piece by piece; `wrongAt` is the offset of what is wrong, -1 for nothing. */
export function segmentsOf(source: string, wrongAt = -1): Segment[] {
  const pieces = piecesOf(source);
  const wrong = wrongAt < 0 ? null : wrongPiece(source, pieces, wrongAt);
  return pieces.flatMap(({ at, end, kind }) => {
    const cuts = [at, ...[wrong?.at ?? at, wrong?.end ?? at].filter((cut) => cut > at && cut < end), end];
    return cuts.slice(1).map((to, index) => ({
      text: source.slice(cuts[index], to),
      kind,
      wrong: wrong !== null && cuts[index]! >= wrong.at && to <= wrong.end,
    }));
  });
}

function piecesOf(source: string): Piece[] {
  const pieces: Piece[] = [];
  let done = 0;
  const add = (end: number, kind: SegmentKind) => {
    if (end > done) pieces.push({ at: done, end, kind });
    done = end;
  };
  for (const token of tokensOf(source)) {
    add(token.at, 'blank');
    if (token.kind === 'end' || token.kind === 'wrong') break;
    add(token.end, token.kind === 'word' ? wordKind(token.text, source, token.end) : token.kind);
  }
  // Behind what the language cannot cut, nothing is known.
  add(source.length, 'plain');
  return pieces;
}

function wordKind(word: string, source: string, end: number): SegmentKind {
  if (word.startsWith('$')) return 'list';
  if (FUNCTIONS.has(word) || source[end] === '(') return 'function';
  if (KEYWORDS.includes(word) || operatorStartingWith(word) !== undefined) return 'keyword';
  return /^[-0-9:]|:/.test(word) ? 'number' : 'field';
}

/** What is underlined: the word or sign that begins there; inside of a string the one character. */
function wrongPiece(source: string, pieces: readonly Piece[], at: number): { at: number; end: number } {
  const piece = pieces.find((candidate) => at >= candidate.at && at < candidate.end);
  if (!piece) return { at: Math.max(0, source.length - 1), end: source.length };
  const whole = piece.at === at && piece.kind !== 'plain';
  return { at, end: whole ? piece.end : at + 1 };
}
