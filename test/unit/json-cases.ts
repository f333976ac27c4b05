import { readFileSync } from 'node:fs'

// What RFC 8259 says of JSON, case by case; what pitlake refuses beyond the RFC is marked.

/** A fragment of JSON, or of what is none. */
export type Case = readonly [name: string, fragment: string | Buffer, refused?: 'refused']

/** Those of a kind that stand in the golden folder one a line, and those that no line can hold. */
function named(kind: string, ...unlined: readonly string[]): Case[] {
  const lines = readFileSync(new URL(`../golden/json/${kind}.txt`, import.meta.url), 'utf8')
    .slice(0, -1)
    .split('\n')
  return [...lines, ...unlined].map((fragment) => [`${kind} ${JSON.stringify(fragment)}`, fragment])
}
/** How Unicode calls a sign. */
export const code = (point: number): string => `U+${point.toString(16).padStart(4, '0')}`

const numbers = named('number')
const beyond: readonly Case[] = ['1e309', '-1e309', '1e999', '9'.repeat(400)].map((text) => [
  `beyond ${text.slice(0, 9)}`,
  text,
  'refused',
])

const literals = named('literal')

const texts = named(
  'text',
  '"\u2028"',
  '"\u2029"',
  '"\u007f"',
  '"\u0080"',
  '"\u00a0"',
  '"\ufeff"',
  '"\uffff"',
  '"\\\n"',
)
const controls: readonly Case[] = Array.from({ length: 32 }, (_, n) => [
  `a text with ${code(n)}`,
  `"a${String.fromCharCode(n)}b"`,
])

const arrays = named('array', '[1, // c\n2]', '[#c\n1]')
const objects = named('object', '{//c\n"a":1}')
const doubled: readonly Case[] = [
  '{"x":1,"x":2}',
  '{"x":1,"x":1}',
  '{"x":1,"y":2,"x":3}',
  '{"x":1,"\\u0078":2}',
  '{"\\u0078":1,"x":2}',
  '{"":1,"":2}',
  '{"é":1,"\\u00e9":2}',
  '{"a":{"b":{"c":1,"c":2}}}',
  '[[{"a":1,"a":2}]]',
  '[{"a":1,"b":2},{"a":1,"b":2,"a":3}]',
  '[{"a":1,"b":2},{"b":1,"b":2}]',
  '[{"a":1},{"b":{"a":1,"a":1}}]',
].map((text) => [`a key twice ${text}`, text, 'refused'])

/** Signs that are white space somewhere. */
export const spaces = [
  0x20, 0x09, 0x0a, 0x0d, 0x0b, 0x0c, 0x00, 0x08, 0x1f, 0x85, 0xa0, 0x1680, 0x2003, 0x2028, 0x3000, 0xfeff,
]
const places = [
  '@[1]',
  '[@1]',
  '[1@]',
  '[1@,2]',
  '[1,@2]',
  '{@"a":1}',
  '{"a"@:1}',
  '{"a":@1}',
  '{"a":1@}',
  '{"a":1@,"b":2}',
]
const white = spaces.flatMap((point) =>
  places.map((place): Case => [`${code(point)} in ${place}`, place.replace('@', String.fromCharCode(point))]),
)

const raw = (name: string, ...bytes: number[]): Case => [name, Buffer.from([0x22, ...bytes, 0x22])]
const encodings: readonly Case[] = [
  raw('a byte of a longer sign alone', 0x80),
  raw('the first byte of two alone', 0xc3),
  raw('the first byte of three alone', 0xe2, 0x82),
  raw('the first byte of four alone', 0xf0, 0x9f, 0x98),
  raw('an overlong slash', 0xc0, 0xaf),
  raw('an overlong NUL', 0xe0, 0x80, 0x80),
  raw('an overlong sign of four', 0xf0, 0x80, 0x80, 0xaf),
  raw('a surrogate as bytes', 0xed, 0xa0, 0x80),
  raw('beyond U+10FFFF', 0xf4, 0x90, 0x80, 0x80),
  raw('a byte that is never one', 0xff),
  raw('another byte that is never one', 0xfe),
  raw('Latin 1', 0xe9),
  raw('the last sign', 0xf4, 0x8f, 0xbf, 0xbf),
  raw('two bytes', 0xc3, 0xa9),
]

const deep = (depth: number, open: string, close: string): string => `${open.repeat(depth)}1${close.repeat(depth)}`
// The body has three levels around the fragment.
const nesting: readonly Case[] = [
  ['60 deep', deep(60, '[', ']')],
  ['61 deep', deep(61, '[', ']')],
  ['62 deep', deep(62, '[', ']'), 'refused'],
  ['500 deep', deep(500, '[', ']'), 'refused'],
  ['61 objects deep', deep(61, '{"a":', '}')],
  ['62 objects deep', deep(62, '{"a":', '}'), 'refused'],
  ['60 deep and not closed', '['.repeat(60)],
]

/** All of them. */
export const cases = [
  numbers,
  beyond,
  literals,
  texts,
  controls,
  arrays,
  objects,
  doubled,
  white,
  encodings,
  nesting,
].flat()
