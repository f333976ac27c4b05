// @module-tag full
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { withRealProvider } from '../helpers/real-provider.ts'

const fetched = ['fetch', '--assets', 'BTC', '--paths', 'supply/current_pit', '--since', '2026-02-25'] as const
const facts = 'SELECT synthetic, provider FROM lake_info'

test.each([
  ['placeholder', true],
  ['real', false],
] as const)('a lake filled through a proxy from a sandbox with %s names has synthetic %s', async (names, synthetic) =>
  withRealProvider({ proxied: true, options: { names } }, async ({ cwd, run, placeholdersSent }) => {
    expect(await run(...fetched)).toMatchObject({ code: 0 })
    const file = join(cwd, 'facts.json')
    expect(await run('sql', facts, '--out', file)).toMatchObject({ code: 0 })
    const [row] = JSON.parse(readFileSync(file, 'utf8')) as [{ synthetic: boolean; provider: string }]
    expect(row.synthetic).toBe(synthetic)
    expect(row.provider.startsWith('sandbox:')).toBe(synthetic)
    if (names === 'real') expect(placeholdersSent()).toEqual([])
  }),
)
