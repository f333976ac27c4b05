import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  checkpointFile,
  decodeSegment,
  encodeSegment,
  entryFile,
  inLake,
  parseJournalName,
  parsePointsFile,
  parseRegistryFile,
  pointsFile,
  rawFile,
  registryFile,
} from '../../src/lake/store/layout.ts'

const text = fc.string({ unit: 'binary', minLength: 1, maxLength: 18 }).filter((s) => s.isWellFormed())

describe('segments', () => {
  it('come back for every unicode text and are safe names', () => {
    fc.assert(
      fc.property(text, (value) => {
        const segment = encodeSegment(value)
        expect(decodeSegment(segment)).toBe(value)
        expect(segment).toMatch(/^(?:[a-z0-9_\-.]|%[0-9A-F]{2})+$/)
        expect(segment).not.toMatch(/^\.|\.$/)
      }),
    )
  })
  it('keep texts apart that differ in case only', () => {
    fc.assert(
      fc.property(text, text, (a, b) => {
        fc.pre(a !== b)
        expect(encodeSegment(a).toLowerCase()).not.toBe(encodeSegment(b).toLowerCase())
      }),
    )
    expect(encodeSegment('btc').toLowerCase()).not.toBe(encodeSegment('BTC').toLowerCase())
  })
  it.each([
    ['.', '%2E'],
    ['..', '%2E%2E'],
    ['a.b.', 'a.b%2E'],
    ['indicators/sopr_pit', 'indicators%2Fsopr_pit'],
    ['null', '%6Eull'],
    ['$a b', '%24a%20b'],
  ])('%s is %s', (value, segment) => expect(encodeSegment(value)).toBe(segment))
  it('a path segment has at most 248 bytes', () => {
    expect(encodeSegment('x'.repeat(248))).toHaveLength(248)
    expect(encodeSegment('X'.repeat(82))).toHaveLength(246)
    expect(() => encodeSegment('X'.repeat(83))).toThrow('at most 248 bytes when encoded, got 249')
  })
  it.each(['', '\ud800', 'x'.repeat(249)])('refuses what cannot be a name: %j', (value) => {
    expect(() => encodeSegment(value)).toThrow(/expected/)
  })
})

describe('paths', () => {
  it('paths of points are parsed back into their parts', () => {
    fc.assert(
      fc.property(text, text, (metric, id) => {
        expect(parsePointsFile(pointsFile(metric, '1month', id))).toEqual({ metric, interval: '1month', id })
      }),
    )
    expect(parsePointsFile('points/metric=a/interval=2h/x.parquet')).toBeUndefined()
  })
  it('paths of registry tables are parsed back, those of raw bodies are not', () => {
    const dated = { table: 'products', id: 'a b', date: '2024-03-01' }
    expect(parseRegistryFile(registryFile('products', 'a b', '2024-03-01'))).toEqual(dated)
    expect(parseRegistryFile(registryFile('events', 'e', null))).toEqual({ table: 'events', id: 'e', date: null })
    expect(parseRegistryFile(rawFile('snapshot', 'x', '.json.zst'))).toBeUndefined()
  })
  it('paths of the journal are parsed back into versions', () => {
    expect(parseJournalName(entryFile(12).slice('journal/'.length))).toEqual({ kind: 'entry', version: 12 })
    expect(parseJournalName(checkpointFile(7).slice('journal/'.length))).toEqual({ kind: 'checkpoint', version: 7 })
    for (const name of ['.tmp-0000000001.json.gz', '0000000001.json']) expect(parseJournalName(name)).toBeUndefined()
  })
  it.each(['../x', 'points/../../x', '/etc/passwd', 'a\\..\\b'])('never leave the lake: %s', (path) => {
    expect(() => inLake('/lake', path)).toThrow(/inside the lake/)
  })
})
