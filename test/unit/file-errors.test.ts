// @module-tag alone
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, vi } from 'vitest'
import { LakeError, usage } from '../../src/base/errors.ts'
import { readEntryText } from '../../src/lake/ledger/packed-entry.ts'
import { readStampIfSound, stampFile } from '../../src/lake/ledger/stamps.ts'
import { entryFile, inLake, registryFile } from '../../src/lake/store/layout.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import { machineLack, requireFileError } from '../../src/lake/store/file-errors.ts'
import type * as Files from '../../src/lake/store/files.ts'
import { readFound } from '../../src/maintenance/upkeep/adopt-files.ts'
import { test } from '../helpers/lake-test.ts'

const failing = vi.hoisted(() => ({ code: '' }))
vi.mock('../../src/lake/store/files.ts', async (original) => {
  const real = await original<typeof Files>()
  const refuse = (path: string): void => {
    if (failing.code !== '') throw Object.assign(new Error(failing.code), { code: failing.code, path })
  }
  const readBytes: typeof real.readBytes = async (path) => {
    refuse(path)
    return await real.readBytes(path)
  }
  const readText: typeof real.readText = async (path) => {
    refuse(path)
    return await real.readText(path)
  }
  return { ...real, readBytes, readText }
})
afterEach(() => {
  failing.code = ''
  vi.restoreAllMocks()
})

const coded = (code: string): Error => Object.assign(new Error(code), { code })

test.for([
  [coded('ENOSPC'), /^reading x: ENOSPC: no space left on the disk; make room/],
  [coded('EMFILE'), /^reading x: EMFILE: too many open files; raise the limit/],
  [coded('ENOMEM'), /^reading x: ENOMEM: not enough memory/],
  [coded('EACCES'), /^reading x: EACCES: permission denied; give this user the right to read it/],
  [new RangeError('Array buffer allocation failed'), /^reading x: more memory than it may take; raise it/],
  [new Error('Out of Memory Error: failed to allocate'), /^reading x: more memory than it may take; raise it/],
  [new Error('IO Error: Cannot open file "x": Too many open files'), /too many open files; raise the limit/],
] as const)('%s is no damage of the file', ([error, words]) => {
  expect(() => requireFileError(error, 'reading x')).toThrow(words)
})

test.for([
  coded('ENOENT'),
  coded('Z_DATA_ERROR'),
  new SyntaxError('Unexpected end of JSON input'),
  new Error("Invalid Input Error: No magic bytes found at end of file 'x'"),
  usage('x', { expected: 'a Parquet file' }),
])('%s is about the file', (error) => {
  expect(() => requireFileError(error, 'reading x')).not.toThrow()
  expect(machineLack(error, 'reading x')).toBeUndefined()
})

test('an error that asks for another try is thrown again as it is', () => {
  const cancel = new LakeError('stopped', { subject: 'the query was cancelled' })
  expect(() => requireFileError(cancel, 'reading x')).toThrow(cancel)
})

test('an entry or a stamp that too many open files keep from being read is not damaged', async ({ root }) => {
  for (const file of [entryFile(1), stampFile('a')]) {
    mkdirSync(join(root, file, '..'), { recursive: true })
    writeFileSync(inLake(root, file), '{}')
  }
  await expect(readEntryText(root, 1)).rejects.toMatchObject({ kind: 'integrity' })
  expect(await readStampIfSound(root, 'a')).toBeUndefined()
  failing.code = 'EMFILE'
  await expect(readEntryText(root, 1)).rejects.toMatchObject({ kind: 'incomplete' })
  await expect(readStampIfSound(root, 'a')).rejects.toMatchObject({ kind: 'incomplete' })
})

test('a data file is not set aside because memory lacks to read it', async ({ root }) => {
  using engine = await Engine.open(':memory:', { threads: 1 })
  vi.spyOn(Engine.prototype, 'rows').mockRejectedValue(new Error('Out of Memory Error: failed to allocate'))
  const found = readFound({ engine, root }, registryFile('events', '0000000003-x', null), 'L')
  await expect(found).rejects.toThrow(/more memory than it may take; raise it/)
})
