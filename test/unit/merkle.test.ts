import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { consistencyProof, inclusionProof, leafHash, treeRoot } from '../../src/base/merkle/tree.ts'

const nodeHash = (left: string, right: string): string =>
  createHash('sha256')
    .update(Buffer.from(`01${left}${right}`, 'hex'))
    .digest('hex')

// What Certificate Transparency publishes: eight leaves, the roots over the first of them, and proofs.
const published = ['', '00', '10', '2021', '3031', '40414243', '5051525354555657', '606162636465666768696a6b6c6d6e6f']
const roots = [
  'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
  'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
  'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
  'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
  '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
  'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
  '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
]
const inclusions: readonly (readonly [index: number, size: number, proof: readonly string[]])[] = [
  [
    0,
    8,
    [
      '96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7',
      '5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e',
      '6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4',
    ],
  ],
  [
    5,
    8,
    [
      'bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b',
      'ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0',
      'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
    ],
  ],
  [2, 3, ['fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125']],
  [
    1,
    5,
    [
      '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
      '5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e',
      'bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b',
    ],
  ],
]
const consistencies: readonly (readonly [from: number, to: number, proof: readonly string[]])[] = [
  [1, 1, []],
  [1, 8, inclusions[0]?.[2] ?? []],
  [
    6,
    8,
    [
      '0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a',
      'ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0',
      'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
    ],
  ],
  [
    2,
    5,
    [
      '5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e',
      'bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b',
    ],
  ],
  [
    6,
    7,
    [
      '0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a',
      'b08693ec2e721597130641e8211e7eedccb4c26413963eee6c1e2ed16ffb1a5f',
      'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
    ],
  ],
]

const sha = (...parts: readonly Uint8Array[]): Buffer => createHash('sha256').update(Buffer.concat(parts)).digest()
const leaves = (n: number): string[] =>
  published.slice(0, n).map((hex) => leafHash(Buffer.from(hex, 'hex').toString('latin1')))

test('roots and proofs are those that are published', () => {
  for (const [n, root] of roots.entries()) expect(treeRoot(leaves(n)), `${n} leaves`).toBe(root)
  for (const [index, size, proof] of inclusions) expect(inclusionProof(leaves(size), index)).toEqual(proof)
  for (const [from, to, proof] of consistencies) expect(consistencyProof(leaves(to), from)).toEqual(proof)
})

// Another way to the same: levels from below, in which a node without a neighbour rises as it is.
function levelsOf(hashes: readonly Buffer[]): Buffer[][] {
  const levels = [[...hashes]]
  for (let last = levels[0] ?? []; last.length > 1; last = levels.at(-1) ?? []) {
    const next: Buffer[] = []
    for (let i = 0; i < last.length; i += 2) {
      const [left = Buffer.alloc(0), right] = last.slice(i, i + 2)
      next.push(right === undefined ? left : sha(Buffer.from([1]), left, right))
    }
    levels.push(next)
  }
  return levels
}

/** RFC 9162, 2.1.3.2: the root that a proof leads to; undefined where it has another length than it must. */
function ascended(index: number, size: number, leaf: Buffer, proof: readonly string[]): string | undefined {
  let fn = index
  let sn = size - 1
  let r = leaf
  for (const hex of proof) {
    if (sn === 0) return undefined
    const p = Buffer.from(hex, 'hex')
    if (fn % 2 === 1 || fn === sn) {
      r = sha(Buffer.from([1]), p, r)
      while (fn % 2 === 0 && fn !== 0) [fn, sn] = [fn >> 1, sn >> 1]
    } else r = sha(Buffer.from([1]), r, p)
    ;[fn, sn] = [fn >> 1, sn >> 1]
  }
  return sn === 0 ? r.toString('hex') : undefined
}

/** RFC 9162, 2.1.4.2: whether a proof leads from one root to the other. */
function continued(
  first: number,
  second: number,
  [from, to]: readonly [string, string],
  told: readonly string[],
): boolean {
  if (first === second) return told.length === 0 && from === to
  const proof = (first & (first - 1)) === 0 ? [from, ...told] : [...told]
  let fn = first - 1
  let sn = second - 1
  while (fn % 2 === 1) [fn, sn] = [fn >> 1, sn >> 1]
  const [start, ...rest] = proof
  if (start === undefined) return false
  let fr = start
  let sr = start
  for (const c of rest) {
    if (sn === 0) return false
    if (fn % 2 === 1 || fn === sn) {
      ;[fr, sr] = [nodeHash(c, fr), nodeHash(c, sr)]
      while (fn % 2 === 0 && fn !== 0) [fn, sn] = [fn >> 1, sn >> 1]
    } else sr = nodeHash(sr, c)
    ;[fn, sn] = [fn >> 1, sn >> 1]
  }
  return fr === from && sr === to && sn === 0
}

const full = process.env['PITLAKE_TREES'] === 'all'

test('roots and proofs of all sizes to 300 are those of brute force', () => {
  const texts = Array.from({ length: 300 }, (_, n) => `leaf ${n}`)
  const hashes = texts.map((text) => sha(Buffer.from([0]), Buffer.from(text)))
  const all = texts.map((text) => leafHash(text))
  expect(all).toEqual(hashes.map((hash) => hash.toString('hex')))
  const rootAt = [treeRoot([])]
  for (let size = 1; size <= 300; size++)
    rootAt.push(levelsOf(hashes.slice(0, size)).at(-1)?.[0]?.toString('hex') ?? '')
  for (let size = 1; size <= 300; size++) {
    const some = all.slice(0, size)
    expect(treeRoot(some)).toBe(rootAt[size])
    const stride = full ? 1 : 1 + (size >> 3)
    for (let at = size % stride; at < size; at += stride) {
      const leaf = hashes[at] ?? Buffer.alloc(0)
      const proof = inclusionProof(some, at)
      expect(ascended(at, size, leaf, proof), `${at} of ${size}`).toBe(rootAt[size])
      // Nor is it the proof of a neighbour, nor of another size.
      expect(ascended((at + 1) % size, size, leaf, proof) === rootAt[size]).toBe(size === 1)
      expect(ascended(at, size + 1, leaf, proof)).not.toBe(rootAt[size + 1] ?? 'none')
      const steps = consistencyProof(some, at + 1)
      const ends = [rootAt[at + 1] ?? '', rootAt[size] ?? ''] as const
      expect(continued(at + 1, size, ends, steps), `${at + 1} to ${size}`).toBe(true)
      expect(continued(at + 1, size, [rootAt[at] ?? '', ends[1]], steps)).toBe(false)
      for (const wrong of [steps.slice(1), [...steps, leafHash('')], steps.toReversed()])
        if (String(wrong) !== String(steps)) expect(continued(at + 1, size, ends, wrong)).toBe(false)
    }
  }
})
