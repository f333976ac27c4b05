// @module-tag full
// @module-tag slow
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { need } from '../helpers/needs.ts'
import { sample } from '../helpers/tiers.ts'
import { lateDaysAndProducts } from '../helpers/lakes/late-days-and-products.ts'
import { openTestLake } from '../helpers/lakes/make-lake.ts'

const project = join(import.meta.dirname, '../..')

/** What each function of test/python/ahead.py is to be told. */
const verdicts: Readonly<Record<string, readonly [verdict: string, reason: RegExp]>> = {
  normalised: ['leak', /./],
  centred: ['leak', /./],
  filled: ['leak', /./],
  shifted: ['leak', /./],
  scaled: ['leak', /./],
  resampled: ['leak', /./],
  interpolated: ['leak', /./],
  daily: ['leak', /./],
  of_later: ['leak', /./],
  honest: ['clean', /^null$/],
  wondering: ['clean', /^null$/],
  trailing: ['clean', /^null$/],
  expanding: ['clean', /^null$/],
  of_then: ['clean', /^null$/],
  raising: ['undecided', /raises as of 2024-03-.*ValueError: nothing new came/],
  broken: ['undecided', /raises on the whole lake: KeyError/],
  drawn: ['undecided', /not deterministic/],
  reading: ['undecided', /raises on the whole lake: LakeError: .*got read_parquet\(\).*frames=/],
  signalled: ['clean', /^null$/],
  hurried: ['leak', /./],
  spelled: ['leak', /./],
  spelled_then: ['clean', /^null$/],
  dated: ['leak', /./],
  dated_then: ['clean', /^null$/],
  fraction: ['leak', /calendar ends earlier/],
  hour_size: ['leak', /calendar ends earlier/],
  hour_place: ['clean', /^null$/],
  own_fraction: ['leak', /calendar ends earlier/],
  given_fraction: ['leak', /calendar ends earlier/],
  own_instants: ['clean', /^null$/],
  nothing: ['undecided', /no column ts/],
  text: ['error', /a frame of pandas, polars or pyarrow, got str/],
}

interface Told {
  readonly name: string
  readonly verdict: string
  readonly reason: string | null
  readonly notes?: readonly string[]
}

test('functions in pandas: leaks are found, honest ones pass, the rest is undecided with a reason', async (context) => {
  const python = need(context, 'peers')
  // The one that is noted is among them whatever is drawn.
  const names = [...new Set(['wondering', ...sample(Object.keys(verdicts), 4, 5)])]
  const lake = await openTestLake(lateDaysAndProducts)
  try {
    const command = `node ${join(project, 'src/main.ts')}`
    const env = { ...process.env, PYTHONPATH: join(project, 'python'), PITLAKE_COMMAND: command }
    const out = execFileSync(python, ['test/python/ahead.py', lake.root, ...names], {
      cwd: project,
      encoding: 'utf8',
      env: { ...env, PYTHONDONTWRITEBYTECODE: '1' },
    })
    const told = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Told)
    expect(told.map(({ name }) => name).toSorted()).toEqual(names.toSorted())
    for (const { name, verdict, reason, notes = [] } of told) {
      const about = name === 'wondering' ? [expect.stringMatching(/^nothing is stored of .* for asset 'BTX'/)] : []
      expect(notes.filter((note) => note.includes('BTX'))).toEqual(about)
      const own = notes.filter((note) => note.includes('instants of its own'))
      expect(own, name).toHaveLength(name === 'own_instants' ? 1 : 0)
      const [expected, words] = verdicts[name] ?? ['', /^$/]
      expect([name, verdict]).toEqual([name, expected])
      expect(String(reason), name).toMatch(words)
    }
  } finally {
    lake.remove()
  }
}, 1_200_000)
