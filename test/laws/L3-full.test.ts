// @module-tag full
import { spawnSync } from 'node:child_process'
import { cpSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { withPreset } from '../helpers/lakes/written-by-jobs.ts'
import { need } from '../helpers/needs.ts'
import { makeFolder } from '../helpers/folders.ts'

const program = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

test('a ledger rebuilt on a full disk says that it is full, wherever it ran out', async (context) => {
  need(context, 'mount')
  const root = makeFolder('full')
  expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=40m', 'tmpfs', root]).status).toBe(0)
  try {
    await withPreset('plain', async (kept) => {
      const lake = join(root, 'lake')
      cpSync(kept, lake, { recursive: true })
      for (const left of [0, 40_000, 150_000]) {
        rmSync(join(root, 'filler'), { force: true })
        for (const suffix of ['', '-wal', '-shm', '.rebuild', '.rebuild-wal', '.rebuild-shm'])
          rmSync(join(lake, `ledger.sqlite${suffix}`), { force: true })
        const { bavail, bsize } = statfsSync(root)
        writeFileSync(join(root, 'filler'), Buffer.alloc(Math.max(0, bavail * bsize - left)))
        const done = spawnSync(process.execPath, [program, 'doctor', '--rebuild-ledger', '--data', lake], {
          encoding: 'utf8',
        })
        expect([left, done.status, done.stderr]).toEqual([left, 6, expect.stringContaining('ENOSPC: no space left')])
        expect(done.stderr.trimEnd().split('\n')).toHaveLength(1)
      }
      rmSync(join(root, 'filler'))
      const mended = spawnSync(process.execPath, [program, 'doctor', '--rebuild-ledger', '--data', lake], {
        encoding: 'utf8',
      })
      expect(mended.stdout).toContain('mended')
    })
  } finally {
    spawnSync('umount', [root])
    rmSync(root, { recursive: true, force: true })
  }
})

test('too many open files are called that, wherever the number ran out', async (context) => {
  need(context, 'linux')
  await withPreset('plain', async (lake) => {
    let called = 0
    // How many a start of Node takes is not ours to say: below, it does not come up; above, all is well.
    for (const limit of [24, 27, 30, 34]) {
      const line = `ulimit -n ${limit}; exec "$0" "$@"`
      const args = ['-c', line, process.execPath, program, 'compact', '--data', lake]
      const { status, stderr } = spawnSync('bash', args, { encoding: 'utf8' })
      if (status === 0 || !stderr.includes('pitlake:')) continue
      expect([limit, stderr]).toEqual([limit, expect.stringContaining('EMFILE: too many open files; raise the limit')])
      expect(status).toBe(6)
      called++
    }
    expect(called).toBeGreaterThan(0)
  })
})
