/** The language of a `%%lakesql` cell: the magic's own line, then Spark SQL with lakekit's additions. */

import { StreamLanguage, StringStream } from '@codemirror/language';
import type { StreamParser } from '@codemirror/language';
import { sparkSQL } from '@codemirror/legacy-modes/mode/sql';

/** Tells whether a cell is one of SQL. */
export const CELL_MAGIC = /^\s*%%lakesql(?=\s|$)/;

/** Finds SQL on the line of a magic; the first group is all that stands before the SQL. */
export const LINE_MAGIC = /^(\s*%lakesql\s+(?:[A-Za-z_]\w*\s*<<\s*)?)\S/;

// What Spark SQL and lakekit know and the library's list lacks.
const KEYWORDS = new Set(
  (
    'always begin call constraint date declare default enforced generated history identity key lag lead ' +
    'matched merge overwrite primary qualify restore returns source system_time target tblproperties ' +
    'timestamp update upsert vacuum version'
  ).split(' ')
);

interface SparkState {
  tokenize: unknown;
}

interface CellState {
  sql: SparkState;
  onMagic: boolean;
}

const spark = sparkSQL as StreamParser<SparkState>;

function startState(indentUnit = 4): SparkState {
  return spark.startState?.(indentUnit) ?? { tokenize: null };
}

// The library's function for everything that is no string and no comment.
const PLAIN = startState().tokenize;

/** Returns the style of the next token of SQL. */
function sqlToken(stream: StringStream, state: SparkState): string | null {
  if (state.tokenize === PLAIN) {
    if (stream.match(/^\/\*\+.*?(\*\/|$)/)) {
      return 'meta';
    }
    if (stream.match(/^`(?:[^`]|``)*`?/)) {
      return 'variableName';
    }
    if (stream.match(/^:[A-Za-z_]\w*/)) {
      return 'variableName.special';
    }
    // The library has no style for a dot, and takes it together with the word behind it.
    if (stream.match(/^\.(?!\d)/)) {
      return 'punctuation';
    }
    // It takes the word of 'orders$files' only up to the dollar.
    if (stream.match(/^[A-Za-z_]\w*\$\w+/)) {
      return 'variableName';
    }
  }
  const style = spark.token(stream, state) ?? null;
  if (style !== null || !/^\w/.test(stream.current())) {
    return style;
  }
  // A word without a style would be no token, and JupyterLab completes by tokens.
  return KEYWORDS.has(stream.current().toLowerCase()) ? 'keyword' : 'variableName';
}

function magicToken(stream: StringStream): string | null {
  if (stream.eatSpace()) {
    return null;
  }
  if (stream.match(/^%%lakesql/)) {
    return 'meta';
  }
  if (stream.match(/^--[A-Za-z][\w-]*/)) {
    return 'attributeName';
  }
  if (stream.match(/^("[^"]*"?|'[^']*'?)/)) {
    return 'string';
  }
  if (stream.match(/^[+-]?\d[\d.]*(?=\s|$)/)) {
    return 'number';
  }
  if (stream.match(/^<</)) {
    return 'operator';
  }
  if (stream.match(/^[\w$.-]+/)) {
    return 'variableName';
  }
  stream.next();
  return null;
}

/** The language of a whole cell. */
export const cellLanguage = StreamLanguage.define<CellState>({
  name: 'lakesql',
  startState: indentUnit => ({ sql: startState(indentUnit), onMagic: true }),
  copyState: state => ({ ...state, sql: { ...state.sql } }),
  token: (stream, state) => {
    if (state.onMagic) {
      const style = magicToken(stream);
      state.onMagic = !stream.eol();
      return style;
    }
    return sqlToken(stream, state.sql);
  },
  indent: (state, textAfter, context) =>
    state.onMagic ? null : (spark.indent?.(state.sql, textAfter, context) ?? null),
  languageData: spark.languageData
});

/** A piece of one line with the style that `cellLanguage` would give it. */
export interface StyledSpan {
  from: number;
  to: number;
  style: string;
}

/** Splits SQL that stands on one line, as `%lakesql` takes it, into styled pieces. */
export function styleLine(sql: string): StyledSpan[] {
  const stream = new StringStream(sql, 4, 4);
  const state = startState();
  const spans: StyledSpan[] = [];
  while (!stream.eol()) {
    const style = sqlToken(stream, state);
    if (style !== null) {
      spans.push({ from: stream.start, to: stream.pos, style });
    }
    stream.start = stream.pos;
  }
  return spans;
}
