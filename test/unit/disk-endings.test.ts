import { expect, test } from 'vitest'
import { exitCode } from '../../src/base/errors.ts'
import { diskError } from '../../src/lake/store/disk.ts'

const failure = (code: string): Error => Object.assign(new Error(code), { code, path: '/data/points/x' })

test.each([
  ['ENOSPC', 6, /no space left on the disk; make room, then run the same command again/],
  ['EDQUOT', 6, /the disk quota is used up; make room/],
  ['EROFS', 6, /the file system is read-only; mount it writable/],
  ['EACCES', 6, /permission denied; give this user the right to write there/],
  ['EIO', 6, /input\/output error; check the disk, then run pitlake doctor/],
  ['EMFILE', 6, /too many open files; raise the limit/],
  ['ENOENT', 1, /not there any more/],
  ['EEXIST', 1, /there already/],
])('%s ends with %i, in words', (code, exit, words) => {
  const told = diskError(failure(code), 'commit')
  expect(exitCode(told)).toBe(exit)
  expect(String(told)).toMatch(words)
  expect(String(told)).toContain('/data/points/x')
})

test('disk errors that engines report in words only end with 6', () => {
  expect(exitCode(diskError(new Error('IO Error: Could not write: No space left on device'), 'merging'))).toBe(6)
  expect(exitCode(diskError(new Error('attempt to write a readonly database'), 'merging'))).toBe(6)
  const other = new Error('something else')
  expect(diskError(other, 'merging')).toBe(other)
})
