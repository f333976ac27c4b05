import { resolve } from 'node:path'
import { LakeError, usage } from '../errors.ts'
import { givenThat } from '../lookahead/assumed.ts'
import { noteTexts } from '../query/note.ts'
import { replay, type Replayed, stamp } from '../results/stamp.ts'
import { outFile } from '../store/output.ts'
import type { StampNote } from '../results/stamped.ts'
import { withinTime, timeoutOption } from './context.ts'
import { knowledgeFlags, knowledgeOf } from './flags.ts'
import { checkEnding, variablesOf } from './query.ts'
import { readGiven, stampedPath } from './given.ts'
import { answering, type Input } from './spec.ts'
import { programName } from './program.ts'
import { lakeWorld, openedLake } from './world.ts'

/** How the names of stamped files end. */
export const stampEndings: readonly string[] = ['.parquet', '.parq', '.pq']

/** `stamp FILE.sql --out R.parquet`: a result that can be made again, bit for bit. */
export const stampCommand = answering({
  args: { '<file>': 'the query; earlier statements of the file may set variables' },
  options: { '--out FILE': 'the Parquet file to write', ...knowledgeFlags, ...timeoutOption },
  details: `The footer of the file names the lake's version, the catalogue, the query, its variables and the digest of the result.
The version's files are kept by vacuum; pitlake replay runs the query again over exactly them. Both run on one thread, so
that sums repeat bit for bit.`,
  answer: async (call) => {
    const { settings, catalogue, stderr } = call
    const [file = ''] = call.args
    const { out } = call.options
    if (out === undefined) throw usage('--out', { expected: 'the Parquet file to write', got: 'nothing' })
    checkEnding(out, stampEndings)
    await openedLake(call)
    const path = resolve(call.cwd, out)
    outFile(path, settings.data).discard()
    const query = readGiven(call, file, 'a file that can be read')
    const what = { root: settings.data, catalogue, query, out: path, variables: allVariables(call) }
    const stamped = await stamp(what, withinTime(call), lakeWorld(call, 'stamp'))
    const { version, digest, noted = [] } = stamped
    for (const note of noteTexts(noted, 'terminal')) stderr(`note: ${note}\n`)
    const words = () => `${rowsOf(stamped)} of version ${version} stamped into ${out} (SHA-256 ${digest})\n`
    return { document: stamped, words }
  },
})

/** `replay R.parquet`: runs a stamped result again. */
export const replayCommand = answering({
  args: { '<file>': 'a Parquet file that pitlake stamp wrote' },
  options: { ...timeoutOption },
  details: 'Exit 0: every row is the same, bit for bit. Exit 4: the first difference, or a file that was changed.',
  answer: async (call) => {
    const { settings, stderr } = call
    const [file = ''] = call.args
    const done = await replay(settings.data, stampedPath(call, file), withinTime(call), programName())
    const { same, version, notes, noted = [] } = done
    for (const note of [...noteTexts(noted, 'terminal'), ...notes]) stderr(`note: ${note}\n`)
    const outcome = same ? `${rowsOf(done)} of version ${version}, the same bit for bit` : 'the result differs'
    return { document: done, words: () => `${outcome}\n`, error: same ? null : differs(done, file) }
  },
})

/** How many rows there are, and what they rest on. */
function rowsOf({ rows, assumes = [] }: StampNote): string {
  const given = givenThat(assumes, rows)
  return given === '' ? `${rows} rows` : `${rows} rows (${given})`
}

function differs({ difference }: Replayed, file: string): LakeError {
  const place = difference === null ? 'the rows' : `row ${difference.row}, ${difference.column ?? 'the whole row'}`
  return new LakeError('integrity', {
    subject: `${file}: ${place}`,
    expected: difference?.stamped ?? 'the stamped digest',
    got: difference?.replayed ?? 'another',
    next: 'run pitlake doctor to prove the files that it was made from',
  })
}

/** The session variables that the options name, `as_of` and `observed_as_of` among them. */
export function allVariables(call: Input<typeof knowledgeFlags>): StampNote['variables'] {
  const { asOf, observedAsOf } = knowledgeOf(call)
  return {
    ...variablesOf(call),
    ...(asOf !== undefined && { as_of: asOf }),
    ...(observedAsOf !== undefined && { observed_as_of: observedAsOf }),
  }
}
