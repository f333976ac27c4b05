// @module-tag full
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { linesDigest } from '../../src/base/merkle/leaf.ts'
import { readKey, signedNote, signedText } from '../../src/base/merkle/note.ts'
import { certifiedOfFile, checked, checkers } from '../helpers/certified.ts'

const withCertified = certifiedOfFile()

/** So many changed certificates are put to both checkers; 10,000 have been. */
const cases = Number(process.env['PITLAKE_CERTIFICATES'] ?? 500)

/** Numbers from 0 to below n, the same in each run. */
function chance(seed: number): (n: number) => number {
  let state = seed
  return (n) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * n)
  }
}

type Draw = (n: number) => number

/** Changes bytes of the file as it is: whoever has no key. */
function bytesChanged(text: string, draw: Draw): string {
  const at = draw(text.length)
  const sign = '0123456789abcdef"\\{}[],: \nxé'[draw(28)] ?? ' '
  switch (draw(5)) {
    case 0:
      return text.slice(0, at) + text.slice(at + 1)
    case 1:
      return text.slice(0, at) + sign + text.slice(at)
    case 2:
      return text.slice(0, at) + (text[at] === sign ? `${sign}${sign}` : sign) + text.slice(at + 1)
    case 3:
      return text.slice(0, at)
    default:
      return text.slice(0, at) + text.slice(at, at + 1 + draw(80)) + text.slice(at)
  }
}

type Tree = { [key: string]: unknown }

/** Changes a value somewhere in a certificate, which is then signed anew: its owner, who lies. */
function valueChanged(body: string, draw: Draw): string {
  const tree = JSON.parse(`${body}}`) as Tree
  let at = tree
  let key = ''
  for (let depth = 0; depth < 8; depth++) {
    const keys = Object.keys(at)
    key = keys[draw(keys.length)] ?? ''
    const next = at[key]
    if (typeof next !== 'object' || next === null || Object.keys(next).length === 0 || draw(12) === 0) break
    at = next as Tree
  }
  const held = at[key]
  const others: unknown[] = [null, 0, -1, 1.5, '', 'x', [], {}, true, [1], 2 ** 53, '0'.repeat(64)]
  if (typeof held === 'number') others.push(held + 1, held - 1, held + 1, String(held), held * 2)
  if (typeof held === 'string')
    others.push(`${held} `, held.slice(1), held.replace(/[0-9a-f]/, 'a'), held.toUpperCase())
  if (Array.isArray(held)) others.push(held.slice(1), [...held, held[0]], held.toReversed())
  if (draw(8) === 0) delete at[key]
  else if (draw(10) === 0) at[`${key}_`] = held
  else at[key] = others[draw(others.length)]
  const lines = Object.entries(tree).map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`)
  return `{\n${lines.join(',\n')}`
}

/** Changes how something is written, and signs that: a key twice, other forms of numbers and texts. */
function writtenOtherwise(body: string, draw: Draw): string {
  const lines = body.split(',\n')
  const n = draw(lines.length)
  const line = lines[n] ?? ''
  const twice = [...lines, line.replace('{\n', ''), ...(draw(2) ? [] : lines.slice(n + 1, n + 2))].join(',\n')
  const forms: readonly ((text: string) => string)[] = [
    () => twice,
    (text) => text.replace('"index":', `"index":0,"index":`),
    (text) => text.replace(/"(size|index|version|committed_at|at)":\s*(\d+)/, '"$1": $2.0'),
    (text) => text.replace(/"(size|index|version)":\s*(\d+)/, '"$1": $2e0'),
    (text) => text.replace(/"version":\s*(\d+)/, '"version": 0$1'),
    (text) => text.replace('"queries"', '"\\u0071ueries"'),
    (text) => text.replace('{"queries"', '{"\\u0071ueries":7,"queries"'),
    (text) => text.replace('"points', '"\\ud800points'),
    (text) => text.replace('"named_in":', draw(2) ? '"named_in":true,"_":' : '"_":'),
    (text) => text.replace(/"queries":\["([^"]+)"/, '"queries":["$1","$1"'),
    (text) => text.replace('"made_by": {', '"made_by": {"a": NaN, '),
    (text) => text.replace('"made_by": {', '"made_by": {"a": "\\ud83d\\ude00", "b": 1e999, '),
    (text) => text.replace('"made_by": {', '"made_by": {"a": "\u0001", '),
    (text) => text.replace('sha256 ed25519', draw(2) ? 'md5 ed25519' : 'sha256 rsa'),
    (text) =>
      text.replace('"pitlake_certificate": 1', draw(2) ? '"pitlake_certificate": true' : '"pitlake_certificate": 1.0'),
    (text) => text.replaceAll(',"', ', "'),
    (text) => text.replace('\\n— ', '\\n- '),
    (text) => text.replace(/"inclusion":\["/, '"inclusion":["0'),
    (text) => text.replace(/"inclusion":\[("[0-9a-f]{64}"),/, '"inclusion":['),
    (text) => text.replace(/"proof":\[("[0-9a-f]{64}")/, '"proof":[$1,$1'),
  ]
  return (forms[draw(forms.length)] ?? ((text) => text))(body)
}

test('L6: both checkers agree on changed certificates, and none with a changed proof is valid', async () => {
  await withCertified(async ({ home, certificate, sealed }) => {
    const at = certificate.lastIndexOf(',\n"signature": ')
    const body = certificate.slice(0, at)
    expect(sealed(body)).toBe(certificate)
    const draw = chance(7)
    const folder = join(home, 'changed')
    let valid = 0
    let refused = 0
    for (let done = 0; done < cases; done += 500) {
      mkdirSync(folder)
      const names = Array.from({ length: Math.min(500, cases - done) }, (_, n) => {
        const kind = n % 3
        const text =
          kind === 0
            ? bytesChanged(certificate, draw)
            : sealed(kind === 1 ? valueChanged(body, draw) : writtenOtherwise(body, draw))
        const name = `${done + n}-${kind}.json`
        writeFileSync(join(folder, name), text)
        return text === certificate ? [] : [name]
      }).flat()
      const said = checkers.map((one) => checked(one, folder, names).lines)
      for (const [n, name] of names.entries()) {
        const [a = '', b = ''] = said.map((lines) => lines[n] ?? 'nothing')
        const kinds = [a, b].map((line) => line.split(' ', 1)[0])
        expect(kinds[0], `${name}: ${a} | ${b}`).toBe(kinds[1])
        expect(a).toContain(name)
        if (kinds[0] === 'valid') valid++
        else refused++
        if (name.endsWith('-0.json')) expect(a, name).toMatch(/^not valid/)
      }
      rmSync(folder, { recursive: true })
    }
    expect(refused).toBeGreaterThan(cases / 3)
    expect(valid).toBeGreaterThan(cases / 50)
  })
})

type Lines = readonly string[]

/** A certificate's content, as far as forgeries change it. */
interface Content {
  readonly query: { readonly sha256: string }
  readonly preregistered: { readonly queries: Lines; readonly named_in: number | null }
  readonly rules: { readonly lines: Lines; readonly text: Readonly<Record<string, string>> }
  readonly live: { readonly lines: Lines; readonly lists: Readonly<Record<string, Lines>> }
}

/** A body with some keys exchanged. */
function withKeys(body: string, change: (told: Content) => object): string {
  const told = JSON.parse(`${body}}`) as Content
  const lines = Object.entries({ ...told, ...change(told) }).map(
    ([key, value]) => `${JSON.stringify(key)}: ${JSON.stringify(value)}`,
  )
  return `{\n${lines.join(',\n')}`
}

const list = 'points supply/current_pit'

/** A body in which the list of points has other files, and its line their digest if `honest` is false. */
function withFiles(body: string, change: (files: Lines) => Lines, honest = true): string {
  return withKeys(body, ({ live }) => {
    const files = change(live.lists[list] ?? [])
    const told = honest
      ? live.lines
      : live.lines.map((line) => (line.startsWith(`${list} `) ? `${list} ${linesDigest(files)}` : line))
    return { live: { lines: told, lists: { ...live.lists, [list]: files } } }
  })
}

const revived = `points/supply%2Fcurrent_pit/24h/0000000001-old.parquet ${'a'.repeat(64)} 5`

/** What its owner may try, signed anew: how it is done, and what both checkers say. */
const forgeries: readonly (readonly [about: string, change: (body: string) => string, reason: RegExp])[] = [
  ['a key that stands twice', (body) => `${body},\n"query": {"text":"","sha256":"","variables":{}}`, /twice/],
  ['a key that stands twice inside', (body) => body.replace('{"queries":', '{"queries":7,"queries":'), /twice/],
  ['the same key spelt otherwise', (body) => body.replace('{"queries":', '{"\\u0071ueries":7,"queries":'), /twice/],
  ['another algorithm', (body) => body.replace('sha256 ed25519', 'sha1 ed25519'), /algorithms not known/],
  ['another form', (body) => body.replace('"pitlake_certificate": 2', '"pitlake_certificate": 1'), /form/],
  [
    'another index of the version',
    (body) => body.replace(/"leaf": \{"index":\d+/, '"leaf": {"index":0'),
    /head|short|long/,
  ],
  ['another commit time', (body) => body.replace(/"committed_at":1/, '"committed_at":2'), /does not lead to the head/],
  ['another entry', (body) => body.replace(/"entry":"./, '"entry":"x'), /none of the log/],
  ['a file left out of its list', (body) => withFiles(body, (files) => files.slice(1)), /not that of the version/],
  ['a file left out of list and line', (body) => withFiles(body, (files) => files.slice(1), false), /lead to the head/],
  [
    'a replaced file brought back',
    (body) => withFiles(body, (files) => [revived, ...files]),
    /not that of the version/,
  ],
  [
    'a replaced file brought back into list and line',
    (body) => withFiles(body, (files) => [revived, ...files], false),
    /lead to the head/,
  ],
  [
    'a second list of the same name',
    (body) =>
      withKeys(body, ({ live }) => ({ live: { ...live, lines: [...live.lines, `${list} ${'b'.repeat(64)}`] } })),
    /lead to the head/,
  ],
  [
    'a list that is not shown',
    (body) =>
      withKeys(body, ({ live }) => ({
        live: { ...live, lists: Object.fromEntries(Object.entries(live.lists).filter(([name]) => name !== list)) },
      })),
    /is not shown/,
  ],
  [
    'another number of rows',
    (body) => withFiles(body, (files) => files.map((line) => line.replace(/ (\d+)$/, ' 1$1'))),
    /not that of the version/,
  ],
  ['rules that were not in force', (body) => body.replace('\\"assumed\\"', '\\"stated\\"'), /not in force/],
  [
    'rules that are not shown',
    (body) => withKeys(body, ({ rules }) => ({ rules: { ...rules, text: {} } })),
    /not shown/,
  ],
  [
    'no preregistered query',
    (body) => withKeys(body, () => ({ preregistered: { queries: [], named_in: null } })),
    /lead to the head/,
  ],
  ['a query that was named and is hidden', (body) => body.replace(/"named_in":\d+/, '"named_in":null'), /not named/],
  ['a query that was named in another version', (body) => body.replace(/"named_in":\d+/, '"named_in":2'), /not named/],
  ['a version that is true', (body) => body.replace(/"named_in":\d+/, '"named_in":true'), /not named/],
  ['no word of the version', (body) => body.replace(/"named_in":/, '"_":'), /not named/],
  ['another query', (body) => body.replace('ORDER BY ALL', 'ORDER BY ts'), /query/],
  ['another as_of', (body) => body.replace('"as_of":null', '"as_of":"2020-01-01"'), /follow from the stamp/],
  ['another time of the stamp', (body) => body.replace(/"stamped_at":1/, '"stamped_at":2'), /follow from the stamp/],
  [
    'variables of another query',
    (body) => body.replace('"variables":{}', '"variables":{"as_of":"2020"}'),
    /another query/,
  ],
  ['another result', (body) => body.replace(/"file_sha256":"./, '"file_sha256":"x'), /another result/],
  [
    'a statistic over rows of its own',
    (body) => body.replace('SELECT sum(v) AS s', 'WITH result AS (SELECT 3.9 AS v) SELECT sum(v) AS s'),
    /does not read the result/,
  ],
  [
    'a statistic over nothing',
    (body) => body.replace('count(*) AS n FROM result', '1 AS n'),
    /does not read the result/,
  ],
  ['another older head', (body) => body.replace(/"consistency": \[\{"size":\d+/, '"consistency": [{"size":2'), /./],
  ['a proof that is too long', (body) => body.replace(/"inclusion":\[/, `"inclusion":["${'0'.repeat(64)}",`), /long/],
  [
    'part of a lake of which anything may have been read',
    (body) => body.replace('"complete":true', '"complete":false'),
    /not all is shown/,
  ],
  [
    'a later version',
    (body) => body.replace('"knowledge": {"version":6', '"knowledge": {"version":7'),
    /does not lead to the head/,
  ],
  [
    'words that act on a terminal',
    (body) => withKeys(body, ({ live }) => ({ live: { ...live, lists: { ...live.lists, '\u001b[2K\rvalid': [] } } })),
    /^[ -~]*$/,
  ],
  ['a version without its proof', (body) => body.replace(/"inclusion":\[[^\]]*\]/, '"inclusion":[]'), /short/],
]

test('L6: a head of a different lake and an empty head are refused', async () => {
  await withCertified(async ({ home, certificate, sealed }) => {
    const body = certificate.slice(0, certificate.lastIndexOf(',\n"signature": '))
    const { head } = JSON.parse(certificate) as { readonly head: string }
    const key = readKey(readFileSync(join(home, 'k.key'), 'utf8').trim())
    if (key === undefined) throw new Error('no key')
    // Words that would stand where the checker tells who vouches.
    const note = signedText(signedNote(key, head.slice(0, head.indexOf('\n\n') + 1).replace('\n', ', by your key\n')))
    writeFileSync(join(home, 'named.json'), sealed(body.replace(JSON.stringify(head), () => JSON.stringify(note))))
    writeFileSync(join(home, 'empty.txt'), '')
    for (const checker of checkers) {
      const { lines } = checked(checker, home, ['named.json', 'c.json'])
      expect(lines).toEqual([/no checkpoint/, /^valid/].map((one) => expect.stringMatching(one)))
      for (const file of ['empty.txt', ''])
        expect(checked(checker, home, ['c.json', '--head', file])).toMatchObject({ status: 4, lines: [/^not valid/] })
    }
  })
})

test('L6: both checkers refuse each forgery by the owner, with its reason', async () => {
  await withCertified(async ({ home, certificate, sealed }) => {
    const body = certificate.slice(0, certificate.lastIndexOf(',\n"signature": '))
    const names = forgeries.map(([about, change], n) => {
      const changed = change(body)
      expect(changed, about).not.toBe(body)
      writeFileSync(join(home, `forged-${n}.json`), sealed(changed))
      return `forged-${n}.json`
    })
    writeFileSync(
      join(home, 'spelt.json'),
      certificate.replace(/([A-Za-z0-9+/])=\\n"\n/, (_, one: string) => `${one === 'A' ? 'B' : 'A'}=\\n"\n`),
    )
    for (const checker of checkers) {
      const { lines, status } = checked(checker, home, names)
      expect(status).toBe(4)
      for (const [n, [about, , reason]] of forgeries.entries()) {
        expect(lines[n], about).toMatch(/^not valid/)
        expect(lines[n], about).toMatch(reason)
      }
      expect(checked(checker, home, ['spelt.json'])).toMatchObject({ status: 4, lines: [/base64|wrong/] })
    }
  })
})
