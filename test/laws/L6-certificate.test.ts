// @module-tag full
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { heldMembers } from '../../src/lake/ledger/state-tree.ts'
import { readKey, signedNote, signedText } from '../../src/base/merkle/note.ts'
import { namedLeaves } from '../../src/base/merkle/state.ts'
import { rangeProof } from '../../src/base/merkle/tree.ts'
import { certifiedOfFile, checked, checkers } from '../helpers/certified.ts'

const withCertified = certifiedOfFile()

/** So many changed certificates are put to both checkers; 10,000 have been. */
const cases = Number(process.env['PITLAKE_CERTIFICATES'] ?? 150)

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
  let [at, key] = [tree, '']
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
    (text) => text.replace(/"(size|index|version|count)":\s*(\d+)/, '"$1": $2.0'),
    (text) => text.replace(/"(size|index|version)":\s*(\d+)/, '"$1": $2e0'),
    (text) => text.replace(/"version":\s*(\d+)/, '"version": 0$1'),
    (text) => text.replace('"count"', '"\\u0063ount"'),
    (text) => text.replace('{"count"', '{"\\u0063ount":7,"count"'),
    (text) => text.replace('"asset', '"\\ud800asset'),
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
    let [valid, refused] = [0, 0]
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

/** What its owner may try, signed anew: how it is done, and what both checkers say. */
const forgeries: readonly (readonly [about: string, change: (body: string) => string, reason: RegExp])[] = [
  ['a key that stands twice', (body) => `${body},\n"query": {"text":"","sha256":"","variables":{}}`, /twice/],
  ['a key that stands twice inside', (body) => body.replace('{"count":', '{"count":7,"count":'), /twice/],
  ['the same key spelt otherwise', (body) => body.replace('{"count":', '{"\\u0063ount":7,"count":'), /twice/],
  ['another algorithm', (body) => body.replace('sha256 ed25519', 'sha1 ed25519'), /algorithms not known/],
  ['another form', (body) => body.replace('"pitlake_certificate": 1', '"pitlake_certificate": 0'), /form/],
  ['another index of the entry', (body) => body.replace(/"entry": \{"index":\d+/, '"entry": {"index":0'), /entry/],
  ['another instant', (body) => body.replace(/"committed_at":1/, '"committed_at":2'), /does not lead to the head/],
  ['another state', (body) => body.replace(/"state":"\d+ /, '"state":"9 '), /does not lead|too short/],
  [
    'another index of a member',
    (body) => body.replace(/"index":(\d+),"name":"supply/, '"index":1$1,"name":"supply'),
    /./,
  ],
  ['another size of a group', (body) => body.replace(/"value":"(\d+) /, '"value":"1$1 '), /short|root/],
  ['rules that were not in force', (body) => body.replace('\\"assumed\\"', '\\"stated\\"'), /not in force/],
  ['another query', (body) => body.replace('ORDER BY ALL', 'ORDER BY ts'), /query/],
  ['fewer tries', (body) => body.replace('{"count":1', '{"count":0'), /tries/],
  ['a try that was not', (body) => body.replace(/"named_in":\d+/, '"named_in":2'), /not named/],
  ['more points in a month', (body) => body.replace(/(\["\d{4}-\d\d","\d+) /, '$17 '), /months/],
  ['another older head', (body) => body.replace(/"consistency": \[\{"size":\d+/, '"consistency": [{"size":2'), /./],
  ['a proof that is too long', (body) => body.replace(/"inclusion":\[/, `"inclusion":["${'0'.repeat(64)}",`), /long/],
  [
    'another series',
    (body) => body.replace(/"series":\["supply\/current_pit","\w+"/, '"series":["supply/current_pit","X"'),
    /not the series/,
  ],
  [
    'part of a lake of which anything may have been read',
    (body) => body.replace('"complete":true', '"complete":false'),
    /not all is shown/,
  ],
  [
    'a result of a later version',
    (body) => body.replace('"knowledge": {"version":6', '"knowledge": {"version":7'),
    /too early/,
  ],
  [
    'a try behind its result',
    (body) => body.replace('"knowledge": {"version":6', '"knowledge": {"version":5'),
    /not named/,
  ],
  [
    'words that act on a terminal',
    (body) => body.replace(/"index":\d+,"name":"supply/, '"index":999,"name":"\\u001b[2K\\rvalid'),
    /^[ -~]*$/,
  ],
  ['a root that is no leaf', (body) => body.replace(/"inclusion":\[[^\]]*\]/, '"inclusion":[]'), /short/],
]

type Shown = { readonly members: readonly { readonly index: number; readonly name: string }[] }

/** The tries are left out, or their text, or the rules; so is their count. All that is shown leads to its root. */
async function hidden(root: string, body: string): Promise<readonly string[]> {
  using ledger = await Ledger.open(root)
  const told = JSON.parse(`${body}}`) as { readonly state: Shown; readonly tries: object }
  const without = (members: Shown['members']) =>
    rangeProof(
      namedLeaves(heldMembers(ledger)),
      members.map(({ index }) => index),
    )
  const firstOf = (group: string): object => {
    const all = heldMembers(ledger, group)
    const [[name, value] = ['', '']] = all
    return { members: [{ index: 0, name, value }], proof: rangeProof(namedLeaves(all), [0]) }
  }
  const others = told.state.members.filter((one) => one.name !== 'state')
  const another = (group: string) =>
    told.state.members.map((one) => (one.name === group ? { ...one, ...firstOf(group) } : one))
  const none = { count: 0, named_in: null }
  return (
    [
      [others, none],
      [another('state'), none],
      [another('rules'), told.tries],
    ] as const
  ).map(([members, tries]) => {
    const forged = { ...told, state: { members, proof: without(members) }, tries }
    const lines = Object.entries(forged).map(([key, one]) => `${JSON.stringify(key)}: ${JSON.stringify(one)}`)
    return `{\n${lines.join(',\n')}`
  })
}

test('L6: a certificate without its tries or rules, or not compared with the named head, is not valid', async () => {
  await withCertified(async ({ home, root, certificate, sealed }) => {
    const body = certificate.slice(0, certificate.lastIndexOf(',\n"signature": '))
    const forged = await hidden(root, body)
    for (const [n, one] of forged.entries()) writeFileSync(join(home, `hidden-${n}.json`), sealed(one))
    const { head } = JSON.parse(certificate) as { readonly head: string }
    const key = readKey(readFileSync(join(home, 'k.key'), 'utf8').trim())
    if (key === undefined) throw new Error('no key')
    // Words that would stand where the checker tells who vouches.
    const note = signedText(signedNote(key, head.slice(0, head.indexOf('\n\n') + 1).replace('\n', ', by your key\n')))
    writeFileSync(join(home, 'named.json'), sealed(body.replace(JSON.stringify(head), () => JSON.stringify(note))))
    writeFileSync(join(home, 'empty.txt'), '')
    const why = [/how many were tried/, /how many were tried/, /rules of .* are not shown/, /no checkpoint/, /^valid/]
    for (const checker of checkers) {
      const { lines } = checked(checker, home, [
        'hidden-0.json',
        'hidden-1.json',
        'hidden-2.json',
        'named.json',
        'c.json',
      ])
      expect(lines).toEqual(why.map((one) => expect.stringMatching(one)))
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
